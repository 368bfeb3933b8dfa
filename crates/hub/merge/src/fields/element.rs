//! One step from a container to what is inside it.
//!
//! Borrows names and values from the object or the entry it was read from: comparing two objects makes a set of paths,
//! and few of them are ever written down.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use crate::golang::Named;
use crate::number::order;

/// A step of a path. The order of elements is the order of a serialised set.
#[derive(Debug, Clone)]
pub enum Element<'a> {
    /// A field of an object: `f:name`.
    Field(Cow<'a, str>),
    /// The item of a list that has these values in its key fields, sorted by name: `k:{"name":"x"}`.
    Key(Vec<(Cow<'a, str>, Cow<'a, Value>)>),
    /// The item of a set that is this scalar: `v:"x"`.
    Value(Cow<'a, Value>),
    /// The item at a place: `i:0`.
    Index(i64),
}

impl<'a> Element<'a> {
    /// A field by name.
    pub fn field(name: &'a str) -> Self {
        Self::Field(Cow::Borrowed(name))
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }

    /// The element without anything borrowed.
    pub fn into_owned(self) -> Element<'static> {
        match self {
            Self::Field(name) => Element::Field(Cow::Owned(name.into_owned())),
            Self::Key(fields) => Element::Key(
                fields
                    .into_iter()
                    .map(|(name, value)| (Cow::Owned(name.into_owned()), Cow::Owned(value.into_owned())))
                    .collect(),
            ),
            Self::Value(value) => Element::Value(Cow::Owned(value.into_owned())),
            Self::Index(index) => Element::Index(index),
        }
    }
}

impl Ord for Element<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                for ((name, left), (other, right)) in left.iter().zip(right) {
                    let found = name.cmp(other).then_with(|| order(left, right));
                    if found.is_ne() {
                        return found;
                    }
                }
                left.len().cmp(&right.len())
            }
            (Self::Value(left), Self::Value(right)) => order(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            (left, right) => left.rank().cmp(&right.rank()),
        }
    }
}

impl PartialOrd for Element<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element<'_> {}

/// As conflicts and errors name a place: `.spec`, `[name="x"]`, `[="x"]`, `[0]`.
impl Display for Element<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", Named(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", Named(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}
