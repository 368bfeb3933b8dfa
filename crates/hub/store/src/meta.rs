//! What the store knows about an object's metadata.
//!
//! Owns the few fields that lists, watches and garbage collection ask for all the time: uid, labels, owners, whether the
//! object is being deleted and whether finalizers hold it. Text is kept as positions in the object's own JSON, so that
//! ten thousand objects do not carry their labels twice. It never looks outside `metadata`.

use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// A piece of the object's JSON, or its own copy where the JSON holds it escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// Start and length in the object's JSON.
    Span(u32, u32),
    /// Text that is written with escapes in the JSON.
    Owned(Box<str>),
}

impl Default for Text {
    fn default() -> Self {
        Self::Span(0, 0)
    }
}

impl Text {
    pub(crate) fn get<'a>(&'a self, json: &'a [u8]) -> &'a str {
        match self {
            Self::Span(start, length) => {
                let start = *start as usize;
                json.get(start..start + *length as usize)
                    .and_then(|bytes| std::str::from_utf8(bytes).ok())
                    .unwrap_or_default()
            }
            Self::Owned(text) => text,
        }
    }

    fn shift(&mut self, from: usize, by: usize) {
        if let Self::Span(start, _) = self
            && *start as usize >= from
        {
            *start += by as u32;
        }
    }
}

/// The parts of `metadata` that the store keeps at hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Empty when there is none.
    pub(crate) uid: Text,
    /// Sorted by key.
    pub(crate) labels: Box<[(Text, Text)]>,
    /// The uids of the owners, in the order of the object.
    pub(crate) owners: Box<[Text]>,
    pub(crate) deleting: bool,
    pub(crate) finalizing: bool,
}

impl Meta {
    /// Reads the metadata that lies at `range` of `json`.
    pub(crate) fn read(json: &[u8], range: Range<usize>) -> Result<Self, String> {
        let Some(part) = json.get(range.clone()) else {
            return Err(format!("metadata is said to lie at {range:?} of {} bytes", json.len()));
        };
        let raw: RawMeta<'_> = serde_json::from_slice(part).map_err(|error| error.to_string())?;
        let base = json.as_ptr().addr();
        let text = |piece: Piece<'_>| match piece {
            Piece::Borrowed(text) => Text::Span((text.as_ptr().addr() - base) as u32, text.len() as u32),
            Piece::Owned(text) => Text::Owned(text.into()),
        };
        let mut labels: Vec<(Text, Text)> = raw
            .labels
            .unwrap_or_default()
            .0
            .into_iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect();
        labels.sort_by(|a, b| a.0.get(json).cmp(b.0.get(json)));
        Ok(Self {
            uid: raw.uid.map(text).unwrap_or_default(),
            labels: labels.into(),
            owners: raw
                .owners
                .unwrap_or_default()
                .into_iter()
                .filter_map(|owner| owner.uid)
                .map(text)
                .collect(),
            deleting: raw.deletion.is_some(),
            finalizing: raw.finalizers.is_some_and(|finalizers| !finalizers.is_empty()),
        })
    }

    /// Moves every position at or behind `from` by `by` bytes: something of that length was put in there.
    pub(crate) fn shift(&mut self, from: usize, by: usize) {
        self.uid.shift(from, by);
        for (key, value) in &mut self.labels {
            key.shift(from, by);
            value.shift(from, by);
        }
        self.owners.iter_mut().for_each(|text| text.shift(from, by));
    }
}

#[derive(Deserialize)]
struct RawMeta<'a> {
    #[serde(borrow, default)]
    uid: Option<Piece<'a>>,
    #[serde(borrow, default)]
    labels: Option<RawLabels<'a>>,
    #[serde(borrow, default, rename = "ownerReferences")]
    owners: Option<Vec<RawOwner<'a>>>,
    #[serde(default, rename = "deletionTimestamp")]
    deletion: Option<IgnoredAny>,
    #[serde(default)]
    finalizers: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct RawOwner<'a> {
    #[serde(borrow, default)]
    uid: Option<Piece<'a>>,
}

#[derive(Default)]
struct RawLabels<'a>(Vec<(Piece<'a>, Piece<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawLabels<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = RawLabels<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(RawLabels(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Text that is borrowed from the JSON whenever it is written there plainly.
enum Piece<'a> {
    Borrowed(&'a str),
    Owned(String),
}

impl<'de: 'a, 'a> Deserialize<'de> for Piece<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Plain;
        impl<'de> Visitor<'de> for Plain {
            type Value = Piece<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Piece::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Piece::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_escaped_text_is_read_right() {
        let json = br#"{"metadata":{"labels":{"z":"1","a":"x\"y"},"uid":"u","finalizers":["f"]}}"#;
        let meta = Meta::read(json, 12..json.len() - 1).unwrap();
        let labels: Vec<_> = meta.labels.iter().map(|(k, v)| (k.get(json), v.get(json))).collect();
        assert_eq!(labels, [("a", "x\"y"), ("z", "1")]);
        assert_eq!(meta.uid.get(json), "u");
        assert!(meta.finalizing && !meta.deleting);
    }

    #[test]
    fn a_text_costs_sixteen_bytes() {
        assert_eq!(size_of::<Text>(), 16);
    }

    #[test]
    fn metadata_outside_the_json_is_an_error() {
        assert!(Meta::read(b"{}", 1..9).is_err());
    }
}
