//! A further program of a bed: one that works on the bed's API server, as the controllers do.
//!
//! The contract with the program: it takes `--kubeconfig FILE`, and prints one line to standard output once it works.
//! [`Companion::launch`] starts one of other make.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use crate::{Bed, BedError, process::Process, tools};

/// How long a companion may take to announce itself. It takes moments; a busy machine takes more.
const READY: Duration = Duration::from_mins(2);

/// How long a companion may take to end when asked to: it finishes what it has begun to write.
const END: Duration = Duration::from_mins(1);

/// A program beside the API server of a bed, with the administrator's kubeconfig. It can be paused, killed and started
/// again under the scenario's feet, and ends when it is dropped, or with the process that started it.
#[derive(Debug)]
pub struct Companion {
    process: Option<Process>,
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
    announcement: String,
}

impl Companion {
    /// Starts `berth COMMAND --kubeconfig FILE FLAGS` and waits for its line. `name` is that of its log.
    pub async fn berth(
        bed: &Bed,
        name: &'static str,
        command: &str,
        flags: &[&str],
    ) -> Result<Self, BedError> {
        Self::berth_with(bed, bed.kubeconfig(), name, command, flags).await
    }

    /// The same with another kubeconfig than the administrator's, as where it goes another way to the API server.
    pub async fn berth_with(
        bed: &Bed,
        kubeconfig: &Path,
        name: &'static str,
        command: &str,
        flags: &[&str],
    ) -> Result<Self, BedError> {
        Self::begin(bed, tools::berth()?, kubeconfig, name, command, flags).await
    }

    /// The same with another `berth` than the one cargo built or `BERTH_BIN` names.
    pub async fn program(
        bed: &Bed,
        name: &'static str,
        program: PathBuf,
        command: &str,
        flags: &[&str],
    ) -> Result<Self, BedError> {
        Self::begin(bed, program, bed.kubeconfig(), name, command, flags).await
    }

    /// Starts any program with these arguments and waits for nothing: for one that announces nothing, or whose start is
    /// what matters. `name` is that of its log.
    pub fn launch(
        bed: &Bed,
        name: &'static str,
        program: PathBuf,
        arguments: Vec<String>,
    ) -> Result<Self, BedError> {
        let folder = bed.folder().to_owned();
        let mut companion =
            Self { process: None, name, program, arguments, folder, announcement: String::new() };
        companion.launch_again()?;
        Ok(companion)
    }

    async fn begin(
        bed: &Bed,
        program: PathBuf,
        kubeconfig: &Path,
        name: &'static str,
        command: &str,
        flags: &[&str],
    ) -> Result<Self, BedError> {
        knows(&program, command)?;
        let mut arguments = vec![command.to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
        arguments.extend(flags.iter().map(ToString::to_string));
        Self::announced(bed, name, program, arguments).await
    }

    /// Starts any program with any arguments, and waits for its line. It finds the API server by itself.
    pub async fn announced(
        bed: &Bed,
        name: &'static str,
        program: PathBuf,
        arguments: Vec<String>,
    ) -> Result<Self, BedError> {
        let mut companion = Self {
            process: None,
            name,
            program,
            arguments,
            folder: bed.folder().to_owned(),
            announcement: String::new(),
        };
        companion.start().await.inspect_err(|_| bed.keep())?;
        Ok(companion)
    }

    /// Starts it again, with the same arguments, and waits for its line. No-op when it runs.
    pub async fn start(&mut self) -> Result<(), BedError> {
        if self.process.is_none() {
            let mut process = self.spawn()?;
            self.announcement = process.announcement(&self.folder, READY).await?;
            self.process = Some(process);
        }
        Ok(())
    }

    /// Starts it again without waiting for anything, as where it cannot work yet. No-op when it runs.
    pub fn launch_again(&mut self) -> Result<(), BedError> {
        if self.process.is_none() {
            self.process = Some(self.spawn()?);
        }
        Ok(())
    }

    fn spawn(&self) -> Result<Process, BedError> {
        Process::start(self.name, &self.program, &self.arguments, &self.folder, true)
    }

    /// Asks it to end, as an operator would, and waits until it has. No-op when it does not run.
    pub async fn stop(&mut self) -> Result<(), BedError> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        process.stop(END).await
    }

    /// Ends it as a crash would. No-op when it does not run.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Freezes it: its connections stay open and nothing happens.
    pub fn pause(&self) -> Result<(), BedError> {
        self.process.as_ref().map_or(Ok(()), Process::pause)
    }

    /// Lets a paused companion go on.
    pub fn resume(&self) -> Result<(), BedError> {
        self.process.as_ref().map_or(Ok(()), Process::resume)
    }

    /// How it ended, if it did by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.as_mut().and_then(Process::ended)
    }

    /// The line it printed when it began to work.
    pub fn announcement(&self) -> &str {
        &self.announcement
    }

    /// The process number, unless it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// What it logged so far, over all its starts.
    pub fn log(&self) -> String {
        let path = self.folder.join(format!("{}.log", self.name));
        fs::read(path).map_or_else(
            |error| format!("(the log cannot be read: {error})"),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }
}

/// A binary of an earlier day lacks commands: that is an absent companion, not a broken one.
fn knows(berth: &Path, command: &str) -> Result<(), BedError> {
    let help = Command::new(berth).args([command, "--help"]).output();
    let help = help.map_err(BedError::system(format!("run {}", berth.display())))?;
    if help.status.success() {
        return Ok(());
    }
    Err(BedError::Absent {
        what: format!("the command `{command}` of {}", berth.display()),
        remedy: "run cargo build -p berth, or name another in BERTH_BIN",
    })
}
