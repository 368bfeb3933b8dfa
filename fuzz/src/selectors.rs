//! Any text as everything else that a request to the hub says in a notation of its own.
//!
//! Owns the promises: selectors, tokens, paths and options are read or refused with a proper status, what has a
//! canonical form is read from it as it was, and looking for a JSONPath ends within its budget.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use berth_hub_wire::jsonpath::{PRINTED_BYTES_MAX, STEPS_MAX, print};
use berth_hub_wire::media::{self, body_format, negotiate, negotiate_discovery, negotiate_watch};
use berth_hub_wire::selector::FieldTerm;
use berth_hub_wire::{
    ContinueToken, CreateOptions, DeleteOptions, FieldSelector, GetOptions, JsonPath, LabelSelector,
    ListOptions, PageRevision, PatchOptions, PatchType, Query, ResourceRoute, Route, Status, TableOptions,
    route,
};
use serde_json::{Map, Value, json};

/// An object with something for every step of a path.
static OBJECT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "labels": {"app": "web", "tier": "5", "example.com/zone": ""}},
        "spec": {
            "containers": [
                {"name": "web", "image": "registry/web:1", "ports": [{"containerPort": 80}], "weights": [0.5, 7, null]},
                {"name": "side", "image": "registry/side:2", "ports": [], "stdin": true},
            ],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "Ä", "n": -3}]},
    })
});

/// Reads the text as each of the notations.
pub fn selectors(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    labels(text);
    fields(text);
    token(text);
    path(text);
    request(text);
    header(text);
}

fn labels(text: &str) {
    refused(LabelSelector::parse_query(text).err(), &[400]);
    let Ok(selector) = LabelSelector::parse(text) else { return };
    let printed = selector.to_string();
    assert_eq!(
        LabelSelector::parse(&printed).as_ref(),
        Ok(&selector),
        "{printed:?} is read as it was printed"
    );
    let own: Option<&Map<String, Value>> = OBJECT["metadata"]["labels"].as_object();
    let each = selector.requirements().iter().all(|requirement| requirement.matches(&own));
    assert_eq!(selector.matches(&own), each, "a selector selects what meets each requirement");
}

fn fields(text: &str) {
    refused(FieldSelector::parse_query(text).err(), &[400]);
    let Ok(selector) = FieldSelector::parse(text) else { return };
    let printed = selector.to_string();
    let again = FieldSelector::parse(&printed).unwrap_or_else(|why| panic!("{printed:?}: {why}"));
    // Conditions stand in the order of their text, and `==` sorts before `=`.
    assert_eq!(sorted(&again), sorted(&selector), "{printed:?} is read as it was printed");
    selector.matches(|field| OBJECT.pointer(&field.replace('.', "/"))?.as_str().map(Into::into));
}

fn sorted(selector: &FieldSelector) -> Vec<&FieldTerm> {
    let mut terms: Vec<&FieldTerm> = selector.terms().iter().collect();
    terms.sort_by_key(|term| (&term.field, term.negated, &term.value));
    terms
}

fn token(text: &str) {
    let made = ContinueToken { revision: PageRevision::At(7), after: text.to_owned() }.encode();
    for token in [text.to_owned(), URL_SAFE_NO_PAD.encode(text), made] {
        match ContinueToken::decode(&token) {
            Ok(read) => {
                assert_eq!(
                    ContinueToken::decode(&read.encode()).as_ref(),
                    Ok(&read),
                    "a token is read as it was made"
                );
                let (namespace, name) = read.namespace_and_name();
                assert!(namespace.len() + name.len() <= token.len(), "a token holds what it says");
                assert_eq!(read.expired().code(), 410, "an old token is told as expired");
            }
            Err(status) => refused(Some(status), &[400]),
        }
    }
}

fn path(text: &str) {
    for path in [JsonPath::parse(text), JsonPath::parse_path(text)] {
        match path {
            Ok(path) => {
                let found = path.find(&OBJECT);
                assert_eq!(found, path.find(&OBJECT), "a path leads to one place");
                if let Ok(found) = found {
                    let values = found.iter().flatten();
                    assert!(
                        values.clone().count() <= STEPS_MAX + text.len() + 1,
                        "what is found is within the budget"
                    );
                    assert!(values.take(100).all(|value| print(value).len() <= PRINTED_BYTES_MAX));
                }
                path.first(&OBJECT);
            }
            Err(why) => assert!(!why.is_empty(), "an error says what is wrong"),
        }
    }
}

fn request(text: &str) {
    let (path, query) = text.split_once('?').unwrap_or((text, text));
    let query = Query::parse(Some(query));
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "BREW"] {
        if let Ok(Route::Resource(read)) = route::parse(method, path, &query) {
            let again = route::parse(method, &written(&read), &query);
            assert_eq!(again, Ok(Route::Resource(read)), "a path is read as it is written");
        }
    }
    refused(ListOptions::parse(&query).err(), &[400, 422]);
    refused(CreateOptions::parse(&query).err(), &[400, 422]);
    refused(CreateOptions::parse_update(&query).err(), &[400, 422]);
    refused(TableOptions::parse(&query).err(), &[400, 422]);
    for patch in [PatchType::Json, PatchType::Merge, PatchType::StrategicMerge, PatchType::Apply] {
        refused(PatchOptions::parse(&query, patch).err(), &[400, 422]);
    }
    let body = berth_hub_wire::body::json::read(text.as_bytes()).ok().map(|document| document.value);
    refused(DeleteOptions::parse(&query, body.as_ref()).err(), &[400, 422]);
    GetOptions::parse(&query);
}

/// The path of a route.
fn written(route: &ResourceRoute) -> String {
    let mut parts = if route.group.is_empty() { vec!["api"] } else { vec!["apis", &route.group] };
    parts.push(&route.version);
    if route.is_watch_path {
        parts.push("watch");
    }
    // A namespace is in itself, unless the path puts it somewhere else or asks of it what only the long form can.
    let own = route.is_namespace_object()
        && route.namespace == route.name
        && matches!(route.subresource.as_str(), "" | "status" | "finalize");
    if !route.namespace.is_empty() && !own {
        parts.extend(["namespaces", &route.namespace]);
    }
    parts.extend([&route.resource, &route.name, &route.subresource].map(String::as_str));
    parts.extend(route.rest.iter().map(String::as_str));
    let encode = |part: &str| part.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| format!("/{}", encode(part))).collect()
}

fn header(text: &str) {
    refused(negotiate(Some(text)).err(), &[406]);
    refused(negotiate_watch(Some(text)).err(), &[406]);
    negotiate_discovery(Some(text));
    for known in [false, true] {
        refused(body_format(Some(text), known).err(), &[415]);
        refused(PatchType::parse(Some(text), known).err(), &[415]);
    }
    media::is_pretty(None, Some(text));
    media::use_gzip(Some(text), media::GZIP_BYTES_MIN, false);
}

fn refused(status: Option<Status>, codes: &[u16]) {
    let Some(status) = status else { return };
    assert!(codes.contains(&status.code()), "{status:?}");
    assert!(!status.message.is_empty(), "a refusal says what is wrong: {status:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_object_lets_a_path_find_something() {
        let path =
            JsonPath::parse_path(".spec.containers[?(@.name==\"web\")].ports[0].containerPort").unwrap();
        assert_eq!(path.first(&OBJECT), Some(&json!(80)));
    }
}
