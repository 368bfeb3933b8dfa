//! Definitions of custom resources, from files into a server.

#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use berth_bed::{Bed, or_skip, tool};

use crate::caller::{Caller, condition, documents, text};

/// Where definitions are served.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The folder of the stock definitions: the newest that lie beside the checkout, else those that `./dev upstream` fetched.
/// Nothing, and a word about it, where there are none.
///
/// # Panics
/// When there are none although `BERTH_REQUIRE_UPSTREAM` is `1`.
pub fn stock() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/crds");
    if beside.is_dir() { Some(beside) } else { or_skip(tool("ocm-definitions")) }
}

/// Applies every definition of a folder and waits until all are served.
pub async fn install(bed: &Bed, folder: &Path) {
    let caller = Caller::admin(bed);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut names = Vec::new();
    for file in files {
        for document in documents(&fs::read_to_string(&file).unwrap()) {
            let name = text(&document, "/metadata/name").to_owned();
            let target = format!("{DEFINITIONS}/{name}?fieldManager=fleet&force=true");
            caller.apply_to(&target, &document).await.ok();
            names.push(name);
        }
    }
    for name in names {
        let established = |object: &_| condition(object, "Established")["status"] == "True";
        let object = caller.until(&format!("{DEFINITIONS}/{name}"), "is established", established).await;
        let (group, plural) = (text(&object, "/spec/group"), text(&object, "/spec/names/plural"));
        for version in object["spec"]["versions"].as_array().unwrap() {
            let target = format!("/apis/{group}/{}/{plural}?limit=1", version["name"].as_str().unwrap());
            caller.until(&target, "is served", |list| list["items"].is_array()).await;
        }
    }
}
