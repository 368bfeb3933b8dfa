//! Which built-in kinds are served, under which names, with which verbs and subresources.
//!
//! Owns the rows and [`Builtins`], which joins them with the types and schemas of the table. Rows are facts, never behaviour:
//! defaults, validation and printing find a kind by its row.

use std::{collections::HashMap, sync::OnceLock};

use berth_schema::{Arena, NodeId, Schema};

use crate::{
    TABLE,
    gvk::Gvk,
    schemas::Schemas,
    types::{Type, TypeId, Types},
};

/// The verbs of an ordinary resource, in the order discovery gives them.
const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NO_COLLECTION: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const UPDATE: &[&str] = &["update"];
const GET_PATCH_UPDATE: &[&str] = &["get", "patch", "update"];

/// A subresource of a built-in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subresource {
    /// Its name in the path.
    pub name: &'static str,
    /// The group of the objects it takes and gives.
    pub group: &'static str,
    /// Their version.
    pub version: &'static str,
    /// Their kind.
    pub kind: &'static str,
    /// What may be done with it.
    pub verbs: &'static [&'static str],
}

/// A field that lists and watches may be filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectableField {
    /// What a selector calls it.
    pub label: &'static str,
    /// What the stored object calls it; differs where a view of another group renames fields.
    pub stored: &'static str,
}

/// The facts of one built-in kind that are not in the table.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of the kind's strategy")]
struct Row {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    verbs: &'static [&'static str],
    subresources: &'static [Subresource],
    fields: &'static [SelectableField],
    unconditional_update: bool,
    create_on_update: bool,
    generation: bool,
    stored_as: Option<(&'static str, &'static str)>,
}

const fn row(group: &'static str, kind: &'static str, plural: &'static str) -> Row {
    Row {
        group,
        kind,
        plural,
        short_names: &[],
        categories: &[],
        namespaced: true,
        verbs: ALL_VERBS,
        subresources: &[],
        fields: NAME_AND_NAMESPACE,
        unconditional_update: true,
        create_on_update: false,
        generation: false,
        stored_as: None,
    }
}

impl Row {
    const fn short(self, short_names: &'static [&'static str]) -> Row {
        Row { short_names, ..self }
    }
    const fn category(self, categories: &'static [&'static str]) -> Row {
        Row { categories, ..self }
    }
    const fn cluster(self) -> Row {
        Row { namespaced: false, ..self }
    }
    const fn verbs(self, verbs: &'static [&'static str]) -> Row {
        Row { verbs, ..self }
    }
    const fn sub(self, subresources: &'static [Subresource]) -> Row {
        Row { subresources, ..self }
    }
    const fn fields(self, fields: &'static [SelectableField]) -> Row {
        Row { fields, ..self }
    }
    const fn conditional(self) -> Row {
        Row { unconditional_update: false, ..self }
    }
    const fn create_on_update(self) -> Row {
        Row { create_on_update: true, ..self }
    }
    const fn generation(self) -> Row {
        Row { generation: true, ..self }
    }
    const fn stored_as(self, group: &'static str, plural: &'static str) -> Row {
        Row { stored_as: Some((group, plural)), ..self }
    }
}

const fn own(label: &'static str) -> SelectableField {
    SelectableField { label, stored: label }
}
const fn renamed(label: &'static str, stored: &'static str) -> SelectableField {
    SelectableField { label, stored }
}
const fn sub(
    name: &'static str,
    gvk: (&'static str, &'static str),
    verbs: &'static [&'static str],
) -> Subresource {
    Subresource { name, group: gvk.0, version: "v1", kind: gvk.1, verbs }
}
const fn status(group: &'static str, kind: &'static str) -> Subresource {
    sub("status", (group, kind), GET_PATCH_UPDATE)
}
const SCALE: Subresource = sub("scale", ("autoscaling", "Scale"), GET_PATCH_UPDATE);

const NAME: SelectableField = own("metadata.name");
const NAMESPACE: SelectableField = own("metadata.namespace");
const NAME_AND_NAMESPACE: &[SelectableField] = &[NAME, NAMESPACE];

