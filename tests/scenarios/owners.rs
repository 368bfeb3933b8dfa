//! Owner references: what happens to dependents when their owner goes.

use berth_bed::{Bed, scenario};
use serde_json::{Value, json};

use crate::{
    caller::{Caller, core, map, text},
    waiting::eventually,
};

const HOLD: &str = "berth.dev/hold";

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    })
}

/// Makes a ConfigMap with these owner references.
async fn owned(caller: &Caller, namespace: &str, name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    let mut object = map(name, "");
    object["metadata"]["ownerReferences"] = json!(owners);
    object["metadata"]["finalizers"] = json!(finalizers);
    caller.post(&core(namespace, "configmaps"), &object).await.ok()
}

async fn release(caller: &Caller, target: &str) {
    caller.merge(target, &json!({"metadata": {"finalizers": null}})).await.ok();
}

fn deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

scenario! {
    managed async fn in_the_background_the_owner_goes_first_and_its_dependents_follow(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        let owner = owned(&caller, &namespace, "owner", &[], &[]).await;
        let dependent = owned(&caller, &namespace, "dependent", &[reference(&owner)], &[]).await;
        owned(&caller, &namespace, "grandchild", &[reference(&dependent)], &[]).await;
        owned(&caller, &namespace, "stranger", &[], &[]).await;

        let target = core(&namespace, "configmaps/owner");
        let options = json!({"propagationPolicy": "Background"});
        assert_eq!(caller.delete_with(&target, &options).await.ok()["status"], "Success");
        caller.get(&target).await.refused(404);
        caller.until_gone(&core(&namespace, "configmaps/dependent")).await;
        caller.until_gone(&core(&namespace, "configmaps/grandchild")).await;
        caller.get(&core(&namespace, "configmaps/stranger")).await.ok();
    }

    managed async fn in_the_foreground_the_owner_waits_for_dependents_that_block_it(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        let owner = owned(&caller, &namespace, "owner", &[], &[]).await;
        let mut blocking = reference(&owner);
        blocking["blockOwnerDeletion"] = json!(true);
        owned(&caller, &namespace, "dependent", &[blocking], &[HOLD]).await;

        let (owner, dependent) =
            (core(&namespace, "configmaps/owner"), core(&namespace, "configmaps/dependent"));
        let answer = caller.delete_with(&owner, &json!({"propagationPolicy": "Foreground"})).await.ok();
        assert!(deleting(&answer), "{answer}");
        assert_eq!(answer["metadata"]["finalizers"], json!(["foregroundDeletion"]));
        caller.until(&dependent, "is being deleted", deleting).await;
        let waiting = caller.get(&owner).await.ok();
        assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));

        release(&caller, &dependent).await;
        caller.until_gone(&dependent).await;
        caller.until_gone(&owner).await;
    }

    managed async fn in_the_foreground_the_owner_does_not_wait_for_dependents_that_do_not_block_it(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        let owner = owned(&caller, &namespace, "owner", &[], &[]).await;
        owned(&caller, &namespace, "dependent", &[reference(&owner)], &[HOLD]).await;

        let (owner, dependent) =
            (core(&namespace, "configmaps/owner"), core(&namespace, "configmaps/dependent"));
        caller.delete_with(&owner, &json!({"propagationPolicy": "Foreground"})).await.ok();
        caller.until_gone(&owner).await;
        caller.until(&dependent, "is being deleted", deleting).await;
        release(&caller, &dependent).await;
        caller.until_gone(&dependent).await;
    }

    managed async fn orphans_stay_and_forget_their_owner(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        let owner = owned(&caller, &namespace, "owner", &[], &[]).await;
        owned(&caller, &namespace, "dependent", &[reference(&owner)], &[]).await;

        let target = core(&namespace, "configmaps/owner");
        let answer = caller.delete_with(&target, &json!({"propagationPolicy": "Orphan"})).await.ok();
        assert_eq!(answer["metadata"]["finalizers"], json!(["orphan"]));
        caller.until_gone(&target).await;
        let orphan = caller.get(&core(&namespace, "configmaps/dependent")).await.ok();
        assert!(orphan["metadata"].get("ownerReferences").is_none() && !deleting(&orphan), "{orphan}");
    }

    managed async fn a_dependent_whose_owner_never_existed_is_collected(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        let nobody = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0d9a1c1e-3f0e-4f58-8d3a-6a5c5b0a2f11",
        });
        owned(&caller, &namespace, "dependent", &[nobody], &[]).await;
        caller.until_gone(&core(&namespace, "configmaps/dependent")).await;
    }

    managed async fn one_owner_that_is_left_keeps_the_dependent(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        let first = reference(&owned(&caller, &namespace, "first", &[], &[]).await);
        let second = reference(&owned(&caller, &namespace, "second", &[], &[]).await);
        owned(&caller, &namespace, "dependent", &[first, second.clone()], &[]).await;

        let dependent = core(&namespace, "configmaps/dependent");
        caller.delete(&core(&namespace, "configmaps/first")).await.ok();
        let only_second = |object: &Value| object["metadata"]["ownerReferences"] == json!([second]);
        let kept = caller.until(&dependent, "has one owner", only_second).await;
        assert!(!deleting(&kept), "{kept}");
        caller.delete(&core(&namespace, "configmaps/second")).await.ok();
        caller.until_gone(&dependent).await;
    }

    managed async fn what_belongs_to_a_cluster_scoped_owner_goes_with_it(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        let role = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {namespace}}}\nrules: []"
        );
        let owner = caller.apply(&role).await;
        owned(&caller, &namespace, "dependent", &[reference(&owner)], &[]).await;
        caller.delete(&format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{namespace}")).await.ok();
        caller.until_gone(&core(&namespace, "configmaps/dependent")).await;
    }

    managed async fn a_namesake_does_not_inherit_the_dependents_of_its_predecessor(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        let target = core(&namespace, "configmaps/owner");
        let owner = owned(&caller, &namespace, "owner", &[], &[]).await;
        owned(&caller, &namespace, "dependent", &[reference(&owner)], &[]).await;
        caller.delete(&target).await.ok();
        let namesake = owned(&caller, &namespace, "owner", &[], &[]).await;
        assert_ne!(text(&owner, "/metadata/uid"), text(&namesake, "/metadata/uid"));

        caller.until_gone(&core(&namespace, "configmaps/dependent")).await;
        assert_eq!(caller.get(&target).await.ok()["metadata"]["uid"], namesake["metadata"]["uid"]);
    }

    managed async fn an_owner_in_another_namespace_counts_as_absent(bed: &Bed) {
        let caller = Caller::admin(bed);
        let (here, there) = (bed.namespace("owners").await, bed.namespace("owners").await);
        let owner = owned(&caller, &there, "owner", &[], &[]).await;
        owned(&caller, &here, "dependent", &[reference(&owner)], &[]).await;
        caller.until_gone(&core(&here, "configmaps/dependent")).await;
        caller.get(&core(&there, "configmaps/owner")).await.ok();
    }

    managed async fn a_collection_deleted_with_orphans_leaves_every_dependent(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("owners").await);
        for name in ["a", "b"] {
            let mut object = map(name, "");
            object["metadata"]["labels"] = json!({"role": "owner"});
            let owner = caller.post(&core(&namespace, "configmaps"), &object).await.ok();
            owned(&caller, &namespace, &format!("{name}-dependent"), &[reference(&owner)], &[]).await;
        }
        let owners = core(&namespace, "configmaps?labelSelector=role%3Downer");
        caller.delete_with(&owners, &json!({"propagationPolicy": "Orphan"})).await.ok();
        eventually("no owner left", async || {
            caller.get(&owners).await.ok()["items"].as_array()?.is_empty().then_some(())
        })
        .await;
        for name in ["a-dependent", "b-dependent"] {
            let orphan = caller.get(&core(&namespace, &format!("configmaps/{name}"))).await.ok();
            assert!(orphan["metadata"].get("ownerReferences").is_none(), "{orphan}");
        }
    }
}
