//! One bed for the tests of a process: starting a server for each would cost more than the tests.
//!
//! A shared bed lives until the process ends, also while no test uses it for a moment. Nothing is dropped at that point,
//! so its servers end by their watchers, and its folder is swept by a broom that was left waiting for the same moment.

use std::{
    io::{self, Write as _},
    ops::Deref,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex as Lock, PoisonError},
    thread,
};

use tokio::sync::Mutex;

use crate::{Bed, BedError, Kind, kubernetes::BUILT_INTO_THE_HUB};

/// Waits for our end, lets the servers go first, and removes the folder.
const SWEEP: &str = r#"read -r _; sleep 1; exec rm -rf -- "$1""#;

/// A bed that others use as well: it can be read and written, not stopped. It ends with the process.
#[derive(Debug, Clone)]
pub struct Shared(Arc<Standing>);

#[derive(Debug)]
struct Standing {
    bed: Bed,
    /// Gone when the folder is to be kept.
    broom: Lock<Option<Child>>,
}

impl Deref for Shared {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.0.bed
    }
}

impl Shared {
    pub(crate) fn of(bed: Bed) -> Result<Self, BedError> {
        Ok(Self(Arc::new(Standing::new(bed)?)))
    }

    /// The bed to do with as one likes, while nobody else has it.
    pub fn get_mut(&mut self) -> Option<&mut Bed> {
        Arc::get_mut(&mut self.0).map(|standing| &mut standing.bed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if thread::panicking() {
            // Others may well pass; the logs are wanted for this one.
            self.0.keep();
        }
    }
}

impl Standing {
    fn new(bed: Bed) -> Result<Self, BedError> {
        let broom = if bed.is_kept() { None } else { Some(broom(bed.folder())?) };
        Ok(Self { bed, broom: Lock::new(broom) })
    }

    fn keep(&self) {
        let broom = self.broom.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut broom) = broom {
            // A broom that is gone already leaves nothing to do.
            let _ = broom.kill().and_then(|()| broom.wait());
            let _ = writeln!(
                io::stderr(),
                "the data and logs of the shared bed are kept in {}",
                self.bed.folder().display()
            );
        }
    }
}

fn broom(folder: &Path) -> Result<Child, BedError> {
    // In a group of its own: an interrupt at the terminal ends us, and the broom has work to do then.
    let spawned = Command::new("/bin/sh")
        .args(["-c", SWEEP, "berth-bed"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn();
    spawned.map_err(BedError::system("leave a broom for a shared bed"))
}

type Slot = Mutex<Option<Arc<Standing>>>;

/// Held while a bed starts, so that those who want it meanwhile wait for it.
static HUB: Slot = Mutex::const_new(None);
static KUBERNETES: Slot = Mutex::const_new(None);
static MANAGED: Slot = Mutex::const_new(None);

/// With `managed`, what the hub does by itself is done on Kubernetes too, by its controllers.
pub(crate) async fn get(kind: Kind, managed: bool) -> Result<Shared, BedError> {
    let slot = match kind {
        Kind::Hub => &HUB,
        Kind::Kubernetes if managed => &MANAGED,
        Kind::Kubernetes => &KUBERNETES,
    };
    let mut current = slot.lock().await;
    if let Some(standing) = &*current {
        return Ok(Shared(Arc::clone(standing)));
    }
    let started = match kind {
        Kind::Hub => Bed::hub().await?,
        Kind::Kubernetes if managed => {
            Bed::kubernetes().without_fsync().controller_manager(&[BUILT_INTO_THE_HUB]).await?
        }
        Kind::Kubernetes => Bed::kubernetes().without_fsync().await?,
    };
    let shared = Shared::of(started)?;
    *current = Some(Arc::clone(&shared.0));
    Ok(shared)
}
