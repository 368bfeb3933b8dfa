//! `berth hub restore`: a backup becomes the data of a hub.
//!
//! Owns what may be restored over what. The store's crate checks the backup and puts it in place.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use berth_hub_store::{BackendError, Restored, StoreError, restore, restore_over};
use clap::{Args, ValueHint};

use super::{KUBECONFIG, default_data};
use crate::console::{Console, Outcome};

/// What a hub keeps beside its store; a folder with one of them is a hub's.
const OURS: [&str; 3] = ["pki", KUBECONFIG, "hub.lock"];

/// Arguments of `berth hub restore`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  berth hub restore --data ./again monday.backup\n  berth hub restore --replace --data ./hub monday.backup"
)]
pub struct RestoreArgs {
    /// The data directory to restore into, which must not have a store yet [default: the hub's default].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,

    /// Put the backup in the place of the store that is there, which is kept beside it under another name.
    #[arg(long)]
    pub replace: bool,

    /// The backup, as `berth hub backup` wrote it.
    #[arg(value_name = "BACKUP", value_hint = ValueHint::FilePath)]
    pub backup: PathBuf,
}

/// Restores, and says what is there now.
pub(super) fn run(args: &RestoreArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let data = match &args.data {
        Some(data) => data.clone(),
        None => default_data()?,
    };
    let backup = &args.backup;
    if !backup.try_exists().with_context(|| format!("{}: the backup cannot be read", backup.display()))? {
        bail!("{}: there is no such backup", backup.display());
    }
    refuse_foreign(&data)?;
    let (restored, aside) = if args.replace {
        restore_over(backup, &data).map_err(|error| refusal(error, &data))?
    } else {
        (restore(backup, &data).map_err(|error| refusal(error, &data))?, None)
    };
    let Restored { objects, backup_revision, .. } = restored;
    writeln!(console.out, "{objects} objects as of revision {backup_revision} are in {}", data.display())?;
    if let Some(aside) = aside {
        writeln!(console.out, "the store that was there is now {}", aside.display())?;
    }
    Ok(Outcome::Done)
}

/// A folder of something else is more likely a slip than a wish.
fn refuse_foreign(data: &Path) -> anyhow::Result<()> {
    let unreadable = || format!("{}: the data directory cannot be read", data.display());
    let mut entries = match std::fs::read_dir(data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(unreadable)?,
    };
    let empty = entries.next().transpose().with_context(unreadable)?.is_none();
    if empty || OURS.iter().any(|name| data.join(name).exists()) {
        return Ok(());
    }
    bail!(
        "{}: it has files that are not a hub's; give an empty or a new directory with --data",
        data.display()
    )
}

fn refusal(error: StoreError, data: &Path) -> anyhow::Error {
    let advice = match &error {
        StoreError::Backend(BackendError::InUse { .. }) => {
            format!(
                "{}: a hub runs on this data; stop it first, or give another directory with --data",
                data.display()
            )
        }
        StoreError::Backend(BackendError::Exists { .. }) => {
            format!(
                "{}: it has a store already; give another directory with --data, or --replace it",
                data.display()
            )
        }
        _ => return anyhow::Error::new(error).context("nothing was restored"),
    };
    anyhow::anyhow!(advice)
}
