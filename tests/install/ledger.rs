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
pub(crate) struct Ledger {
    asked: BTreeSet<Asked>,
    /// What somebody else wanted to know whether they may, as if they had asked for it.
    reviewed: BTreeSet<Asked>,
}

impl Ledger {
    /// Reads the log as far as it was written.
    pub(crate) fn read(path: &Path) -> Self {
        Self::of_text(&std::fs::read_to_string(path).unwrap_or_default())
    }

    pub(crate) fn of_text(text: &str) -> Self {
        // The last line may be under way.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let events: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self {
            asked: events.iter().filter_map(asked).collect(),
            reviewed: events.iter().filter_map(reviewed).collect(),
        }
    }

    /// What somebody asked for.
    pub(crate) fn of<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a Asked> {
        self.asked.iter().filter(move |asked| asked.user == user)
    }

    /// What was asked about somebody: whether they may, wherever the answer is a rule's to give.
    pub(crate) fn about<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a Asked> {
        self.reviewed.iter().filter(move |asked| asked.user == user)
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// A resource with its subresource.
fn whole(part: &str, resource: String) -> String {
    if part.is_empty() { resource } else { format!("{resource}/{part}") }
}

/// Requests for paths (discovery, schemas, health) are open to everybody and not about resources.
fn asked(event: &Value) -> Option<Asked> {
    let reference = event.get("objectRef")?;
    Some(Asked {
        user: text(&event["user"], "username"),
        verb: text(event, "verb"),
        group: text(reference, "apiGroup"),
        resource: whole(&text(reference, "subresource"), text(reference, "resource")),
        namespace: text(reference, "namespace"),
        name: text(reference, "name"),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        credential: event["user"]["extra"]["authentication.kubernetes.io/credential-id"][0]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    })
}

/// What a SubjectAccessReview is about, as it was sent.
fn reviewed(event: &Value) -> Option<Asked> {
    let reviewed = (event["objectRef"]["resource"] == "subjectaccessreviews")
        .then(|| &event["requestObject"]["spec"])?;
    let attributes = reviewed.get("resourceAttributes")?;
    Some(Asked {
        user: text(reviewed, "user"),
        verb: text(attributes, "verb"),
        group: text(attributes, "group"),
        resource: whole(&text(attributes, "subresource"), text(attributes, "resource")),
        namespace: text(attributes, "namespace"),
        name: text(attributes, "name"),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        credential: String::new(),
    })
}
