//! A stage for controllers in tests: a world, and an API server small enough to hold in the hand.
//!
//! Owns the loop of the runtime without its tasks: what is put on the stage is observed, subjects are decided until
//! nothing is due, and their writes come back as what a watch would show.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::Controller;
use crate::act::{Around, Ask, Note, Reply, Target, Write, claim_names};
use crate::due::{Due, Ended};
use crate::review::{Answer, Question, Silence};
use crate::rights::Need;
use crate::world::{Finding, Found, Kind, Told, World};

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
    /// Writes that begin so get no answer, and were not done.
    pub(crate) lost: Option<String>,
    /// What the budgets say to those who would evict somebody; nothing where they let everybody go.
    pub(crate) budget: Option<String>,
    /// How long they want not to be asked again.
    pub(crate) budget_after: Duration,
    /// Writes that begin so find that somebody else was there before.
    pub(crate) forestalled: Option<String>,
    /// How often somebody looked at a pod.
    pub(crate) looks: usize,
    /// What happens between a look at a pod and the next write.
    pub(crate) after_look: Option<fn(&mut Value)>,
    /// What those outside will say who are asked, one after another; nobody answers when there are no more.
    pub(crate) answers: VecDeque<Answer>,
    /// What they were asked.
    pub(crate) asked: Vec<Question>,
    /// What happens between an answer and the next write.
    pub(crate) after_review: Option<fn(&mut Value)>,
    /// Objects that nobody here knows the kind of, by namespace and name: what keeps pods.
    pub(crate) foreign: BTreeMap<ObjectKey, Value>,
    /// Objects that cannot be read, by kind and name.
    pub(crate) unreadable: BTreeSet<(Kind, String)>,
    /// Whether nodes may not be read.
    pub(crate) is_denied_nodes: bool,
    /// What happens right before something is confirmed, without any watch having told of it yet.
    pub(crate) before_confirm: Option<fn(&mut Objects)>,
    /// Every question that was asked.
    pub(crate) asks: Vec<Ask>,
    /// Takes out of an object what the definitions have no room for.
    pub(crate) prune: fn(Kind, &mut Value),
    objects: Objects,
    revision: u64,
}

