//! The proposal's second scenario, and that the index agrees with reading everything again.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn role(names: Option<&[&str]>) -> ClusterRole {
    let mut rule = json!({
        "verbs": ["create"],
        "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclustersets/bind"],
    });
    if let Some(names) = names {
        rule["resourceNames"] = json!(names);
    }
    serde_json::from_value(json!({"metadata": {"name": "r"}, "rules": [rule]})).unwrap()
}

fn account(namespace: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": "placement", "namespace": namespace})
}

fn granted(role: &str, subjects: &[Value]) -> ClusterRoleBinding {
    serde_json::from_value(json!({
        "metadata": {"name": "b"},
        "subjects": subjects,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
    }))
    .unwrap()
}

fn active() -> Namespace {
    serde_json::from_value(json!({"metadata": {"name": "n"}, "status": {"phase": "Active"}})).unwrap()
}

/// Sets blue, red and green; namespaces ns1 and ns2.
fn hub() -> Grants {
    let mut grants = Grants::default();
    for set in ["blue", "red", "green"] {
        grants.set(set, true);
    }
    for namespace in ["ns1", "ns2"] {
        grants.namespace(namespace, Some(&active()));
    }
    grants
}

fn names(names: impl IntoIterator<Item = Arc<str>>) -> Vec<String> {
    names.into_iter().map(|name| name.to_string()).collect()
}

fn entitled(grants: &Grants, namespace: &str) -> Vec<String> {
    names(grants.entitled(namespace).unwrap())
}

/// A binding of ours, or one made by hand.
fn binding(name: &str, ours: bool) -> ManagedClusterSetBinding {
    let mut binding = new_binding("ns1", &Arc::from(name));
    if !ours {
        binding.metadata.labels = None;
    }
    binding
}

#[test]
fn a_grant_to_the_service_account_becomes_a_labelled_binding() {
    let mut grants = hub();
    assert_eq!(names(grants.role("r", Some(&role(Some(&["blue"]))))), [""; 0], "nobody holds it yet");
    assert_eq!(names(grants.role_binding("b", Some(&granted("r", &[account("ns1")])))), ["ns1"]);
    let changes = grants.changes("ns1", []);
    let [created] = &changes.create[..] else { panic!("{changes:?}") };
    assert_eq!(
        serde_json::to_value(created).unwrap(),
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "blue", "namespace": "ns1", "labels": {"berth.dev/bound-by": "rbac"}},
            "spec": {"clusterSet": "blue"},
        })
    );
    assert!(grants.changes("ns1", [created]).is_empty());
    assert!(grants.changes("ns2", []).is_empty());
}

#[test]
fn the_binding_goes_when_the_role_the_grant_or_the_set_goes() {
    let ours = binding("blue", true);
    let setup = || {
        let mut grants = hub();
        grants.role("r", Some(&role(Some(&["blue"]))));
        grants.role_binding("b", Some(&granted("r", &[account("ns1")])));
        grants
    };
    let removals: [fn(&mut Grants) -> Namespaces; 5] = [
        |grants| grants.role("r", None),
        |grants| grants.role("r", Some(&role(Some(&["red"])))),
        |grants| grants.role_binding("b", None),
        |grants| grants.role_binding("b", Some(&granted("r", &[account("ns2")]))),
        |grants| grants.set("blue", false),
    ];
    for remove in removals {
        let mut grants = setup();
        assert!(grants.changes("ns1", [&ours]).is_empty());
        assert!(remove(&mut grants).contains("ns1"));
        assert_eq!(grants.changes("ns1", [&ours]).delete, [&ours]);
    }
}

#[test]
fn two_grants_of_one_set_hold_it_together() {
    let mut grants = hub();
    grants.role("r", Some(&role(Some(&["blue"]))));
    grants.role_binding("b1", Some(&granted("r", &[account("ns1")])));
    grants.role_binding("b2", Some(&granted("r", &[account("ns1"), account("ns2")])));
    grants.role_binding("b1", None);
    assert_eq!(entitled(&grants, "ns1"), ["blue"]);
}

