//! The certificate of a server in this process: one from files, which may be replaced while it runs, or one of its own.
//!
//! Owns which certificate a handshake sees. A file that cannot be used any more is told of, and the last that could be
//! stays: a half-written renewal must not end what works.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// How often files are looked at: certificates are renewed days before their end.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The longest file that is read: a chain is a few kilobytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Who a certificate of its own says it is.
const OWN_NAME: &str = "berth";

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file holds something else.
    #[error("{}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// None could be made.
    #[error("no certificate could be made: {0}")]
    Make(String),
}

/// A serving certificate with its key.
#[derive(Debug)]
pub struct Certificate {
    current: Arc<Current>,
    config: Arc<ServerConfig>,
    files: Option<Files>,
}

#[derive(Debug, Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// Held for a pointer copy per handshake only, so a plain lock is enough.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Certificate {
    /// The certificate of two PEM files, which are followed while it is served.
    pub fn of_files(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        let files = Files { certificate: certificate.to_owned(), key: key.to_owned() };
        Self::new(files.read()?, Some(files))
    }

    /// A certificate of its own for `names`, which no client has a reason to trust: for encryption alone.
    pub fn self_signed(names: Vec<String>) -> Result<Self, CertificateError> {
        let failed = |error: &dyn ToString| CertificateError::Make(error.to_string());
        let mut params = rcgen::CertificateParams::new(names).map_err(|error| failed(&error))?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, OWN_NAME);
        let key = rcgen::KeyPair::generate().map_err(|error| failed(&error))?;
        let certificate = params.self_signed(&key).map_err(|error| failed(&error))?;
        let der = PrivateKeyDer::try_from(key.serialize_der()).map_err(|error| failed(&error))?;
        let certified = CertifiedKey::from_der(vec![certificate.der().clone()], der, &crypto_provider())
            .map_err(|error| failed(&error))?;
        Self::new(certified, None)
    }

    fn new(key: CertifiedKey, files: Option<Files>) -> Result<Self, CertificateError> {
        let current = Arc::new(Current(RwLock::new(Arc::new(key))));
        let mut config = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| CertificateError::Make(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { current, config: Arc::new(config), files })
    }

    /// For the TLS acceptor. Handshakes see the certificate of their moment.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Takes over what the files hold, now and then, for ever.
    pub(super) async fn follow_files(self: Arc<Self>) {
        let Some(files) = self.files.clone() else { return };
        let mut told = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let wanted = files.clone();
            let read = tokio::task::spawn_blocking(move || wanted.read()).await;
            match read {
                Ok(Ok(key)) => {
                    told = None;
                    self.take(key);
                }
                Ok(Err(error)) => {
                    let trouble = error.to_string();
                    if told.as_ref() != Some(&trouble) {
                        tracing::warn!("{trouble}; the certificate of before stays");
                        told = Some(trouble);
                    }
                }
                // Only when the process ends.
                Err(_) => return,
            }
        }
    }

    fn take(&self, key: CertifiedKey) {
        let mut current = self.current.0.write().unwrap_or_else(PoisonError::into_inner);
        if current.cert != key.cert {
            tracing::info!("the serving certificate was replaced");
            *current = Arc::new(key);
        }
    }
}

impl Files {
    fn read(&self) -> Result<CertifiedKey, CertificateError> {
        let wrong =
            |path: &Path, problem: String| CertificateError::Content { path: path.to_owned(), problem };
        let text = text(&self.certificate)?;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(&self.certificate, format!("not a certificate in PEM: {error}")))?;
        if chain.is_empty() {
            return Err(wrong(&self.certificate, "there is no certificate in it".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&self::text(&self.key)?)
            .map_err(|_| wrong(&self.key, "there is no private key in it".to_owned()))?;
        CertifiedKey::from_der(chain, key, &crypto_provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let of = self.certificate.display();
                wrong(&self.key, format!("this key does not belong to the certificate of {of}"))
            }
            error => wrong(&self.certificate, error.to_string()),
        })
    }
}

fn text(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let failed = |source| CertificateError::Read { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > FILE_BYTES_MAX {
        let problem = format!("{length} bytes are too many for a certificate or key");
        return Err(CertificateError::Content { path: path.to_owned(), problem });
    }
    std::fs::read(path).map_err(failed)
}

/// What TLS computes with, whoever talks it in this crate.
pub(crate) fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a new certificate and key into a folder.
    fn issue(folder: &Path) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (certificate, key)
    }

    fn shown(certificate: &Certificate) -> Vec<CertificateDer<'static>> {
        certificate.current.0.read().unwrap().cert.clone()
    }

    #[test]
    fn a_certificate_of_its_own_is_made_at_once() {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        assert_eq!(shown(&Certificate::self_signed(names).unwrap()).len(), 1);
        assert!(Certificate::self_signed(vec!["h\u{e9}".to_owned()]).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_followed_and_a_broken_renewal_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = issue(folder.path());
        let certificate = Arc::new(Certificate::of_files(&path, &key).unwrap());
        let first = shown(&certificate);
        let _following = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&certificate).follow_files()));
        std::fs::write(&path, "half of").unwrap();
        tokio::time::sleep(3 * LOOK_EVERY).await;
        assert_eq!(shown(&certificate), first);
        issue(folder.path());
        while shown(&certificate) == first {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    #[test]
    fn what_is_wrong_with_files_is_told_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = issue(folder.path());
        let other = tempfile::tempdir().unwrap();
        let (_, foreign) = issue(other.path());
        let told =
            |certificate: &Path, key: &Path| Certificate::of_files(certificate, key).unwrap_err().to_string();
        assert!(told(Path::new("/nowhere"), &key).starts_with("/nowhere: cannot be read: "));
        assert!(told(&path, &foreign).contains("does not belong to the certificate of"));
        assert!(told(&path, &path).contains("there is no private key in it"));
        assert!(told(&key, &key).contains("there is no certificate in it"));
    }

    use tokio_util::task::AbortOnDropHandle;
}
