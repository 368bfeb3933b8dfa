//! Replacing what differs between any two servers by the order in which it is first seen.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::exchange::Answer;

/// What one server has shown so far in one script.
#[derive(Debug, Default)]
pub(crate) struct Mask {
    seen: HashMap<String, String>,
    /// The newest revision that an answer has shown.
    newest: u64,
}

impl Mask {
    pub(crate) fn answer(&mut self, target: &str, answer: &Answer) -> Answer {
        let mut masked = answer.clone();
        crate::known::settle(target, &mut masked);
        settle_conflicts(&mut masked.body);
        settle_causes(target, &mut masked.body);
        self.list(&mut masked.body);
        match &mut masked.body {
            Value::Array(events) => ages_of_events(events),
            body => ages(body),
        }
        self.value(&mut masked.body);
        masked
    }

    /// The revision of a list moves with everything that is written to a server, by whomever. What can be asked of it is
    /// that it is not behind anything shown before.
    fn list(&mut self, body: &mut Value) {
        let many = body.get("items").is_some() || body.get("rows").is_some();
        let newest = newest(body);
        if many && let Some(Value::String(text)) = body.pointer_mut("/metadata/resourceVersion") {
            let state = match text.parse::<u64>() {
                Ok(revision) if revision >= self.newest => "<current>",
                Ok(_) => "<behind>",
                Err(_) => "<not a revision>",
            };
            state.clone_into(text);
        }
        self.newest = self.newest.max(newest);
    }

    pub(crate) fn value(&mut self, value: &mut Value) {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::String(text) => self.text(text),
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>) {
        // Entries are in the order of their times, whole seconds: which of two steps a second ends between is chance.
        if let Some(Value::Array(entries)) = map.get_mut("managedFields") {
            entries.sort_by_key(|entry| {
                ["manager", "operation", "subresource", "apiVersion"].map(|key| entry[key].to_string())
            });
        }
        for (key, value) in map.iter_mut() {
            match (key.as_str(), &mut *value) {
                ("uid", Value::String(text)) if text.len() == 36 => self.ordinal("uid", text),
                ("resourceVersion", Value::String(text))
                    if text.parse().is_ok_and(|revision: u64| revision > 0) =>
                {
                    self.ordinal("rv", text)
                }
                ("continue", Value::String(text)) if !text.is_empty() => "token".clone_into(text),
                (
                    "creationTimestamp"
                    | "deletionTimestamp"
                    | "time"
                    | "startTime"
                    | "lastTransitionTime"
                    | "lastUpdateTime"
                    | "lastPhaseTransitionTime",
                    Value::String(text),
                ) => {
                    "time".clone_into(text);
                }
                // A generated name keeps its base.
                ("name" | "kubernetes.io/metadata.name", Value::String(text))
                    if generated(text).is_some() =>
                {
                    let base = generated(text).unwrap_or_default().len();
                    let suffix = text.split_off(base);
                    *text = format!("{text}{}", self.known("suffix", &suffix));
                }
                _ => self.value(value),
            }
        }
    }

    /// A message that shows a whole object, the object masked in its turn.
    fn quoted_object(&mut self, text: &str) -> Option<String> {
        let start = text.find(SHOWN)? + SHOWN.len() - 2;
        let mut texts = serde_json::Deserializer::from_str(&text[start..]).into_iter::<String>();
        let inner = texts.next()?.ok()?;
        let end = start + texts.byte_offset();
        let mut object: Value = serde_json::from_str(&inner).ok()?;
        self.value(&mut object);
        Some(format!("{}{object}{}", &text[..start], &text[end..]))
    }

    fn ordinal(&mut self, what: &str, text: &mut String) {
        *text = self.known(what, text);
    }

    fn known(&mut self, what: &str, text: &str) -> String {
        let next = format!("<{what} {}>", self.seen.len());
        self.seen.entry(format!("{what}:{text}")).or_insert(next).clone()
    }

    /// Uids and revisions inside messages.
    fn text(&mut self, text: &mut String) {
        // Where an object is kept in etcd is etcd's.
        if let Some((before, after)) = text.clone().split_once(" Key: /")
            && let Some((_, after)) = after.split_once(',')
        {
            *text = format!("{before} Key: ,{after}");
        }
        // The uid of something that the script did not see itself.
        if let Some(at) = text.find("UID in object meta: ").map(|at| at + "UID in object meta: ".len())
            && text.len() >= at + 36
            && text.as_bytes()[at + 8] == b'-'
        {
            text.replace_range(at..at + 36, "<uid>");
        }
        // A generated name in a cell.
        if generated(text).is_some() {
            let base = generated(text).unwrap_or_default().len();
            text.truncate(base);
            text.push_str("<suffix>");
        }

        if let Some(masked) = self.quoted_object(text) {
            *text = masked;
        }
        for (seen, name) in &self.seen {
            let Some((what, seen)) = seen.split_once(':') else { continue };
            if what == "uid" && text.contains(seen) {
                *text = text.replace(seen, name);
            }
        }
        if let Some((before, after)) = text.clone().split_once("in record (")
            && let Some((_, after)) = after.split_once(')')
        {
            *text = format!("{before}in record (){after}");
        }
        *text = MADE_NAME.replace_all(text, "${1}<suffix>${2}").into_owned();
        *text = OTHER_UID.replace_all(text, "<another uid>").into_owned();
        *text = SHOWN_REVISION.replace_all(text, "${1}<rv>").into_owned();
        if let Some(start) = text.find("too old resource version") {
            text.truncate(start + "too old resource version".len());
        }
    }
}

fn ages(body: &mut Value) {
    let timed = timed(body);
    hide(body, &timed);
}