#[test]
fn a_binding_made_by_hand_is_never_touched_even_under_a_wanted_name() {
    let mut grants = hub();
    grants.role("r", Some(&role(Some(&["blue"]))));
    grants.role_binding("b", Some(&granted("r", &[account("ns1")])));
    let by_hand = [binding("blue", false), binding("red", false)];
    assert!(grants.changes("ns1", &by_hand).is_empty());
    grants.role_binding("b", None);
    assert!(grants.changes("ns1", &by_hand).is_empty());
}

#[test]
fn a_grant_without_names_binds_every_set_and_those_that_come_later() {
    let mut grants = hub();
    grants.role("r", Some(&role(None)));
    grants.role_binding("b", Some(&granted("r", &[account("ns1")])));
    assert_eq!(entitled(&grants, "ns1"), ["blue", "green", "red"]);
    assert_eq!(names(grants.set("white", true)), ["ns1"]);
    assert_eq!(names(grants.set("white", true)), [""; 0]);
    assert_eq!(entitled(&grants, "ns1"), ["blue", "green", "red", "white"]);
}

#[test]
fn a_named_set_that_does_not_exist_is_bound_when_it_comes() {
    let mut grants = hub();
    grants.role("r", Some(&role(Some(&["white"]))));
    grants.role_binding("b", Some(&granted("r", &[account("ns1")])));
    assert_eq!(entitled(&grants, "ns1"), [""; 0]);
    assert_eq!(names(grants.set("white", true)), ["ns1"]);
    assert_eq!(entitled(&grants, "ns1"), ["white"]);
}

#[test]
fn other_subjects_other_roles_and_other_accounts_bind_nothing() {
    let mut grants = hub();
    grants.role("r", Some(&role(None)));
    let others = [
        json!({"kind": "ServiceAccount", "name": "default", "namespace": "ns1"}),
        json!({"kind": "ServiceAccount", "name": "placement"}),
        json!({"kind": "User", "name": "placement", "apiGroup": "rbac.authorization.k8s.io"}),
        json!({"kind": "Group", "name": "system:serviceaccounts:ns1", "apiGroup": "rbac.authorization.k8s.io"}),
    ];
    assert_eq!(names(grants.role_binding("b", Some(&granted("r", &others)))), [""; 0]);
    let mut of_role = granted("r", &[account("ns1")]);
    of_role.role_ref.kind = "Role".into();
    assert_eq!(names(grants.role_binding("b", Some(&of_role))), [""; 0]);
    assert_eq!(names(grants.role_binding("b", Some(&granted("unknown", &[account("ns1")])))), [""; 0]);
    assert_eq!(entitled(&grants, "ns1"), [""; 0]);
}

#[test]
fn a_role_that_comes_after_its_grant_counts_when_it_comes() {
    let mut grants = hub();
    grants.role_binding("b", Some(&granted("r", &[account("ns1"), account("ns2")])));
    assert_eq!(names(grants.role("r", Some(&role(Some(&["red"]))))), ["ns1", "ns2"]);
    assert_eq!(names(grants.role("r", Some(&role(Some(&["red"]))))), [""; 0], "nothing new");
}

#[test]
fn a_subject_more_touches_only_its_own_namespace() {
    let mut grants = hub();
    grants.role("r", Some(&role(None)));
    grants.role_binding("b", Some(&granted("r", &[account("ns1")])));
    assert_eq!(
        names(grants.role_binding("b", Some(&granted("r", &[account("ns1"), account("ns2")])))),
        ["ns2"]
    );
}

#[test]
fn a_namespace_that_is_not_there_or_on_its_way_out_is_left_alone() {
    let mut grants = hub();
    grants.role("r", Some(&role(None)));
    grants.role_binding("b", Some(&granted("r", &[account("ns3")])));
    assert!(grants.changes("ns3", []).is_empty());
    assert!(grants.namespace("ns3", Some(&active())));
    assert_eq!(grants.changes("ns3", []).create.len(), 3);
    let mut leaving = active();
    leaving.status.as_mut().unwrap().phase = Some("Terminating".into());
    assert!(grants.namespace("ns3", Some(&leaving)));
    assert!(grants.changes("ns3", [&binding("white", true)]).is_empty());
    assert!(!grants.namespace("ns4", Some(&active())), "nobody granted it anything");
}

