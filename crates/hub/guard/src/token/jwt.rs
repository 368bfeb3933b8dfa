//! JSON web tokens in compact form, signed with ES256, by the provider TLS uses.
//!
//! Owns encoding, signing and checking of signatures; a library would bring a second cryptographic provider for some
//! fifty lines. Only ES256 with our own key is ever accepted: the header's `alg` is compared, never obeyed.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

/// Longer than any token we make, shorter than what could hurt: headers are limited near it anyway.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// What the reference server's library says of a signature that does not fit; TokenReview shows it.
const BAD_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";

/// The key pair that signs tokens.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Reads a PKCS #8 PEM key on the curve P-256.
    pub fn from_pem(text: &str) -> Result<Self, String> {
        let der = PrivateKeyDer::from_pem_slice(text.as_bytes())
            .map_err(|_| "it holds no readable private key".to_owned())?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_der())
            .map_err(|_| "its private key is not a P-256 key".to_owned())?;
        let public = pair.public_key().as_der().map_err(|_| "its public key cannot be written".to_owned())?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, public.as_ref()));
        Ok(Self { pair, id })
    }

    /// The key's id, derived from its public half as upstream derives it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The public half as a JSON web key set, for `/openid/v1/jwks`.
    pub fn key_set(&self) -> Value {
        // An uncompressed point: one marker byte, then x and y of 32 bytes each.
        let point = self.pair.public_key().as_ref();
        let (x, y) = (point.get(1..33).unwrap_or_default(), point.get(33..65).unwrap_or_default());
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        }]})
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> Result<String, String> {
        let header = json!({"alg": "ES256", "kid": self.id});
        let mut token = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let signature = self
            .pair
            .sign(&SystemRandom::new(), token.as_bytes())
            .map_err(|_| "the signing key refused to sign".to_owned())?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Ok(token)
    }

    /// The claims of a token this key signed.
    pub(crate) fn open(&self, token: &str) -> Result<Value, &'static str> {
        let (signed, signature) = token.rsplit_once('.').ok_or("not a token")?;
        let (header, claims) = signed.split_once('.').ok_or("not a token")?;
        let header = json_part(header)?;
        let text = |key: &str| header.get(key).and_then(Value::as_str);
        if text("kid").is_some_and(|kid| kid != self.id) {
            return Err("invalid signature, no keys found");
        }
        if text("alg") != Some("ES256") || header.get("crit").is_some() {
            return Err(BAD_SIGNATURE);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| BAD_SIGNATURE)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref())
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| BAD_SIGNATURE)?;
        json_part(claims)
    }
}

/// The claims of a token without asking who signed it; good only for finding out whose token it claims to be.
pub(crate) fn peek(token: &str) -> Option<Value> {
    if token.len() > TOKEN_BYTES_MAX || token.bytes().filter(|byte| *byte == b'.').count() != 2 {
        return None;
    }
    json_part(token.split('.').nth(1)?).ok().filter(Value::is_object)
}

/// By what a token is remembered without being kept.
pub(super) fn token_digest(token: &str) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    out
}

fn json_part(part: &str) -> Result<Value, &'static str> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| "not a token")?;
    serde_json::from_slice(&bytes).map_err(|_| "not a token")
}

/// A random identifier in the form of a version 4 UUID.
pub(crate) fn random_uuid() -> Result<String, String> {
    use aws_lc_rs::rand::SecureRandom as _;
    let mut bytes = [0_u8; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system gave no random bytes".to_owned())?;
    Ok(uuid_text(bytes))
}

fn uuid_text(mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let number = u128::from_be_bytes(bytes);
    let hex = format!("{number:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_pem(&rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap()
    }

    #[test]
    fn a_signed_token_opens_with_its_key_and_no_other() {
        let (one, other) = (key(), key());
        let token = one.sign(&json!({"sub": "x"})).unwrap();
        assert_eq!(one.open(&token), Ok(json!({"sub": "x"})));
        assert_eq!(other.open(&token), Err("invalid signature, no keys found"));
        assert_eq!(peek(&token), Some(json!({"sub": "x"})));
    }

    #[test]
    fn a_token_with_changed_claims_does_not_open() {
        let key = key();
        let token = key.sign(&json!({"sub": "x"})).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let forged = URL_SAFE_NO_PAD.encode(r#"{"sub":"y"}"#);
        assert_eq!(key.open(&format!("{}.{forged}.{}", parts[0], parts[2])), Err(BAD_SIGNATURE));
    }

    #[test]
    fn the_header_cannot_choose_the_algorithm() {
        let key = key();
        let claims = URL_SAFE_NO_PAD.encode(r#"{"sub":"x"}"#);
        for alg in ["none", "HS256", "ES384", "es256"] {
            let header = URL_SAFE_NO_PAD.encode(json!({"alg": alg}).to_string());
            assert!(key.open(&format!("{header}.{claims}.")).is_err(), "{alg}");
        }
    }

    #[test]
    fn the_published_key_names_both_coordinates() {
        let set = key().key_set();
        assert_eq!(set["keys"][0]["x"].as_str().unwrap().len(), 43);
        assert_eq!(set["keys"][0]["y"].as_str().unwrap().len(), 43);
    }

    #[test]
    fn random_identifiers_look_like_version_four_uuids() {
        assert_eq!(uuid_text([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_ne!(random_uuid().unwrap(), random_uuid().unwrap());
    }
}
