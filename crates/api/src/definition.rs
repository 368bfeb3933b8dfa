//! The definitions (CRDs) of our kinds.
//!
//! Owns putting the registry and the schemas together; the files in `deploy/crds` are written from here by the
//! `crds` example and never by hand.

use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition,
        CustomResourceDefinitionNames, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
        CustomResourceSubresourceStatus, CustomResourceSubresources, CustomResourceValidation,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::kinds::{KindInfo, KindVersion, kinds};

/// One definition for each kind, with all its versions.
pub fn crds() -> Vec<CustomResourceDefinition> {
    kinds().iter().map(crd).collect()
}

/// The definition of one kind.
pub fn crd(info: &KindInfo) -> CustomResourceDefinition {
    CustomResourceDefinition {
        metadata: ObjectMeta { name: Some(format!("{}.{}", info.plural, info.group)), ..Default::default() },
        spec: CustomResourceDefinitionSpec {
            group: info.group.to_owned(),
            names: CustomResourceDefinitionNames {
                kind: info.kind.to_owned(),
                list_kind: Some(format!("{}List", info.kind)),
                plural: info.plural.to_owned(),
                singular: Some(info.singular.to_owned()),
                short_names: some_list(info.short_names.iter().map(|&name| name.to_owned())),
                categories: None,
            },
            scope: if info.namespaced { "Namespaced" } else { "Cluster" }.to_owned(),
            versions: info.versions.iter().map(|version| definition_version(info, version)).collect(),
            // All versions have the same shape: nothing to convert.
            conversion: (info.versions.len() > 1)
                .then(|| CustomResourceConversion { strategy: "None".to_owned(), webhook: None }),
            preserve_unknown_fields: None,
        },
        status: None,
    }
}

fn definition_version(info: &KindInfo, version: &KindVersion) -> CustomResourceDefinitionVersion {
    let columns = info.columns.iter().map(|column| CustomResourceColumnDefinition {
        name: column.name.to_owned(),
        type_: column.kind.to_owned(),
        json_path: column.json_path.to_owned(),
        ..Default::default()
    });
    let deprecated = !version.storage;
    CustomResourceDefinitionVersion {
        name: version.name.to_owned(),
        served: true,
        storage: version.storage,
        deprecated: deprecated.then_some(true),
        deprecation_warning: deprecated.then(|| {
            format!("{}/{} {} is deprecated; use {}", info.group, version.name, info.kind, info.api_version())
        }),
        additional_printer_columns: some_list(columns),
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(info.schema().clone()) }),
        subresources: info.status_subresource.then(|| CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(serde_json::json!({}))),
            scale: None,
        }),
        selectable_fields: None,
    }
}

fn some_list<T>(entries: impl Iterator<Item = T>) -> Option<Vec<T>> {
    let entries: Vec<T> = entries.collect();
    (!entries.is_empty()).then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deprecation_warning_fits_kubernetes_limits() {
        // Kubernetes allows 256 printable ASCII characters.
        for version in crds().into_iter().flat_map(|crd| crd.spec.versions) {
            if let Some(warning) = version.deprecation_warning {
                assert!(
                    warning.len() <= 256 && warning.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                    "{warning}"
                );
            }
        }
    }
}
