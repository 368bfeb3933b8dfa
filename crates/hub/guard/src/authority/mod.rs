//! The authority: the hub's own CA, the certificates it gives out, and the key that signs service account tokens.
//!
//! Owns what is kept on disk (`ca.pem`, `serving.pem`, `service-accounts.pem`, each certificate with its key in
//! one file so that no crash can leave half of a pair) and when a certificate is issued anew. The CA is made once
//! and stays: clients trust it. Never reads a clock; the time is always given.

mod ca;
mod der;
mod error;
mod file;
mod issue;
mod kubeconfig;
mod pem;
mod serving;
mod tls;

pub use ca::{Ca, Certificate};
pub use error::AuthorityError;
pub use issue::{Identity, SERVING_NAMES};
pub use kubeconfig::{Kubeconfig, write_kubeconfig};
pub use serving::Serving;
pub(crate) use tls::CREDENTIAL_ID;
pub use tls::{Peer, PeerVerifier, crypto_provider};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use crate::token::SigningKey;

const CA_FILE: &str = "ca.pem";
const CA_PUBLIC_FILE: &str = "ca.crt";
const SERVING_FILE: &str = "serving.pem";
const SIGNING_FILE: &str = "service-accounts.pem";

/// The hub's certificate authority and token signing key.
#[derive(Debug)]
pub struct Authority {
    /// `None` keeps everything in memory.
    dir: Option<PathBuf>,
    ca: Ca,
    signing: Arc<SigningKey>,
}

impl Authority {
    /// Opens the authority kept in `dir`, creating it on the first start.
    pub fn open(dir: &Path, now: Timestamp) -> Result<Self, AuthorityError> {
        file::create_private_dir(dir).map_err(|cause| AuthorityError::io("create", dir, cause))?;
        #[cfg(unix)]
        for path in [dir.to_owned(), dir.join(CA_FILE), dir.join(SERVING_FILE), dir.join(SIGNING_FILE)] {
            if file::close_to_others(&path).map_err(|cause| AuthorityError::io("close", &path, cause))? {
                tracing::warn!(
                    "{} could be read by others; it is closed to them now, but a key that was seen must be replaced",
                    path.display()
                );
            }
        }
        let ca_path = dir.join(CA_FILE);
        let ca_text = if let Some(text) = read(&ca_path)? {
            text
        } else {
            let text = issue::new_ca(issue::CA_NAME, now, issue::CA_LIFE)?;
            write(&ca_path, &text)?;
            text
        };
        let signing_path = dir.join(SIGNING_FILE);
        let signing_text = if let Some(text) = read(&signing_path)? {
            text
        } else {
            let text = issue::new_key()?.serialize_pem();
            write(&signing_path, &text)?;
            text
        };
        let authority = Self::from_texts(Some(dir), &ca_text, &signing_text, now)?;
        // For people and programs that want to trust the hub: the certificate without its key.
        let public = dir.join(CA_PUBLIC_FILE);
        if read(&public)?.as_deref() != Some(authority.ca_pem()) {
            write(&public, authority.ca_pem())?;
        }
        Ok(authority)
    }

    /// An authority that lives and dies with the process, for tests and in-process hubs.
    pub fn in_memory(now: Timestamp) -> Result<Self, AuthorityError> {
        let signing = issue::new_key()?.serialize_pem();
        Self::from_texts(None, &issue::new_ca(issue::CA_NAME, now, issue::CA_LIFE)?, &signing, now)
    }

    fn from_texts(
        dir: Option<&Path>,
        ca: &str,
        signing: &str,
        now: Timestamp,
    ) -> Result<Self, AuthorityError> {
        let place = |name: &str| dir.map_or_else(|| PathBuf::from(name), |dir| dir.join(name));
        let ca_path = place(CA_FILE);
        let ca = Ca::read(issue::CA_NAME, ca, &ca_path)?;
        if ca.certificate().not_after <= now {
            return Err(AuthorityError::CaExpired { path: ca_path });
        }
        let signing = SigningKey::from_pem(signing)
            .map_err(|error| AuthorityError::broken(&place(SIGNING_FILE), error))?;
        Ok(Self { dir: dir.map(Path::to_owned), ca, signing: Arc::new(signing) })
    }

    /// The CA's certificate, PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca.certificate().pem
    }

    /// The CA's certificate, DER.
    pub fn ca_der(&self) -> &CertificateDer<'static> {
        &self.ca.certificate().der
    }

    /// The key that signs service account tokens.
    pub fn signing_key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.signing)
    }

    /// A certificate with which a client is `user` in `groups`.
    pub fn client(&self, user: &str, groups: &[String], now: Timestamp) -> Result<Identity, AuthorityError> {
        issue::client(self.ca.issuer(), user, groups, now)
    }

    /// The serving certificate for the standard names and `names`: the kept one while it is good for all of them
    /// and not about to expire, else a new one.
    pub fn serving(&self, names: &[String], now: Timestamp) -> Result<Identity, AuthorityError> {
        let wanted = issue::serving_names(names);
        let path = self.dir.as_ref().map(|dir| dir.join(SERVING_FILE));
        if let Some(path) = &path
            && let Some(text) = read(path)?
        {
            let kept = Identity::read(&text, path)?;
            let horizon = issue::moment(now.as_second().saturating_add(issue::RENEW_BEFORE_S.cast_signed()));
            if kept.is_good_for(&self.ca.certificate().der, &wanted, horizon) {
                return Ok(kept);
            }
        }
        let fresh = self.ca.serving(issue::SERVING_NAME, &wanted, now, issue::LEAF_LIFE)?;
        if let Some(path) = &path {
            write(path, &format!("{}{}", fresh.certificate_pem, fresh.key_pem()))?;
        }
        Ok(fresh)
    }
}

fn read(path: &Path) -> Result<Option<String>, AuthorityError> {
    file::read_text(path).map_err(|cause| AuthorityError::io("read", path, cause))
}

fn write(path: &Path, text: &str) -> Result<(), AuthorityError> {
    file::write_private(path, text).map_err(|cause| AuthorityError::io("write", path, cause))
}

#[cfg(test)]
mod tests;
