//! Who owns what after which write, case by case.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "replay/thing.rs"]
mod thing;

use berth_hub_merge::{
    ApplyError, LAST_APPLIED_ANNOTATION, MAX_UPDATE_MANAGERS, ObjectType, Operation, Writer, apply,
    scale_to_parent, scale_view, track_update, validate_managed_fields,
};
use berth_schema::{Arena, NodeId};
use serde_json::{Value, json};

const VERSION: &str = "berth.test/v1";
const MAIN: &[&[&str]] = &[&["status"]];
const STATUS: &[&[&str]] = &[&["metadata"], &["spec"]];

/// A server with one object.
struct Server {
    arena: Arena,
    root: NodeId,
    live: Option<Value>,
    second: u32,
}

impl Server {
    fn new() -> Self {
        let (arena, root) = thing::thing();
        Self { arena, root, live: None, second: 0 }
    }

    fn write<T>(
        &mut self,
        manager: &str,
        operation: Operation,
        subresource: Option<&str>,
        then: impl FnOnce(Option<&Value>, ObjectType<'_>, &Writer<'_>) -> T,
    ) -> T {
        self.second += 1;
        let now = format!("2026-01-01T00:00:{:02}Z", self.second);
        let writer = Writer { manager, operation, api_version: VERSION, subresource, now: &now };
        then(self.live.as_ref(), self.arena.schema(self.root).into(), &writer)
    }

    fn store(&mut self, mut object: Value) {
        object["metadata"]["uid"] = json!("u");
        self.live = Some(object);
    }

    fn update(&mut self, manager: &str, edit: impl FnOnce(&mut Value)) {
        let mut new = self.live.clone().unwrap_or_else(|| object(json!({})));
        edit(&mut new);
        self.write(manager, Operation::Update, None, |live, of, writer| {
            track_update(live, &mut new, of, writer, MAIN);
        });
        self.store(new);
    }

    fn update_status(&mut self, manager: &str, status: Value) {
        let mut new = self.live.clone().unwrap();
        new["status"] = status;
        self.write(manager, Operation::Update, Some("status"), |live, of, writer| {
            track_update(live, &mut new, of, writer, STATUS);
        });
        self.store(new);
    }

    fn try_apply(&mut self, manager: &str, spec: Value, force: bool) -> Result<(), ApplyError> {
        let config = object(spec);
        let applied = self.write(manager, Operation::Apply, None, |live, of, writer| {
            apply(live, &config, of, writer, force, MAIN)
        })?;
        self.store(applied);
        Ok(())
    }

    fn apply(&mut self, manager: &str, spec: Value) {
        self.try_apply(manager, spec, false).unwrap();
    }

    fn spec(&self) -> &Value {
        &self.live.as_ref().unwrap()["spec"]
    }

    /// The fields of a manager's entry; null where it has none.
    fn fields(&self, manager: &str, operation: &str) -> Value {
        let entries = self.live.as_ref().unwrap()["metadata"]["managedFields"].as_array();
        let mut entries = entries.into_iter().flatten();
        entries
            .find(|entry| entry["manager"] == manager && entry["operation"] == operation)
            .map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    }

    fn managers(&self) -> Vec<&str> {
        let entries = self.live.as_ref().unwrap()["metadata"]["managedFields"].as_array();
        entries.into_iter().flatten().filter_map(|entry| entry["manager"].as_str()).collect()
    }
}

fn object(spec: Value) -> Value {
    let mut object =
        json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "t", "namespace": "n"}});
    object["spec"] = spec;
    object
}

#[test]
fn a_creator_owns_everything_it_sent_and_what_was_filled_in() {
    let mut server = Server::new();
    server
        .update("creator", |new| new["spec"] = json!({"name": "x", "items": [{"name": "a", "value": "1"}]}));
    assert_eq!(
        server.fields("creator", "Update"),
        json!({"f:spec": {".": {}, "f:name": {}, "f:items": {
            ".": {}, "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:value": {}}}}})
    );
}

