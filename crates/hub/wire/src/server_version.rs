//! What `/version` answers.

use serde::Serialize;

/// The version a server says it has. Clients compare `major` and `minor` with their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerVersion {
    /// The major version of the API.
    pub major: String,
    /// The minor version of the API.
    pub minor: String,
    /// The versions before this one whose behaviour can be asked for; what a server without such a switch answers.
    pub emulation_major: String,
    /// See [`Self::emulation_major`].
    pub emulation_minor: String,
    /// The oldest version this one can be rolled back to.
    pub min_compatibility_major: String,
    /// See [`Self::min_compatibility_major`].
    pub min_compatibility_minor: String,
    /// The full version, such as `v1.36.4+berth`.
    pub git_version: String,
    /// The commit it was built from, or empty.
    pub git_commit: String,
    /// `clean` or `dirty`, or empty.
    pub git_tree_state: String,
    /// When it was built.
    pub build_date: String,
    /// What it was built with; clients only show it.
    pub go_version: String,
    /// The compiler.
    pub compiler: String,
    /// Operating system and architecture.
    pub platform: String,
}

impl ServerVersion {
    /// The version of a server that speaks the API of Kubernetes `major.minor.patch`, with what it is itself after
    /// the plus sign.
    pub fn new(major: u32, minor: u32, patch: u32, suffix: &str) -> Self {
        let plus = if suffix.is_empty() { String::new() } else { format!("+{suffix}") };
        ServerVersion {
            major: major.to_string(),
            minor: minor.to_string(),
            emulation_major: major.to_string(),
            emulation_minor: minor.to_string(),
            min_compatibility_major: major.to_string(),
            min_compatibility_minor: minor.saturating_sub(1).to_string(),
            git_version: format!("v{major}.{minor}.{patch}{plus}"),
            git_commit: String::new(),
            git_tree_state: "clean".to_owned(),
            build_date: "1970-01-01T00:00:00Z".to_owned(),
            go_version: String::new(),
            compiler: "rustc".to_owned(),
            platform: format!("{}/{}", std::env::consts::OS, go_architecture()),
        }
    }
}

/// The architecture in the words clients know.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_that_clients_read() {
        let version = serde_json::to_value(ServerVersion::new(1, 36, 4, "berth")).unwrap();
        assert_eq!(version["major"], "1");
        assert_eq!(version["minor"], "36");
        assert_eq!(version["gitVersion"], "v1.36.4+berth");
        assert_eq!(version["minCompatibilityMinor"], "35");
    }
}
