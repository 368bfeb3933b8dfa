//! A certificate authority: its certificate, its key, and what it issues.
//!
//! Owns neither a place nor a clock: who keeps it, and when it is replaced, is the caller's business.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::der::Facts;
use super::error::AuthorityError;
use super::issue::{self, Identity};
use super::pem;

/// A certificate without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// PEM.
    pub pem: String,
    /// DER.
    pub der: CertificateDer<'static>,
    /// When it was issued, if it is one of ours.
    pub issued: Timestamp,
    /// When it ends.
    pub not_after: Timestamp,
}

impl Certificate {
    /// Every certificate of a text, in order. What is not one, or cannot be read, is an error; `path` is for the message.
    pub fn read_all(text: &str, path: &Path) -> Result<Vec<Self>, AuthorityError> {
        CertificateDer::pem_slice_iter(text.as_bytes())
            .map(|der| {
                let der =
                    der.map_err(|_| AuthorityError::broken(path, "a certificate is not readable PEM"))?;
                Self::new(der).map_err(|error| AuthorityError::broken(path, error))
            })
            .collect()
    }

    fn new(der: CertificateDer<'static>) -> Result<Self, super::der::DerError> {
        let facts = Facts::read(&der)?;
        Ok(Self {
            pem: pem::certificate_text(&der),
            der,
            issued: issue::issued(&facts),
            not_after: issue::moment(facts.not_after_s),
        })
    }
}

/// A certificate authority.
pub struct Ca {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Ca {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ca").field("not_after", &self.certificate.not_after).finish_non_exhaustive()
    }
}

impl Ca {
    /// A new one of this name.
    pub fn found(name: &str, now: Timestamp, life: Duration) -> Result<Self, AuthorityError> {
        Self::read(name, &issue::new_ca(name, now, life)?, Path::new(name))
    }

    /// Reads certificate and key of an authority of this name from one text, which messages call `path`.
    pub fn read(name: &str, text: &str, path: &Path) -> Result<Self, AuthorityError> {
        let (_, der, key) = pem::certificate_and_key(text, path)?;
        let facts = Facts::read(&der).map_err(|error| AuthorityError::broken(path, error))?;
        if facts.public_key != key.public_key_raw() {
            return Err(AuthorityError::broken(path, "the key does not belong to the certificate"));
        }
        if facts.common_name != name {
            return Err(AuthorityError::broken(path, "the certificate is not one of this program's own"));
        }
        let certificate = Certificate::new(der).map_err(|error| AuthorityError::broken(path, error))?;
        let mut params = CertificateParams::default();
        issue::shape_ca(&mut params, name);
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Certificate and key as one text, as [`Ca::read`] takes it. For files and Secrets only.
    pub fn text(&self) -> String {
        format!("{}{}", self.certificate.pem, self.issuer.key().serialize_pem())
    }

    /// A certificate for a server of these names. It ends with its authority at the latest.
    pub fn serving(
        &self,
        common_name: &str,
        names: &[String],
        now: Timestamp,
        life: Duration,
    ) -> Result<Identity, AuthorityError> {
        let left = self.certificate.not_after.as_second().saturating_sub(now.as_second());
        let left = Duration::from_secs(u64::try_from(left).unwrap_or_default());
        issue::serving(&self.issuer, common_name, names, now, life.min(left))
    }

    pub(super) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }
}
