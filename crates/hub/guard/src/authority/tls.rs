//! TLS: the one cryptographic provider, client certificates and whom they stand for.
//!
//! A client certificate is looked at twice: the handshake proves that the peer holds its key, `PeerVerifier` proves
//! that the hub's CA issued it. Keeping the second step out of the handshake lets a client with a certificate of
//! another cluster get a proper 401 instead of a broken connection, as the real server does. No user is ever made
//! from a certificate that has not passed both.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerifier as _};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

use super::der::Facts;
use super::error::AuthorityError;
use super::issue::Identity;
use crate::refusal::Refusal;
use crate::user::User;

/// The extra key that tells which credential was used.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The cryptographic provider everything here uses.
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

pub(super) fn unix_time(now: Timestamp) -> UnixTime {
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}

pub(super) fn roots(ca: &CertificateDer<'_>) -> Result<Arc<RootCertStore>, AuthorityError> {
    let mut roots = RootCertStore::empty();
    roots.add(ca.clone().into_owned()).map_err(|error| AuthorityError::Tls(error.to_string()))?;
    Ok(Arc::new(roots))
}

/// Whether a serving certificate is right at a moment: of this CA, and good for every name.
pub(super) fn is_good_for(
    identity: &Identity,
    ca: &CertificateDer<'_>,
    names: &[String],
    at: Timestamp,
) -> bool {
    let Ok(roots) = roots(ca) else { return false };
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(roots, crypto_provider()).build() else {
        return false;
    };
    names.iter().all(|name| {
        // A wildcard covers any one label in its place.
        let probe = name.strip_prefix("*.").map_or_else(|| name.clone(), |rest| format!("probe.{rest}"));
        ServerName::try_from(probe).is_ok_and(|name| {
            verifier.verify_server_cert(&identity.certificate, &[], &name, &[], unix_time(at)).is_ok()
        })
    })
}

/// Tells whether a client certificate was issued by the hub's CA, and for whom.
#[derive(Clone, Debug)]
pub struct PeerVerifier {
    /// None where nobody is asked for a certificate.
    inner: Option<Arc<dyn ClientCertVerifier>>,
}

impl PeerVerifier {
    pub(super) fn new(ca: &CertificateDer<'_>) -> Result<Self, AuthorityError> {
        let inner = WebPkiClientVerifier::builder_with_provider(roots(ca)?, crypto_provider())
            .build()
            .map_err(|error| AuthorityError::Tls(error.to_string()))?;
        Ok(Self { inner: Some(inner) })
    }

    /// One to whom nobody is anybody, because no certificate is asked for.
    pub(super) fn nobody() -> Self {
        Self { inner: None }
    }

    /// Judges the certificates of one connection, once: `None` when the peer sent none.
    pub fn peer(&self, certificates: Option<&[CertificateDer<'_>]>, now: Timestamp) -> Peer {
        let Some(inner) = &self.inner else { return Peer::None };
        let Some((leaf, rest)) = certificates.and_then(<[_]>::split_first) else { return Peer::None };
        if inner.verify_client_cert(leaf, rest, unix_time(now)).is_err() {
            return Peer::Refused;
        }
        match Facts::read(leaf) {
            Ok(facts) => user_of(&facts, leaf).map_or(Peer::Refused, |user| Peer::Known {
                user: Arc::new(user),
                not_after_s: facts.not_after_s,
            }),
            Err(_) => Peer::Refused,
        }
    }
}

/// CN is the user, each O a group, the Kubernetes user id attribute (at most one) the uid.
fn user_of(facts: &Facts, leaf: &[u8]) -> Option<User> {
    if facts.common_name.is_empty() || facts.user_ids.len() > 1 {
        return None;
    }
    let mut user = User::new(facts.common_name.clone(), facts.organizations.clone());
    user.uid = facts.user_ids.first().cloned().unwrap_or_default();
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={}", fingerprint(leaf))]);
    Some(user.authenticated())
}

fn fingerprint(der: &[u8]) -> String {
    use std::fmt::Write as _;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
    digest.as_ref().iter().fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Whom a connection's certificate stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The peer sent no certificate.
    None,
    /// It sent one that is not ours, has expired or names nobody: its requests are unauthorized.
    Refused,
    /// It sent a good one.
    Known {
        /// Whom it names.
        user: Arc<User>,
        /// The end of the certificate, in seconds since the epoch; a connection may outlive it.
        not_after_s: i64,
    },
}

impl Peer {
    /// The user of this connection at this moment; `Ok(None)` without a certificate.
    pub fn user(&self, now: Timestamp) -> Result<Option<&Arc<User>>, Refusal> {
        match self {
            Self::None => Ok(None),
            Self::Known { user, not_after_s } if now.as_second() <= *not_after_s => Ok(Some(user)),
            Self::Known { .. } | Self::Refused => Err(Refusal::Unauthorized),
        }
    }
}

/// Asks for a certificate and checks possession of its key; who issued it is `PeerVerifier`'s question.
#[derive(Debug)]
pub(super) struct PossessionVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    hints: Vec<DistinguishedName>,
}

impl PossessionVerifier {
    pub(super) fn new(verifier: &PeerVerifier) -> Self {
        Self {
            algorithms: crypto_provider().signature_verification_algorithms,
            hints: verifier.inner.as_ref().map_or(&[][..], |inner| inner.root_hint_subjects()).to_vec(),
        }
    }
}

impl ClientCertVerifier for PossessionVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        // Deferred to PeerVerifier, which alone makes users of certificates; see the module's head.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
