//! A write that has already been merged: who changed a field owns it from now on.

use std::borrow::Cow;

use serde_json::Value;

use super::cap::cap;
use super::entry::{self, Entry, Identity, Operation, Written};
use super::object_type::ObjectType;
use super::strip::{reset_set, strip};
use super::writer::Writer;
use crate::fields::{Element, FieldSet, touches};
use crate::typed::{Comparison, Duplicates, Type, compare, fits, is_outdated, reconcile, validate};

/// Fills `metadata.managedFields` of an object about to be written by anything but apply.
///
/// `live` is what is stored, nothing for a creation. `reset` names fields that this writer cannot own because the server
/// resets them, such as `["status"]`. What the request says about managed fields itself is heeded as the API server does:
/// an empty list, or a list of one empty entry, forgets all managers; entries that cannot be read count as none sent, and
/// then the live ones are kept. An object that cannot be read by its schema loses its entries.
pub fn track_update<'a>(
    live: Option<&'a Value>,
    new: &mut Value,
    of: impl Into<ObjectType<'a>>,
    writer: &Writer<'_>,
    reset: &[&[&str]],
) {
    let of = of.into();
    let sent = entry::take(new);
    let zero;
    let live = if let Some(live) = live {
        live
    } else {
        zero = of.empty(new);
        &zero
    };
    let live_entries = entry::of(live);
    let Some((written, origin)) = tracked(live, new, &sent, live_entries, &of, writer, &reset_set(reset))
    else {
        return;
    };
    let entries = match origin {
        Origin::Sent => assemble(written, sent),
        Origin::Live => written
            .into_iter()
            .map(|entry| match entry {
                Written::New(entry) => entry,
                Written::Source(index) => live_entries[index].clone(),
            })
            .collect(),
    };
    entry::put(new, entries);
}

/// Where entries that did not change are taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Sent,
    Live,
}

fn assemble(written: Vec<Written>, mut sent: Value) -> Vec<Value> {
    written
        .into_iter()
        .map(|entry| match entry {
            Written::New(entry) => entry,
            Written::Source(index) => sent[index].take(),
        })
        .collect()
}

/// The entries after the write; `None` where there are to be none.
fn tracked(
    live: &Value,
    new: &Value,
    sent: &Value,
    live_entries: &Value,
    of: &ObjectType<'_>,
    writer: &Writer<'_>,
    reset: &FieldSet<'_>,
) -> Option<(Vec<Written>, Origin)> {
    let (mut entries, origin) = start(sent, live_entries, writer);
    let created = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().is_empty();
    if entries.is_empty() && !created {
        // Tracking begins with the creation or with the first apply.
        return None;
    }
    advance(live, new, &mut entries, of, writer, writer.name(), reset).ok()?;
    Some((entry::write(entries), origin))
}

/// The entries a write starts from.
fn start<'v>(sent: &'v Value, live: &'v Value, writer: &Writer<'_>) -> (Vec<Entry<'v>>, Origin) {
    // Through a subresource nobody edits entries.
    let same = sent == live;
    if same || writer.subresource.is_none_or(str::is_empty) {
        if !same && is_reset(sent) {
            return (Vec::new(), Origin::Sent);
        }
        let read = if same { entry::scan(sent) } else { entry::read(sent) };
        if let Ok(mut entries) = read
            && !entries.is_empty()
        {
            // What a client wrote itself is written anew, in canonical form.
            if !same {
                for entry in &mut entries {
                    entry.source = None;
                }
            }
            return (entries, Origin::Sent);
        }
    }
    (entry::scan(live).unwrap_or_default(), Origin::Live)
}

fn is_reset(sent: &Value) -> bool {
    match sent.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}

/// Takes an update into account.
pub(super) fn advance<'a>(
    live: &'a Value,
    new: &'a Value,
    entries: &mut Vec<Entry<'a>>,
    of: &ObjectType<'a>,
    writer: &Writer<'_>,
    manager: &str,
    reset: &FieldSet<'_>,
) -> Result<(), String> {
    let written_type =
        of.at(writer.api_version, writer.api_version).ok_or("the written version has no schema")?;
    if !fits(new, written_type) || !fits_without_entries(live, written_type) {
        return Err(unfit(live, new, written_type));
    }
    settle(entries, live, of, writer.api_version)?;
    let comparison = difference(live, new, writer.api_version, of, writer.api_version, reset)?;
    if comparison.is_same() {
        return Ok(());
    }
    disown(entries, live, new, &comparison, of, writer.api_version, None, reset)?;
    let mut set = comparison.modified;
    set = strip(set.union(comparison.added));
    if !set.is_empty() {
        let subresource = writer.subresource.unwrap_or_default().to_owned();
        let identity =
            Identity::new(manager.to_owned(), Operation::Update, writer.api_version.to_owned(), subresource);
        let now = Some(Cow::Owned(writer.now.to_owned()));
        match entries.iter_mut().find(|entry| entry.identity == identity) {
            Some(entry) => {
                entry.open()?;
                entry.set = std::mem::take(&mut entry.set).union(set);
                entry.time = now;
                entry.source = None;
            }
            None => entries.push(Entry {
                identity,
                api_version: Cow::Owned(writer.api_version.to_owned()),
                set,
                unread: None,
                time: now,
                source: None,
            }),
        }
    }
    cap(entries)
}

