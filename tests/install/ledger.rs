//! What was asked of an API server, by whom, and how it was answered: its audit log.

use std::{collections::BTreeSet, fmt, path::Path};

use serde_json::Value;

/// One request for a resource, as RBAC sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub(crate) user: String,
    pub(crate) verb: String,
    pub(crate) group: String,
    /// With its subresource after a slash.
    pub(crate) resource: String,
    pub(crate) namespace: String,
    /// Empty where it is about all.
    pub(crate) name: String,
    pub(crate) code: u64,
    /// Which token it came with.
    pub(crate) credential: String,
}

impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, verb, group, resource, namespace, name, code, .. } = self;
        write!(formatter, "{verb} {group}/{resource} {namespace}/{name} by {user}: {code}")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ledger(BTreeSet<Asked>);

impl Ledger {
    /// Reads the log as far as it was written.
    pub(crate) fn read(path: &Path) -> Self {
        Self::of_text(&std::fs::read_to_string(path).unwrap_or_default())
    }

    pub(crate) fn of_text(text: &str) -> Self {
        // The last line may be under way.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        Self(whole.lines().filter_map(|line| asked(&serde_json::from_str(line).unwrap())).collect())
    }

    /// What somebody asked for.
    pub(crate) fn of<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a Asked> {
        self.0.iter().filter(move |asked| asked.user == user)
    }
}

/// Requests for paths (discovery, schemas, health) are open to everybody and not about resources.
fn asked(event: &Value) -> Option<Asked> {
    let reference = event.get("objectRef")?;
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let part = text(reference, "subresource");
    let resource = text(reference, "resource");
    Some(Asked {
        user: text(&event["user"], "username"),
        verb: text(event, "verb"),
        group: text(reference, "apiGroup"),
        resource: if part.is_empty() { resource } else { format!("{resource}/{part}") },
        namespace: text(reference, "namespace"),
        name: text(reference, "name"),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        credential: event["user"]["extra"]["authentication.kubernetes.io/credential-id"][0]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    })
}
