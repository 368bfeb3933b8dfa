//! What every kind has in common: type and object metadata around a spec and a status.
//!
//! Owns the `resource!` macro. kube's own derive is not used for the root types because it insists on a `spec`
//! (several reference kinds make it optional, or have none) and therefore cannot write back what it read.
//! Never looks inside a spec or a status.

/// Implements `kube::Resource`, `Serialize` (with `apiVersion` and `kind`) and `new` for a root struct.
///
/// Fields marked `always` are written even when empty, fields marked `optional` only when present.
macro_rules! resource {
    ($kind:ident, group: $group:expr, version: $version:literal, plural: $plural:literal, scope: $scope:ident, fields: { $($mode:ident $field:ident),* }) => {
        impl kube::Resource for $kind {
            type DynamicType = ();
            type Scope = kube::core::$scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }

        impl $kind {
            /// An otherwise empty object of this name.
            pub fn new(name: &str) -> Self {
                Self {
                    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                        name: Some(name.to_owned()),
                        ..Default::default()
                    },
                    ..Default::default()
                }
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct as _;
                let present = 3 $(+ usize::from($crate::resource::resource!(@present $mode, self.$field)))*;
                let mut object = serializer.serialize_struct(stringify!($kind), present)?;
                object.serialize_field("apiVersion", &<Self as kube::Resource>::api_version(&()))?;
                object.serialize_field("kind", stringify!($kind))?;
                object.serialize_field("metadata", &self.metadata)?;
                $(
                    if $crate::resource::resource!(@present $mode, self.$field) {
                        object.serialize_field(stringify!($field), &self.$field)?;
                    }
                )*
                object.end()
            }
        }
    };
    (@present always, $field:expr) => { true };
    (@present optional, $field:expr) => { $field.is_some() };
}

pub(crate) use resource;
