//! From manifests to a world.
//!
//! Owns which kinds count, the checks of their schemas, and the words for everything that was wrong or passed over.
//! Every fault is found, not only the first.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, hash_map};
use std::sync::Arc;

use berth_api::names::GROUP;
use berth_api::schema::{ProblemKind, prepare};
use berth_api::{KindInfo, Object as Typed, Placement, ReadError, fleet_kinds, kind_info};
use berth_engine::select::{Complaint, compile};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::{Item, NAMESPACE_BY_DEFAULT, Shelf, World, key_of, near};
use crate::convert::DRAFT_GROUP;
use crate::manifest::{Loaded, Notice, Object, Problem, Warning, one_line};

/// Kinds that other programs define in our group: theirs to read, and no slips.
const OTHERS_KINDS: [&str; 3] = ["BackupSchedule", "ClusterCurator", "Restore"];

/// What manifests came to.
#[derive(Debug, Default)]
pub struct Reading {
    /// The world; of no use unless there are no problems.
    pub world: World,
    /// What was passed over.
    pub notices: Vec<Notice>,
    /// What will hardly work as it is meant.
    pub warnings: Vec<Warning>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// Reads the objects of the placement kinds; others are passed over with a notice.
pub fn read(loaded: Loaded) -> Reading {
    let mut reader = Reader {
        reading: Reading { notices: loaded.notices, problems: loaded.problems, ..Reading::default() },
        ..Reader::default()
    };
    for object in loaded.objects {
        reader.take(object);
    }
    reader.finish()
}

/// Something found in several objects, told once.
#[derive(Debug)]
struct Repeated {
    first: Problem,
    more: usize,
}

#[derive(Debug, Default)]
struct Reader {
    reading: Reading,
    /// Where each object stood first, by kind, namespace and name.
    seen: HashMap<(&'static str, String, String), (Arc<str>, u32)>,
    /// Kinds passed over, by kind and group.
    skipped: BTreeMap<(String, String), usize>,
    /// Fields nobody reads, by kind and path.
    unknown: BTreeMap<(String, String), Repeated>,
}

impl Reader {
    fn take(&mut self, object: Object) {
        let known = kind_info(&object.api_version, &object.kind);
        let Some(info) = known.filter(|info| info.group == GROUP) else {
            return self.pass_over(&object);
        };
        if info.kind == "ClusterClaim" {
            return self.pass_over(&object);
        }
        self.check_twice(&object, info);
        let mut value = object.value.clone();
        if info.kind == "PlacementDecision" {
            complete_reasons(&mut value);
        }
        let reading = match Typed::read(value) {
            Ok(reading) => reading,
            Err(error) => return self.refuse(&object, error),
        };
        if object.name().is_empty() {
            let message = "required: a plan cannot wait for a name to be generated";
            return self.reading.problems.push(object.problem("metadata.name", message));
        }
        for path in reading.unknown_fields {
            let key = (object.kind.clone(), without_indexes(path.as_str()));
            match self.unknown.entry(key) {
                Entry::Occupied(mut seen) => seen.get_mut().more += 1,
                Entry::Vacant(place) => {
                    let first = object.problem(path.as_str(), "unknown field, not read");
                    place.insert(Repeated { first, more: 0 });
                }
            }
        }
        self.put(reading.object, object);
    }

    /// Two objects are the same when kind, namespace and name agree: an older version of an object is no other object.
    fn check_twice(&mut self, object: &Object, info: &KindInfo) {
        let namespace = match object.namespace() {
            "" if info.namespaced => NAMESPACE_BY_DEFAULT,
            namespace => namespace,
        };
        if object.name().is_empty() {
            return;
        }
        let identity = (info.kind, namespace.to_owned(), object.name().to_owned());
        match self.seen.entry(identity) {
            hash_map::Entry::Vacant(place) => {
                place.insert((Arc::clone(&object.file), object.position().line));
            }
            hash_map::Entry::Occupied(first) => {
                let (file, line) = first.get();
                let message = format!(
                    "{} is given twice, first in {file}:{line}: keep one, or give the one that is to replace the other to --with",
                    object.title()
                );
                self.reading.problems.push(object.problem("", message));
            }
        }
    }