#[test]
fn an_update_takes_the_fields_it_changes_and_nothing_else() {
    let mut server = Server::new();
    server.update("first", |new| new["spec"] = json!({"name": "x", "count": 1}));
    server.update("second", |new| new["spec"]["count"] = json!(2));
    assert_eq!(server.fields("first", "Update"), json!({"f:spec": {".": {}, "f:name": {}}}));
    assert_eq!(server.fields("second", "Update"), json!({"f:spec": {"f:count": {}}}));
}

#[test]
fn an_update_that_changes_nothing_keeps_every_entry_and_time() {
    let mut server = Server::new();
    server.update("first", |new| new["spec"] = json!({"name": "x"}));
    let before = server.live.clone();
    server.update("second", |_| {});
    assert_eq!(server.live, before);
}

#[test]
fn a_field_that_is_removed_has_no_owner() {
    let mut server = Server::new();
    server.update("first", |new| new["spec"] = json!({"name": "x", "count": 1}));
    server.update("second", |new| {
        new["spec"].as_object_mut().unwrap().remove("count");
    });
    assert_eq!(server.fields("first", "Update"), json!({"f:spec": {".": {}, "f:name": {}}}));
    assert_eq!(server.managers(), ["first"]);
}

#[test]
fn applying_the_same_twice_changes_nothing() {
    let mut server = Server::new();
    server.apply("a", json!({"name": "x", "set": ["p", "q"]}));
    let before = server.live.clone().unwrap();
    server.apply("a", json!({"name": "x", "set": ["p", "q"]}));
    assert_eq!(server.live.as_ref(), Some(&before));
}

#[test]
fn what_is_no_longer_applied_goes() {
    let mut server = Server::new();
    server.apply("a", json!({"name": "x", "count": 1, "labels": {"p": "1", "q": "2"}}));
    server.apply("a", json!({"name": "x", "labels": {"p": "1"}}));
    assert_eq!(server.spec(), &json!({"name": "x", "labels": {"p": "1"}}));
}

#[test]
fn what_another_applier_owns_too_stays() {
    let mut server = Server::new();
    server.apply("a", json!({"items": [{"name": "i", "value": "1"}, {"name": "j"}]}));
    server.apply("b", json!({"items": [{"name": "i", "value": "1"}]}));
    server.apply("a", json!({}));
    assert_eq!(server.spec(), &json!({"items": [{"name": "i", "value": "1"}]}));
    // Only the empty spec that it still applies is the other's.
    assert_eq!(server.fields("a", "Apply"), json!({"f:spec": {}}));
}

#[test]
fn an_item_that_its_applier_lets_go_of_goes_with_what_others_set_in_it() {
    let mut server = Server::new();
    server.apply("a", json!({"items": [{"name": "i", "value": "1"}]}));
    server.update("u", |new| new["spec"]["items"][0]["sub"] = json!({"a": "z"}));
    server.apply("a", json!({}));
    assert_eq!(server.spec(), &json!({"items": null}));
    assert_eq!(server.managers(), ["a"]);
}

#[test]
fn a_conflict_names_the_manager_its_version_and_the_field() {
    let mut server = Server::new();
    server.update("owner", |new| new["spec"] = json!({"count": 1}));
    let refused = server.try_apply("a", json!({"count": 2}), false).unwrap_err();
    assert_eq!(refused.code(), 409);
    assert_eq!(
        refused.to_string(),
        "Apply failed with 1 conflict: conflict with \"owner\" using berth.test/v1: .spec.count"
    );
    let ApplyError::Conflicts(conflicts) = refused else { panic!("{refused}") };
    assert_eq!(conflicts.0[0].message(), "conflict with \"owner\" using berth.test/v1");
    assert_eq!(conflicts.0[0].field, ".spec.count");
}

#[test]
fn conflicts_are_listed_by_manager() {
    let mut server = Server::new();
    server.apply("x", json!({"count": 1, "name": "n"}));
    server.update("u", |new| new["spec"]["items"] = json!([{"name": "i", "value": "1"}]));
    let refused = server
        .try_apply("a", json!({"count": 2, "name": "m", "items": [{"name": "i", "value": "2"}]}), false)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"u\" using berth.test/v1:\n- .spec.items[name=\"i\"].value\nconflicts with \"x\":\n- .spec.count\n- .spec.name"
    );
}

