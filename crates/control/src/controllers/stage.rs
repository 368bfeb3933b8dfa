//! A stage for controllers in tests: a world, and an API server small enough to hold in the hand.
//!
//! Owns the loop of the runtime without its tasks: what is put on the stage is observed, subjects are decided until
//! nothing is due, and their writes come back as what a watch would show.

use std::collections::BTreeMap;

use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::Controller;
use crate::act::{Note, Target, Write};
use crate::due::{Due, Ended};
use crate::rights::Need;
use crate::world::{Kind, Told, World};

/// Decisions after which nothing should be due any more.
const DECISIONS_MAX: usize = 1_000;

pub(crate) struct Stage<C> {
    pub(crate) world: World,
    pub(crate) controller: C,
    pub(crate) due: Due,
    pub(crate) now: Moment,
    pub(crate) notes: Vec<Note>,
    /// Writes that begin so are refused.
    pub(crate) refused: Option<String>,
    objects: BTreeMap<(Kind, ObjectKey), Value>,
    revision: u64,
}

impl<C: Controller> Stage<C> {
    /// An empty stage on which everything has been seen.
    pub(crate) fn new(controller: C) -> Self {
        let mut world = World::default();
        for kind in Kind::ALL {
            world.hear(Told::ListBegins(*kind));
            world.hear(Told::ListEnds(*kind));
        }
        let now = Moment::from_second(1_700_000_000);
        Self {
            world,
            controller,
            due: Due::default(),
            now,
            notes: Vec::new(),
            refused: None,
            objects: BTreeMap::new(),
            revision: 0,
        }
    }

