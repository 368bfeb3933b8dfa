//! PEM blocks: a certificate and its key out of one text.

use std::path::Path;

use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::AuthorityError;

/// The certificate (as PEM and DER) and the key of a file that must hold exactly one of each.
pub(super) fn certificate_and_key(
    text: &str,
    path: &Path,
) -> Result<(String, CertificateDer<'static>, KeyPair), AuthorityError> {
    let der = one_certificate(text, path)?;
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| AuthorityError::broken(path, "it holds no readable private key"))?;
    let key = KeyPair::try_from(key.secret_der())
        .map_err(|error| AuthorityError::broken(path, format!("its private key cannot be used: {error}")))?;
    Ok((certificate_text(&der), der, key))
}

fn one_certificate(text: &str, path: &Path) -> Result<CertificateDer<'static>, AuthorityError> {
    let mut found = CertificateDer::pem_slice_iter(text.as_bytes());
    match (found.next(), found.next()) {
        (Some(Ok(der)), None) => Ok(der),
        (None, _) => Err(AuthorityError::broken(path, "it holds no certificate")),
        (Some(Err(_)), _) => Err(AuthorityError::broken(path, "its certificate is not readable PEM")),
        (Some(_), Some(_)) => Err(AuthorityError::broken(path, "it holds more than one certificate")),
    }
}

/// A certificate as PEM.
pub(super) fn certificate_text(der: &[u8]) -> String {
    block("CERTIFICATE", der)
}

/// One PEM block, 64 characters to a line.
pub(super) fn block(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        // Base64 is ASCII, so every index is a character boundary.
        let (line, after) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str("-----END ");
    out.push_str(label);
    out.push_str("-----\n");
    out
}
