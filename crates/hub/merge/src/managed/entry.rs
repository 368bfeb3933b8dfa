//! The entries of `metadata.managedFields`: reading, identity, order, writing.
//!
//! Invariant: no two entries have the same identity, and none has an empty set when written.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::time::canonical;
use crate::fields::FieldSet;
use crate::golang::Quoted;

/// How a manager writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Server-side apply: the manager says what it wants, and what it no longer says goes.
    Apply,
    /// Everything else: the manager owns what it changed.
    Update,
}

impl Operation {
    /// As entries spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who an entry belongs to. An applier is the same whatever version it applies in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity<'a> {
    pub(super) manager: Cow<'a, str>,
    pub(super) operation: Operation,
    /// Empty for appliers.
    pub(super) api_version: Cow<'a, str>,
    pub(super) subresource: Cow<'a, str>,
}

impl<'a> Identity<'a> {
    pub(super) fn new(
        manager: impl Into<Cow<'a, str>>,
        operation: Operation,
        api_version: impl Into<Cow<'a, str>>,
        subresource: impl Into<Cow<'a, str>>,
    ) -> Self {
        let api_version = if operation == Operation::Apply { Cow::Borrowed("") } else { api_version.into() };
        Self { manager: manager.into(), operation, api_version, subresource: subresource.into() }
    }

    /// The text by which the server sorts managers: the identity as JSON.
    pub(super) fn sort_key(&self) -> String {
        let members = [
            ("manager", &*self.manager),
            ("operation", self.operation.as_str()),
            ("apiVersion", &*self.api_version),
            ("subresource", &*self.subresource),
        ];
        let written = members.iter().filter(|(_, text)| !text.is_empty());
        let written: Vec<String> =
            written.map(|(name, text)| format!("\"{name}\":{}", Value::from(*text))).collect();
        format!("{{{}}}", written.join(","))
    }
}

/// An entry.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) identity: Identity<'a>,
    /// The version the fields are named in.
    pub(super) api_version: Cow<'a, str>,
    /// The fields; empty while they are still `unread`.
    pub(super) set: FieldSet<'a>,
    /// The fields in their JSON form, until someone has to know them one by one.
    pub(super) unread: Option<&'a Value>,
    pub(super) time: Option<Cow<'a, str>>,
    /// Where the entry was read from, while it is still exactly that.
    pub(super) source: Option<usize>,
}

impl Entry<'_> {
    /// Reads the fields, if that was not done.
    pub(super) fn open(&mut self) -> Result<(), String> {
        if let Some(fields) = self.unread.take() {
            self.set = FieldSet::from_fields_v1(fields).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Whether the entry owns nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.unread.is_none() && self.set.is_empty()
    }
}

/// Reads entries. Of two with the same identity the later counts.
pub(super) fn read(entries: &Value) -> Result<Vec<Entry<'_>>, String> {
    let mut entries = scan(entries)?;
    for entry in &mut entries {
        let manager = Quoted(&entry.identity.manager).to_string();
        entry.open().map_err(|why| format!("error decoding versioned set of manager {manager}: {why}"))?;
    }
    Ok(entries)
}

/// Reads who there is, and leaves the fields unread.
pub(super) fn scan(entries: &Value) -> Result<Vec<Entry<'_>>, String> {
    let Value::Array(entries) = entries else { return Ok(Vec::new()) };
    let mut read: Vec<Entry<'_>> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let entry = read_one(index, entry)?;
        match read.iter_mut().find(|known| known.identity == entry.identity) {
            Some(known) => *known = entry,
            None => read.push(entry),
        }
    }
    Ok(read)
}

fn read_one(index: usize, entry: &Value) -> Result<Entry<'_>, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {} in managed fields entry {index}", Quoted(other))),
    }
    let manager = text("manager");
    let time =
        match entry.get("time") {
            None | Some(Value::Null) => None,
            Some(time) => {
                let parsed = time.as_str().and_then(canonical);
                Some(parsed.ok_or_else(|| {
                    format!("time {time} of manager {} is not in RFC 3339", Quoted(manager))
                })?)
            }
        };
    Ok(Entry {
        identity: Identity::new(manager, operation, api_version, text("subresource")),
        api_version: Cow::Borrowed(api_version),
        set: FieldSet::new(),
        unread: entry
            .get("fieldsV1")
            .filter(|fields| fields.as_object().is_none_or(|fields| !fields.is_empty())),
        time,
        source: Some(index),
    })
}

/// Whether `metadata.managedFields` can be read; says what is wrong with it.
pub fn validate_managed_fields(entries: &Value) -> Result<(), String> {
    read(entries).map(|_| ())
}

/// The order in which entries stand: appliers first, then by time, name, version and subresource.
fn order(left: &Entry<'_>, right: &Entry<'_>) -> Ordering {
    left.identity
        .operation
        .cmp(&right.identity.operation)
        .then_with(|| left.time.cmp(&right.time))
        .then_with(|| left.identity.manager.cmp(&right.identity.manager))
        .then_with(|| left.api_version.cmp(&right.api_version))
        .then_with(|| left.identity.subresource.cmp(&right.identity.subresource))
}

/// An entry as it will stand: made anew, or the one it was read from.
pub(super) enum Written {
    New(Value),
    Source(usize),
}

/// Sorts and writes entries. What is unchanged is named by where it was.
pub(super) fn write(mut entries: Vec<Entry<'_>>) -> Vec<Written> {
    entries.sort_by(order);
    entries
        .into_iter()
        .map(|entry| match entry.source {
            Some(index) => Written::Source(index),
            None => Written::New(write_one(&entry)),
        })
        .collect()
}

fn write_one(entry: &Entry<'_>) -> Value {
    let mut out = Map::new();
    let mut member = |name: &str, text: &str| {
        if !text.is_empty() {
            out.insert(name.to_owned(), Value::from(text));
        }
    };
    member("apiVersion", &entry.api_version);
    member("fieldsType", "FieldsV1");
    member("manager", &entry.identity.manager);
    member("operation", entry.identity.operation.as_str());
    member("subresource", &entry.identity.subresource);
    member("time", entry.time.as_deref().unwrap_or_default());
    out.insert("fieldsV1".to_owned(), entry.set.to_fields_v1());
    Value::Object(out)
}

/// The managed fields of an object, null where there are none.
pub(super) fn of(object: &Value) -> &Value {
    object.get("metadata").and_then(|metadata| metadata.get("managedFields")).unwrap_or(&Value::Null)
}

/// Takes the managed fields out of an object.
pub(super) fn take(object: &mut Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.and_then(|metadata| metadata.remove("managedFields")).unwrap_or(Value::Null)
}

/// Puts managed fields into an object; none at all leave no trace.
pub(super) fn put(object: &mut Value, entries: Vec<Value>) {
    let Value::Object(object) = object else { return };
    if entries.is_empty() {
        return;
    }
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(metadata) = metadata {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}
