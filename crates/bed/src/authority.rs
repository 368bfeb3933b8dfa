//! The certificates of one Kubernetes bed, made on the fly: an authority that signs what the API server shows and what
//! the administrator shows it.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};

use crate::BedError;

/// A certificate and its key, in PEM.
#[derive(Debug)]
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A certificate authority of one bed; its key never leaves memory.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Result<Self, BedError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name("berth-bed", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    pub(crate) fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// What a server on loopback shows to its clients.
    pub(crate) fn server(&self) -> Result<Signed, BedError> {
        let mut params =
            CertificateParams::new(["127.0.0.1", "localhost", "kubernetes.default.svc"].map(String::from))?;
        params.distinguished_name = name("berth-bed-server", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// What a client shows to be taken for `user` of `group`.
    pub(crate) fn client(&self, user: &str, group: &str) -> Result<Signed, BedError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name(user, Some(group));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Signed, BedError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Signed { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn name(common: &str, organisation: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name
}