/// Whether a live object fits. Its entries are not part of what is compared.
fn fits_without_entries(live: &Value, of: Type<'_>) -> bool {
    let Value::Object(fields) = live else { return fits(live, of) };
    fields.iter().all(|(name, field)| {
        let Some((of, _)) = of.field(name) else { return false };
        let Some(metadata) = field.as_object().filter(|_| name == "metadata") else { return fits(field, of) };
        let mut parts = metadata.iter().filter(|(name, _)| *name != "managedFields");
        parts.all(|(name, part)| of.field(name).is_some_and(|(of, _)| fits(part, of)))
    })
}

/// Why one of them does not fit.
fn unfit(live: &Value, new: &Value, of: Type<'_>) -> String {
    for (what, object) in [("new", new), ("live", live)] {
        if let Err(error) = validate(object, of, Duplicates::Allowed) {
            return format!("failed to convert {what} object to smd typed: {error}");
        }
    }
    "failed to convert live object to smd typed".to_owned()
}

/// Brings entries in line with the schemas of today. Those of versions that are gone go too, or the write fails over them.
pub(super) fn settle<'a>(
    entries: &mut Vec<Entry<'a>>,
    live: &Value,
    of: &ObjectType<'a>,
    written: &str,
) -> Result<(), String> {
    if let Some(why) = entries.iter().find_map(|entry| of.refusal(&entry.api_version, written)) {
        return Err(why);
    }
    entries.retain(|entry| of.at(&entry.api_version, written).is_some());
    for entry in entries {
        let Some(version) = of.at(&entry.api_version, written) else { continue };
        if entry.api_version != written {
            converted(live, &entry.api_version, of, written)?;
        }
        if let Some(fields) = entry.unread {
            if !is_outdated(fields, version) {
                continue;
            }
            entry.open()?;
            entry.source = None;
        }
        reconcile(&mut entry.set, version);
    }
    Ok(())
}

/// Whether an object can be read under another version: there, names of items may not repeat.
pub(super) fn converted(
    value: &Value,
    version: &str,
    of: &ObjectType<'_>,
    written: &str,
) -> Result<(), String> {
    match of.at(version, written) {
        Some(at) if version != written => {
            validate(value, at, Duplicates::Refused).map_err(|error| error.to_string())
        }
        _ => Ok(()),
    }
}

/// What differs, in the fields of a version.
pub(super) fn difference<'a>(
    live: &'a Value,
    new: &'a Value,
    version: &str,
    of: &ObjectType<'a>,
    written: &str,
    reset: &FieldSet<'_>,
) -> Result<Comparison<'a>, String> {
    let at = of.at(version, written).ok_or("the version has no schema")?;
    let mut comparison =
        compare(live, new, at).map_err(|error| format!("failed to compare objects: {error}"))?;
    // The live object carries its entries, the new one has them taken out.
    let mut entries = FieldSet::new();
    entries.insert([Element::field("metadata"), Element::field("managedFields")]);
    comparison.removed = comparison.removed.difference(&entries);
    Ok(comparison.without(reset))
}

/// Takes what changed away from everyone else.
#[expect(
    clippy::too_many_arguments,
    reason = "the facts of one write, which no type of their own would explain"
)]
pub(super) fn disown<'a>(
    entries: &mut Vec<Entry<'_>>,
    live: &'a Value,
    new: &'a Value,
    comparison: &Comparison<'a>,
    of: &ObjectType<'a>,
    written: &str,
    own: Option<&Identity<'_>>,
    reset: &FieldSet<'_>,
) -> Result<(), String> {
    for entry in entries.iter_mut().filter(|entry| own != Some(&entry.identity)) {
        let theirs;
        converted(new, &entry.api_version, of, written)
            .map_err(|error| format!("failed to convert new object: {error}"))?;
        let comparison = if of.same_schema(&entry.api_version, written) {
            comparison
        } else {
            theirs = difference(live, new, &entry.api_version, of, written, reset)?;
            &theirs
        };
        let changed = [&comparison.modified, &comparison.added, &comparison.removed];
        if let Some(fields) = entry.unread {
            if !changed.iter().any(|changed| touches(fields, changed)) {
                continue;
            }
            entry.open()?;
        }
        if changed.iter().any(|changed| entry.set.intersects(changed)) {
            for changed in changed {
                entry.set = std::mem::take(&mut entry.set).difference(changed);
            }
            entry.source = None;
        }
    }
    entries.retain(|entry| !entry.is_empty());
    Ok(())
}
