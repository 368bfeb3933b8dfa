//! Issuing: the shape and the lifetime of every certificate the hub makes.
//!
//! Owns names, usages and validity periods. Never writes a file.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SigningKey as _,
};
use rustls::pki_types::CertificateDer;

use super::der::{self, Facts};
use super::error::AuthorityError;
use super::{pem, tls};

/// The CA's own name; files with another CA are refused.
pub(super) const CA_NAME: &str = "berth-hub-ca";
/// What a serving certificate of the hub is called; clients go by its other names.
pub(super) const SERVING_NAME: &str = "berth-hub";

/// Names every serving certificate is good for, besides the ones asked for.
pub const SERVING_NAMES: [&str; 6] =
    ["127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

const DAY_S: u64 = 24 * 60 * 60;
/// Clients keep the CA's certificate in their kubeconfig, so it must outlive them.
pub(super) const CA_LIFE: Duration = Duration::from_secs(3650 * DAY_S);
/// As long as kubeadm's.
pub(super) const LEAF_LIFE: Duration = Duration::from_secs(365 * DAY_S);
/// A serving certificate is replaced this long before its end.
pub(super) const RENEW_BEFORE_S: u64 = 30 * DAY_S;
/// Certificates start a little in the past, for clients whose clocks are behind.
const BACKDATE_S: u64 = 5 * 60;
/// More groups than anybody's certificate needs; keeps certificates small.
const GROUPS_MAX: usize = 64;
/// The upper bound X.520 sets for a common name is 64; Kubernetes users are longer, but not this long.
const NAME_BYTES_MAX: usize = 1024;
/// More names than a serving certificate needs.
const SERVING_NAMES_MAX: usize = 256;

/// A certificate and its private key.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, PEM.
    pub certificate_pem: String,
    /// The certificate, DER.
    pub certificate: CertificateDer<'static>,
    key_pem: String,
    /// When it was issued.
    pub issued: Timestamp,
    /// When it ends.
    pub not_after: Timestamp,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

impl Identity {
    /// The private key, PKCS #8 PEM. For files and handshakes only.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    fn new(der: CertificateDer<'static>, key: &KeyPair) -> Result<Self, AuthorityError> {
        let facts = Facts::read(&der).map_err(|error| AuthorityError::Issue(error.to_string()))?;
        Ok(Self {
            certificate_pem: pem::certificate_text(&der),
            certificate: der,
            key_pem: key.serialize_pem(),
            issued: issued(&facts),
            not_after: moment(facts.not_after_s),
        })
    }

    /// Whether it was issued by this CA and is good for every one of these names at a moment.
    pub fn is_good_for(&self, ca: &CertificateDer<'_>, names: &[String], at: Timestamp) -> bool {
        tls::is_good_for(self, ca, names, at)
    }

    /// Reads certificate and key from one text, which messages call `path`.
    pub fn read(text: &str, path: &Path) -> Result<Self, AuthorityError> {
        let (_, der, key) = pem::certificate_and_key(text, path)?;
        let facts = Facts::read(&der).map_err(|error| AuthorityError::broken(path, error))?;
        if facts.public_key != key.public_key_raw() {
            return Err(AuthorityError::broken(path, "the key does not belong to the certificate"));
        }
        Self::new(der, &key)
    }
}

/// The time in a certificate.
pub(super) fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// When one of our certificates was issued: its validity begins a little before that.
pub(super) fn issued(facts: &Facts) -> Timestamp {
    moment(facts.not_before_s.saturating_add(BACKDATE_S.cast_signed()))
}

pub(super) fn new_key() -> Result<KeyPair, AuthorityError> {
    KeyPair::generate().map_err(|error| AuthorityError::Issue(error.to_string()))
}

/// What makes a certificate one of our CA: its name and usages. Must never change, or kept CAs stop matching.
pub(super) fn shape_ca(params: &mut CertificateParams, name: &str) {
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
}

