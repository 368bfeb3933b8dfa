//! What can go wrong with certificates and keys, said so that the reader knows what to do.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Why the authority, a certificate or a kubeconfig is not to be had. None of these passes by retrying.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file could not be read or written.
    #[error("cannot {action} {}: {cause}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said. It is in the message, so it is not a source.
        cause: io::Error,
    },
    /// A file is there but not what it should be.
    #[error(
        "{} is broken: {problem}; restore it from a backup, or remove it to have a new one made (clients then need \
         new credentials)", path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The CA has lived its time.
    #[error("the certificate authority in {} has expired; remove the file to have a new one made, then give clients new credentials", path.display())]
    CaExpired {
        /// The file.
        path: PathBuf,
    },
    /// A name cannot stand in a certificate.
    #[error("{name:?} cannot be used in a certificate: {problem}")]
    BadName {
        /// The name.
        name: String,
        /// Why not.
        problem: String,
    },
    /// The cryptographic library refused.
    #[error("cannot issue a certificate: {0}")]
    Issue(String),
    /// TLS could not be set up with the certificates at hand.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// There is a file in the way that this program did not write.
    #[error("{} was not written by berth; give another file, or move it away", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
}

impl AuthorityError {
    pub(crate) fn io(action: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), cause }
    }

    pub(crate) fn broken(path: &Path, problem: impl Display) -> Self {
        Self::Broken { path: path.to_owned(), problem: problem.to_string() }
    }
}
