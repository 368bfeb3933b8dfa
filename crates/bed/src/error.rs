//! Why a bed could not be had.

use std::{io, path::PathBuf, process::ExitStatus};

/// Why a bed could not be started or steered.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// A program that the bed is made of is not on this machine. Tests skip on it, see [`or_skip`](crate::or_skip).
    #[error("{what} is not there: {remedy}")]
    Absent {
        /// The program.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A file, folder, port or process of the bed was refused by the system.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate or key could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A server ended before it was ready.
    #[error("{server} ended ({status}) before it was ready; {log} ends with:\n{tail}", log = .log.display())]
    Ended {
        /// The server.
        server: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// Its log, kept.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A server runs and does not become ready, or does not end when asked to.
    #[error("{server} was not {awaited} after {seconds} s; {log} ends with:\n{tail}", log = .log.display())]
    Late {
        /// The server.
        server: &'static str,
        /// What it should have become.
        awaited: &'static str,
        /// How long that was awaited.
        seconds: u64,
        /// Its log, kept.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A server runs and announces itself with a line that a bed cannot use.
    #[error("{server} announced itself with {line:?}, which has no https:// address; see {log}", log = .log.display())]
    Announcement {
        /// The server.
        server: &'static str,
        /// What it said.
        line: String,
        /// Its log, kept.
        log: PathBuf,
    },
    /// The kubeconfig of the bed does not say what a client needs.
    #[error("the kubeconfig {path} cannot be used: {why}", path = .path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl BedError {
    /// The error for something that the system refused.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
