//! What is asked and answered, as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::answer::{Silence, shown};

const API_VERSION: &str = "berth.dev/v1alpha1";
const EVICTION: &str = "EvictionReview";
const REPLACEMENT: &str = "ReplacementReview";

/// May this pod go?
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The policy that asks.
    pub policy: String,
    /// Its gate that asks.
    pub gate: String,
    /// The pod.
    pub pod: PodFacts,
    /// The node that it would leave.
    pub node: NodeFacts,
    /// The taint that makes it leave.
    pub taint: TaintFacts,
    /// When it is due, or was, in RFC 3339.
    pub due_at: String,
    /// Whether the pod stays even if it may go.
    #[serde(rename = "dryRun", skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
    /// The replacement that it is about, where the pod is a member that is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<ReplacementFacts>,
}

/// A replacement, as far as it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementFacts {
    /// Before what is asked.
    pub stage: String,
    /// Why the member is replaced.
    pub trigger: String,
    /// When the replacement began, in RFC 3339; empty before it did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_at: String,
    /// Whether volumes are lost with it.
    pub removes_volumes: bool,
}

/// A pod, as far as it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: who is asked must not take a successor for it.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The name of its node.
    pub node: String,
}

/// A node, as far as it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// A taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintFacts {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Its effect.
    pub effect: String,
    /// When it was added, in RFC 3339, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

impl Question {
    /// Its id: the same for the same pod, policy and gate, across retries, processes and leaders; another in a dry run.
    pub fn uid(&self) -> String {
        let mut hash = Sha256::new();
        for part in [&self.pod.uid, &self.policy, &self.gate] {
            // With their lengths, or what ends one part could begin the next.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        if self.is_dry_run {
            hash.update([1]);
        }
        if let Some(replacement) = &self.replacement {
            for part in [&replacement.stage, &replacement.started_at] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        let mut bytes: [u8; 16] = hash.finalize()[..16].try_into().expect("a hash has 32 bytes");
        // Version 8 of RFC 9562: an identifier by rules of its own.
        bytes[6] = (bytes[6] & 0x0f) | 0x80;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (index, byte) in bytes.into_iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            write!(text, "{byte:02x}").expect("a string takes everything");
        }
        text
    }

    /// The kind of the document that is sent, and of the answer.
    pub(super) fn kind(&self) -> &'static str {
        if self.replacement.is_some() { REPLACEMENT } else { EVICTION }
    }

    /// The document that is sent.
    pub(super) fn document(&self, uid: &str) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Review<'q> {
            api_version: &'static str,
            kind: &'static str,
            request: Request<'q>,
        }
        #[derive(Serialize)]
        struct Request<'q> {
            uid: &'q str,
            #[serde(flatten)]
            question: &'q Question,
        }
        let request = Request { uid, question: self };
        serde_json::to_vec(&Review { api_version: API_VERSION, kind: self.kind(), request })
            .expect("strings and maps of strings are JSON")
    }
}

/// The part of an answer that counts.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    uid: String,
    pub(super) allowed: bool,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) retry_after_seconds: Option<i64>,
}

/// The answer of this kind to the question `uid` in a body.
pub(super) fn read(body: &[u8], kind: &str, uid: &str) -> Result<Response, Silence> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Review {
        api_version: String,
        kind: String,
        response: Response,
    }
    let review: Review =
        serde_json::from_slice(body).map_err(|error| Silence::Unreadable(shown(&error.to_string())))?;
    if (review.api_version.as_str(), review.kind.as_str()) != (API_VERSION, kind) {
        let found = shown(&format!("{} {}", review.api_version, review.kind));
        return Err(Silence::Unreadable(format!("it is {found:?}, not {API_VERSION} {kind}")));
    }
    if review.response.uid != uid {
        return Err(Silence::Another { uid: shown(&review.response.uid) });
    }
    Ok(review.response)
}
