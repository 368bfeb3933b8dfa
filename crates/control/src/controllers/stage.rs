//! A stage for controllers in tests: a world, and an API server small enough to hold in the hand.
//!
//! Owns the loop of the runtime without its tasks: what is put on the stage is observed, subjects are decided until
//! nothing is due, and their writes come back as what a watch would show.

use std::collections::BTreeMap;

use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use serde_json::{Value, json};

use super::Controller;
use crate::act::{Note, Target, Write};
use crate::due::Due;
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

    /// Takes an object off the stage.
    pub(crate) fn remove(&mut self, kind: Kind, key: &ObjectKey) {
        self.revision += 1;
        let mut object = self.objects.remove(&(kind, key.clone())).expect("only what is there is removed");
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let ended = kind.read(&object.to_string()).unwrap();
        self.hear(Told::Ended(kind, Box::new(ended.metadata().clone())));
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
            self.controller.advance(self.now, &mut self.due);
            let Some(subject) = self.due.pop(self.now) else { return written };
            let verdict = self.controller.decide(&subject, &self.world, self.now);
            self.due.wake(&subject, verdict.wake);
            self.notes.extend(verdict.notes);
            let needs = self.controller.needs();
            assert!(self.notes.is_empty() || needs.contains(&Need::Record), "events are among its needs");
            for write in verdict.writes {
                assert!(
                    needs.contains(&Need::of(&write)),
                    "{write} is not among the needs of its controller"
                );
                written.push(match &write {
                    Write::Patch { subresource: Some(part), .. } => format!("{write}/{part}"),
                    // Reads nothing but whether it may go on.
                    Write::Unchanged(_) => {
                        self.carry_out(write);
                        continue;
                    }
                    _ => write.to_string(),
                });
                self.carry_out(write);
            }
            self.controller.ended(&subject, &self.world, &mut self.due);
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
            Write::Delete(target) => self.remove(target.kind, &target.key),
            Write::Unchanged(target) => {
                let object = &self.objects[&(target.kind, target.key)];
                assert_eq!(
                    object["metadata"]["resourceVersion"],
                    json!(target.resource_version),
                    "it was seen last"
                );
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