#[test]
fn agreeing_on_a_value_shares_it_without_conflict() {
    let mut server = Server::new();
    server.apply("a", json!({"count": 1}));
    server.apply("b", json!({"count": 1}));
    assert_eq!(server.fields("a", "Apply"), server.fields("b", "Apply"));
    // Nothing changed, so the second has no time.
    let entries = &server.live.as_ref().unwrap()["metadata"]["managedFields"];
    assert_eq!(entries[0]["manager"], "b");
    assert_eq!(entries[0].get("time"), None);
}

#[test]
fn force_takes_the_field() {
    let mut server = Server::new();
    server.apply("a", json!({"count": 1, "name": "n"}));
    server.try_apply("b", json!({"count": 2}), true).unwrap();
    assert_eq!(server.fields("a", "Apply"), json!({"f:spec": {"f:name": {}}}));
    assert_eq!(server.fields("b", "Apply"), json!({"f:spec": {"f:count": {}}}));
}

#[test]
fn the_status_has_entries_of_its_own_and_the_main_resource_never_owns_it() {
    let mut server = Server::new();
    server.update("creator", |new| {
        new["spec"] = json!({"name": "x"});
        new["status"] = json!({"phase": "ignored"});
    });
    assert_eq!(server.fields("creator", "Update"), json!({"f:spec": {".": {}, "f:name": {}}}));
    server.live.as_mut().unwrap().as_object_mut().unwrap().remove("status");
    server.update_status("creator", json!({"phase": "A"}));
    let entries = server.live.as_ref().unwrap()["metadata"]["managedFields"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {".": {}, "f:phase": {}}}));
}

#[test]
fn an_empty_list_of_entries_forgets_all_managers_until_the_next_apply() {
    for reset in [json!([]), json!([{}])] {
        let mut server = Server::new();
        server.update("first", |new| new["spec"] = json!({"name": "x"}));
        server.update("second", |new| new["metadata"]["managedFields"] = reset);
        assert_eq!(server.managers(), Vec::<&str>::new());
        server.update("third", |new| new["spec"]["count"] = json!(1));
        assert_eq!(server.managers(), Vec::<&str>::new());
        server.apply("a", json!({"on": true}));
        assert_eq!(server.managers(), ["a", "before-first-apply"]);
        assert_eq!(
            server.fields("before-first-apply", "Update"),
            json!({"f:spec": {".": {}, "f:count": {}, "f:name": {}}})
        );
    }
}

#[test]
fn leaving_the_entries_out_or_breaking_them_keeps_the_stored_ones() {
    for sent in [json!(null), json!([{"manager": "m", "operation": "Frob"}])] {
        let mut server = Server::new();
        server.update("first", |new| new["spec"] = json!({"name": "x"}));
        server.update("second", |new| {
            new["metadata"]["managedFields"] = sent;
            new["spec"]["count"] = json!(1);
        });
        assert_eq!(server.managers(), ["first", "second"]);
    }
}

#[test]
fn the_oldest_updaters_become_one() {
    let mut server = Server::new();
    for n in 0..MAX_UPDATE_MANAGERS + 3 {
        server.update(&format!("m{n:02}"), |new| new["spec"]["labels"][format!("l{n:02}")] = json!("1"));
    }
    let managers = server.managers();
    assert_eq!(managers.len(), MAX_UPDATE_MANAGERS);
    assert_eq!(managers[0], "ancient-changes");
    let ancient = server.fields("ancient-changes", "Update");
    for n in 0..4 {
        assert!(ancient["f:spec"]["f:labels"].get(format!("f:l{n:02}")).is_some(), "{ancient}");
    }
}

