//! What the Secret holds: the serving certificate, the authority that signs it, the one that will, and whom to trust.
//!
//! Owns the form of it and every way in which it may change, each a whole new content. Never talks to a server, and never
//! shows a key.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use berth_hub_guard::{AuthorityError, Ca, Certificate, Identity};
use jiff::Timestamp;
use k8s_openapi::ByteString;

/// The keys of the Secret. Those of the serving certificate are as in Secrets of type kubernetes.io/tls.
const SERVING_CERTIFICATE: &str = "tls.crt";
const SERVING_KEY: &str = "tls.key";
/// Every authority that API servers must trust.
const BUNDLE: &str = "ca.crt";
/// The authority that signs, certificate and key in one text so that nobody can mix two.
const SIGNER: &str = "signer.pem";
/// The authority that will, once everybody trusts it.
const SUCCESSOR: &str = "successor.pem";

/// What authorities and certificates are called.
const CA_NAME: &str = "berth-webhook-ca";
const SERVING_NAME: &str = "berth-webhook";

/// An authority outlives this many serving certificates.
const CA_LIVES: u32 = 4;
/// More authorities than replicas could show at one time; keeps bundles small, whatever was registered before.
const FORMER_MAX: usize = 16;

/// What certificates are to be like.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The names the API server may use.
    pub(crate) names: Vec<String>,
    /// How long a serving certificate lasts.
    pub(crate) life: Duration,
}

/// The content of the Secret. The serving certificate is always one of the signer's.
#[derive(Debug)]
pub(crate) struct Vault {
    pub(crate) serving: Identity,
    pub(crate) signer: Ca,
    pub(crate) successor: Option<Ca>,
    /// Every authority to be trusted: the signer, its successor, and former ones that have not ended.
    pub(crate) trusted: Vec<Certificate>,
}

impl Vault {
    /// A new one. The former authorities, whose certificates replicas may still show, stay trusted until they end; those
    /// that matter most come first.
    pub(crate) fn found(
        terms: &Terms,
        former: &[Certificate],
        now: Timestamp,
    ) -> Result<Self, AuthorityError> {
        let signer = authority(terms, now)?;
        let serving = signer.serving(SERVING_NAME, &terms.names, now, terms.life)?;
        let trusted = vec![signer.certificate().clone()];
        let vault = Self { serving, signer, successor: None, trusted };
        let lasting = former.iter().filter(|certificate| certificate.not_after > now);
        Ok(lasting.take(FORMER_MAX).fold(vault, Self::trusting))
    }

    /// Whether a Secret holds something of somebody else: a signer is in every one of ours, and what is there without one
    /// is not ours to replace.
    pub(crate) fn is_foreign(data: &BTreeMap<String, ByteString>) -> bool {
        !data.contains_key(SIGNER) && data.values().any(|ByteString(bytes)| !bytes.is_empty())
    }

    /// Reads a Secret; `None` where it has nothing in it yet.
    pub(crate) fn read(data: &BTreeMap<String, ByteString>) -> Result<Option<Self>, AuthorityError> {
        if !data.contains_key(SIGNER) {
            return Ok(None);
        }
        let text = |key: &str| {
            let bytes = data.get(key).map_or(&[][..], |ByteString(bytes)| bytes);
            String::from_utf8_lossy(bytes).into_owned()
        };
        let authority = |key: &str| Ca::read(CA_NAME, &text(key), Path::new(key));
        let serving = format!("{}{}", text(SERVING_CERTIFICATE), text(SERVING_KEY));
        let successor = data.contains_key(SUCCESSOR).then(|| authority(SUCCESSOR)).transpose();
        let successor = successor.unwrap_or_else(|error| {
            // It has signed nothing yet, so another can be appointed.
            tracing::warn!(%error, "the authority that was to follow is lost");
            None
        });
        let vault = Self {
            serving: Identity::read(&serving, Path::new(SERVING_CERTIFICATE))?,
            signer: authority(SIGNER)?,
            successor,
            trusted: Certificate::read_all(&text(BUNDLE), Path::new(BUNDLE))?,
        };
        // Whatever became of the bundle: nobody is told to trust less than what is shown next.
        let own: Vec<Certificate> =
            vault.successor.iter().chain([&vault.signer]).map(|one| one.certificate().clone()).collect();
        Ok(Some(own.iter().fold(vault, Self::trusting)))
    }

    /// What to keep in a Secret that held this before: keys that are not ours stay as they are.
    pub(crate) fn data_beside(
        &self,
        mut before: BTreeMap<String, ByteString>,
    ) -> BTreeMap<String, ByteString> {
        before.remove(SUCCESSOR);
        before.extend(self.data());
        before
    }

    /// What to keep in the Secret.
    pub(crate) fn data(&self) -> BTreeMap<String, ByteString> {
        let mut texts = vec![
            (SERVING_CERTIFICATE, self.serving.certificate_pem.clone()),
            (SERVING_KEY, self.serving.key_pem().to_owned()),
            (BUNDLE, self.bundle()),
            (SIGNER, self.signer.text()),
        ];
        texts.extend(self.successor.as_ref().map(|successor| (SUCCESSOR, successor.text())));
        texts.into_iter().map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).collect()
    }

    /// Whom API servers must trust, PEM.
    pub(crate) fn bundle(&self) -> String {
        self.trusted.iter().map(|certificate| certificate.pem.as_str()).collect()
    }

    /// Whether the serving certificate is the signer's and good for every name now.
    pub(crate) fn is_good(&self, terms: &Terms, now: Timestamp) -> bool {
        self.serving.is_good_for(&self.signer.certificate().der, &terms.names, now)
    }

    /// Whether API servers are to trust an authority.
    pub(crate) fn trusts(&self, authority: &Certificate) -> bool {
        self.trusted.iter().any(|certificate| certificate.der == authority.der)
    }

    /// With one more authority to be trusted.
    pub(crate) fn trusting(mut self, authority: &Certificate) -> Self {
        if !self.trusts(authority) {
            self.trusted.push(authority.clone());
        }
        self
    }

    /// With a new serving certificate of the same authority.
    pub(crate) fn reissued(self, terms: &Terms, now: Timestamp) -> Result<Self, AuthorityError> {
        let serving = self.signer.serving(SERVING_NAME, &terms.names, now, terms.life)?;
        Ok(Self { serving, ..self })
    }

    /// With an authority that will follow, which is to be trusted before it signs anything.
    pub(crate) fn with_successor(mut self, terms: &Terms, now: Timestamp) -> Result<Self, AuthorityError> {
        let successor = authority(terms, now)?;
        self.trusted.push(successor.certificate().clone());
        Ok(Self { successor: Some(successor), ..self })
    }

    /// With the successor in place, and a serving certificate of its own. The former authority stays trusted: replicas that
    /// have not seen this yet show what it signed.
    pub(crate) fn succeeded(self, terms: &Terms, now: Timestamp) -> Result<Self, AuthorityError> {
        match self.successor {
            Some(signer) => Self { signer, successor: None, ..self }.reissued(terms, now),
            None => self.reissued(terms, now),
        }
    }

    /// Without former authorities that have ended.
    pub(crate) fn cleared(mut self, now: Timestamp) -> Self {
        self.trusted.retain(|certificate| certificate.not_after > now);
        self
    }
}

fn authority(terms: &Terms, now: Timestamp) -> Result<Ca, AuthorityError> {
    Ca::found(CA_NAME, now, terms.life.saturating_mul(CA_LIVES))
}
