//! What one line of a watch, or one item of a list, tells.
//!
//! Owns reading it: once, as what it nearly always is, an object of the kind that is watched. Only what is not is looked at
//! again, to find out what else it is.

use std::borrow::Cow;
use std::sync::Arc;

use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::world::{Known, Outline, Told, read};

/// A line of a watch.
#[derive(Debug)]
pub(super) enum News {
    /// Something happened to an object.
    Told {
        /// What.
        told: Told,
        /// At which revision.
        revision: String,
    },
    /// Nothing happened up to this revision.
    Mark(String),
    /// The server cannot go on.
    Trouble(Box<Status>),
}

/// Why a line or a page tells nothing. An object that cannot be read is no such reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum Garbled {
    #[error("what the server sent cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("what the server sent is not text: {0}")]
    Text(#[from] std::str::Utf8Error),
    #[error("the server sent an object without a name")]
    Nameless,
    #[error("the server sent no resourceVersion")]
    NoRevision,
    #[error("the server sent an event of the unknown type {0:?}")]
    Unknown(String),
}

/// A line from afar.
#[derive(Deserialize)]
struct Line<'j> {
    #[serde(borrow, rename = "type")]
    event: Cow<'j, str>,
    #[serde(borrow)]
    object: Outline<'j>,
}

/// A line in full.
#[derive(Deserialize)]
struct Full<T> {
    object: T,
}

/// How a line begins that tells of an object as it is now.
const SHOWS: [&str; 2] = [r#"{"type":"MODIFIED","#, r#"{"type":"ADDED","#];

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Page<'j> {
    #[serde(default)]
    pub(super) metadata: PageMetadata,
    #[serde(borrow, default, deserialize_with = "items")]
    pub(super) items: Vec<&'j RawValue>,
}

/// Where a page ends.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetadata {
    #[serde(default)]
    pub(super) resource_version: String,
    #[serde(default, rename = "continue")]
    pub(super) token: String,
}

/// Go writes a list of nothing as `null`.
fn items<'j, D: serde::Deserializer<'j>>(source: D) -> Result<Vec<&'j RawValue>, D::Error> {
    Ok(Option::<Vec<&'j RawValue>>::deserialize(source)?.unwrap_or_default())
}

impl News {
    /// Reads a line. What `slim` holds is of no meaning: it is memory to be used again.
    pub(super) fn read<K: Known>(line: &[u8], slim: &mut String) -> Result<Self, Garbled> {
        let text = std::str::from_utf8(line)?;
        if SHOWS.iter().any(|begin| text.starts_with(begin))
            && let Ok(Full::<K> { object }) = read(K::KIND, text, slim)
            && let Some(revision) = object.resource_version().filter(|revision| !revision.is_empty())
            && !object.key().name.is_empty()
        {
            return Ok(Self::Told { told: Told::Seen(K::wrap(Arc::new(object))), revision });
        }
        Self::look_at::<K>(text, slim)
    }

    /// Reads a line of which nothing is known.
    fn look_at<K: Known>(text: &str, slim: &mut String) -> Result<Self, Garbled> {
        let Line { event, object } = serde_json::from_str(text)?;
        if event == "ERROR" {
            let full: Full<Status> = serde_json::from_str(text)?;
            return Ok(Self::Trouble(full.object.boxed()));
        }
        let revision = object.revision().ok_or(Garbled::NoRevision)?.to_owned();
        let told = match &*event {
            "BOOKMARK" => return Ok(Self::Mark(revision)),
            "ADDED" | "MODIFIED" => {
                seen::<K>(&object, || read::<Full<K>>(K::KIND, text, slim).map(|full| full.object))?
            }
            // The end of an object that cannot be read is an end all the same.
            "DELETED" => {
                object.key().ok_or(Garbled::Nameless)?;
                Told::Ended(K::KIND, Box::new(object.identity()))
            }
            unknown => return Err(Garbled::Unknown(unknown.to_owned())),
        };
        Ok(Self::Told { told, revision })
    }
}

/// Reads an item of a list.
pub(super) fn item<K: Known>(item: &RawValue, slim: &mut String) -> Result<Told, Garbled> {
    if let Ok(object) = read::<K>(K::KIND, item.get(), slim)
        && !object.key().name.is_empty()
    {
        return Ok(Told::Seen(K::wrap(Arc::new(object))));
    }
    let outline: Outline<'_> = serde_json::from_str(item.get())?;
    seen::<K>(&outline, || read(K::KIND, item.get(), slim))
}

fn seen<K: Known>(
    outline: &Outline<'_>,
    read: impl FnOnce() -> serde_json::Result<K>,
) -> Result<Told, Garbled> {
    let key = outline.key().ok_or(Garbled::Nameless)?;
    Ok(match read() {
        Ok(object) => Told::Seen(K::wrap(Arc::new(object))),
        Err(error) => {
            tracing::warn!(kind = %K::KIND, %key, %error, "an object cannot be read; what was known of it stays");
            Told::Unreadable(K::KIND, key)
        }
    })
}
