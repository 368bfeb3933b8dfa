//! `berth hub backup`: the data of a running hub, in a file.
//!
//! Owns asking for the copy, and that no half of one is ever left under the name that was asked for.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use berth_hub::BACKUP_PATH;
use berth_hub_store::{Restored, restore};
use clap::{Args, ValueHint};
use http_body_util::{BodyExt as _, Limited};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::console::{Console, Outcome};
use crate::fleet::connect::{self, Otherwise, ServerArgs};

/// How much of a refusal is read, in bytes: a message, not a file.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Arguments of `berth hub backup`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  berth hub backup monday.backup\n  berth hub backup --kubeconfig ./hub/kubeconfig monday.backup"
)]
pub struct BackupArgs {
    /// The kubeconfig of an administrator of the hub [default: what $KUBECONFIG names, else the one in the default data
    /// directory].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,

    /// The file to write; it must not exist yet.
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
}

/// Writes the backup and says what is in it.
pub(super) fn run(args: &BackupArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let out = &args.out;
    if out.symlink_metadata().is_ok() {
        return Err(exists(out));
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unwritable = || format!("{}: the backup cannot be written", out.display());
    if !folder.is_dir() {
        bail!("{}: there is no folder {}; make it first", unwritable(), folder.display());
    }
    // In the folder it goes to, as only there it can get its name in one step; readable by its owner only.
    let mut partial =
        tempfile::Builder::new().prefix(".berth-backup-").tempfile_in(folder).with_context(unwritable)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(fetch(args.kubeconfig.clone(), &mut partial))?;
    partial.as_file().sync_all().with_context(unwritable)?;
    let checked = check(partial.path(), folder)?;
    partial.persist_noclobber(out).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(out),
        _ => anyhow!(error.error).context(unwritable()),
    })?;
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(unwritable)?;
    let Restored { objects, backup_revision, .. } = checked;
    writeln!(console.out, "{objects} objects at revision {backup_revision} in {}", out.display())?;
    Ok(Outcome::Done)
}

fn exists(out: &Path) -> anyhow::Error {
    anyhow!("{}: it exists already; name another file, or move it away first", out.display())
}

/// Asks the hub for its data, and writes what it sends as it comes.
async fn fetch(kubeconfig: Option<PathBuf>, partial: &mut NamedTempFile) -> anyhow::Result<()> {
    let server = connect::find(&ServerArgs { kubeconfig, context: None }, Otherwise::Hub).await?;
    let url = server.url();
    let unreachable = || {
        format!("the hub at {url} does not answer; a hub that does not run is copied with its data directory")
    };
    let client = Client::try_from(server.config).with_context(|| format!("{url} cannot be talked to"))?;
    let request = http::Request::get(BACKUP_PATH).body(Body::empty()).expect("a constant request");
    let response = client.send(request).await.with_context(unreachable)?;
    let status = response.status();
    let mut body = response.into_body();
    if !status.is_success() {
        let told =
            Limited::new(body, REFUSAL_BYTES_MAX).collect().await.map(http_body_util::Collected::to_bytes);
        let told = told.unwrap_or_default();
        let message = serde_json::from_slice(&told)
            .ok()
            .and_then(|status: Value| Some(status["message"].as_str()?.to_owned()));
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(&told).trim().to_owned());
        bail!("{url} gives no backup ({}): {message}", status.as_u16());
    }
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| anyhow!("the hub at {url} stopped in the middle of the backup: {error}"))?;
        if let Some(bytes) = frame.data_ref() {
            partial.write_all(bytes).context("the backup cannot be written")?;
        }
    }
    Ok(())
}

/// The one proof that a backup can be restored is to restore it.
fn check(backup: &Path, folder: &Path) -> anyhow::Result<Restored> {
    let trial = tempfile::Builder::new().prefix(".berth-restore-").tempdir_in(folder)?;
    restore(backup, trial.path()).context("what the hub sent cannot be restored; nothing was kept")
}
