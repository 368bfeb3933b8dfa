//! Server-side apply: a manager says what it wants, takes it, and lets go of what it no longer wants.

use std::borrow::Cow;

use serde_json::Value;

use super::conflict::{ApplyError, Contested};
use super::entry::{self, Entry, Identity, Operation, Written};
use super::last_applied::{KUBECTL, remember, still_applied};
use super::object_type::ObjectType;
use super::strip::{reset_set, strip};
use super::update::{advance, converted, difference, disown, settle};
use super::writer::Writer;
use crate::fields::FieldSet;
use crate::number::same;
use crate::typed::{Comparison, Duplicates, extract, merge, remove, validate, with_named_parents};

/// The manager of what was there before anyone applied, where nobody was recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies a configuration to the live object, or to nothing, and gives the object to store with its managed fields.
///
/// Defaults are not filled in: what the server fills in afterwards is nobody's until somebody says it. `reset` names
/// fields that this writer cannot own, such as `["status"]`.
pub fn apply<'a>(
    live: Option<&'a Value>,
    config: &'a Value,
    of: impl Into<ObjectType<'a>>,
    writer: &Writer<'_>,
    force: bool,
    reset: &[&[&str]],
) -> Result<Value, ApplyError> {
    let of = of.into();
    let mut base = live.cloned().unwrap_or_else(|| of.empty(config));
    let recorded = entry::take(&mut base);
    check_kind(&base, config, writer)?;
    let entries = entry::read(&recorded)
        .map_err(|why| ApplyError::Failed(format!("failed to decode managed fields: {why}")))?;
    let attempt =
        Attempt { base: &base, config, of, writer, reset: reset_set(reset), recorded: &recorded, entries };
    let mut object = match attempt.run(force) {
        Ok(object) => object,
        Err(Refused::Error(error)) => return Err(error),
        Err(Refused::Contested(contested)) => {
            let allowed = (writer.name() == KUBECTL).then(|| still_applied(&base, &of, writer)).flatten();
            let open = match allowed {
                None => contested,
                Some(allowed) => without(contested, &allowed),
            };
            if !open.sets.is_empty() {
                return Err(ApplyError::Conflicts(open.into_conflicts()));
            }
            attempt.run(true).map_err(|refused| match refused {
                Refused::Error(error) => error,
                Refused::Contested(contested) => ApplyError::Conflicts(contested.into_conflicts()),
            })?
        }
    };
    if writer.name() == KUBECTL {
        remember(&mut object, config);
    }
    Ok(object)
}

/// Conflicts that the client's own annotation does not explain.
fn without<'a>(contested: Contested<'a>, allowed: &FieldSet<'_>) -> Contested<'a> {
    let sets = contested.sets.into_iter().map(|(identity, set)| (identity, set.difference(allowed)));
    Contested { sets: sets.filter(|(_, set)| !set.is_empty()).collect() }
}

fn text<'v>(object: &'v Value, name: &str) -> &'v str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// `group/version, Kind=kind`, the group empty for the core one.
fn type_of(object: &Value) -> String {
    let version = text(object, "apiVersion");
    let slash = if version.contains('/') || version.is_empty() { "" } else { "/" };
    let slash = if version.is_empty() { "/" } else { slash };
    format!("{slash}{version}, Kind={}", text(object, "kind"))
}

/// An object as messages name it.
fn named(object: &Value) -> String {
    let metadata =
        |name: &str| object.get("metadata").map(|metadata| text(metadata, name)).unwrap_or_default();
    format!("{}/{}; {}", metadata("namespace"), metadata("name"), type_of(object))
}

fn check_kind(base: &Value, config: &Value, writer: &Writer<'_>) -> Result<(), ApplyError> {
    if text(config, "apiVersion") != writer.api_version || text(config, "kind") != text(base, "kind") {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", type_of(config))));
    }
    if config.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    Ok(())
}

/// Why an attempt did not succeed.
enum Refused<'a> {
    Contested(Contested<'a>),
    Error(ApplyError),
}

impl From<String> for Refused<'_> {
    fn from(why: String) -> Self {
        Self::Error(ApplyError::Failed(why))
    }
}

/// One apply, which may be tried a second time with force.
struct Attempt<'a> {
    /// The live object without its entries.
    base: &'a Value,
    config: &'a Value,
    of: ObjectType<'a>,
    writer: &'a Writer<'a>,
    reset: FieldSet<'a>,
    recorded: &'a Value,
    entries: Vec<Entry<'a>>,
}

