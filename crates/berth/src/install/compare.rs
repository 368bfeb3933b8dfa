//! In what an object differs from what is wanted: in the fields that are set, and in nothing else.
//!
//! What a server fills in and what others keep in an object is not looked at, so no list of defaults has to be kept; where it
//! matters all the same, [`guard`](super::guard) looks. A list is wanted whole: one entry more in a role is one right more.

use serde_json::{Map, Value};

/// Fields of definitions that only explain.
const PROSE: &str = "description";

/// One field that is not as wanted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Difference {
    /// Where, as in `spec.template.spec.containers[berth].args`.
    pub(super) path: String,
    /// What should be there; nothing for what should not.
    pub(super) wanted: Option<Value>,
    /// What is; nothing where it is missing.
    pub(super) found: Option<Value>,
}

/// Every field of `wanted` that `found` does not have, or has otherwise. In a definition, prose does not count.
pub(super) fn compare(wanted: &Value, found: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    let is_definition = wanted["kind"] == "CustomResourceDefinition";
    walk(String::new(), wanted, Some(found), is_definition, &mut differences);
    differences
}

/// Recursion is as deep as what is wanted, which this program made.
fn walk(path: String, wanted: &Value, found: Option<&Value>, is_definition: bool, out: &mut Vec<Difference>) {
    match (wanted, found) {
        // A map of nothing, as no map at all, says nothing.
        (Value::Object(fields), None) if fields.is_empty() => {}
        (Value::Object(fields), Some(Value::Object(there))) => {
            for (name, field) in
                fields.iter().filter(|(name, field)| !(is_definition && *name == PROSE && field.is_string()))
            {
                walk(below(&path, name), field, there.get(name), is_definition, out);
            }
        }
        (Value::Array(entries), Some(Value::Array(there))) => list(path, entries, there, is_definition, out),
        (Value::Number(one), Some(Value::Number(other))) if one.as_f64() == other.as_f64() => {}
        (wanted, Some(found)) if wanted == found => {}
        (wanted, found) => {
            out.push(Difference { path, wanted: Some(wanted.clone()), found: found.cloned() });
        }
    }
}

fn list(path: String, wanted: &[Value], found: &[Value], is_definition: bool, out: &mut Vec<Difference>) {
    let names = |entries: &[Value]| -> Option<Vec<String>> {
        entries.iter().map(|entry| entry.get("name")?.as_str().map(str::to_owned)).collect()
    };
    if let (Some(names_wanted), Some(names_found)) = (names(wanted), names(found))
        && !wanted.is_empty()
    {
        for (name, entry) in names_wanted.iter().zip(wanted) {
            let there = names_found.iter().position(|found| found == name).map(|at| &found[at]);
            walk(format!("{path}[{name}]"), entry, there, is_definition, out);
        }
        for (at, (name, entry)) in names_found.iter().zip(found).enumerate() {
            // A second one of a wanted name was not wanted either: an account of another namespace, say.
            if names_wanted.contains(name) && !names_found[..at].contains(name) {
                continue;
            }
            let path = format!("{path}[{name}]");
            out.push(Difference { path, wanted: None, found: Some(entry.clone()) });
        }
        return;
    }
    if wanted.len() == found.len() && wanted.iter().all(Value::is_object) {
        for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
            walk(format!("{path}[{at}]"), wanted, Some(found), is_definition, out);
        }
    } else if wanted != found {
        let whole = |list: &[Value]| Some(Value::Array(list.to_vec()));
        out.push(Difference { path, wanted: whole(wanted), found: whole(found) });
    }
}

/// The path of a field.
pub(super) fn below(path: &str, name: &str) -> String {
    // Labels and annotations have dots and slashes of their own.
    match (path, name.contains(['.', '/'])) {
        (_, true) => format!("{path}[{name}]"),
        ("", false) => name.to_owned(),
        (path, false) => format!("{path}.{name}"),
    }
}

/// A field of a schema in words: `v1beta1 spec.spreadPolicy` for what is deep in a definition.
pub(super) fn field_of_schema(path: &str) -> Option<String> {
    let (version, rest) = path.strip_prefix("spec.versions[")?.split_once("].schema.openAPIV3Schema.")?;
    let mut words: Vec<&str> = Vec::new();
    let mut rest = rest.split('.');
    while let Some(step) = rest.next() {
        match step {
            "properties" => words.push(rest.next()?),
            "items" => words.push("[]"),
            "additionalProperties" => words.push("[*]"),
            // Something about the field before.
            _ => return None,
        }
    }
    Some(format!("{version} {}", words.join(".").replace(".[", "[")))
}

/// What is wanted beside what was found, in one line. Of lists only what one has and the other has not: they are long, and most of
/// what is in both is the same.
pub(super) fn contrast(wanted: &Value, found: &Value) -> String {
    if let (Value::Array(wanted), Value::Array(found)) = (wanted, found)
        && !wanted.is_empty()
        && !found.is_empty()
    {
        let [lacks, has] = [beyond(wanted, found), beyond(found, wanted)];
        return match (lacks.is_empty(), has.is_empty()) {
            (true, true) => "in another order".to_owned(),
            (false, true) => format!("lacks {}", briefly(&lacks)),
            (true, false) => format!("has {} besides", briefly(&has)),
            (false, false) => format!("lacks {}, has {} instead", briefly(&lacks), briefly(&has)),
        };
    }
    format!("wanted {}, found {}", brief(wanted), brief(found))
}

