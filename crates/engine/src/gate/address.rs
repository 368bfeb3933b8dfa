//! Where a review is sent, whom to trust there, and how long to wait; sending it is the controllers' work.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use berth_api::eviction_policy::gate::{REVIEW_SECONDS, REVIEW_SECONDS_MAX, URL_CHARS_MAX};
use http::Uri;
use k8s_openapi::ByteString;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use webpki::anchor_from_trusted_cert;

/// The longest address, in bytes: what is read of one is of single bytes.
const URL_BYTES_MAX: usize = URL_CHARS_MAX as usize;
/// The longest bundle of authorities, in bytes: some dozens of certificates.
const BUNDLE_BYTES_MAX: usize = 256 * 1024;

/// Why something is no address of reviews. Each says in which field it is: [`AddressError::field`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// The address has more bytes than one may.
    UrlTooLong,
    /// The address cannot be read.
    Url(String),
    /// The address is not one of HTTPS, and what is asked and answered could be read and changed on the way.
    NotHttps,
    /// The address names a user or a password, which everybody could read who may read the policy.
    User,
    /// The bundle has more bytes than one may.
    BundleTooLong,
    /// The bundle is not of certificates in PEM, or has none.
    Bundle(String),
    /// The time is too short or too long.
    Timeout(i64),
}

impl AddressError {
    /// The field, as it is written in an object, that has to be mended.
    pub fn field(&self) -> &'static str {
        match self {
            Self::UrlTooLong | Self::Url(_) | Self::NotHttps | Self::User => "url",
            Self::BundleTooLong | Self::Bundle(_) => "caBundle",
            Self::Timeout(_) => "timeoutSeconds",
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UrlTooLong => write!(f, "must have no more than {URL_BYTES_MAX} bytes"),
            Self::Url(error) => write!(f, "is not an address: {error}"),
            Self::NotHttps => f.write_str("must begin with https://"),
            Self::User => f.write_str("must name no user"),
            Self::BundleTooLong => write!(f, "must have no more than {BUNDLE_BYTES_MAX} bytes"),
            Self::Bundle(error) => write!(f, "must be certificates in PEM: {error}"),
            Self::Timeout(seconds) => write!(f, "must be between 1 and {REVIEW_SECONDS_MAX}, not {seconds}"),
        }
    }
}

impl std::error::Error for AddressError {}

/// The bytes of a bundle as it is written in objects.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    let read = ByteString::deserialize(text.into_deserializer());
    let bytes = read.map_err(|error: serde::de::value::Error| format!("must be base64: {error}"))?;
    Ok(bytes.0)
}

/// A service that answers reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    uri: Uri,
    /// The authorities in PEM, by which two addresses that trust the same are told to; `None` for those of the system.
    bundle: Option<Arc<[u8]>>,
    timeout: Duration,
}

impl Address {
    /// The service at `url`, which has a certificate of one of the authorities of `bundle` (in PEM; those that the system
    /// trusts if there is none) and answers within `timeout_seconds` (5 if there are none).
    pub fn parse(
        url: &str,
        bundle: Option<&[u8]>,
        timeout_seconds: Option<i64>,
    ) -> Result<Self, AddressError> {
        if url.len() > URL_BYTES_MAX {
            return Err(AddressError::UrlTooLong);
        }
        let uri: Uri =
            url.parse().map_err(|error: http::uri::InvalidUri| AddressError::Url(error.to_string()))?;
        if uri.scheme_str() != Some("https") {
            return Err(AddressError::NotHttps);
        }
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(AddressError::User);
        }
        if uri.host().unwrap_or_default().is_empty() {
            return Err(AddressError::Url("it names no host".to_owned()));
        }
        let seconds = timeout_seconds.unwrap_or(REVIEW_SECONDS);
        if !(1..=REVIEW_SECONDS_MAX).contains(&seconds) {
            return Err(AddressError::Timeout(seconds));
        }
        if let Some(bundle) = bundle {
            check_bundle(bundle)?;
        }
        let timeout = Duration::from_secs(seconds.unsigned_abs());
        Ok(Self { uri, bundle: bundle.map(Arc::from), timeout })
    }

    /// Where it is.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// How long it may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The authorities, in PEM: each can be used; those of the system where this is `None`.
    pub fn bundle(&self) -> Option<&Arc<[u8]>> {
        self.bundle.as_ref()
    }
}

/// A bundle must have an authority at least, and none that cannot be used.
fn check_bundle(bundle: &[u8]) -> Result<(), AddressError> {
    if bundle.len() > BUNDLE_BYTES_MAX {
        return Err(AddressError::BundleTooLong);
    }
    let mut is_empty = true;
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        let certificate = certificate.map_err(|error| AddressError::Bundle(error.to_string()))?;
        anchor_from_trusted_cert(&certificate).map_err(|error| AddressError::Bundle(error.to_string()))?;
        is_empty = false;
    }
    if is_empty {
        return Err(AddressError::Bundle("there is none in it".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_used_is_refused_by_its_field() {
        let refused = |url: &str, bundle: Option<&[u8]>, seconds: Option<i64>| {
            let error = Address::parse(url, bundle, seconds).unwrap_err();
            format!("{}: {error}", error.field())
        };
        let url = "https://reviews.example.com/pods";
        for wrong in ["http://127.0.0.1/", "http://reviews.example.com/", "/pods", "reviews.example.com"] {
            assert_eq!(refused(wrong, None, None), "url: must begin with https://");
        }
        assert_eq!(refused("https://ann:secret@example.com/", None, None), "url: must name no user");
        assert!(refused("https://exa mple.com/", None, None).starts_with("url: is not an address: "));
        assert!(refused("https://:443/", None, None).starts_with("url: "));
        assert_eq!(
            refused(&format!("{url}{}", "x".repeat(2_048)), None, None),
            "url: must have no more than 2048 bytes"
        );
        for seconds in [0, -1, 31, i64::MAX] {
            let told = format!("timeoutSeconds: must be between 1 and 30, not {seconds}");
            assert_eq!(refused(url, None, Some(seconds)), told);
        }
        assert_eq!(
            refused(url, Some(b"no certificate"), None),
            "caBundle: must be certificates in PEM: there is none in it"
        );
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(refused(url, Some(broken), None).starts_with("caBundle: must be certificates in PEM: "));
        assert_eq!(
            refused(url, Some(&vec![b'x'; 300_000]), None),
            "caBundle: must have no more than 262144 bytes"
        );
        assert_eq!(Address::parse(url, None, None).unwrap().timeout(), Duration::from_secs(5));
    }
}