#[test]
fn entries_of_versions_that_are_gone_are_dropped() {
    let (arena, root) = thing::thing();
    let schema = arena.schema(root);
    let entry = |version: &str, field: &str| {
        json!({"manager": version, "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1",
               "fieldsV1": {"f:spec": {field: {}}}, "time": "2026-01-01T00:00:00Z"})
    };
    let mut live = object(json!({"name": "x", "count": 1}));
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["managedFields"] =
        json!([entry("berth.test/v0", "f:name"), entry("berth.test/v2", "f:count")]);
    let versions = [("berth.test/v2", schema)];
    let of = ObjectType::custom(schema).with_versions(&versions);
    let mut new = live.clone();
    new["spec"]["on"] = json!(true);
    let writer = Writer {
        manager: "m",
        operation: Operation::Update,
        api_version: VERSION,
        subresource: None,
        now: "2026-01-02T00:00:00Z",
    };
    track_update(Some(&live), &mut new, of, &writer, MAIN);
    let managers: Vec<_> =
        new["metadata"]["managedFields"].as_array().unwrap().iter().map(|e| &e["manager"]).collect();
    assert_eq!(managers, ["berth.test/v2", "m"]);
}

/// Versions of which every other one is refused.
#[derive(Debug)]
struct Strict;

impl berth_hub_merge::Versions for Strict {
    fn schema(&self, _: &str) -> Option<berth_schema::Schema<'_>> {
        None
    }

    fn refusal(&self, version: &str) -> Option<String> {
        Some(format!("no {version}"))
    }
}