/// The entries of one list that the other has not, or not as often.
fn beyond<'l>(list: &'l [Value], other: &[Value]) -> Vec<&'l Value> {
    let mut left: Vec<&Value> = other.iter().collect();
    let mut is_there = |entry: &Value| match left.iter().position(|there| *there == entry) {
        Some(at) => {
            left.swap_remove(at);
            true
        }
        None => false,
    };
    list.iter().filter(|entry| !is_there(entry)).collect()
}

fn briefly(entries: &[&Value]) -> String {
    const SHOWN_MAX: usize = 5;
    let mut texts: Vec<String> = entries.iter().take(SHOWN_MAX).map(|entry| brief(entry)).collect();
    if entries.len() > SHOWN_MAX {
        texts.push(format!("and {} more", entries.len() - SHOWN_MAX));
    }
    texts.join(", ")
}

/// A value in one short line.
pub(super) fn brief(value: &Value) -> String {
    const CHARS_MAX: usize = 100;
    let text = match value {
        Value::Object(fields) => described(fields),
        other => other.to_string(),
    };
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

fn described(fields: &Map<String, Value>) -> String {
    Value::Object(fields.clone()).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(wanted: &Value, found: &Value) -> Vec<String> {
        let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "-".to_owned(), Value::to_string);
        compare(wanted, found)
            .iter()
            .map(|one| format!("{}: {} {}", one.path, side(&one.wanted), side(&one.found)))
            .collect()
    }

    #[test]
    fn what_a_server_or_somebody_else_adds_is_no_difference() {
        let wanted = json!({"a": 1, "list": [{"name": "x", "b": {}}], "c": {}});
        let found = json!({"a": 1.0, "list": [{"name": "x", "b": {}, "more": 1}], "status": {}});
        assert_eq!(told(&wanted, &found), [""; 0]);
    }

    #[test]
    fn each_field_that_is_missing_or_other_is_told_with_its_path() {
        let wanted = json!({
            "metadata": {"labels": {"a.b/c": "d"}},
            "spec": {"list": [{"name": "x", "args": ["a", "b"]}], "number": 2},
        });
        let found =
            json!({"metadata": {"labels": {"a.b/c": "e"}}, "spec": {"list": [{"name": "x", "args": ["a"]}]}});
        assert_eq!(
            told(&wanted, &found),
            [
                r#"metadata.labels[a.b/c]: "d" "e""#,
                r#"spec.list[x].args: ["a","b"] ["a"]"#,
                "spec.number: 2 -",
            ]
        );
    }

    #[test]
    fn an_entry_that_nobody_wanted_is_told() {
        let subjects = |names: &[&str]| {
            let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"subjects": list})
        };
        assert_eq!(told(&subjects(&["a"]), &subjects(&["a", "b"])), [r#"subjects[b]: - {"name":"b"}"#]);
        assert_eq!(told(&subjects(&["a"]), &subjects(&["a", "a"])), [r#"subjects[a]: - {"name":"a"}"#]);
        let rules = |count: usize| json!({"rules": vec![json!({"verbs": ["get"]}); count]});
        assert_eq!(told(&rules(1), &rules(2)).len(), 1);
        let verbs = |verbs: &[&str]| json!({"rules": [{"verbs": verbs}]});
        assert_eq!(told(&verbs(&["get"]), &verbs(&["get", "*"])), [r#"rules[0].verbs: ["get"] ["get","*"]"#]);
    }

    #[test]
    fn the_prose_of_a_definition_is_not_compared() {
        let definition = |prose: &str| {
            json!({"kind": "CustomResourceDefinition", "spec": {"properties": {
                "description": {"type": "string", "description": prose},
            }}})
        };
        assert_eq!(told(&definition("one"), &definition("other")), [""; 0]);
        let other = json!({"kind": "ConfigMap", "data": {"description": "a"}});
        assert_eq!(told(&other, &json!({"kind": "ConfigMap", "data": {"description": "b"}})).len(), 1);
    }

    #[test]
    fn a_field_of_a_schema_is_named_as_users_name_it() {
        let schema = "spec.versions[v1beta1].schema.openAPIV3Schema";
        let field = |rest: &str| field_of_schema(&format!("{schema}.{rest}"));
        assert_eq!(field("properties.spec.properties.a").as_deref(), Some("v1beta1 spec.a"));
        assert_eq!(field("properties.a.items.properties.b").as_deref(), Some("v1beta1 a[].b"));
        assert_eq!(field("properties.a.type"), None);
        assert_eq!(field_of_schema("spec.names.plural"), None);
    }

    #[test]
    fn of_long_lists_only_what_differs_is_told() {
        let many = |more: &[&str]| {
            let list = ["--a=a-long-argument-that-many-have"; 9].into_iter().chain(more.iter().copied());
            list.collect::<Value>()
        };
        assert_eq!(contrast(&many(&["--b"]), &many(&["--b", "--log=debug"])), r#"has "--log=debug" besides"#);
        assert_eq!(contrast(&many(&["--b"]), &many(&[])), r#"lacks "--b""#);
        assert_eq!(contrast(&many(&["--b"]), &many(&["--c"])), r#"lacks "--b", has "--c" instead"#);
        assert_eq!(contrast(&json!(["a", "b"]), &json!(["b", "a"])), "in another order");
        assert_eq!(contrast(&json!(["a", "a"]), &json!(["a"])), r#"lacks "a""#);
        assert_eq!(contrast(&json!([]), &json!(["a"])), r#"wanted [], found ["a"]"#);
        assert_eq!(contrast(&json!(1), &json!(2)), "wanted 1, found 2");
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let text = brief(&json!("é".repeat(300)));
        assert!(text.ends_with("...") && text.chars().count() == 103, "{text}");
    }
}