    fn put(&mut self, typed: Typed, source: Object) {
        let World { clusters, sets, bindings, placements, decisions, scores } = &mut self.reading.world;
        match typed {
            Typed::ManagedCluster(object) => {
                shelve(clusters, name_of(&object.metadata), *object, source);
            }
            Typed::ManagedClusterSet(object) => {
                shelve(sets, name_of(&object.metadata), *object, source);
            }
            Typed::ManagedClusterSetBinding(mut object) => {
                settle(&mut object.metadata);
                shelve(bindings, key_of(&object.metadata), *object, source);
            }
            Typed::Placement(mut object) => {
                settle(&mut object.metadata);
                shelve(placements, key_of(&object.metadata), *object, source);
            }
            Typed::PlacementDecision(mut object) => {
                settle(&mut object.metadata);
                shelve(decisions, key_of(&object.metadata), *object, source);
            }
            Typed::AddOnPlacementScore(mut object) => {
                settle(&mut object.metadata);
                shelve(scores, key_of(&object.metadata), *object, source);
            }
            // Lives on the cluster; what counts here is what the cluster's status reports of it.
            Typed::ClusterClaim(_) => {}
            Typed::EvictionPolicy(_) | Typed::ReplacementPolicy(_) | Typed::Replacement(_) => {
                unreachable!("only kinds of the fleet are read")
            }
        }
    }

    fn refuse(&mut self, object: &Object, error: ReadError) {
        match error {
            ReadError::Invalid { problems, kind, .. } => {
                if kind == "Placement" {
                    let known: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
                    for complaint in complaints(object, &known) {
                        let message = one_line(&complaint.message);
                        self.reading.problems.push(object.problem(&complaint.path, message));
                    }
                }
                self.reading.problems.extend(problems.into_iter().map(|problem| match problem.kind {
                    ProblemKind::More => object.problem("", problem.message),
                    _ => object.problem(problem.path.as_str(), problem.message),
                }));
            }
            other => self.reading.problems.push(object.problem("", other.to_string())),
        }
    }

    fn pass_over(&mut self, object: &Object) {
        let known = fleet_kinds().find(|info| info.group == object.group() && info.kind == object.kind);
        match known {
            // A version that is not served is a slip, not somebody else's object.
            Some(info) if !info.serves(&object.api_version, &object.kind) => {
                self.reading.problems.push(object.problem("apiVersion", unserved(object, info)));
            }
            None if object.group() == GROUP && !OTHERS_KINDS.contains(&object.kind.as_str()) => {
                let names = fleet_kinds().map(|info| info.kind);
                let message =
                    format!("there is no kind {} in group {GROUP}{}", object.kind, near(&object.kind, names));
                self.reading.problems.push(object.problem("kind", message));
            }
            _ => {
                let key = (object.kind.clone(), object.group().to_owned());
                *self.skipped.entry(key).or_default() += 1;
            }
        }
    }