    /// Puts an object on the stage, whole, in place of what was there.
    pub(crate) fn put(&mut self, kind: Kind, mut object: Value) {
        let key = key(&object);
        self.revision += 1;
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.name());
        let known = self.objects.get(&(kind, key.clone()));
        let uid = known.map_or_else(
            || json!(format!("uid-{}", self.revision)),
            |known| known["metadata"]["uid"].clone(),
        );
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.objects.insert((kind, key), object.clone());
        let seen = kind.read(&object.to_string()).unwrap();
        self.hear(Told::Seen(seen));
    }

    /// Puts an object on the stage with the identity it has.
    pub(crate) fn bring(&mut self, kind: Kind, object: Value) {
        self.objects.insert((kind, key(&object)), object.clone());
        self.put(kind, object);
    }

    /// Takes an object off the stage.
    pub(crate) fn remove(&mut self, kind: Kind, key: &ObjectKey) {
        self.revision += 1;
        let mut object = self.objects.remove(&(kind, key.clone())).expect("only what is there is removed");
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let ended = kind.read(&object.to_string()).unwrap();
        let end = ObjectMeta {
            name: Some(key.name.to_string()),
            namespace: Some(key.namespace.to_string()),
            uid: ended.uid().map(str::to_owned),
            resource_version: ended.resource_version(),
            ..ObjectMeta::default()
        };
        self.hear(Told::Ended(kind, Box::new(end)));
    }

    /// An object as the API would show it.
    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind, ObjectKey::new(namespace, name)))
    }

    /// Everything on the stage.
    pub(crate) fn objects(&self) -> &BTreeMap<(Kind, ObjectKey), Value> {
        &self.objects
    }

    /// The names of all objects of a kind.
    pub(crate) fn names(&self, kind: Kind) -> Vec<String> {
        self.objects.keys().filter(|(of, _)| *of == kind).map(|(_, key)| key.to_string()).collect()
    }

    /// Decides and writes until nothing is due; the writes come back, in order.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let mut written = Vec::new();
        for _ in 0..DECISIONS_MAX {
            let is_behind = self.controller.go_on(&mut self.due);
            self.controller.advance(self.now, &self.world, &mut self.due);
            let Some(subject) = self.due.pop(self.now) else {
                if is_behind {
                    continue;
                }
                return written;
            };
            let verdict = self.controller.decide(&subject, &self.world, self.now);
            self.due.wake(&subject, verdict.wake);
            if verdict.writes.is_empty() && verdict.notes.is_empty() {
                if !verdict.is_waiting {
                    self.due.end(&subject, Ended::Done, self.now);
                }
                continue;
            }
            self.due.begin(&subject);
            let needs = self.controller.needs();
            assert!(verdict.notes.is_empty() || needs.contains(&Need::Record), "events are among its needs");
            let mut ended = Ended::Done;
            for write in verdict.writes {
                assert!(
                    needs.contains(&Need::of(&write)),
                    "{write} is not among the needs of its controller"
                );
                let line = match &write {
                    Write::Patch { subresource: Some(part), .. }
                    | Write::Strategic { subresource: Some(part), .. } => format!("{write}/{part}"),
                    _ => write.to_string(),
                };
                if self.refused.as_deref().is_some_and(|refused| line.starts_with(refused)) {
                    written.push(format!("refused: {line}"));
                    ended = Ended::Failed { jitter: 1.0 };
                    break;
                }
                // Whether it may go on is read only.
                if !matches!(write, Write::Unchanged(_)) {
                    written.push(line);
                }
                self.carry_out(write);
            }
            if ended == Ended::Done {
                self.notes.extend(verdict.notes);
            }
            self.controller.ended(&subject, ended, self.now, &self.world, &mut self.due);
            self.due.end(&subject, ended, self.now);
        }
        panic!("after {DECISIONS_MAX} decisions something is still due: {written:?}");
    }

    /// Lets time pass and settles again.
    pub(crate) fn after_seconds(&mut self, seconds: i64) -> Vec<String> {
        self.now = self.now.plus_seconds(seconds);
        self.settle()
    }

    /// Does one write, as the API would.
    pub(crate) fn carry_out(&mut self, write: Write) {
        match write {
            Write::Create(object) => {
                let value: Value = serde_json::from_slice(&object.to_vec().unwrap()).unwrap();
                assert!(!self.objects.contains_key(&(object.kind(), key(&value))), "created once");
                self.put(object.kind(), value);
            }
            Write::Patch { target: Target { kind, key, uid, .. }, patch, .. } => {
                let mut object = self.objects[&(kind, key)].clone();
                assert!(uid.is_none_or(|uid| object["metadata"]["uid"] == json!(uid)), "identity is the uid");
                merge(&mut object, &patch);
                self.put(kind, object);
            }
            Write::Strategic { target: Target { kind, key, uid, .. }, patch, .. } => {
                let mut object = self.objects[&(kind, key)].clone();
                assert!(uid.is_none_or(|uid| object["metadata"]["uid"] == json!(uid)), "identity is the uid");
                merge_strategically(&mut object, &patch);
                self.put(kind, object);
            }
            Write::Delete(target) => {
                let mut object = self.objects[&(target.kind, target.key.clone())].clone();
                assert_eq!(object["metadata"]["uid"].as_str(), target.uid.as_deref(), "identity is the uid");
                let grace = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or_default();
                if grace > 0 && target.kind == Kind::Pod {
                    // The kubelet ends it, in its time.
                    object["metadata"]["deletionTimestamp"] = json!(self.now.plus_seconds(grace).to_string());
                    self.put(target.kind, object);
                } else {
                    self.remove(target.kind, &target.key);
                }
            }
            Write::Unchanged(target) => {
                let object = self.objects.get(&(target.kind, target.key));
                let revision = object.map(|object| object["metadata"]["resourceVersion"].clone());
                assert_eq!(revision, target.resource_version.map(Value::from), "it was seen last");
            }
        }
    }

    fn hear(&mut self, told: Told) {
        for change in self.world.hear(told) {
            if self.controller.kinds().contains(&change.kind()) {
                self.controller.observe(&change, &self.world, &mut self.due);
            }
        }
    }
}

fn key(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    ObjectKey::new(&text("namespace"), &text("name"))
}

/// A merge patch, as the API does it.
fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, change) in patch {
        if change.is_null() {
            value.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut value[name], change);
        }
    }
}

/// A strategic merge patch, as the API does it where conditions are concerned: each by its type.
fn merge_strategically(value: &mut Value, patch: &Value) {
    let mut patch = patch.clone();
    let changed = patch["status"].as_object_mut().and_then(|status| status.remove("conditions"));
    merge(value, &patch);
    let Some(Value::Array(changed)) = changed else { return };
    if !value["status"]["conditions"].is_array() {
        value["status"]["conditions"] = json!([]);
    }
    let conditions = value["status"]["conditions"].as_array_mut().unwrap();
    for change in changed {
        match conditions.iter_mut().find(|known| known["type"] == change["type"]) {
            Some(known) => merge(known, &change),
            None => conditions.push(change),
        }
    }
}
