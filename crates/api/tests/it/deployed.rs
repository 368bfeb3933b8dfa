//! The files people install are the definitions this crate makes.

use std::{fs, path::PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

#[test]
fn the_files_in_deploy_hold_the_definitions_of_this_crate() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    for crd in berth_api::crds() {
        let name = crd.metadata.name.clone().unwrap();
        let text = fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap();
        let deployed: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
        assert!(deployed == crd, "{name} is out of date: run the crds example");
    }
}
