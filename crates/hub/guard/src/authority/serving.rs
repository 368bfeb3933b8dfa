//! Serving: a TLS server configuration whose certificate can be replaced while connections are open.
//!
//! Owns the current serving identity. Never listens, never decides when to look: the caller says when.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WantsServerCert;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};

use super::Authority;
use super::error::AuthorityError;
use super::issue::{Identity, RENEW_BEFORE_S};
use super::tls::{PeerVerifier, PossessionVerifier, crypto_provider};

/// The hub's side of TLS.
#[derive(Debug)]
pub struct Serving {
    names: Vec<String>,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
    peers: PeerVerifier,
}

/// Held for a pointer copy per handshake only, so a plain lock is enough.
#[derive(Debug)]
struct Current(RwLock<(Timestamp, Arc<CertifiedKey>)>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&held.1))
    }
}

impl Serving {
    /// Sets up TLS for the standard names and `names`: h2 and http/1.1, client certificates asked for, not required.
    pub fn new(authority: &Authority, names: &[String], now: Timestamp) -> Result<Self, AuthorityError> {
        let identity = authority.serving(names, now)?;
        let peers = PeerVerifier::new(authority.ca_der())?;
        let possession = Arc::new(PossessionVerifier::new(&peers));
        Self::set_up(names, &identity, peers, |builder| builder.with_client_cert_verifier(possession))
    }

    /// Sets up TLS with one identity, until another is [shown](Self::show). Clients are not asked for certificates.
    pub fn of(identity: &Identity) -> Result<Self, AuthorityError> {
        Self::set_up(
            &[],
            identity,
            PeerVerifier::nobody(),
            ConfigBuilder::<ServerConfig, WantsVerifier>::with_no_client_auth,
        )
    }

    fn set_up(
        names: &[String],
        identity: &Identity,
        peers: PeerVerifier,
        ask: impl FnOnce(
            ConfigBuilder<ServerConfig, WantsVerifier>,
        ) -> ConfigBuilder<ServerConfig, WantsServerCert>,
    ) -> Result<Self, AuthorityError> {
        let current = Arc::new(Current(RwLock::new((identity.not_after, certified(identity)?))));
        let builder = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| AuthorityError::Tls(error.to_string()))?;
        let mut config = ask(builder).with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { names: names.to_vec(), current, config: Arc::new(config), peers })
    }

    /// Connections made from here on see this certificate; those that are open go on with theirs.
    pub fn show(&self, identity: &Identity) -> Result<(), AuthorityError> {
        let fresh = (identity.not_after, certified(identity)?);
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// For the TLS acceptor.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Judges the certificates clients present.
    pub fn peers(&self) -> &PeerVerifier {
        &self.peers
    }

    /// Replaces the certificate if its end is near; `true` if it did. Call it about daily.
    pub fn renew(&self, authority: &Authority, now: Timestamp) -> Result<bool, AuthorityError> {
        let horizon_s = now.as_second().saturating_add(RENEW_BEFORE_S.cast_signed());
        if self.current.0.read().unwrap_or_else(PoisonError::into_inner).0.as_second() > horizon_s {
            return Ok(false);
        }
        self.show(&authority.serving(&self.names, now)?)?;
        Ok(true)
    }
}

fn certified(identity: &Identity) -> Result<Arc<CertifiedKey>, AuthorityError> {
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem().as_bytes())
        .map_err(|_| AuthorityError::Tls("the serving key is not readable".to_owned()))?;
    let key = CertifiedKey::from_der(vec![identity.certificate.clone()], key, &crypto_provider())
        .map_err(|error| AuthorityError::Tls(error.to_string()))?;
    Ok(Arc::new(key))
}
