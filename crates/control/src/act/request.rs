//! A write as the request that does it: its path, its body, and what it is refused without.

use berth_engine::model::ObjectKey;
use http::{Method, Request, header};
use serde_json::{Value, json};

use super::write::{Target, Write};

/// The two kinds of patches.
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";

pub(super) fn request(write: &Write) -> serde_json::Result<Request<Vec<u8>>> {
    let (kind, key) = write.subject();
    let (method, path, content, body) = match write {
        Write::Create(object) => {
            let collection = ObjectKey { name: "".into(), ..key };
            (Method::POST, kind.path(&collection), "application/json", object.to_vec()?)
        }
        Write::Patch { target, subresource, patch } | Write::Strategic { target, subresource, patch } => {
            let mut path = kind.path(&key);
            if let Some(subresource) = subresource {
                path = format!("{path}/{subresource}");
            }
            let body = serde_json::to_vec(&preconditioned(patch, target))?;
            let is_strategic = matches!(write, Write::Strategic { .. });
            (Method::PATCH, path, if is_strategic { STRATEGIC_MERGE } else { MERGE }, body)
        }
        Write::Foreign { path, uid, resource_version, patch, .. } => {
            let mut patch = patch.clone();
            patch["metadata"]["uid"] = json!(uid);
            patch["metadata"]["resourceVersion"] = json!(resource_version);
            (Method::PATCH, path.clone(), MERGE, serde_json::to_vec(&patch)?)
        }
        Write::Unchanged(_) | Write::Look { .. } | Write::Review { .. } | Write::Ask { .. } => {
            (Method::GET, kind.path(&key), "application/json", Vec::new())
        }
        Write::Evict { target, .. } => {
            let eviction = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"namespace": key.namespace, "name": key.name},
                "deleteOptions": {"preconditions": preconditions(target)},
            });
            let path = format!("{}/eviction", kind.path(&key));
            (Method::POST, path, "application/json", serde_json::to_vec(&eviction)?)
        }
        Write::Delete(target) | Write::Destroy(target) => {
            let mut options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": preconditions(target),
            });
            if matches!(write, Write::Destroy(_)) {
                options["gracePeriodSeconds"] = json!(0);
            }
            (Method::DELETE, kind.path(&key), "application/json", serde_json::to_vec(&options)?)
        }
    };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content);
    Ok(request.body(body).expect("names of objects are made of what a path may hold"))
}

/// What a deletion is refused without.
fn preconditions(target: &Target) -> Value {
    let mut preconditions = json!({"uid": target.uid});
    if let Some(revision) = &target.resource_version {
        preconditions["resourceVersion"] = json!(revision);
    }
    preconditions
}

/// The patch, to be refused if the object is another or, unless any revision will do, has changed.
fn preconditioned(patch: &Value, target: &Target) -> Value {
    let mut patch = patch.clone();
    patch["metadata"]["uid"] = json!(target.uid);
    if let Some(revision) = &target.resource_version {
        patch["metadata"]["resourceVersion"] = json!(revision);
    }
    patch
}
