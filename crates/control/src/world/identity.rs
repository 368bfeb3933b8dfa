//! Who an object is of which only a part is kept.

use std::sync::Arc;

use berth_engine::model::ObjectKey;
use serde::Deserialize;

use super::store::{Revision, number};

/// The name, the identity and the revision of an object: all that is kept of its metadata where there are many.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Metadata")]
pub struct Identity {
    /// Its name.
    pub key: ObjectKey,
    /// Its identity; empty where the server gives none.
    pub uid: Arc<str>,
    /// Its revision; 0 where it is not a number.
    pub revision: Revision,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
}

impl From<Metadata> for Identity {
    fn from(Metadata { name, namespace, uid, resource_version }: Metadata) -> Self {
        Self { key: ObjectKey::new(&namespace, &name), uid: uid.into(), revision: number(&resource_version) }
    }
}

/// Implements [`Kept`](super::kind::Kept) for a type with a field `identity`, of a resource as it is served; `share` is
/// what it has in common with others of its kind.
macro_rules! kept {
    ($type:ty, of: $of:ty, share: $share:expr) => {
        impl super::kind::Kept for $type {
            type Of = $of;

            fn key(&self) -> berth_engine::model::ObjectKey {
                self.identity.key.clone()
            }

            fn uid(&self) -> Option<&str> {
                Some(&*self.identity.uid).filter(|uid| !uid.is_empty())
            }

            fn resource_version(&self) -> Option<String> {
                (self.identity.revision != 0).then(|| self.identity.revision.to_string())
            }

            fn revision(&self) -> super::store::Revision {
                self.identity.revision
            }

            fn slim(&mut self, _: super::kind::Kind, pool: &mut super::pool::Pool) {
                pool.text(&mut self.identity.key.namespace);
                let share: fn(&mut Self, &mut super::pool::Pool) = $share;
                share(self, pool);
            }

            fn adopt(&mut self, key: &berth_engine::model::ObjectKey) {
                self.identity.key = key.clone();
            }

            fn to_vec(&self) -> serde_json::Result<Vec<u8>> {
                Err(serde::ser::Error::custom("too little of it is kept to make one"))
            }
        }
    };
}

pub(super) use kept;
