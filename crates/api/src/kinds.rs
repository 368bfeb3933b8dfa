//! The kinds this crate knows.
//!
//! Owns the registry: what each kind is called, in which versions it is served, and where its schema is. Everything
//! else that enumerates kinds (definitions, readers, the hub) goes by this list.

use std::{collections::BTreeMap, sync::LazyLock};

use berth_schema::{Arena, NodeId, Schema};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::{
    AddOnPlacementScoreStatus, ClusterClaimSpec, EvictionPolicySpec, ManagedClusterSetBindingSpec,
    ManagedClusterSetBindingStatus, ManagedClusterSetSpec, ManagedClusterSetStatus, ManagedClusterSpec,
    ManagedClusterStatus, PlacementDecisionStatus, PlacementSpec, PlacementStatus,
    eviction_policy::status::EvictionPolicyStatus,
    names::{BERTH_GROUP, GROUP},
    replacement::{ReplacementPolicySpec, ReplacementPolicyStatus, ReplacementSpec, ReplacementStatus},
    schema::structural_schema,
};

/// One version of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindVersion {
    /// Name of the version, such as `v1beta1`.
    pub name: &'static str,
    /// Whether objects are stored in this version; exactly one version of a kind is.
    pub storage: bool,
}

/// What a column of `kubectl get` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Head of the column.
    pub name: &'static str,
    /// Type of what it shows.
    pub kind: &'static str,
    /// Where it is found.
    pub json_path: &'static str,
}

/// A kind: its names, scope and versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// The API group.
    pub group: &'static str,
    /// The kind, such as `Placement`.
    pub kind: &'static str,
    /// The plural used in addresses.
    pub plural: &'static str,
    /// The singular.
    pub singular: &'static str,
    /// Short names for the command line.
    pub short_names: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether an object's name is also a namespace's, and has to be fit for one.
    pub name_is_namespace: bool,
    /// Whether the status is written apart from the rest.
    pub status_subresource: bool,
    /// The served versions, the stored one first; they share one schema.
    pub versions: &'static [KindVersion],
    /// What `kubectl get` shows.
    pub columns: &'static [Column],
    /// What the kind is, in a sentence.
    pub description: &'static str,
}

impl KindInfo {
    /// The version objects are stored in.
    pub fn storage_version(&self) -> &'static str {
        self.versions.iter().find(|version| version.storage).expect("every kind has a stored version").name
    }

    /// Group and stored version, as objects carry it.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.storage_version())
    }

    /// Whether this is the kind an object says it is, in any served version.
    pub fn serves(&self, api_version: &str, kind: &str) -> bool {
        let Some((group, version)) = api_version.split_once('/') else {
            return false;
        };
        self.kind == kind && self.group == group && self.versions.iter().any(|served| served.name == version)
    }

    /// The schema of the kind, the same in all its versions.
    pub fn schema(&self) -> &'static JSONSchemaProps {
        SCHEMAS.get(self.kind).expect("every kind of the registry has a schema")
    }

    /// The same schema, made ready for preparing and validating objects.
    pub fn structure(&self) -> Schema<'static> {
        let (arena, roots) = &*STRUCTURES;
        arena.schema(*roots.get(self.kind).expect("every kind of the registry has a schema"))
    }
}

const fn stored(name: &'static str) -> KindVersion {
    KindVersion { name, storage: true }
}

const fn older(name: &'static str) -> KindVersion {
    KindVersion { name, storage: false }
}

const fn column(name: &'static str, kind: &'static str, json_path: &'static str) -> Column {
    Column { name, kind, json_path }
}

const AGE: Column = column("Age", "date", ".metadata.creationTimestamp");

