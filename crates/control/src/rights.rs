//! What each controller needs leave for, as rules of RBAC.
//!
//! Owns the way from what a controller says it looks at and does ([`Controller::kinds`], [`Controller::needs`]) to rules: the
//! only source of rights, for `berth up` and for what `berth install` prints. Nothing is granted in case it is needed.
//!
//! [`Controller::kinds`]: crate::controllers::Controller::kinds
//! [`Controller::needs`]: crate::controllers::Controller::needs

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SubjectAccessReview};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Resource;

use crate::act::Write;
use crate::controllers::{Setup, controller};
use crate::names::ControllerName;
use crate::world::Kind;

/// Something a controller needs leave for, besides seeing all of its kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It makes such objects.
    Create(Kind),
    /// It changes them.
    Patch(Kind),
    /// It changes a subresource of them.
    PatchPart(Kind, &'static str),
    /// It deletes them.
    Delete(Kind),
    /// It makes a subresource of them.
    CreatePart(Kind, &'static str),
    /// It asks for single ones, to be sure.
    Get(Kind),
    /// It asks for single objects of a resource that it does not watch: its group and its plural.
    Look(&'static str, &'static str),
    /// It asks what it may itself. Kubernetes lets everybody, unless somebody has taken that away.
    AskItself,
    /// It records events.
    Record,
    /// It sends no such request: admission asks whether it might, when it writes something else.
    Might {
        /// The verb that is asked about.
        verb: &'static str,
        /// Of which kind.
        kind: Kind,
        /// Of which subresource, served or not.
        part: &'static str,
        /// Of which objects only; none for any.
        names: &'static [&'static str],
    },
}

impl Need {
    /// What a write needs; nothing where the API server has no part in it.
    pub fn of(write: &Write) -> Option<Self> {
        let kind = write.subject().0;
        Some(match write {
            Write::Create(_) => Self::Create(kind),
            Write::Patch { subresource: None, .. } | Write::Strategic { subresource: None, .. } => {
                Self::Patch(kind)
            }
            Write::Patch { subresource: Some(part), .. }
            | Write::Strategic { subresource: Some(part), .. } => Self::PatchPart(kind, part),
            Write::Delete(_) | Write::Destroy(_) => Self::Delete(kind),
            Write::Evict { .. } => Self::CreatePart(kind, "eviction"),
            Write::Unchanged(_) | Write::Look { .. } => Self::Get(kind),
            // What is asked for is among the needs of who asks, and who has something foreign changed is let by its owner.
            Write::Review { .. } | Write::Ask { .. } | Write::Foreign { .. } => return None,
        })
    }
}

/// One verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The API group.
    pub group: String,
    /// The resource, with its subresource after a slash.
    pub resource: String,
    /// The objects; none for any.
    pub names: Vec<String>,
    /// The verb.
    pub verb: &'static str,
}

impl Right {
    /// A right to a type of object.
    pub fn to<K: Resource<DynamicType = ()>>(names: &[&str], verb: &'static str) -> Self {
        Self::new(&K::group(&()), K::plural(&()).into_owned(), names, verb)
    }

    /// A right to anything.
    pub fn new(group: &str, resource: String, names: &[&str], verb: &'static str) -> Self {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Self { group: group.to_owned(), resource, names, verb }
    }

    fn of_kind(kind: Kind, part: Option<&str>, names: &[&str], verb: &'static str) -> Self {
        let version = kind.api_version();
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        let resource = part.map_or_else(|| kind.plural(), |part| format!("{}/{part}", kind.plural()));
        Self::new(group, resource, names, verb)
    }

    fn of_need(need: Need) -> Self {
        match need {
            // What is not there yet has no name that a rule could hold.
            Need::Create(kind) => Self::of_kind(kind, None, &[], "create"),
            Need::Patch(kind) => Self::of_kind(kind, None, kind.names(), "patch"),
            Need::PatchPart(kind, part) => Self::of_kind(kind, Some(part), kind.names(), "patch"),
            Need::Delete(kind) => Self::of_kind(kind, None, kind.names(), "delete"),
            Need::Get(kind) => Self::of_kind(kind, None, kind.names(), "get"),
            Need::CreatePart(kind, part) => Self::of_kind(kind, Some(part), kind.names(), "create"),
            Need::Look(group, resource) => Self::new(group, resource.to_owned(), &[], "get"),
            Need::AskItself => Self::to::<SelfSubjectAccessReview>(&[], "create"),
            Need::Record => Self::to::<Event>(&[], "create"),
            Need::Might { verb, kind, part, names } => Self::of_kind(kind, Some(part), names, verb),
        }
    }
}

/// What one controller needs, everywhere.
pub fn of(name: ControllerName) -> BTreeSet<Right> {
    // What it does depends on its setup only in which fields it writes, and when.
    let controller = controller(name, &Setup::default());
    let seen = controller
        .kinds()
        .iter()
        .chain(controller.kinds_at_need())
        .flat_map(|kind| ["list", "watch"].map(|verb| Right::of_kind(*kind, None, kind.names(), verb)));
    seen.chain(controller.needs().iter().map(|need| Right::of_need(*need))).collect()
}