    fn finish(mut self) -> Reading {
        let Reading { notices, warnings, .. } = &mut self.reading;
        for Repeated { mut first, more } in self.unknown.into_values() {
            if more > 0 {
                first.message = format!("{} (and {more} more like it)", first.message);
            }
            warnings.push(Warning(first));
        }
        warnings.sort();
        notices.sort();
        for ((kind, group), count) in self.skipped {
            if kind == "Namespace" && group.is_empty() {
                // It says where the others are, and a folder that is applied to a cluster must have it.
                continue;
            }
            let objects = if count == 1 { "object" } else { "objects" };
            let message = match group.as_str() {
                DRAFT_GROUP => format!(
                    "{count} {kind} {objects} of the draft group {DRAFT_GROUP} skipped: `berth convert` brings them into their current form"
                ),
                GROUP if kind == "ClusterClaim" => format!(
                    "{count} ClusterClaim {objects} skipped: claims count as a ManagedCluster's status reports them"
                ),
                _ => format!("{count} {kind} {objects} skipped: not part of placement"),
            };
            notices.push(Notice(Problem::of_input(message)));
        }
        self.reading
    }
}

/// What the engine would complain of in a placement that does not fit its schema, beside what the schema said at
/// `known`: whoever mends it should not have to come twice.
fn complaints(object: &Object, known: &[&str]) -> Vec<Complaint> {
    let Some(info) = kind_info(&object.api_version, &object.kind) else { return Vec::new() };
    let mut value = object.value.clone();
    prepare(&mut value, info.structure());
    let typed = serde_json::from_value::<Placement>(value.clone()).or_else(|_| {
        // Without the fields that do not fit the rest may still be read.
        if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
            let wrong = known.iter().filter_map(|path| path.strip_prefix("spec."));
            for field in wrong.filter_map(|path| path.split(['.', '[']).next()) {
                spec.remove(field);
            }
        }
        serde_json::from_value(value)
    });
    let mut complaints =
        typed.map_or_else(|_| Vec::new(), |placement| compile(&placement).err().unwrap_or_default());
    complaints.retain(|complaint| !known.contains(&complaint.path.as_str()));
    complaints
}

fn unserved(object: &Object, info: &KindInfo) -> String {
    let versions: Vec<String> =
        info.versions.iter().map(|version| format!("{}/{}", info.group, version.name)).collect();
    format!("there is no {} {}: allowed are {}", object.api_version, object.kind, versions.join(", "))
}

fn shelve<K: Ord, T>(shelf: &mut Shelf<K, T>, key: K, object: T, source: Object) {
    // One that is given twice has been told of, and the world is of no use then.
    shelf.insert(key, Arc::new(Item { object, source: Some(Arc::new(source)) }));
}

/// The schema asks for a reason in every decision, yet upstream's own writers and readers take an absent one as empty;
/// decisions that were written down without reasons say no less.
fn complete_reasons(decision: &mut Value) {
    let decisions = decision.pointer_mut("/status/decisions").and_then(Value::as_array_mut);
    for entry in decisions.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.entry("reason").or_insert_with(|| "".into());
    }
}

/// Gives an object without a namespace the one it means.
fn settle(metadata: &mut ObjectMeta) {
    if metadata.namespace.as_deref().unwrap_or_default().is_empty() {
        metadata.namespace = Some(NAMESPACE_BY_DEFAULT.to_owned());
    }
}