const KINDS: &[KindInfo] = &[
    KindInfo {
        group: GROUP,
        kind: "ManagedCluster",
        plural: "managedclusters",
        singular: "managedcluster",
        short_names: &["mcl", "mcls"],
        namespaced: false,
        name_is_namespace: true,
        status_subresource: true,
        versions: &[stored("v1")],
        columns: &[
            column("Hub Accepted", "boolean", ".spec.hubAcceptsClient"),
            column("Managed Cluster URLs", "string", ".spec.managedClusterClientConfigs[*].url"),
            column("Joined", "string", r#".status.conditions[?(@.type=="ManagedClusterJoined")].status"#),
            column(
                "Available",
                "string",
                r#".status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status"#,
            ),
            AGE,
        ],
        description: "A cluster that has joined, or asks to join, the fleet. Its name is also the name of its \
                      namespace on the hub.",
    },
    KindInfo {
        group: GROUP,
        kind: "ManagedClusterSet",
        plural: "managedclustersets",
        singular: "managedclusterset",
        short_names: &["mclset", "mclsets"],
        namespaced: false,
        name_is_namespace: false,
        status_subresource: true,
        versions: &[stored("v1beta2"), older("v1beta1"), older("v1alpha1")],
        columns: &[
            column("Empty", "string", r#".status.conditions[?(@.type=="ClusterSetEmpty")].status"#),
            AGE,
        ],
        description: "A named group of clusters. Bound to a namespace, it offers its clusters to the placements there.",
    },
    KindInfo {
        group: GROUP,
        kind: "ManagedClusterSetBinding",
        plural: "managedclustersetbindings",
        singular: "managedclustersetbinding",
        short_names: &["mclsetbinding", "mclsetbindings"],
        namespaced: true,
        name_is_namespace: false,
        status_subresource: true,
        versions: &[stored("v1beta2"), older("v1beta1"), older("v1alpha1")],
        columns: &[],
        description: "Lets the placements of its namespace choose from the clusters of the set it is named after.",
    },
    KindInfo {
        group: GROUP,
        kind: "Placement",
        plural: "placements",
        singular: "placement",
        short_names: &[],
        namespaced: true,
        name_is_namespace: false,
        status_subresource: true,
        versions: &[stored("v1beta1"), older("v1alpha1")],
        columns: &[
            column("Succeeded", "string", r#".status.conditions[?(@.type=="PlacementSatisfied")].status"#),
            column("Reason", "string", r#".status.conditions[?(@.type=="PlacementSatisfied")].reason"#),
            column("SelectedClusters", "integer", ".status.numberOfSelectedClusters"),
        ],
        description: "Selects clusters, out of the sets bound to its namespace, for the workloads there. The \
                      selected clusters are listed in PlacementDecisions.",
    },
    KindInfo {
        group: GROUP,
        kind: "PlacementDecision",
        plural: "placementdecisions",
        singular: "placementdecision",
        short_names: &[],
        namespaced: true,
        name_is_namespace: false,
        status_subresource: true,
        versions: &[stored("v1beta1"), older("v1alpha1")],
        columns: &[],
        description: "A slice of the clusters that a placement, named by a label, has selected.",
    },
    KindInfo {
        group: GROUP,
        kind: "AddOnPlacementScore",
        plural: "addonplacementscores",
        singular: "addonplacementscore",
        short_names: &[],
        namespaced: true,
        name_is_namespace: false,
        status_subresource: true,
        versions: &[stored("v1alpha1")],
        columns: &[],
        description: "Scores that an add-on gives to one cluster, in whose namespace it lives. Placements may rank \
                      clusters by them.",
    },
    KindInfo {
        group: GROUP,
        kind: "ClusterClaim",
        plural: "clusterclaims",
        singular: "clusterclaim",
        short_names: &[],
        namespaced: false,
        name_is_namespace: false,
        status_subresource: false,
        versions: &[stored("v1alpha1")],
        columns: &[],
        description: "A statement a cluster makes about itself; it lives on the cluster and is reported to the hub.",
    },
    KindInfo {
        group: BERTH_GROUP,
        kind: "EvictionPolicy",
        plural: "evictionpolicies",
        singular: "evictionpolicy",
        short_names: &["evp"],
        namespaced: false,
        name_is_namespace: false,
        status_subresource: true,
        versions: &[stored("v1alpha1")],
        columns: &[
            column("Way", "string", ".spec.way"),
            column("Dry Run", "boolean", ".spec.dryRun"),
            column("Accepted", "string", r#".status.conditions[?(@.type=="Accepted")].status"#),
            column("Matched", "integer", ".status.matched"),
            column("Waiting", "integer", ".status.waiting"),
            column("Held", "integer", ".status.held"),
            column("Evicted", "integer", ".status.evicted"),
            AGE,
        ],
        description: "Says how pods leave nodes with NoExecute taints: which pods, by what way, when, how fast, and who has a say \
                      before. It is obeyed by Berth's taint-eviction-controller.",
    },
    KindInfo {
        group: BERTH_GROUP,
        kind: "ReplacementPolicy",
        plural: "replacementpolicies",
        singular: "replacementpolicy",
        short_names: &["rpp"],
        namespaced: true,
        name_is_namespace: false,
        status_subresource: true,
        versions: &[stored("v1alpha1")],
        columns: &[
            column("Mode", "string", ".spec.mode"),
            column("Accepted", "string", r#".status.conditions[?(@.type=="Accepted")].status"#),
            column("Matched", "integer", ".status.counts.matched"),
            column("Detected", "integer", ".status.counts.detected"),
            column("Replacing", "integer", ".status.counts.replacing"),
            column("In Flight", "integer", ".status.counts.inFlight"),
            column("Blocked", "integer", ".status.counts.blocked"),
            AGE,
        ],
        description: "Says when members of a stateful workload on ailing nodes are replaced, how many at once, and how. It is \
                      obeyed by Berth's replacement-controller.",
    },
    KindInfo {
        group: BERTH_GROUP,
        kind: "Replacement",
        plural: "replacements",
        singular: "replacement",
        short_names: &["rpl"],
        namespaced: true,
        name_is_namespace: false,
        status_subresource: true,
        versions: &[stored("v1alpha1")],
        columns: &[
            column("Policy", "string", ".spec.policy"),
            column("Pod", "string", ".spec.target.name"),
            column("Node", "string", ".spec.target.node"),
            column("Phase", "string", ".status.phase"),
            column("Reason", "string", ".status.reason"),
            column("Successor", "string", ".status.successor.node"),
            AGE,
        ],
        description: "The replacement of one member of a stateful workload, from its start to its end. It is made by Berth's \
                      replacement-controller; people may suspend it or call it off.",
    },
];

static SCHEMAS: LazyLock<BTreeMap<&'static str, JSONSchemaProps>> =
    LazyLock::new(|| KINDS.iter().map(|info| (info.kind, root_schema(info))).collect());

static STRUCTURES: LazyLock<(Arena, BTreeMap<&'static str, NodeId>)> = LazyLock::new(|| {
    let mut arena = Arena::default();
    let roots = SCHEMAS.iter().map(|(kind, schema)| {
        let schema = serde_json::to_value(schema).expect("a schema is JSON");
        let root = berth_schema::compile(&mut arena, &schema).expect("a generated schema can be compiled");
        (*kind, root)
    });
    let roots = roots.collect();
    (arena, roots)
});

/// All kinds, those that others depend on first.
pub fn kinds() -> &'static [KindInfo] {
    KINDS
}

/// The kinds that fleets are made of.
pub fn fleet_kinds() -> impl Iterator<Item = &'static KindInfo> + Clone {
    KINDS.iter().filter(|info| info.group == GROUP)
}

/// The kind an object says it is.
pub fn kind_info(api_version: &str, kind: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|info| info.serves(api_version, kind))
}

/// The schema of objects of this version and kind.
pub fn schema_for(api_version: &str, kind: &str) -> Option<&'static JSONSchemaProps> {
    kind_info(api_version, kind).map(KindInfo::schema)
}

/// Kinds of which an object without a spec says nothing.
const NEEDS_SPEC: [&str; 4] = ["Placement", "EvictionPolicy", "ReplacementPolicy", "Replacement"];

fn root_schema(info: &KindInfo) -> JSONSchemaProps {
    let (spec, status) = match info.kind {
        "ManagedCluster" => {
            parts(structural_schema::<ManagedClusterSpec>(), structural_schema::<ManagedClusterStatus>())
        }
        "ManagedClusterSet" => parts(
            structural_schema::<ManagedClusterSetSpec>(),
            structural_schema::<ManagedClusterSetStatus>(),
        ),
        "ManagedClusterSetBinding" => parts(
            structural_schema::<ManagedClusterSetBindingSpec>(),
            structural_schema::<ManagedClusterSetBindingStatus>(),
        ),
        "Placement" => parts(structural_schema::<PlacementSpec>(), structural_schema::<PlacementStatus>()),
        "PlacementDecision" => (None, Some(structural_schema::<PlacementDecisionStatus>())),
        "AddOnPlacementScore" => (None, Some(structural_schema::<AddOnPlacementScoreStatus>())),
        "ClusterClaim" => (Some(structural_schema::<ClusterClaimSpec>()), None),
        "EvictionPolicy" => {
            parts(structural_schema::<EvictionPolicySpec>(), structural_schema::<EvictionPolicyStatus>())
        }
        "ReplacementPolicy" => parts(
            structural_schema::<ReplacementPolicySpec>(),
            structural_schema::<ReplacementPolicyStatus>(),
        ),
        "Replacement" => {
            parts(structural_schema::<ReplacementSpec>(), structural_schema::<ReplacementStatus>())
        }
        other => unreachable!("{other} is in the registry without a schema"),
    };
    let plain = |kind: &str, description: &str| JSONSchemaProps {
        type_: Some(kind.to_owned()),
        description: (!description.is_empty()).then(|| description.to_owned()),
        ..Default::default()
    };
    let mut properties = BTreeMap::from([
        ("apiVersion".to_owned(), plain("string", "Group and version of this object.")),
        ("kind".to_owned(), plain("string", "Kind of this object.")),
        ("metadata".to_owned(), plain("object", "")),
    ]);
    properties.extend(spec.map(|spec| ("spec".to_owned(), spec)));
    properties.extend(status.map(|status| ("status".to_owned(), status)));
    JSONSchemaProps {
        properties: Some(properties),
        required: NEEDS_SPEC.contains(&info.kind).then(|| vec!["spec".to_owned()]),
        ..plain("object", info.description)
    }
}

fn parts(
    spec: JSONSchemaProps,
    status: JSONSchemaProps,
) -> (Option<JSONSchemaProps>, Option<JSONSchemaProps>) {
    (Some(spec), Some(status))
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::*;

    #[test]
    fn every_kind_is_found_in_each_of_its_versions_and_in_no_other() {
        for info in kinds() {
            for version in info.versions {
                let api_version = format!("{}/{}", info.group, version.name);
                assert_eq!(kind_info(&api_version, info.kind), Some(info));
                assert!(schema_for(&api_version, info.kind).is_some());
            }
            assert_eq!(kind_info(&format!("{}/v9", info.group), info.kind), None);
            assert_eq!(kind_info("v1", info.kind), None);
            assert_eq!(info.versions.iter().filter(|version| version.storage).count(), 1);
        }
    }

    macro_rules! agrees {
        ($($kind:ty),+) => {$(
            let info = kind_info(&<$kind>::api_version(&()), &<$kind>::kind(&())).unwrap();
            assert_eq!(info.plural, <$kind>::plural(&()));
            assert_eq!(info.storage_version(), <$kind>::version(&()));
        )+};
    }

    #[test]
    fn the_registry_agrees_with_the_types() {
        agrees!(
            crate::ManagedCluster,
            crate::ManagedClusterSet,
            crate::ManagedClusterSetBinding,
            crate::Placement,
            crate::PlacementDecision,
            crate::AddOnPlacementScore,
            crate::ClusterClaim,
            crate::EvictionPolicy,
            crate::replacement::ReplacementPolicy,
            crate::replacement::Replacement
        );
    }
}