#[test]
fn a_binding_of_ours_that_names_another_set_is_put_right() {
    let mut grants = hub();
    grants.role("r", Some(&role(Some(&["blue"]))));
    grants.role_binding("b", Some(&granted("r", &[account("ns1")])));
    let mut bent = binding("blue", true);
    bent.spec.as_mut().unwrap().cluster_set = Some("red".into());
    let changes = grants.changes("ns1", [&bent]);
    assert_eq!(changes.repair, [(&bent, Arc::from("blue"))]);
    assert!(changes.create.is_empty() && changes.delete.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    /// A role for these sets, or for all when the list is empty.
    Role(usize, Option<Vec<&'static str>>),
    Binding(usize, Option<(usize, Vec<&'static str>)>),
    Set(&'static str, bool),
    Namespace(&'static str, bool),
}

const ROLES: [&str; 2] = ["r0", "r1"];
const BINDINGS: [&str; 3] = ["b0", "b1", "b2"];
const SETS: [&str; 3] = ["blue", "red", "green"];
const NAMESPACES: [&str; 3] = ["ns1", "ns2", "ns3"];

fn step() -> impl Strategy<Value = Step> {
    let sets = || proptest::collection::vec(proptest::sample::select(&SETS[..]), 0..3);
    let namespaces = || proptest::collection::vec(proptest::sample::select(&NAMESPACES[..]), 0..3);
    prop_oneof![
        (0..ROLES.len(), proptest::option::of(sets())).prop_map(|(role, names)| Step::Role(role, names)),
        (0..BINDINGS.len(), proptest::option::of((0..ROLES.len(), namespaces())))
            .prop_map(|(binding, grant)| Step::Binding(binding, grant)),
        (proptest::sample::select(&SETS[..]), any::<bool>()).prop_map(|(set, exists)| Step::Set(set, exists)),
        (proptest::sample::select(&NAMESPACES[..]), any::<bool>())
            .prop_map(|(namespace, exists)| Step::Namespace(namespace, exists)),
    ]
}

proptest! {
    #[test]
    fn the_index_agrees_with_reading_everything_again_and_names_whom_a_change_concerns(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut grants = Grants::default();
        let mut roles: [Option<Vec<&str>>; 2] = Default::default();
        let mut bindings: [Option<(usize, Vec<&str>)>; 3] = Default::default();
        let (mut sets, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
        for step in steps {
            let before = NAMESPACES.map(|namespace| grants.entitled(namespace));
            let touched = match step {
                Step::Role(index, names) => {
                    let object = names.as_ref().map(|names| role(Some(names).filter(|names| !names.is_empty()).map(Vec::as_slice)));
                    roles[index] = names;
                    grants.role(ROLES[index], object.as_ref())
                }
                Step::Binding(index, grant) => {
                    let object = grant.as_ref().map(|(role, namespaces)| {
                        granted(ROLES[*role], &namespaces.iter().map(|name| account(name)).collect::<Vec<_>>())
                    });
                    bindings[index] = grant;
                    grants.role_binding(BINDINGS[index], object.as_ref())
                }
                Step::Set(set, exists) => {
                    if exists { sets.insert(set) } else { sets.remove(set) };
                    grants.set(set, exists)
                }
                Step::Namespace(namespace, exists) => {
                    if exists { namespaces.insert(namespace) } else { namespaces.remove(namespace) };
                    let object = exists.then(active);
                    let touched = grants.namespace(namespace, object.as_ref());
                    touched.then(|| Arc::from(namespace)).into_iter().collect()
                }
            };
            for (index, namespace) in NAMESPACES.into_iter().enumerate() {
                let held = bindings.iter().flatten().filter(|(_, whom)| whom.contains(&namespace));
                let rights: Vec<_> = held.filter_map(|(role, _)| roles[*role].as_ref()).collect();
                let afresh: BTreeSet<Arc<str>> = sets
                    .iter()
                    .filter(|set| rights.iter().any(|names| names.is_empty() || names.contains(*set)))
                    .map(|set| Arc::from(*set))
                    .collect();
                let now = grants.entitled(namespace);
                let known = namespaces.contains(namespace);
                prop_assert_eq!(now.clone().unwrap_or_default(), if known { afresh } else { BTreeSet::new() });
                let meaning = |sets: &Option<BTreeSet<Arc<str>>>| sets.clone().unwrap_or_default();
                prop_assert!(meaning(&now) == meaning(&before[index]) || touched.contains(namespace));
            }
        }
    }
}