impl<'a> Attempt<'a> {
    fn run(&self, force: bool) -> Result<Value, Refused<'a>> {
        let (base, config, writer, of) = (self.base, self.config, self.writer, &self.of);
        let version = writer.api_version;
        let typed = of.at(version, version).ok_or_else(|| "the written version has no schema".to_owned())?;
        let mut entries = self.entries.clone();
        if entries.is_empty() {
            self.record_what_was_there(&mut entries)?;
        }
        validate(config, typed, Duplicates::Refused)
            .map_err(|error| format!("failed to create typed patch object ({}): {error}", named(config)))?;
        validate(base, typed, Duplicates::Allowed)
            .map_err(|error| format!("failed to create typed live object ({}): {error}", named(base)))?;
        settle(&mut entries, base, of, version)?;
        let merged = merge(base, config, typed);
        let subresource = writer.subresource.unwrap_or_default();
        let own = Identity::new(writer.name(), Operation::Apply, version, subresource);
        let last = entries.iter().position(|entry| entry.identity == own).map(|at| entries.remove(at));
        let set = extract(config, typed).recursive_difference(&self.reset);
        let time = last.as_ref().and_then(|last| last.time.clone());
        entries.push(Entry {
            identity: own.clone(),
            api_version: Cow::Borrowed(version),
            set,
            unread: None,
            time,
            source: None,
        });
        let pruned = self
            .prune(merged, &entries, last.as_ref())
            .map_err(|error| format!("failed to prune fields: {error}"))?;
        let comparison = difference(base, &pruned, version, of, version, &self.reset)?;
        if !force {
            self.contest(&entries, &pruned, &comparison, &own)?;
        }
        disown(&mut entries, base, &pruned, &comparison, of, version, Some(&own), &self.reset)?;
        let unchanged = same(base, &pruned);
        if let Some(at) = entries.iter().position(|entry| entry.identity == own) {
            let entry = &mut entries[at];
            entry.set = strip(std::mem::take(&mut entry.set));
            if !unchanged {
                entry.time = Some(Cow::Borrowed(writer.now));
            }
            if entry.set.is_empty() {
                entries.remove(at);
            }
        }
        let written = entry::write(entries);
        let mut object = if unchanged { base.clone() } else { pruned };
        let written = written.into_iter().map(|entry| match entry {
            Written::New(entry) => entry,
            Written::Source(index) => self.recorded[index].clone(),
        });
        entry::put(&mut object, written.collect());
        Ok(object)
    }

    /// Gives what an object had before anyone was recorded to a manager of that name.
    fn record_what_was_there(&self, entries: &mut Vec<Entry<'a>>) -> Result<(), String> {
        let zero = self.of.empty(self.config);
        let mut found = Vec::new();
        let writer = Writer { operation: Operation::Update, ..*self.writer };
        advance(&zero, self.base, &mut found, &self.of, &writer, BEFORE_FIRST_APPLY, &self.reset)
            .map_err(|why| format!("failed to create manager for existing fields: {why}"))?;
        entries.extend(found.into_iter().map(|entry| Entry {
            identity: Identity::new(BEFORE_FIRST_APPLY, Operation::Update, self.writer.api_version, {
                self.writer.subresource.unwrap_or_default()
            }),
            api_version: Cow::Borrowed(self.writer.api_version),
            set: entry.set.into_owned(),
            unread: None,
            time: Some(Cow::Borrowed(self.writer.now)),
            source: None,
        }));
        Ok(())
    }

    /// Fails where a change is to fields that others own.
    fn contest(
        &self,
        entries: &[Entry<'a>],
        pruned: &Value,
        comparison: &Comparison<'_>,
        own: &Identity<'_>,
    ) -> Result<(), Refused<'a>> {
        let version = self.writer.api_version;
        let mut sets = Vec::new();
        for entry in entries.iter().filter(|entry| entry.identity != *own) {
            let theirs;
            converted(pruned, &entry.api_version, &self.of, version)
                .map_err(|error| format!("failed to convert new object: {error}"))?;
            let comparison = if self.of.same_schema(&entry.api_version, version) {
                comparison
            } else {
                theirs = difference(self.base, pruned, &entry.api_version, &self.of, version, &self.reset)?;
                &theirs
            };
            let contested = entry.set.intersection(&comparison.written());
            if !contested.is_empty() {
                sets.push((entry.identity.clone(), contested));
            }
        }
        if sets.is_empty() { Ok(()) } else { Err(Refused::Contested(Contested { sets })) }
    }

    /// Removes what the manager applied last time, does not apply now, and nobody else owns.
    fn prune(&self, merged: Value, entries: &[Entry<'_>], last: Option<&Entry<'_>>) -> Result<Value, String> {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else { return Ok(merged) };
        let (of, version) = (&self.of, self.writer.api_version);
        let Some(typed) = of.at(&last.api_version, version) else { return Ok(merged) };
        converted(&merged, &last.api_version, of, version)
            .map_err(|error| format!("failed to convert merged object to last applied version: {error}"))?;
        let last_set = with_named_parents(&last.set, Some(typed));
        let mut pruned = remove(&merged, &last_set, typed);
        // The version pruned at comes first, then the others.
        let mut versions = vec![&*last.api_version];
        for entry in entries {
            if !versions.contains(&&*entry.api_version) {
                versions.push(&entry.api_version);
            }
        }
        for at in versions {
            let Some(typed) = of.at(at, version) else { continue };
            converted(&merged, at, of, version).map_err(|error| {
                format!(
                    "failed add back owned items: failed to convert merged object at version {at}: {error}"
                )
            })?;
            let owners = entries.iter().filter(|entry| entry.api_version == at);
            let Some(owned) = owners.map(|entry| entry.set.clone()).reduce(FieldSet::union) else { continue };
            let kept = with_named_parents(&extract(&pruned, typed), Some(typed))
                .union(with_named_parents(&owned, Some(typed)));
            let gone = with_named_parents(&extract(&merged, typed), Some(typed)).difference(&kept);
            pruned = remove(&merged, &gone, typed);
        }
        let kept = with_named_parents(&extract(&pruned, typed), Some(typed));
        let gone = with_named_parents(&extract(&merged, typed), Some(typed))
            .difference(&kept)
            .intersection(&last_set);
        Ok(remove(&merged, &gone, typed))
    }
}
