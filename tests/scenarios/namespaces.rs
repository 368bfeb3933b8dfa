//! Namespaces: what is in them when they begin, and how they end.

use berth_bed::{Bed, scenario};
use serde_json::{Value, json};

use crate::caller::{Caller, condition, core, map};

fn namespace_path(name: &str) -> String {
    format!("/api/v1/namespaces/{name}")
}

/// Makes a namespace end but for one ConfigMap, `held`.
async fn end_with_something_held(caller: &Caller, namespace: &str) {
    let mut held = map("held", "");
    held["metadata"]["finalizers"] = json!(["berth.dev/hold"]);
    caller.post(&core(namespace, "configmaps"), &held).await.ok();
    let answer = caller.delete(&namespace_path(namespace)).await.ok();
    assert_eq!(answer["status"]["phase"], "Terminating", "{answer}");
}

async fn release(caller: &Caller, namespace: &str) {
    let patch = json!({"metadata": {"finalizers": null}});
    caller.merge(&core(namespace, "configmaps/held"), &patch).await.ok();
    caller.until_gone(&namespace_path(namespace)).await;
}

scenario! {
    managed async fn a_namespace_that_is_deleted_takes_its_content_along(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("ending").await);
        caller
            .apply(&format!(
                "apiVersion: v1
kind: ConfigMap
metadata: {{name: a, namespace: {namespace}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: b, namespace: {namespace}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: c, namespace: {namespace}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: c}}}}
  template:
    metadata: {{labels: {{app: c}}}}
    spec: {{containers: [{{name: c, image: c}}]}}
"
            ))
            .await;
        caller.delete(&namespace_path(&namespace)).await.ok();
        caller.until_gone(&namespace_path(&namespace)).await;

        // A namesake begins empty.
        caller.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}")).await;
        for gone in [
            core(&namespace, "configmaps/a"),
            core(&namespace, "secrets/b"),
            format!("/apis/apps/v1/namespaces/{namespace}/replicasets/c"),
        ] {
            caller.get(&gone).await.refused(404);
        }
    }

    managed async fn a_finalizer_inside_holds_the_namespace_which_says_so(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("held").await);
        end_with_something_held(&caller, &namespace).await;
        let told = |object: &Value| condition(object, "NamespaceFinalizersRemaining")["status"] == "True";
        let object = caller.until(&namespace_path(&namespace), "tells what holds it", told).await;

        let remaining = condition(&object, "NamespaceFinalizersRemaining");
        assert_eq!(remaining["reason"], "SomeFinalizersRemain");
        assert_eq!(
            remaining["message"],
            "Some content in the namespace has finalizers remaining: berth.dev/hold in 1 resource instances"
        );
        let content = condition(&object, "NamespaceContentRemaining");
        assert_eq!((&content["status"], &content["reason"]), (&json!("True"), &json!("SomeResourcesRemain")));
        assert_eq!(content["message"], "Some resources are remaining: configmaps. has 1 resource instances");
        for fine in [
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceDeletionGroupVersionParsingFailure",
            "NamespaceDeletionContentFailure",
        ] {
            assert_eq!(condition(&object, fine)["status"], "False", "{object}");
        }
        assert_eq!(object["spec"]["finalizers"], json!(["kubernetes"]));
        release(&caller, &namespace).await;
    }

    managed async fn nothing_new_begins_in_a_namespace_that_ends(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("closed").await);
        end_with_something_held(&caller, &namespace).await;
        let refusal = caller.post(&core(&namespace, "configmaps"), &map("late", "")).await.refused(403);
        assert_eq!(refusal.reason(), "Forbidden");
        assert_eq!(refusal.causes(), ["NamespaceTerminating"]);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], "metadata.namespace");
        assert_eq!(
            refusal.message(),
            format!(
                "configmaps \"late\" is forbidden: unable to create new content in namespace {namespace} because it is \
                 being terminated"
            )
        );
        // What is there can still be changed: finalizers come off by updates.
        caller.merge(&core(&namespace, "configmaps/held"), &json!({"data": {"value": "x"}})).await.ok();
        release(&caller, &namespace).await;
    }

    managed async fn a_default_account_appears_and_comes_back(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("accounts").await);
        let account = core(&namespace, "serviceaccounts/default");
        let there = |object: &Value| object["metadata"]["uid"].is_string();
        let first = caller.until(&account, "appears", there).await;
        caller.delete(&account).await.ok();
        let another = |object: &Value| there(object) && object["metadata"]["uid"] != first["metadata"]["uid"];
        caller.until(&account, "comes back", another).await;
    }

    managed async fn some_namespaces_cannot_be_deleted(bed: &Bed) {
        let caller = Caller::admin(bed);
        for name in ["default", "kube-system", "kube-public"] {
            let refusal = caller.delete(&namespace_path(name)).await.refused(403);
            let expected = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
            assert_eq!(refusal.message(), expected);
            assert_eq!(caller.get(&namespace_path(name)).await.ok()["status"]["phase"], "Active");
        }
    }

    managed async fn nothing_is_created_in_a_namespace_that_is_not_there(bed: &Bed) {
        let caller = Caller::admin(bed);
        let refusal = caller.post(&core("nowhere", "configmaps"), &map("a", "")).await.refused(404);
        assert_eq!(refusal.message(), "namespaces \"nowhere\" not found");
        let items = caller.get(&core("nowhere", "configmaps")).await.ok()["items"].clone();
        assert_eq!(items, json!([]));
    }

    managed async fn a_namespace_with_a_finalizer_of_its_own_is_emptied_and_waits(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("own").await);
        let path = namespace_path(&namespace);
        caller.post(&core(&namespace, "configmaps"), &map("content", "")).await.ok();
        let mut object = caller.get(&path).await.ok();
        object["spec"]["finalizers"] = json!(["kubernetes", "berth.dev/hold"]);
        caller.put(&format!("{path}/finalize"), &object).await.ok();
        caller.delete(&path).await.ok();
        let emptied = |object: &Value| object["spec"]["finalizers"] == json!(["berth.dev/hold"]);
        let mut object = caller.until(&path, "is emptied", emptied).await;
        caller.get(&core(&namespace, "configmaps/content")).await.refused(404);
        object["spec"]["finalizers"] = json!([]);
        caller.put(&format!("{path}/finalize"), &object).await.ok();
        caller.until_gone(&path).await;
    }
}