#[test]
fn entries_of_versions_that_may_not_be_fail_an_apply_and_empty_an_update() {
    let (arena, root) = thing::thing();
    let of = ObjectType::custom(arena.schema(root)).with_versions(&Strict);
    let mut live = object(json!({"name": "x"}));
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["managedFields"] = json!([
        {"manager": "a", "operation": "Update", "apiVersion": VERSION, "fieldsType": "FieldsV1",
         "fieldsV1": {"f:spec": {"f:name": {}}}},
        {"manager": "b", "operation": "Update", "apiVersion": "berth.test/v0", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:spec": {"f:name": {}}}},
    ]);
    let writer = Writer {
        manager: "m",
        operation: Operation::Update,
        api_version: VERSION,
        subresource: None,
        now: "2026-01-02T00:00:00Z",
    };
    let mut new = live.clone();
    new["spec"]["on"] = json!(true);
    track_update(Some(&live), &mut new, of, &writer, MAIN);
    assert_eq!(new["metadata"].get("managedFields"), None);
    let applier = Writer { operation: Operation::Apply, ..writer };
    let config = object(json!({"on": true}));
    let refused = apply(Some(&live), &config, of, &applier, false, MAIN).unwrap_err();
    assert!(matches!(&refused, ApplyError::Failed(why) if why == "no berth.test/v0"), "{refused:?}");
}

#[test]
fn kubectl_takes_over_what_its_annotation_remembers() {
    let mut server = Server::new();
    let remembered = object(json!({"count": 1}));
    server.update("kubectl-client-side-apply", |new| {
        new["spec"] = json!({"count": 1});
        new["metadata"]["annotations"] = json!({LAST_APPLIED_ANNOTATION: remembered.to_string()});
    });
    assert!(server.try_apply("other", json!({"count": 2}), false).is_err());
    server.apply("kubectl", json!({"count": 2}));
    assert_eq!(server.spec(), &json!({"count": 2}));
    let annotation = &server.live.as_ref().unwrap()["metadata"]["annotations"][LAST_APPLIED_ANNOTATION];
    assert_eq!(annotation.as_str().unwrap(), format!("{}\n", object(json!({"count": 2}))));
}

#[test]
fn a_configuration_that_does_not_fit_says_where() {
    let mut server = Server::new();
    let mut refused = |spec: Value| server.try_apply("a", spec, true).unwrap_err().to_string();
    let prefix = "failed to create typed patch object (n/t; berth.test/v1, Kind=Thing): ";
    for (spec, expected) in [
        (json!({"frob": 1}), ".spec.frob: field not declared in schema"),
        (json!({"count": "x"}), ".spec.count: expected numeric (int or float), got string"),
        (json!({"name": 1}), ".spec.name: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"on": "x"}), ".spec.on: expected boolean, got &{x}"),
        (json!({"obj": [1]}), ".spec.obj: expected map, got &{[1]}"),
        (json!({"items": {"a": "b"}}), ".spec.items: expected list, got &{map[a:b]}"),
        (
            json!({"items": [{"name": "i"}, {"name": "i"}]}),
            ".spec.items: duplicate entries for key [name=\"i\"]",
        ),
        (
            json!({"items": [{"value": "1"}]}),
            ".spec.items: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
    ] {
        assert_eq!(refused(spec), format!("{prefix}{expected}"));
    }
}

#[test]
fn managed_fields_have_no_place_in_a_configuration() {
    let (arena, root) = thing::thing();
    let mut config = object(json!({}));
    config["metadata"]["managedFields"] = json!([]);
    let writer = Writer {
        manager: "a",
        operation: Operation::Apply,
        api_version: VERSION,
        subresource: None,
        now: "",
    };
    let refused = apply(None, &config, arena.schema(root), &writer, false, MAIN).unwrap_err();
    assert_eq!(refused, ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    config["apiVersion"] = json!("berth.test/v9");
    let refused = apply(None, &config, arena.schema(root), &writer, false, MAIN).unwrap_err();
    assert_eq!(refused.to_string(), "invalid object type: berth.test/v9, Kind=Thing");
}

#[test]
fn an_object_that_its_schema_cannot_read_loses_its_entries() {
    let mut server = Server::new();
    server.update("first", |new| new["spec"] = json!({"name": "x"}));
    server.update("second", |new| new["spec"]["frob"] = json!(1));
    assert_eq!(server.managers(), Vec::<&str>::new());
}

#[test]
fn who_owned_parts_of_what_has_become_one_value_owns_the_whole() {
    let mut server = Server::new();
    server.update("first", |new| new["spec"] = json!({"atomic": {"x": "1"}, "list": ["a"]}));
    let entry = &mut server.live.as_mut().unwrap()["metadata"]["managedFields"][0];
    entry["fieldsV1"] = json!({"f:spec": {"f:atomic": {".": {}, "f:x": {}}, "f:list": {"i:0": {}}}});
    server.update("second", |new| new["spec"]["on"] = json!(true));
    assert_eq!(server.fields("first", "Update"), json!({"f:spec": {"f:atomic": {}, "f:list": {}}}));
}

#[test]
fn entries_that_cannot_be_read_are_named() {
    let says = |entries: Value| validate_managed_fields(&entries).unwrap_err();
    assert_eq!(says(json!([{"operation": "x"}])), "operation must be `Apply` or `Update`");
    assert_eq!(says(json!([{"operation": "Apply"}])), "apiVersion must not be empty");
    assert_eq!(
        says(json!([{"operation": "Apply", "apiVersion": "v1"}])),
        "missing fieldsType in managed fields entry 0"
    );
    assert_eq!(
        says(json!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "x"}])),
        "invalid fieldsType \"x\" in managed fields entry 0"
    );
    assert!(validate_managed_fields(&json!([])).is_ok());
}

#[test]
fn a_scale_shows_who_owns_the_replicas_and_gives_them_to_who_scales() {
    let paths: &[(&str, Option<&[&str]>)] = &[("apps/v1", Some(&["spec", "replicas"]))];
    let parent = json!([{"manager": "a", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:selector": {}}}}]);
    let seen = scale_view(&parent, paths).unwrap();
    assert_eq!(seen[0]["apiVersion"], "autoscaling/v1");
    assert_eq!(seen[0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    // Unchanged, it stays as it was.
    assert_eq!(json!(scale_to_parent(&parent, &json!(seen), "apps/v1", paths).unwrap()), parent);
    let scaled = json!([{"manager": "s", "operation": "Update", "apiVersion": "autoscaling/v1", "fieldsType": "FieldsV1",
        "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
    let after = scale_to_parent(&parent, &scaled, "apps/v1", paths).unwrap();
    assert_eq!(after[0]["fieldsV1"], json!({"f:spec": {"f:selector": {}}}));
    assert_eq!(after[1]["manager"], "s");
    assert_eq!(after[1]["apiVersion"], "apps/v1");
}