const ADMISSION: &str = "admissionregistration.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Every kind served, by group and then plural name.
static ROWS: &[Row] = &[
    row("", "Binding", "bindings").verbs(CREATE),
    row("", "ConfigMap", "configmaps").short(&["cm"]),
    row("", "Endpoints", "endpoints").short(&["ep"]).create_on_update(),
    row("", "Event", "events").short(&["ev"]).create_on_update().fields(&[
        NAME,
        NAMESPACE,
        own("involvedObject.kind"),
        own("involvedObject.namespace"),
        own("involvedObject.name"),
        own("involvedObject.uid"),
        own("involvedObject.apiVersion"),
        own("involvedObject.resourceVersion"),
        own("involvedObject.fieldPath"),
        own("reason"),
        own("reportingComponent"),
        own("source"),
        own("type"),
    ]),
    row("", "LimitRange", "limitranges").short(&["limits"]).create_on_update(),
    row("", "Namespace", "namespaces")
        .short(&["ns"])
        .cluster()
        .verbs(NO_COLLECTION)
        .sub(&[sub("finalize", ("", "Namespace"), UPDATE), status("", "Namespace")])
        .fields(&[NAME, own("status.phase")]),
    row("", "Node", "nodes")
        .short(&["no"])
        .cluster()
        .sub(&[status("", "Node")])
        .fields(&[NAME, own("spec.unschedulable")]),
    row("", "PersistentVolumeClaim", "persistentvolumeclaims")
        .short(&["pvc"])
        .sub(&[status("", "PersistentVolumeClaim")]),
    row("", "PersistentVolume", "persistentvolumes")
        .short(&["pv"])
        .cluster()
        .sub(&[status("", "PersistentVolume")]),
    row("", "Pod", "pods")
        .short(&["po"])
        .category(&["all"])
        .generation()
        .sub(&[
            sub("binding", ("", "Binding"), CREATE),
            sub("eviction", ("policy", "Eviction"), CREATE),
            status("", "Pod"),
        ])
        .fields(&[
            NAME,
            NAMESPACE,
            own("spec.nodeName"),
            renamed("spec.host", "spec.nodeName"),
            own("spec.restartPolicy"),
            own("spec.schedulerName"),
            own("spec.serviceAccountName"),
            own("spec.hostNetwork"),
            own("status.phase"),
            own("status.podIP"),
            own("status.podIPs"),
            own("status.nominatedNodeName"),
        ]),
    row("", "ResourceQuota", "resourcequotas").short(&["quota"]).sub(&[status("", "ResourceQuota")]),
    row("", "Secret", "secrets").fields(&[NAME, NAMESPACE, own("type")]),
    row("", "ServiceAccount", "serviceaccounts").short(&["sa"]).sub(&[sub(
        "token",
        (AUTHENTICATION, "TokenRequest"),
        CREATE,
    )]),
    row("", "Service", "services")
        .short(&["svc"])
        .category(&["all"])
        .create_on_update()
        .sub(&[status("", "Service")])
        .fields(&[NAME, NAMESPACE, own("spec.clusterIP"), own("spec.type")]),
    row(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
        .category(&["api-extensions"])
        .cluster()
        .conditional()
        .generation(),
    row(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
        .category(&["api-extensions"])
        .cluster()
        .conditional()
        .generation(),
    row(EXTENSIONS, "CustomResourceDefinition", "customresourcedefinitions")
        .short(&["crd", "crds"])
        .category(&["api-extensions"])
        .cluster()
        .conditional()
        .generation()
        .sub(&[status(EXTENSIONS, "CustomResourceDefinition")]),
    row("apps", "ControllerRevision", "controllerrevisions"),
    row("apps", "DaemonSet", "daemonsets")
        .short(&["ds"])
        .category(&["all"])
        .generation()
        .sub(&[status("apps", "DaemonSet")]),
    row("apps", "Deployment", "deployments")
        .short(&["deploy"])
        .category(&["all"])
        .generation()
        .sub(&[SCALE, status("apps", "Deployment")]),
    row("apps", "ReplicaSet", "replicasets")
        .short(&["rs"])
        .category(&["all"])
        .generation()
        .sub(&[SCALE, status("apps", "ReplicaSet")]),
    row("apps", "StatefulSet", "statefulsets")
        .short(&["sts"])
        .category(&["all"])
        .generation()
        .sub(&[SCALE, status("apps", "StatefulSet")]),
    row(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews").cluster().verbs(CREATE),
    row(AUTHENTICATION, "TokenReview", "tokenreviews").cluster().verbs(CREATE),
    row(AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews").verbs(CREATE),
    row(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews").cluster().verbs(CREATE),
    row(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews").cluster().verbs(CREATE),
    row(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews").cluster().verbs(CREATE),
    row("batch", "Job", "jobs").category(&["all"]).generation().sub(&[status("batch", "Job")]).fields(&[
        NAME,
        NAMESPACE,
        own("status.successful"),
    ]),
    row("coordination.k8s.io", "Lease", "leases").conditional().create_on_update(),
    row("discovery.k8s.io", "EndpointSlice", "endpointslices").generation(),
    row("events.k8s.io", "Event", "events").short(&["ev"]).create_on_update().stored_as("", "events").fields(
        &[
            NAME,
            NAMESPACE,
            own("reason"),
            renamed("regarding.kind", "involvedObject.kind"),
            renamed("regarding.namespace", "involvedObject.namespace"),
            renamed("regarding.name", "involvedObject.name"),
            renamed("regarding.uid", "involvedObject.uid"),
            renamed("regarding.apiVersion", "involvedObject.apiVersion"),
            renamed("regarding.resourceVersion", "involvedObject.resourceVersion"),
            renamed("regarding.fieldPath", "involvedObject.fieldPath"),
            renamed("reportingController", "reportingComponent"),
            own("type"),
        ],
    ),
    row("policy", "PodDisruptionBudget", "poddisruptionbudgets")
        .short(&["pdb"])
        .conditional()
        .generation()
        .sub(&[status("policy", "PodDisruptionBudget")]),
    row(RBAC, "ClusterRoleBinding", "clusterrolebindings").cluster().create_on_update(),
    row(RBAC, "ClusterRole", "clusterroles").cluster().create_on_update(),
    row(RBAC, "RoleBinding", "rolebindings").create_on_update(),
    row(RBAC, "Role", "roles").create_on_update(),
    row("scheduling.k8s.io", "PriorityClass", "priorityclasses").short(&["pc"]).cluster().generation(),
    row("storage.k8s.io", "StorageClass", "storageclasses").short(&["sc"]).cluster(),
];

/// Kinds that are only bodies of requests and answers: their type in the table, group and name.
const BODIES: [(&str, &str, &str); 7] = [
    ("autoscaling.v1", "autoscaling", "Scale"),
    ("authentication.v1", AUTHENTICATION, "TokenRequest"),
    ("policy.v1", "policy", "Eviction"),
    ("meta.v1", "", "DeleteOptions"),
    ("meta.v1", "", "Status"),
    ("meta.v1", "", "APIGroup"),
    ("meta.v1", "", "APIVersions"),
];

/// One built-in kind.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of the kind's strategy")]
pub struct Builtin {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The version, `v1` for all of them.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The kind of its lists.
    pub list_kind: Box<str>,
    /// The name in paths.
    pub plural: &'static str,
    /// The kind in lower case.
    pub singular: Box<str>,
    /// What kubectl takes for short.
    pub short_names: &'static [&'static str],
    /// `all` and `api-extensions`.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What may be done with it, in discovery's order.
    pub verbs: &'static [&'static str],
    /// Its subresources.
    pub subresources: &'static [Subresource],
    /// What lists and watches may be filtered by.
    pub selectable_fields: &'static [SelectableField],
    /// Whether an update without `resourceVersion` overwrites.
    pub unconditional_update: bool,
    /// Whether an update of an absent object creates it.
    pub create_on_update: bool,
    /// Whether deletion waits for a grace period.
    pub graceful_deletion: bool,
    /// Whether `metadata.generation` is kept.
    pub generation: bool,
    /// Group and plural under which objects are stored; another kind's for a second view of the same objects.
    pub storage: (&'static str, &'static str),
    /// The type in [`Builtins::types`].
    pub type_id: TypeId,
    /// The schema in [`Builtins::arena`].
    pub root: NodeId,
}

impl Builtin {
    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk { group: self.group.into(), version: self.version.into(), kind: self.kind.into() }
    }

    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether objects are kept, rather than only answered (reviews, bindings).
    pub fn stored(&self) -> bool {
        self.verbs.contains(&"get")
    }
}

/// All built-in kinds with their types and schemas.
#[derive(Debug)]
pub struct Builtins {
    /// The types of the table.
    pub types: Types,
    schemas: Schemas,
    /// The kinds served, by group and plural name.
    pub kinds: Vec<Builtin>,
    bodies: HashMap<Gvk, TypeId>,
}

impl Builtins {
    /// The built-in kinds, read on first use (a few milliseconds) and kept.
    pub fn load() -> &'static Builtins {
        static LOADED: OnceLock<Builtins> = OnceLock::new();
        LOADED.get_or_init(Builtins::read)
    }

    fn read() -> Builtins {
        let types = Types::read(TABLE);
        let schemas = Schemas::build(&types);
        let kinds: Vec<Builtin> = ROWS
            .iter()
            .map(|row| {
                let package = package(row.group);
                let type_id = types
                    .find(&format!("{package}.v1.{}", row.kind))
                    .expect("every kind served is in the table");
                Builtin {
                    group: row.group,
                    version: "v1",
                    kind: row.kind,
                    list_kind: format!("{}List", row.kind).into(),
                    plural: row.plural,
                    singular: row.kind.to_ascii_lowercase().into(),
                    short_names: row.short_names,
                    categories: row.categories,
                    namespaced: row.namespaced,
                    verbs: row.verbs,
                    subresources: row.subresources,
                    selectable_fields: row.fields,
                    unconditional_update: row.unconditional_update,
                    create_on_update: row.create_on_update,
                    graceful_deletion: row.kind == "Pod",
                    generation: row.generation,
                    storage: row.stored_as.unwrap_or((row.group, row.plural)),
                    type_id,
                    root: schemas.root(type_id),
                }
            })
            .collect();
        let mut bodies: HashMap<Gvk, TypeId> = kinds.iter().map(|kind| (kind.gvk(), kind.type_id)).collect();
        for (package, group, kind) in BODIES {
            let id = types.find(&format!("{package}.{kind}")).expect("every body is in the table");
            bodies.insert(Gvk { group: group.into(), version: "v1".into(), kind: kind.into() }, id);
        }
        Builtins { types, schemas, kinds, bodies }
    }

    /// The nodes of all schemas.
    pub fn arena(&self) -> &Arena {
        &self.schemas.arena
    }

    /// The schema of a type.
    pub fn schema(&self, id: TypeId) -> Schema<'_> {
        self.schemas.arena.schema(self.schemas.root(id))
    }

    /// The schema of a kind.
    pub fn schema_of(&self, kind: &Builtin) -> Schema<'_> {
        self.schemas.arena.schema(kind.root)
    }

    /// The kind served under a group and plural name.
    pub fn resource(&self, group: &str, plural: &str) -> Option<&Builtin> {
        self.kinds.iter().find(|kind| kind.group == group && kind.plural == plural)
    }

    /// The kind of this name.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Builtin> {
        self.kinds.iter().find(|found| found.group == group && found.version == version && found.kind == kind)
    }

    /// The type of a kind or of the body of a request. `DeleteOptions` and its kin are known in every group and version.
    pub fn body(&self, gvk: &Gvk) -> Option<TypeId> {
        self.bodies.get(gvk).copied().or_else(|| {
            let everywhere = ["DeleteOptions", "Status"].contains(&&*gvk.kind);
            everywhere.then(|| self.types.find(&format!("meta.v1.{}", gvk.kind))).flatten()
        })
    }

    /// The type of a kind.
    pub fn type_of(&self, kind: &Builtin) -> &Type {
        self.types.get(kind.type_id)
    }
}

