//! Maps and their keys.
//!
//! Owns lookup under CEL's rule that `1`, `1u` and `1.0` name the same entry. Kept as a sorted vector:
//! the maps of an API object are small, looked up far more often than built, and looked up by borrowed
//! names. Never holds two entries under one key.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::value::Value;

/// What a map entry can be filed under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A text.
    String(Arc<str>),
}

impl Key {
    /// The key that a value stands for, if values of its type may be keys.
    pub fn from_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int(int) => Self::Int(*int),
            Value::Uint(uint) => Self::Uint(*uint),
            Value::String(text) => Self::String(Arc::clone(text)),
            _ => return None,
        })
    }

    /// The key as a value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(int) => Value::Int(*int),
            Self::Uint(uint) => Value::Uint(*uint),
            Self::String(text) => Value::String(Arc::clone(text)),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Int(int) => write!(f, "{int}"),
            Self::Uint(uint) => write!(f, "{uint}"),
            Self::String(text) => f.write_str(text),
        }
    }
}

/// A map from keys to values, iterated in key order.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// Sorted by key, keys unique.
    entries: Vec<(Key, Value)>,
}

impl Map {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The key at a position of the key order.
    pub(crate) fn key_at(&self, index: usize) -> Option<&Key> {
        self.entries.get(index).map(|(key, _)| key)
    }

    /// The value under a text key.
    pub fn get_str(&self, key: &str) -> Option<&Value> {
        self.search(|candidate| match candidate {
            Key::String(text) => text.as_ref().cmp(key),
            _ => Ordering::Less,
        })
    }

    /// The value under a key; signed and unsigned integers of equal value are the same key.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        match key {
            Key::String(text) => self.get_str(text),
            Key::Int(int) => self
                .exact(key)
                .or_else(|| u64::try_from(*int).ok().and_then(|uint| self.exact(&Key::Uint(uint)))),
            Key::Uint(uint) => self
                .exact(key)
                .or_else(|| i64::try_from(*uint).ok().and_then(|int| self.exact(&Key::Int(int)))),
            Key::Bool(_) => self.exact(key),
        }
    }

    /// The value under the key that `value` stands for; a whole `double` finds an integer key.
    pub(crate) fn get_value(&self, value: &Value) -> Option<&Value> {
        if let Value::Double(double) = value {
            if double.fract() != 0.0 || double.abs() > 2f64.powi(63) {
                return None;
            }
            return if *double < 0.0 {
                self.get(&Key::Int(*double as i64))
            } else {
                self.get(&Key::Uint(*double as u64))
            };
        }
        self.get(&Key::from_value(value)?)
    }

    /// Files a value under a key, in place of the one that was there.
    pub(crate) fn insert(&mut self, key: Key, value: Value) {
        match self.entries.binary_search_by(|(candidate, _)| candidate.cmp(&key)) {
            Ok(position) => self.entries[position].1 = value,
            Err(position) => self.entries.insert(position, (key, value)),
        }
    }

    fn exact(&self, key: &Key) -> Option<&Value> {
        self.search(|candidate| candidate.cmp(key))
    }

    fn search(&self, order: impl Fn(&Key) -> Ordering) -> Option<&Value> {
        let position = self.entries.binary_search_by(|(candidate, _)| order(candidate)).ok()?;
        Some(&self.entries[position].1)
    }
}

impl FromIterator<(Key, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Key, Value)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        // Stable, so that among equal keys the last one given comes last and wins below.
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut unique: Vec<(Key, Value)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match unique.last_mut() {
                Some(last) if last.0 == key => last.1 = value,
                _ => unique.push((key, value)),
            }
        }
        Self { entries: unique }
    }
}
