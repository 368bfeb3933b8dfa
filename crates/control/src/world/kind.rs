//! The kinds the controllers look at or write, and one object of any of them.

use std::fmt;
use std::sync::Arc;

use berth_api::core::{Lease, Node};
use berth_api::names::CLUSTER_LEASE;
use berth_api::replacement::{Replacement, ReplacementPolicy};
use berth_api::{
    AddOnPlacementScore, EvictionPolicy, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding,
    Placement, PlacementDecision,
};
use berth_engine::model::ObjectKey;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::freeze::{FREEZE, FreezeMap};
use super::node_lease::{NODE_LEASES, NodeLease};
use super::pod::Pod;
use super::pool::Pool;
use super::store::{Revision, number};
use super::{Change, Source, Store, World, read};

/// What is kept of an object: all of it, or a part where there are many.
pub trait Kept: DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static {
    /// The resource as it is served.
    type Of: Resource<DynamicType = ()>;

    /// Its name.
    fn key(&self) -> ObjectKey;

    /// Its identity.
    fn uid(&self) -> Option<&str>;

    /// Its revision, as it is written.
    fn resource_version(&self) -> Option<String>;

    /// Its revision, as it is compared.
    fn revision(&self) -> Revision;

    /// Lets go of what nobody reads, and has the rest in common with others of its kind.
    fn slim(&mut self, kind: Kind, pool: &mut Pool);

    /// Takes this copy of its name for its own.
    fn adopt(&mut self, _key: &ObjectKey) {}

    /// Its JSON, to make one.
    fn to_vec(&self) -> serde_json::Result<Vec<u8>>;
}

impl<K> Kept for K
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static,
{
    type Of = Self;

    fn key(&self) -> ObjectKey {
        ObjectKey::of(self.meta())
    }

    fn uid(&self) -> Option<&str> {
        self.meta().uid.as_deref()
    }

    fn resource_version(&self) -> Option<String> {
        self.meta().resource_version.clone()
    }

    fn revision(&self) -> Revision {
        self.meta().resource_version.as_deref().map(number).unwrap_or_default()
    }

    /// Which fields somebody owns is half of many an object and read by nobody here; when somebody wrote a lease is.
    fn slim(&mut self, kind: Kind, _: &mut Pool) {
        let metadata = self.meta_mut();
        if kind != Kind::Lease {
            metadata.managed_fields = None;
        }
        for entry in metadata.managed_fields.iter_mut().flatten() {
            entry.fields_v1 = None;
        }
    }

    fn to_vec(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

/// A type the controllers know.
pub trait Known: Kept {
    /// Its kind.
    const KIND: Kind;

    /// Its store in a world.
    fn store(world: &World) -> &Store<Self>;

    /// Its store in a world, to change.
    fn store_mut(world: &mut World) -> &mut Store<Self>;

    /// Wraps an object.
    fn wrap(object: Arc<Self>) -> Object;
}

/// Work that is the same for every type.
pub(crate) trait Visitor {
    /// What comes out.
    type Output;

    /// Does it for one type.
    fn visit<K: Known>(self) -> Self::Output;
}

macro_rules! kinds {
    ($($kind:ident $field:ident: $type:ty),+ $(,)?) => {
        /// A kind the controllers look at or write.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each is named after its kind")]
        pub enum Kind { $($kind),+ }

        /// An object of any of the kinds.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "each variant holds the kind it is named after")]
        pub enum Object { $($kind(Arc<$type>)),+ }

        impl Kind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// The path of one object, or of the collection where the key has no name.
            pub(crate) fn path(self, key: &ObjectKey) -> String {
                let namespace = (!key.namespace.is_empty()).then_some(&*key.namespace);
                let collection = match self { $(Self::$kind => <$type as Kept>::Of::url_path(&(), namespace)),+ };
                if key.name.is_empty() { collection } else { format!("{collection}/{}", key.name) }
            }

            /// Its name as written in manifests.
            pub fn name(self) -> String {
                match self { $(Self::$kind => <$type as Kept>::Of::kind(&()).into_owned()),+ }
            }

            /// Its group and version.
            pub fn api_version(self) -> String {
                match self { $(Self::$kind => <$type as Kept>::Of::api_version(&()).into_owned()),+ }
            }

            /// Its plural, as paths and roles have it.
            pub fn plural(self) -> String {
                match self { $(Self::$kind => <$type as Kept>::Of::plural(&()).into_owned()),+ }
            }

            /// Lets `visitor` work with the type of this kind.
            pub(crate) fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self { $(Self::$kind => visitor.visit::<$type>()),+ }
            }

            /// Reads an object of this kind.
            pub(crate) fn read(self, text: &str) -> serde_json::Result<Object> {
                let mut slim = String::new();
                match self { $(Self::$kind => read(self, text, &mut slim).map(|object| Object::$kind(Arc::new(object)))),+ }
            }
        }

        impl Object {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind),+ }
            }

            /// Its name.
            pub fn key(&self) -> ObjectKey {
                match self { $(Self::$kind(object) => object.key()),+ }
            }

            /// Its identity.
            pub fn uid(&self) -> Option<&str> {
                match self { $(Self::$kind(object) => object.uid()),+ }
            }

            /// Its revision, as it is written.
            pub fn resource_version(&self) -> Option<String> {
                match self { $(Self::$kind(object) => object.resource_version()),+ }
            }

            /// Takes the object into its store.
            pub(super) fn enter(self, world: &mut World, how: Source) -> Option<Change> {
                match self {
                    $(Self::$kind(object) => {
                        let object = Arc::unwrap_or_clone(object);
                        let store = &mut world.$field;
                        let turn = match how {
                            Source::Seen => store.seen(object),
                            Source::Answered => store.answered(object),
                        };
                        turn.map(Change::of)
                    }),+
                }
            }

            /// Its JSON.
            pub(crate) fn to_vec(&self) -> serde_json::Result<Vec<u8>> {
                match self { $(Self::$kind(object) => object.to_vec()),+ }
            }
        }

        $(
            impl Known for $type {
                const KIND: Kind = Kind::$kind;

                fn store(world: &World) -> &Store<Self> {
                    &world.$field
                }

                fn store_mut(world: &mut World) -> &mut Store<Self> {
                    &mut world.$field
                }

                fn wrap(object: Arc<Self>) -> Object {
                    Object::$kind(object)
                }
            }
        )+

    };
}

