//! Managed fields seen through the `scale` subresource: the one field there is the replicas of the object behind it.

use std::borrow::Cow;

use serde_json::Value;

use super::entry::{self, Entry, Written};
use crate::fields::{Element, FieldSet};

/// The version a scale is written in.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The path of the replicas, by version of the object; `None` where that version has no scale.
pub type ScalePaths<'a> = &'a [(&'a str, Option<&'a [&'a str]>)];

fn path_set<'a>(path: &'a [&'a str]) -> FieldSet<'a> {
    let mut set = FieldSet::new();
    set.insert(path.iter().map(|name| Element::field(name)));
    set
}

fn in_scale() -> FieldSet<'static> {
    path_set(&["spec", "replicas"])
}

fn path_at<'a>(paths: ScalePaths<'a>, version: &str) -> Option<&'a [&'a str]> {
    paths.iter().find(|(known, _)| *known == version).and_then(|(_, path)| *path)
}

fn encode(entries: Vec<Entry<'_>>, sources: &Value) -> Vec<Value> {
    entry::write(entries)
        .into_iter()
        .map(|entry| match entry {
            Written::New(entry) => entry,
            Written::Source(index) => sources[index].clone(),
        })
        .collect()
}

/// The entries of an object as its scale shows them: those that own the replicas.
pub fn scale_view(parent: &Value, paths: ScalePaths<'_>) -> Result<Vec<Value>, String> {
    let entries = entry::read(parent)?.into_iter().filter_map(|entry| {
        let path = path_at(paths, &entry.api_version)?;
        entry.set.intersects(&path_set(path)).then(|| Entry {
            api_version: Cow::Borrowed(SCALE_VERSION),
            set: in_scale(),
            source: None,
            ..entry
        })
    });
    Ok(encode(entries.collect(), parent))
}

/// The entries of an object after its scale was written: who owns the replicas there owns them here, in the version that
/// was written.
pub fn scale_to_parent(
    parent: &Value,
    scale: &Value,
    written: &str,
    paths: ScalePaths<'_>,
) -> Result<Vec<Value>, String> {
    let mut scaled = entry::read(scale)?;
    let mut out = Vec::new();
    let entries = entry::read(parent)?;
    let times: Vec<_> = entries.iter().map(|entry| (entry.identity.clone(), entry.time.clone())).collect();
    for mut entry in entries {
        // Versions that are gone go.
        if !paths.iter().any(|(known, _)| *known == entry.api_version) {
            continue;
        }
        if let Some(path) = path_at(paths, &entry.api_version)
            && entry.set.intersects(&path_set(path))
        {
            if let Some(at) = scaled.iter().position(|scaled| scaled.identity == entry.identity) {
                scaled.remove(at);
            } else {
                entry.set = entry.set.difference(&path_set(path));
                entry.source = None;
            }
        }
        if !entry.set.is_empty() {
            out.push(entry);
        }
    }
    let Some(path) = path_at(paths, written) else { return Ok(encode(out, parent)) };
    for entry in scaled.into_iter().filter(|entry| entry.set.intersects(&in_scale())) {
        let time =
            times.iter().find(|(known, _)| *known == entry.identity).and_then(|(_, time)| time.clone());
        out.push(Entry {
            api_version: Cow::Owned(written.to_owned()),
            set: path_set(path),
            time: time.map(|time| Cow::Owned(time.into_owned())),
            source: None,
            ..entry
        });
    }
    Ok(encode(out, parent))
}
