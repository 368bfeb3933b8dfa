//! Berth's own API server, started as a user starts it.
//!
//! The contract with `berth hub --data DIR --listen ADDRESS --kubeconfig FILE`: once it serves, it has written the
//! administrator's kubeconfig with its certificates embedded, and prints one line with its address to standard output.

use std::{
    future::{Future, IntoFuture},
    path::{Path, PathBuf},
    pin::Pin,
    process::Command,
};

use crate::{Bed, BedError, Kind, bed::Launch, folder::Folder, port::Port, tools};

/// What kind of hub bed to start. Awaiting it starts it.
#[derive(Debug, Clone, Default)]
#[must_use = "a bed starts when it is awaited"]
pub struct Hub {
    program: Option<PathBuf>,
    has_controllers: bool,
    data: Option<PathBuf>,
    flags: Vec<String>,
}

impl Hub {
    /// Another `berth` than the one cargo built or `BERTH_BIN` names.
    pub fn program(mut self, berth: impl Into<PathBuf>) -> Self {
        self.program = Some(berth.into());
        self
    }

    /// With the fleet's definitions, admission and controllers in the same process: `berth up`.
    pub fn with_controllers(mut self) -> Self {
        self.has_controllers = true;
        self
    }

    /// A data directory that is there already, as one restored from a backup. It is not the bed's to remove.
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// More flags of `berth hub`.
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(ToString::to_string));
        self
    }

    async fn start(self) -> Result<Bed, BedError> {
        let berth = self.program.map_or_else(tools::berth, Ok)?;
        knows_hub(&berth)?;
        let port = Port::reserve().map_err(BedError::system("reserve a port"))?;
        let folder = Folder::new()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let data = self.data.unwrap_or_else(|| folder.path().join("data"));
        let mut arguments = vec![
            if self.has_controllers { "up" } else { "hub" }.to_owned(),
            format!("--data={}", data.display()),
            format!("--listen=127.0.0.1:{}", port.number()),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        arguments.extend(self.flags);
        let launch = Launch { name: "hub", program: berth, arguments, announces: true };
        Bed::raise(Kind::Hub, launch, kubeconfig, Vec::new(), true, vec![port], folder).await
    }
}

/// A binary of an earlier day has no hub: that is an absent bed, not a broken one.
fn knows_hub(berth: &Path) -> Result<(), BedError> {
    let help = Command::new(berth).args(["hub", "--help"]).output();
    let help = help.map_err(BedError::system(format!("run {}", berth.display())))?;
    if help.status.success() {
        return Ok(());
    }
    Err(BedError::Absent {
        what: format!("the hub in {}", berth.display()),
        remedy: "this berth has no `hub` command; run cargo build -p berth, or name another in BERTH_BIN",
    })
}

impl IntoFuture for Hub {
    type Output = Result<Bed, BedError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}
