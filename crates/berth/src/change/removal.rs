//! An object taken out of the world: `NAME` for a cluster, `Kind/NAME` or `Kind/NS/NAME` for anything else.

use std::fmt;
use std::str::FromStr;

/// The kind meant by a name that stands alone.
const KIND_BY_DEFAULT: &str = "ManagedCluster";

/// An object to take out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for objects that live in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why a text names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an object: allowed are NAME (a ManagedCluster), Kind/NAME and Kind/NAMESPACE/NAME")]
pub struct RemovalError;

impl FromStr for Removal {
    type Err = RemovalError;

    fn from_str(text: &str) -> Result<Self, RemovalError> {
        let parts: Vec<&str> = text.splitn(4, '/').collect();
        let (kind, namespace, name) = match parts[..] {
            [name] => (KIND_BY_DEFAULT, "", name),
            [kind, name] => (kind, "", name),
            [kind, namespace, name] if !namespace.is_empty() => (kind, namespace, name),
            _ => return Err(RemovalError),
        };
        if kind.is_empty() || name.is_empty() {
            return Err(RemovalError);
        }
        Ok(Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_a_cluster_and_longer_forms_name_their_kind() {
        let shown = |text: &str| text.parse::<Removal>().map(|r| r.to_string());
        assert_eq!(shown("c1").unwrap(), "ManagedCluster c1");
        assert_eq!(shown("ManagedClusterSet/prod").unwrap(), "ManagedClusterSet prod");
        assert_eq!(shown("Placement/ns1/web").unwrap(), "Placement ns1/web");
        for text in ["", "/", "a/", "/b", "a//c", "a/b/", "a/b/c/d"] {
            assert!(shown(text).is_err(), "{text}");
        }
    }
}