/// The objects of an API server.
pub(crate) type Objects = BTreeMap<(Kind, ObjectKey), Value>;

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
            lost: None,
            budget: None,
            budget_after: Duration::ZERO,
            forestalled: None,
            looks: 0,
            after_look: None,
            answers: VecDeque::new(),
            asked: Vec::new(),
            after_review: None,
            foreign: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            is_denied_nodes: false,
            before_confirm: None,
            asks: Vec::new(),
            prune: |_, _| {},
            objects: BTreeMap::new(),
            revision: 0,
        }
    }

    /// Puts an object on the stage, whole, in place of what was there.
    pub(crate) fn put(&mut self, kind: Kind, mut object: Value) {
        let key = key(&object);
        self.revision += 1;
        (self.prune)(kind, &mut object);
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
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The names of all objects of a kind.
    pub(crate) fn names(&self, kind: Kind) -> Vec<String> {
        self.objects.keys().filter(|(of, _)| *of == kind).map(|(_, key)| key.to_string()).collect()
    }

    /// Decides and writes until nothing is due; the writes come back, in order.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let (written, is_settled) = self.run(DECISIONS_MAX);
        assert!(is_settled, "after {DECISIONS_MAX} decisions something is still due: {written:?}");
        written
    }

    /// Decides and writes so many times and no more.
    pub(crate) fn settle_for(&mut self, decisions: usize) -> Vec<String> {
        self.run(decisions).0
    }

    /// The writes of so many decisions, and whether nothing is due any more.
    fn run(&mut self, decisions: usize) -> (Vec<String>, bool) {
        let mut written = Vec::new();
        for _ in 0..decisions {
            let is_behind = self.controller.go_on(&mut self.due);
            self.controller.advance(self.now, &self.world, &mut self.due);
            self.notes.extend(self.controller.news());
            let Some(subject) = self.due.pop(self.now) else {
                if is_behind {
                    continue;
                }
                return (written, true);
            };
            let verdict = self.controller.decide(&subject, &self.world, self.now);
            self.due.wake(&subject, verdict.wake);
            let needs = self.controller.needs();
            assert!(verdict.notes.is_empty() || needs.contains(&Need::Record), "events are among its needs");
            if verdict.writes.is_empty() {
                if !verdict.notes.is_empty() {
                    self.notes.extend(verdict.notes);
                    self.controller.ended(&subject, Ended::Done, self.now, &self.world, &mut self.due);
                }
                if !verdict.is_waiting {
                    self.due.end(&subject, Ended::Done, self.now);
                }
                continue;
            }
            self.due.begin(&subject);
            let mut ended = Ended::Done;
            // What this job has written, as it was answered.
            let mut answered: BTreeMap<(Kind, ObjectKey), Value> = BTreeMap::new();
            for write in verdict.writes {
                assert!(
                    Need::of(&write).is_none_or(|need| needs.contains(&need)),
                    "{write} is not among the needs of its controller"
                );
                let line = match &write {
                    Write::Patch { subresource: Some(part), .. }
                    | Write::Strategic { subresource: Some(part), .. } => format!("{write}/{part}"),
                    _ => write.to_string(),
                };
                if self.refused.as_deref().is_some_and(|refused| line.starts_with(refused)) {
                    written.push(format!("refused: {line}"));
                    ended = Ended::Refused { jitter: 1.0, after: Duration::ZERO };
                    break;
                }
                if self.lost.as_deref().is_some_and(|lost| line.starts_with(lost)) {
                    written.push(format!("lost: {line}"));
                    ended = Ended::Failed { jitter: 1.0 };
                    break;
                }
                if self.forestalled.as_deref().is_some_and(|before| line.starts_with(before)) {
                    written.push(format!("gone: {line}"));
                    let (kind, key) = write.subject();
                    self.remove(kind, &key);
                    ended = Ended::Gone;
                    break;
                }
                if let Write::Evict { target, .. } = &write
                    && let Some(budget) = self.budget.clone()
                {
                    written.push(format!("blocked: {line}"));
                    let finding = Finding::Budget(budget);
                    let asker = self.controller.name();
                    self.controller.found(Found { asker, subject: target.key.clone(), finding });
                    ended = Ended::Blocked { jitter: 1.0, after: self.budget_after };
                    break;
                }
                if let Write::Strategic { target, .. } | Write::Delete(target) | Write::Evict { target, .. } =
                    &write
                    && let Some(wanted) = &target.resource_version
                {
                    let about = (target.kind, target.key.clone());
                    let wanted = answered.get(&about).cloned().unwrap_or_else(|| json!(wanted));
                    let object = self.objects.get(&about);
                    if object.map(|object| &object["metadata"]["resourceVersion"]) != Some(&wanted) {
                        written.push(format!("conflict: {line}"));
                        ended = Ended::Refused { jitter: 1.0, after: Duration::ZERO };
                        break;
                    }
                }
                // Whether it may go on is read only.
                if !matches!(
                    write,
                    Write::Unchanged(_) | Write::Look { .. } | Write::Review { .. } | Write::Ask { .. }
                ) {
                    written.push(line);
                }
                let about = write.subject();
                self.carry_out(write);
                if let Some(object) = self.objects.get(&about) {
                    answered.insert(about, object["metadata"]["resourceVersion"].clone());
                }
            }
            if ended == Ended::Done {
                self.notes.extend(verdict.notes);
            }
            self.controller.ended(&subject, ended, self.now, &self.world, &mut self.due);
            self.due.end(&subject, ended, self.now);
        }
        (written, false)
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
                if object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty()) {
                    object["metadata"]["deletionTimestamp"] = json!(self.now.to_string());
                    self.put(target.kind, object);
                    return;
                }
                let grace = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or_default();
                if grace > 0 && target.kind == Kind::Pod {
                    // The kubelet ends it, in its time.
                    object["metadata"]["deletionTimestamp"] = json!(self.now.plus_seconds(grace).to_string());
                    self.put(target.kind, object);
                } else {
                    self.remove(target.kind, &target.key);
                }
            }
            Write::Destroy(target) => {
                let object = &self.objects[&(target.kind, target.key.clone())];
                assert_eq!(object["metadata"]["uid"].as_str(), target.uid.as_deref(), "identity is the uid");
                self.remove(target.kind, &target.key);
            }
            Write::Evict { target, .. } => self.carry_out(Write::Delete(target)),
            Write::Look { target, node, asker, .. } => {
                self.looks += 1;
                let pod = Box::new(self.objects[&(target.kind, target.key.clone())].clone());
                let node = self.objects.get(&(Kind::Node, ObjectKey::new("", &node))).cloned().map(Box::new);
                let finding = Finding::Objects { pod, node, owner: None };
                self.controller.found(Found { asker, subject: target.key.clone(), finding });
                if let Some(change) = self.after_look.take() {
                    let mut object = self.objects[&(target.kind, target.key)].clone();
                    change(&mut object);
                    self.put(Kind::Pod, object);
                }
            }
            Write::Review { target, question, asker, .. } => {
                let nobody = Answer::Unanswered { why: Silence::Busy };
                let answer = self.answers.pop_front().unwrap_or(nobody);
                let (policy, gate) = (question.policy.as_str().into(), question.gate.as_str().into());
                let finding = Finding::Review { policy, gate, answer };
                self.asked.push(*question);
                self.controller.found(Found { asker, subject: target.key.clone(), finding });
                if let Some(change) = self.after_review.take() {
                    let mut object = self.objects[&(target.kind, target.key)].clone();
                    change(&mut object);
                    self.put(Kind::Pod, object);
                }
            }
            Write::Ask { target, asks, asker } => {
                let confirms = |ask: &Ask| matches!(ask, Ask::List { kind: Kind::Replacement, .. });
                if asks.iter().any(confirms)
                    && let Some(change) = self.before_confirm.take()
                {
                    change(&mut self.objects);
                }
                let replies = asks.iter().map(|ask| (ask.clone(), self.reply(ask))).collect();
                self.asks.extend(asks);
                let finding = Finding::Replies(replies);
                self.controller.found(Found { asker, subject: target.key, finding });
            }
            Write::Foreign { path, uid, patch, .. } => {
                let (namespace, name) = path.split_once('/').unwrap();
                let object = self.foreign.get_mut(&ObjectKey::new(namespace, name)).unwrap();
                assert_eq!(object["metadata"]["uid"], json!(uid), "identity is the uid");
                merge(object, &patch);
            }
            Write::Unchanged(target) => {
                let object = self.objects.get(&(target.kind, target.key));
                let revision = object.map(|object| object["metadata"]["resourceVersion"].clone());
                assert_eq!(revision, target.resource_version.map(Value::from), "it was seen last");
            }
        }
    }

    /// The answer to a question, as the API would give it.
    fn reply(&self, ask: &Ask) -> Reply {
        let get = |kind: Kind, key: &ObjectKey| {
            if self.unreadable.contains(&(kind, key.name.to_string())) {
                return Reply::Unknown("it cannot be read".to_owned());
            }
            let found = self.objects.get(&(kind, key.clone()));
            found.map_or(Reply::Missing, |object| Reply::Object(Box::new(object.clone())))
        };
        match ask {
            Ask::Get { kind, key } => get(*kind, key),
            Ask::List { kind, .. } if self.unreadable.contains(&(*kind, String::new())) => {
                Reply::Unknown("they cannot be read".to_owned())
            }
            Ask::List { kind, namespace, .. } => {
                let there = self.objects.iter();
                let there = there.filter(|((of, key), _)| of == kind && key.namespace == *namespace);
                Reply::Objects(there.map(|(_, object)| object.clone()).collect())
            }
            Ask::Trial { .. } => self.budget.clone().map_or(Reply::Yes, Reply::No),
            Ask::May { .. } if self.is_denied_nodes => Reply::No("no".to_owned()),
            Ask::May { .. } => Reply::Yes,
            Ask::Member { key, with_node, with_claims } => {
                let unknown = || Reply::Unknown("it was not asked for".to_owned());
                let pod = get(Kind::Pod, key);
                let mut around = Around {
                    node: unknown(),
                    owner: Reply::Missing,
                    owner_path: None,
                    claims: Vec::new(),
                    volumes: Vec::new(),
                    pod: pod.clone(),
                };
                if let Reply::Object(pod) = &pod {
                    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|_| *with_node) {
                        around.node = get(Kind::Node, &ObjectKey::new("", node));
                    }
                    if let Some(owner) = pod["metadata"]["ownerReferences"][0]["name"].as_str() {
                        let owner = ObjectKey::new(&key.namespace, owner);
                        around.owner_path = Some(format!("{}/{}", owner.namespace, owner.name));
                        let found = self.foreign.get(&owner);
                        around.owner =
                            found.map_or_else(unknown, |object| Reply::Object(Box::new(object.clone())));
                    }
                    for name in claim_names(pod).into_iter().filter(|_| *with_claims) {
                        let claim = get(Kind::Claim, &ObjectKey::new(&key.namespace, &name));
                        let volume = claim.object().and_then(|claim| claim["spec"]["volumeName"].as_str());
                        if let Some(volume) = volume {
                            around
                                .volumes
                                .push((volume.to_owned(), get(Kind::Volume, &ObjectKey::new("", volume))));
                        }
                        around.claims.push((name, claim));
                    }
                }
                Reply::Member(Box::new(around))
            }
        }
    }

    fn hear(&mut self, told: Told) {
        for change in self.world.hear(told) {
            let controller = &self.controller;
            let at_need = controller.needs_more() && controller.kinds_at_need().contains(&change.kind());
            if at_need || controller.kinds().contains(&change.kind()) {
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