/// A new CA: certificate and key as one text.
pub(super) fn new_ca(name: &str, now: Timestamp, life: Duration) -> Result<String, AuthorityError> {
    let key = new_key()?;
    let mut params = CertificateParams::default();
    shape_ca(&mut params, name);
    lifetime(&mut params, now, life);
    let certificate = params.self_signed(&key).map_err(|error| AuthorityError::Issue(error.to_string()))?;
    Ok(format!("{}{}", pem::certificate_text(certificate.der()), key.serialize_pem()))
}

fn lifetime(params: &mut CertificateParams, now: Timestamp, life: Duration) {
    // A clock before the epoch or after the year 2200 is broken; certificates then start at the bound.
    let now_s = u64::try_from(now.as_second()).unwrap_or(0).clamp(BACKDATE_S, 230 * 365 * DAY_S);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(now_s - BACKDATE_S);
    params.not_after = epoch + Duration::from_secs(now_s) + life;
}

pub(super) fn client(
    issuer: &Issuer<'_, KeyPair>,
    user: &str,
    groups: &[String],
    now: Timestamp,
) -> Result<Identity, AuthorityError> {
    for name in std::iter::once(user).chain(groups.iter().map(String::as_str)) {
        check_name(name)?;
    }
    if groups.len() > GROUPS_MAX {
        let problem = format!("a certificate holds at most {GROUPS_MAX} groups");
        return Err(AuthorityError::BadName { name: user.to_owned(), problem });
    }
    let key = new_key()?;
    let mut params = CertificateParams::default();
    lifetime(&mut params, now, LEAF_LIFE);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let draft = params.signed_by(&key, issuer).map_err(|error| AuthorityError::Issue(error.to_string()))?;
    let signed = der::with_subject(draft.der(), user, groups, |body| issuer.key().sign(body))
        .map_err(|error| AuthorityError::Issue(error.to_string()))?
        .map_err(|error| AuthorityError::Issue(error.to_string()))?;
    Identity::new(CertificateDer::from(signed), &key)
}

fn check_name(name: &str) -> Result<(), AuthorityError> {
    let problem = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > NAME_BYTES_MAX {
        format!("it is longer than {NAME_BYTES_MAX} bytes")
    } else {
        return Ok(());
    };
    Err(AuthorityError::BadName { name: name.to_owned(), problem })
}

/// The standard names and the given ones, each once.
pub(super) fn serving_names(names: &[String]) -> Vec<String> {
    let mut out: Vec<String> = SERVING_NAMES.iter().map(|name| (*name).to_owned()).collect();
    for name in names {
        if !out.contains(name) {
            out.push(name.clone());
        }
    }
    out
}

pub(super) fn serving(
    issuer: &Issuer<'_, KeyPair>,
    common_name: &str,
    names: &[String],
    now: Timestamp,
    life: Duration,
) -> Result<Identity, AuthorityError> {
    if names.len() > SERVING_NAMES_MAX {
        let problem = format!("a serving certificate holds at most {SERVING_NAMES_MAX} names");
        return Err(AuthorityError::BadName { name: names[SERVING_NAMES_MAX].clone(), problem });
    }
    let key = new_key()?;
    let mut params = CertificateParams::default();
    lifetime(&mut params, now, life);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    for name in names {
        params.subject_alt_names.push(alternative_name(name)?);
    }
    let certificate =
        params.signed_by(&key, issuer).map_err(|error| AuthorityError::Issue(error.to_string()))?;
    Identity::new(certificate.der().clone(), &key)
}

fn alternative_name(name: &str) -> Result<SanType, AuthorityError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let bad = |problem: &str| AuthorityError::BadName { name: name.to_owned(), problem: problem.to_owned() };
    rustls::pki_types::DnsName::try_from(name.strip_prefix("*.").unwrap_or(name))
        .map_err(|_| bad("it is neither an address nor a DNS name"))?;
    let text = name.to_owned().try_into().map_err(|_| bad("it is not ASCII"))?;
    Ok(SanType::DnsName(text))
}