/// Only the first table of a watch names its columns.
fn ages_of_events(events: &mut [Value]) {
    let timed = events.first().map(|event| timed(&event["object"])).unwrap_or_default();
    for event in events.iter_mut() {
        hide(&mut event["object"], &timed);
    }
}

/// The columns of a table that say how long ago something was.
fn timed(body: &Value) -> Vec<usize> {
    let Some(columns) = body.get("columnDefinitions").and_then(Value::as_array) else { return Vec::new() };
    columns
        .iter()
        .enumerate()
        .filter(|(_, column)| {
            ["Age", "Last Seen", "First Seen", "Created At"]
                .contains(&column["name"].as_str().unwrap_or_default())
        })
        .map(|(at, _)| at)
        .collect()
}

fn hide(body: &mut Value, timed: &[usize]) {
    for row in body.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for at in timed {
            if let Some(Value::String(cell)) = row["cells"].get_mut(*at)
                && cell.ends_with(['s', 'm', 'Z'])
            {
                "<age>".clone_into(cell);
            }
        }
    }
}

/// The name an object that was refused would have had.
static MADE_NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(gen-|Bad_)[a-z0-9]{5}("|$)"#).expect("it is an expression"));
/// A uid that no answer has shown yet.
static OTHER_UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("it is an expression")
});
/// A revision in a body that a message repeats.
static SHOWN_REVISION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"("resourceVersion":")[0-9]+"#).expect("it is an expression"));

/// Where a message shows an object as a text within a text.
const SHOWN: &str = "Invalid value: \"{";

/// The newest revision of an object within a body.
fn newest(body: &Value) -> u64 {
    match body {
        Value::Object(map) => {
            // How far a list is moves with everything that is written, by whomever.
            let many = map.contains_key("items") || map.contains_key("rows");
            let own = map
                .get("metadata")
                .filter(|_| !many)
                .and_then(|meta| meta["resourceVersion"].as_str())
                .and_then(|text| text.parse().ok());
            map.values().map(newest).max().unwrap_or(0).max(own.unwrap_or(0))
        }
        Value::Array(items) => items.iter().map(newest).max().unwrap_or(0),
        _ => 0,
    }
}

/// Conflicts with several managers come in the order of a Go map, so a different one each time: sorted here, with the
/// message, which repeats them, cut to its first line.
fn settle_conflicts(body: &mut Value) {
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    if causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict") {
        causes.sort_by_key(ToString::to_string);
        let managers: std::collections::BTreeSet<String> =
            causes.iter().map(|cause| cause["message"].to_string()).collect();
        if managers.len() > 1
            && let Some(Value::String(message)) = body.get_mut("message")
        {
            message.truncate(message.find(" conflicts").unwrap_or(message.len()));
        }
    }
}

/// What a schema and its rules find wrong with a custom resource comes in the order of Go maps, and so does what is wrong
/// with one place of a built-in kind (the resources of a container), a different one each time even of one and the same
/// server: sorted here, with the message, which repeats them. What is wrong with metadata has an order and keeps it.
fn settle_causes(target: &str, body: &mut Value) {
    let Some(causes) = body.pointer("/details/causes").and_then(Value::as_array) else { return };
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let told = |causes: &[Value]| {
        let told: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message")))
            .collect();
        told.join(", ")
    };
    let before = told(causes);
    let mut sorted = causes.clone();
    let custom = target.contains("/tests.berth.dev/");
    let ordered = |cause: &Value| !custom || text(cause, "field").starts_with("metadata");
    for run in sorted
        .chunk_by_mut(|left, right| left["field"] == right["field"] || (!ordered(left) && !ordered(right)))
    {
        // One place of metadata has its causes in an order too.
        if !custom || !run.iter().any(ordered) {
            run.sort_by_key(ToString::to_string);
        }
    }
    let after = told(&sorted);
    if let Some(Value::String(message)) = body.get_mut("message")
        && message.contains(&before)
    {
        *message = message.replace(&before, &after);
        body["details"]["causes"] = sorted.into();
    }
}

/// The base of a name made by `generateName`, which scripts always end in `gen-`.
fn generated(name: &str) -> Option<&str> {
    let at = name.find("gen-")? + 4;
    (name.len() == at + 5).then(|| &name[..at])
}

/// The places where two answers differ.
pub(crate) fn difference(theirs: &Answer, mine: &Answer) -> String {
    let mut lines = Vec::new();
    if theirs.code != mine.code {
        lines.push(format!("code: {} / {}", theirs.code, mine.code));
        lines.push(format!("theirs: {}\nours:   {}", theirs.body, mine.body));
    }
    if theirs.content_type != mine.content_type {
        lines.push(format!(".content-type: {} / {}", theirs.content_type, mine.content_type));
    }
    if theirs.warnings != mine.warnings {
        lines.push(format!(".warnings: {:?} / {:?}", theirs.warnings, mine.warnings));
    }
    walk("", &theirs.body, &mine.body, &mut lines);
    lines.join("\n")
}

fn walk(path: &str, theirs: &Value, mine: &Value, lines: &mut Vec<String>) {
    match (theirs, mine) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => walk(&format!("{path}.{key}"), left, right, lines),
                    (left, right) => {
                        lines.push(format!("{path}.{key}: {} / {}", or_missing(left), or_missing(right)))
                    }
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                walk(&format!("{path}[{index}]"), left, right, lines);
            }
        }
        _ if theirs != mine => lines.push(format!("{path}: {theirs} / {mine}")),
        _ => {}
    }
}

fn or_missing(value: Option<&Value>) -> String {
    value.map_or_else(|| "(missing)".to_owned(), ToString::to_string)
}