kinds! {
    Cluster clusters: ManagedCluster,
    Set sets: ManagedClusterSet,
    Binding bindings: ManagedClusterSetBinding,
    Placement placements: Placement,
    Decision decisions: PlacementDecision,
    Score scores: AddOnPlacementScore,
    Lease leases: Lease,
    ClusterRole cluster_roles: ClusterRole,
    ClusterRoleBinding cluster_role_bindings: ClusterRoleBinding,
    Namespace namespaces: Namespace,
    Node nodes: Node,
    NodeLease node_leases: NodeLease,
    Pod pods: Pod,
    Freeze freezes: FreezeMap,
    Policy policies: EvictionPolicy,
    ReplacementPolicy replacement_policies: ReplacementPolicy,
    Replacement replacements: Replacement,
    Claim claims: PersistentVolumeClaim,
    Volume volumes: PersistentVolume,
}

/// Where the objects of a kind are that anybody looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Anywhere.
    Everywhere,
    /// In this namespace.
    Namespace(&'static str),
    /// In the namespace of this installation.
    Home,
}

impl Kind {
    /// The names of the only objects of this kind that anybody looks at; none where all are.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            // Every node and every leader election has a lease that is renewed all the time.
            Self::Lease => &[CLUSTER_LEASE],
            Self::Freeze => &[FREEZE],
            _ => &[],
        }
    }

    /// Whether a server that does not serve it has none, and that is all there is to say.
    pub(crate) fn is_optional(self) -> bool {
        matches!(self, Self::Policy | Self::ReplacementPolicy | Self::Replacement)
    }

    /// Where the objects of this kind are that anybody looks at.
    pub(crate) fn scope(self) -> Scope {
        match self {
            Self::NodeLease => Scope::Namespace(NODE_LEASES),
            Self::Freeze => Scope::Home,
            _ => Scope::Everywhere,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
