//! `berth hub`: the API server in this process, and copies of its data.
//!
//! Owns the flags and where a hub's files are when none is given. Never answers a request: that is the hub's crate.

mod backup;
mod restore;
mod serve;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use crate::console::{Console, Outcome};
use crate::service::LogArgs;

pub use backup::BackupArgs;
pub use restore::RestoreArgs;
pub use serve::{ServeArgs, WebhookService};

pub(crate) use serve::{Place, Station, on_threads};

/// The kubeconfig's name in a data directory.
pub(crate) const KUBECONFIG: &str = "kubeconfig";

/// Arguments of `berth hub`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  berth hub\n  berth hub --data ./hub --listen 127.0.0.1:0\n  KUBECONFIG=./hub/kubeconfig kubectl get namespaces\n  berth hub --in-memory --kubeconfig ./kubeconfig\n  berth hub backup --kubeconfig ./hub/kubeconfig monday.backup\n  berth hub restore --data ./again monday.backup"
)]
pub struct HubArgs {
    /// What to do with a hub other than run it.
    #[command(subcommand)]
    pub command: Option<HubCommand>,

    /// How to run it.
    #[command(flatten)]
    pub serve: ServeArgs,

    /// How much to tell.
    #[command(flatten)]
    pub log: LogArgs,
}

/// What can be done with a hub besides running it.
#[derive(Debug, Subcommand)]
pub enum HubCommand {
    /// Copy the data of a running hub into a file.
    ///
    /// The hub goes on working meanwhile; the copy is of one moment. It is checked by restoring it once, and appears
    /// under its name only when it is whole. It holds every Secret: only its owner may read it. Keys and certificates
    /// (the folder pki of the data directory) are not in it.
    Backup(BackupArgs),
    /// Make a backup the data of a hub that does not run.
    ///
    /// Clients see revisions they have not seen before, and list everything anew. A data directory that still has its
    /// keys (pki) keeps them, and with them the kubeconfigs that were given out.
    Restore(RestoreArgs),
}

/// Runs a hub, or does something with one.
pub fn run(args: HubArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    match args.command {
        None => serve::run(args.serve, &args.log, console),
        Some(HubCommand::Backup(args)) => backup::run(&args, console),
        Some(HubCommand::Restore(args)) => restore::run(&args, console),
    }
}

/// Where a hub keeps its data unless it is told: in the user's data folder.
pub(crate) fn default_data() -> anyhow::Result<PathBuf> {
    let from = |name| std::env::var_os(name);
    data_of(from("XDG_DATA_HOME"), from("HOME")).context(
        "the hub's data has no place, as neither XDG_DATA_HOME nor HOME is set; give one with --data",
    )
}

/// A relative `XDG_DATA_HOME` is to be ignored, says its specification; and it would move with the working directory.
fn data_of(data_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let base =
        data_home.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".local/share")))?;
    Some(base.join("berth"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_goes_to_the_users_data_folder() {
        let path = |xdg: Option<&str>, home: Option<&str>| {
            data_of(xdg.map(OsString::from), home.map(OsString::from)).map(|path| path.display().to_string())
        };
        assert_eq!(path(Some("/data"), Some("/home/a")).as_deref(), Some("/data/berth"));
        assert_eq!(path(None, Some("/home/a")).as_deref(), Some("/home/a/.local/share/berth"));
        assert_eq!(path(Some(""), Some("/home/a")).as_deref(), Some("/home/a/.local/share/berth"));
        assert_eq!(path(Some("relative"), Some("/home/a")).as_deref(), Some("/home/a/.local/share/berth"));
        assert_eq!(path(None, None), None);
    }
}
