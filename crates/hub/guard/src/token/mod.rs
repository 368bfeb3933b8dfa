//! Tokens: what a bearer may present instead of a certificate.
//!
//! Owns the static token file, service account tokens (real JWTs, ES256) and the answers to token requests. Never
//! stores a token: a service account token is good while its signature, its time and the objects it is bound to are.

mod jwt;
mod legacy;
mod request;
mod service_account;
mod static_file;

pub use jwt::SigningKey;
pub use legacy::TOKEN_KEY;

pub(crate) use jwt::random_uuid;
pub(crate) use service_account::shared;
pub use service_account::{
    Binding, DEFAULT_ISSUER, NameUid, ObjectLookup, ServiceAccountRef, ServiceAccountTokens, TokenError,
    Verified,
};
pub use static_file::{StaticTokens, TokenFileError};