fn name_of(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

/// `spec.taints[3].x` as `spec.taints[].x`, so that the same slip in many places is one.
fn without_indexes(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside && c.is_ascii_digit() => continue,
            _ => {}
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::load;

    const P: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n";

    fn read_text(text: &str) -> Reading {
        read(load(&["-".into()], &mut text.as_bytes()))
    }

    fn shown<T: ToString>(items: &[T]) -> Vec<String> {
        items.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_missing_namespace_is_default_and_so_the_same_object() {
        let text = format!(
            "{P}metadata: {{name: a}}\nspec: {{}}\n---\n{P}metadata: {{name: a, namespace: default}}\nspec: {{}}\n"
        );
        let reading = read_text(&text);
        assert_eq!(
            shown(&reading.problems),
            [
                "<stdin>:6: Placement default/a is given twice, first in <stdin>:1: keep one, or give the one that is to replace the other to --with"
            ]
        );
        let placement = reading.world.placements.values().next().unwrap();
        assert_eq!(placement.object.metadata.namespace.as_deref(), Some("default"));
    }

    #[test]
    fn every_fault_of_every_object_has_its_line() {
        let text = format!(
            "{P}metadata:\n  name: a\nspec:\n  numberOfClusters: three\n  sortBy: Size\n---\n{P}metadata:\n  generateName: b-\nspec: {{}}\n---\napiVersion: cluster.open-cluster-management.io/v7\nkind: Placement\nmetadata: {{name: c}}\n"
        );
        assert_eq!(
            shown(&read_text(&text).problems),
            [
                "<stdin>:6: spec.numberOfClusters: Invalid value: \"three\": must be of type integer: \"string\"",
                "<stdin>:7: spec.sortBy: Unsupported value: \"Size\": supported values: \"ClusterName\", \"Score\"",
                "<stdin>:11: metadata.name: required: a plan cannot wait for a name to be generated",
                "<stdin>:15: apiVersion: there is no cluster.open-cluster-management.io/v7 Placement: allowed are cluster.open-cluster-management.io/v1beta1, cluster.open-cluster-management.io/v1alpha1",
            ]
        );
    }

    #[test]
    fn a_kind_our_group_does_not_have_is_a_slip() {
        let text = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placment\nmetadata: {name: a}\n---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Restore\nmetadata: {name: b}\n---\napiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: ClusterClaim\nmetadata: {name: c}\n---\napiVersion: v1\nkind: Placment\nmetadata: {name: d}\n";
        let reading = read_text(text);
        assert_eq!(
            shown(&reading.problems),
            [
                "<stdin>:2: kind: there is no kind Placment in group cluster.open-cluster-management.io; did you mean Placement?"
            ]
        );
        assert_eq!(reading.notices.len(), 3, "others are passed over: {:?}", reading.notices);
    }

    #[test]
    fn what_fits_the_schema_and_cannot_work_is_told_beside_what_does_not_fit() {
        for misfit in ["sortBy: Size", "numberOfClusters: three"] {
            let text = format!(
                "{P}metadata: {{name: a}}\nspec:\n  {misfit}\n  tolerations:\n  - {{operator: Exists, value: why}}\n"
            );
            let problems = read_text(&text).problems;
            let places: Vec<_> =
                problems.iter().map(|problem| (problem.line, problem.path.as_str())).collect();
            let field = misfit.split(':').next().unwrap();
            assert!(places.contains(&(Some(5), &format!("spec.{field}"))), "{places:?}");
            assert!(places.contains(&(Some(7), "spec.tolerations[0].value")), "{places:?}");
            assert_eq!(places.len(), 2, "{places:?}");
        }
    }

    #[test]
    fn a_decision_without_a_reason_is_read() {
        let text = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\nmetadata: {name: a-decision-1}\nstatus: {decisions: [{clusterName: c1}]}\n";
        let reading = read_text(text);
        assert_eq!(shown(&reading.problems), [] as [String; 0]);
        let decision = reading.world.decisions.values().next().unwrap();
        assert_eq!(decision.object.decisions()[0].cluster_name, "c1");
    }

    #[test]
    fn what_is_passed_over_is_told_once_a_kind() {
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n";
        let draft = "apiVersion: placement.open-cluster-management.io/v1alpha1\nkind: Placement\nmetadata: {name: a}\n---\n";
        let slips = format!(
            "{P}metadata: {{name: a}}\nspec: {{tolerations: [{{kei: x}}]}}\n---\n{P}metadata: {{name: b}}\nspec: {{tolerations: [{{}}, {{kei: x}}]}}\n"
        );
        let reading = read_text(&format!("{other}{other}{draft}{slips}"));
        assert_eq!(shown(&reading.problems), [] as [String; 0]);
        assert_eq!(
            shown(&reading.warnings),
            ["warning: <stdin>:16: spec.tolerations[0].kei: unknown field, not read (and 1 more like it)"]
        );
        assert_eq!(
            shown(&reading.notices),
            [
                "notice: 2 ConfigMap objects skipped: not part of placement",
                "notice: 1 Placement object of the draft group placement.open-cluster-management.io skipped: `berth convert` brings them into their current form",
            ]
        );
    }
}
