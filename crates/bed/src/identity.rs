//! Who the administrator of a bed is, in the form any TLS client takes.

use std::path::Path;

use k8s_openapi::ByteString;
use kube::config::Kubeconfig;
use serde_json::json;

use crate::BedError;

/// The administrator's certificates, in PEM: for clients that are not [`kube::Client`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The authority that signed what the API server shows.
    pub authority: String,
    /// What the client shows.
    pub certificate: String,
    /// The key of `certificate`.
    pub key: String,
}

impl Identity {
    /// Reads the identity embedded in the first cluster and user of a kubeconfig.
    pub(crate) fn read(kubeconfig: &Kubeconfig, path: &Path) -> Result<Self, BedError> {
        let value = serde_json::to_value(kubeconfig).map_err(|error| unusable(path, &error))?;
        let field = |pointer: &str| {
            let encoded = value.pointer(pointer).filter(|field| field.is_string());
            let encoded = encoded.ok_or_else(|| unusable(path, &format!("it has no {pointer}")))?;
            let decoded: ByteString = serde_json::from_value(encoded.clone())
                .map_err(|error| unusable(path, &format!("{pointer} is not base64: {error}")))?;
            String::from_utf8(decoded.0)
                .map_err(|error| unusable(path, &format!("{pointer} is not PEM: {error}")))
        };
        Ok(Self {
            authority: field("/clusters/0/cluster/certificate-authority-data")?,
            certificate: field("/users/0/user/client-certificate-data")?,
            key: field("/users/0/user/client-key-data")?,
        })
    }

    /// The kubeconfig of this identity at `url`, as JSON, which is YAML as well.
    pub(crate) fn kubeconfig(&self, url: &str) -> String {
        let encode = |pem: &str| json!(ByteString(pem.as_bytes().to_vec()));
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bed",
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "admin"}}],
            "clusters": [{"name": "bed", "cluster": {
                "server": url,
                "certificate-authority-data": encode(&self.authority),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": encode(&self.certificate),
                "client-key-data": encode(&self.key),
            }}],
        });
        format!("{kubeconfig:#}\n")
    }
}

pub(crate) fn unusable(path: &Path, why: &dyn ToString) -> BedError {
    BedError::Kubeconfig { path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_written_to_a_kubeconfig_is_read_back() {
        let identity = Identity { authority: "a".into(), certificate: "c\n".into(), key: "k".into() };
        let text = identity.kubeconfig("https://127.0.0.1:1");
        let path = Path::new("x");
        assert_eq!(Identity::read(&Kubeconfig::from_yaml(&text).unwrap(), path).unwrap(), identity);
    }

    #[test]
    fn a_kubeconfig_without_a_client_certificate_is_refused_by_name() {
        let text = r#"{"clusters":[{"name":"a","cluster":{"certificate-authority-data":"YQ=="}}]}"#;
        let error = Identity::read(&Kubeconfig::from_yaml(text).unwrap(), Path::new("x")).unwrap_err();
        assert!(error.to_string().contains("client-certificate-data"), "{error}");
    }
}
