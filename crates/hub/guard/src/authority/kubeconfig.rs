//! Kubeconfig: one file with everything a client needs.
//!
//! Owns the rendering and the rule that only a file this program wrote is ever replaced. Never merges into a
//! person's own kubeconfig: clients take several files through `KUBECONFIG`, and a merge that goes wrong costs
//! somebody every cluster they have.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::AuthorityError;
use super::file;
use super::issue::Identity;

/// First line of every kubeconfig written here, by which it is known again.
const MARK: &str = "# written by berth; replaced at every start";

/// The facts of a kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubeconfig<'a> {
    /// Name of cluster, context and user.
    pub name: &'a str,
    /// `https://host:port`.
    pub server: &'a str,
    /// The CA's certificate, PEM.
    pub ca_pem: &'a str,
    /// The client's certificate and key.
    pub identity: &'a Identity,
}

impl Kubeconfig<'_> {
    /// The file's text. JSON is YAML, and cannot be broken by what a name contains.
    pub fn render(&self) -> String {
        let value: Value = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": {
                "server": self.server, "certificate-authority-data": STANDARD.encode(self.ca_pem)}}],
            "users": [{"name": self.name, "user": {
                "client-certificate-data": STANDARD.encode(&self.identity.certificate_pem),
                "client-key-data": STANDARD.encode(self.identity.key_pem())}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.name}}],
            "current-context": self.name,
        });
        format!("{MARK}\n{value:#}\n")
    }
}

/// Writes a kubeconfig, readable by its owner only; refuses to replace a file that is not one of these.
pub fn write_kubeconfig(path: &Path, config: &Kubeconfig<'_>) -> Result<(), AuthorityError> {
    let old = file::read_text(path).map_err(|cause| AuthorityError::io("read", path, cause))?;
    if old.is_some_and(|text| !text.is_empty() && !text.starts_with(MARK)) {
        return Err(AuthorityError::NotOurs { path: path.to_owned() });
    }
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).map_err(|cause| AuthorityError::io("create", dir, cause))?;
    }
    file::write_private(path, &config.render()).map_err(|cause| AuthorityError::io("write", path, cause))
}
