//! The kinds the controllers look at or write, and one object of any of them.

use std::fmt;
use std::sync::Arc;

use berth_api::names::CLUSTER_LEASE;
use berth_api::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision,
};
use berth_engine::model::ObjectKey;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Change, Outline, Source, Store, World};

/// A type the controllers know.
pub trait Known:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static
{
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
                let collection = match self { $(Self::$kind => <$type>::url_path(&(), namespace)),+ };
                if key.name.is_empty() { collection } else { format!("{collection}/{}", key.name) }
            }

            /// Its name as written in manifests.
            pub fn name(self) -> String {
                match self { $(Self::$kind => <$type>::kind(&()).into_owned()),+ }
            }

            /// Its group and version.
            pub fn api_version(self) -> String {
                match self { $(Self::$kind => <$type>::api_version(&()).into_owned()),+ }
            }

            /// Its plural, as paths and roles have it.
            pub fn plural(self) -> String {
                match self { $(Self::$kind => <$type>::plural(&()).into_owned()),+ }
            }

            /// Lets `visitor` work with the type of this kind.
            pub(crate) fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self { $(Self::$kind => visitor.visit::<$type>()),+ }
            }

            /// Reads an object of this kind.
            pub(crate) fn read(self, text: &str) -> serde_json::Result<Object> {
                let outline: Outline<'_> = serde_json::from_str(text)?;
                match self { $(Self::$kind => outline.read(self, text).map(|object| Object::$kind(Arc::new(object)))),+ }
            }
        }

        impl Object {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind),+ }
            }

            /// Its metadata.
            pub fn metadata(&self) -> &ObjectMeta {
                match self { $(Self::$kind(object) => object.meta()),+ }
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
                match self { $(Self::$kind(object) => serde_json::to_vec(&**object)),+ }
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
}

impl Kind {
    /// The names of the only objects of this kind that anybody looks at; none where all are.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            // Every node and every leader election has a lease that is renewed all the time.
            Self::Lease => &[CLUSTER_LEASE],
            _ => &[],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