/// What a process needs in the namespace of its Lease to stand for leader.
pub fn of_election(lease: &str) -> BTreeSet<Right> {
    let named = ["get", "update", "watch"].map(|verb| Right::to::<Lease>(&[lease], verb));
    named.into_iter().chain([Right::to::<Lease>(&[], "create")]).collect()
}

/// What a process needs to answer questions over HTTPS: whoever asks is the API server's to know and to let in.
pub fn of_debugger() -> BTreeSet<Right> {
    [Right::to::<TokenReview>(&[], "create"), Right::to::<SubjectAccessReview>(&[], "create")].into()
}

/// A group, and the names of objects.
type Scope<'a> = (&'a str, &'a [String]);

/// Rights as few rules, in an order that depends on nothing but the rights.
pub fn rules(rights: &BTreeSet<Right>) -> Vec<PolicyRule> {
    // Which verbs go with a resource, and then which resources share all their verbs.
    let mut verbs: BTreeMap<(Scope<'_>, &str), Vec<&str>> = BTreeMap::new();
    for right in rights {
        verbs.entry(((&right.group, &right.names), &right.resource)).or_default().push(right.verb);
    }
    let mut rules: BTreeMap<(Scope<'_>, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for ((scope, resource), mut verbs) in verbs {
        verbs.sort_unstable();
        rules.entry((scope, verbs)).or_default().push(resource);
    }
    let words = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut rules: Vec<PolicyRule> = rules
        .into_iter()
        .map(|(((group, names), verbs), resources)| PolicyRule {
            api_groups: Some(words(vec![group])),
            resources: Some(words(resources)),
            resource_names: (!names.is_empty()).then(|| names.to_vec()),
            verbs: words(verbs),
            non_resource_urls: None,
        })
        .collect();
    rules.sort_by(|one, other| (&one.api_groups, &one.resources).cmp(&(&other.api_groups, &other.resources)));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rights: &BTreeSet<Right>) -> Vec<String> {
        let line = |rule: &PolicyRule| {
            let list = |list: &Option<Vec<String>>| list.as_deref().unwrap_or_default().join(",");
            let names = rule.resource_names.as_ref().map(|names| format!(" [{}]", names.join(",")));
            format!("{}: {}{}", list(&rule.resources), rule.verbs.join(","), names.unwrap_or_default())
        };
        rules(rights).iter().map(line).collect()
    }

    #[test]
    fn a_controller_may_see_its_kinds_and_do_what_it_says() {
        assert_eq!(
            lines(&of(ControllerName::ClusterTaint)),
            [
                "managedclusters: list,patch,watch",
                "managedclusters/systemtaints: update",
                "managedclustersets/join: create [default]",
            ]
        );
        assert_eq!(
            lines(&of(ControllerName::ClusterLease)),
            [
                "namespaces: list,watch",
                "managedclusters: list,watch",
                "managedclusters/status: patch",
                "leases: create",
                "leases: get,list,watch [managed-cluster-lease]",
                "events: create",
            ]
        );
    }

    #[test]
    fn evictions_need_pods_nodes_and_to_see_whether_somebody_has_said_stop() {
        assert_eq!(
            lines(&of(ControllerName::TaintEviction)),
            [
                "configmaps: list,watch [berth-freeze-evictions]",
                "namespaces: list,watch",
                "nodes: get,list,patch,watch",
                "pods: delete,get,list,watch",
                "pods/eviction: create",
                "pods/status: patch",
                "replicationcontrollers: get",
                "daemonsets,replicasets,statefulsets: get",
                "jobs: get",
                "evictionpolicies: list,watch",
                "evictionpolicies/status: patch",
                "events: create",
            ]
        );
    }

    #[test]
    fn replacements_need_claims_and_volumes_and_never_change_a_workload() {
        assert_eq!(
            lines(&of(ControllerName::Replacement)),
            [
                "configmaps: list,watch [berth-freeze-evictions]",
                "nodes: get,list,watch",
                "persistentvolumeclaims: delete,get",
                "persistentvolumes: get,patch",
                "pods: delete,get,list,patch,watch",
                "pods/eviction: create",
                "replicationcontrollers: get",
                "daemonsets,replicasets,statefulsets: get",
                "selfsubjectaccessreviews: create",
                "jobs: get",
                "replacementpolicies: get,list,watch",
                "replacementpolicies/status,replacements/status: patch",
                "replacements: create,delete,list,watch",
                "events: create",
            ]
        );
    }

    #[test]
    fn judging_nodes_needs_their_leases_and_the_status_of_pods() {
        assert_eq!(
            lines(&of(ControllerName::NodeLifecycle)),
            [
                "nodes: list,patch,watch",
                "nodes/status,pods/status: patch",
                "pods: list,watch",
                "leases: get,list,watch",
                "events: create",
            ]
        );
    }

    #[test]
    fn an_election_is_about_one_lease() {
        assert_eq!(lines(&of_election("berth")), ["leases: create", "leases: get,update,watch [berth]"]);
    }

    #[test]
    fn nobody_may_do_everything_or_delete_what_users_make() {
        for name in ControllerName::ALL {
            for right in of(name) {
                assert!(!format!("{right:?}").contains('*'), "{name}: {right:?}");
                let users = ["managedclusters", "managedclustersets", "placements", "namespaces"];
                assert!(right.verb != "delete" || !users.contains(&&*right.resource), "{name}: {right:?}");
            }
        }
    }
}