/// The group of the kind that a type of the table is, absent for types that are only parts of others.
pub(crate) fn gvk_of_type(short: &str) -> Option<&'static str> {
    let builtins = Builtins::load();
    let served =
        builtins.kinds.iter().find(|kind| *builtins.type_of(kind).short == *short).map(|kind| kind.group);
    served.or_else(|| {
        BODIES
            .iter()
            .find(|(package, _, kind)| short.strip_prefix(package).is_some_and(|rest| rest[1..] == **kind))
            .map(|body| body.1)
    })
}

/// The table's package of a group.
fn package(group: &str) -> &str {
    match group {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_registry_is_in_the_table() {
        let builtins = Builtins::load();
        assert_eq!(builtins.kinds.len(), ROWS.len());
        for kind in &builtins.kinds {
            assert!(builtins.schema_of(kind).property("metadata").is_some(), "{}", kind.kind);
            assert_eq!(builtins.body(&kind.gvk()), Some(kind.type_id));
            assert!(std::ptr::eq(builtins.resource(kind.group, kind.plural).unwrap(), kind));
        }
    }

    #[test]
    fn subresources_name_kinds_that_bodies_can_be_read_as() {
        let builtins = Builtins::load();
        for sub in builtins.kinds.iter().flat_map(|kind| kind.subresources) {
            let gvk = Gvk { group: sub.group.into(), version: sub.version.into(), kind: sub.kind.into() };
            assert!(builtins.body(&gvk).is_some(), "{gvk}");
        }
    }

    #[test]
    fn verbs_are_those_of_discovery_in_order() {
        for kind in &Builtins::load().kinds {
            assert!(kind.verbs.is_sorted(), "{}", kind.kind);
        }
    }

    #[test]
    fn merge_keys_and_list_types_reach_the_schema() {
        let builtins = Builtins::load();
        let pod = builtins.schema_of(builtins.kind("", "v1", "Pod").unwrap());
        let containers = pod.property("spec").unwrap().property("containers").unwrap();
        assert_eq!(containers.node().patch.as_ref().unwrap().merge_key.as_deref(), Some("name"));
        let ports = containers.items().unwrap().property("ports").unwrap();
        assert_eq!(
            ports.node().list,
            berth_schema::ListType::Map(vec!["containerPort".into(), "protocol".into()])
        );
        let strategy = builtins.schema_of(builtins.kind("apps", "v1", "Deployment").unwrap());
        let strategy = strategy.property("spec").unwrap().property("strategy").unwrap();
        assert!(strategy.node().patch.as_ref().unwrap().retain_keys);
        assert!(strategy.property("rollingUpdate").is_some());
    }

    #[test]
    fn the_second_view_of_events_is_stored_as_the_first() {
        let events = Builtins::load().resource("events.k8s.io", "events").unwrap();
        assert_eq!(events.storage, ("", "events"));
    }
}
