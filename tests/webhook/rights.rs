//! With the rights that docs/admission.md lists and no others, a webhook keeps its certificates and the configurations that
//! somebody else made.

use std::fs;

use berth_bed::{Bed, Companion, or_skip};
use berth_tests::{caller::Caller, waiting::eventually};
use serde_json::{Value, json};

use crate::ground::{BESIDE, Ground, alone};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

fn rule(group: &str, resources: &[&str], verbs: &[&str], name: Option<&str>) -> Value {
    let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    if let Some(name) = name {
        rule["resourceNames"] = json!([name]);
    }
    rule
}

async fn grant(admin: &Caller) {
    let fleet = [
        "addonplacementscores",
        "managedclusters",
        "managedclustersetbindings",
        "managedclustersets",
        "placementdecisions",
        "placements",
    ];
    let (read, keep) = (["get", "list", "watch"], ["get", "list", "watch", "update"]);
    let cluster = [
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"], None),
        rule("", &["namespaces"], &["get"], None),
        rule("cluster.open-cluster-management.io", &fleet, &read, None),
        rule("admissionregistration.k8s.io", &CONFIGURATIONS, &keep, Some("berth-admission")),
    ];
    let own = [rule("", &["secrets"], &keep, Some("berth-webhook-tls"))];
    for (kind, rules, at) in [("ClusterRole", &cluster[..], ""), ("Role", &own[..], "/namespaces/default")] {
        let version = "rbac.authorization.k8s.io/v1";
        let metadata = json!({"name": "hook"});
        let role = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules});
        let binding = json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "hook"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "hook"}],
        });
        let plural = format!("{}s", kind.to_lowercase());
        admin.post(&format!("{RBAC}{at}/{plural}"), &role).await.ok();
        let plural = format!("{}bindings", kind.to_lowercase());
        admin.post(&format!("{RBAC}{at}/{plural}"), &binding).await.ok();
    }
}

async fn few(bed: &mut Bed) {
    let admin = Caller::admin(bed);
    // What an installer leaves: configurations that lead to a Service, and an empty Secret.
    let mut flags: Vec<&str> = BESIDE.iter().copied().filter(|flag| !flag.starts_with("--url")).collect();
    let register: Vec<&str> = flags.iter().copied().chain(["--register"]).collect();
    let Some(mut installer) = or_skip(Companion::berth(bed, "installer", "webhook", &register).await) else {
        return;
    };
    installer.stop().await.unwrap();
    admin.delete(&format!("{SECRETS}/berth-webhook-tls")).await.ok();
    let empty = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "berth-webhook-tls"}});
    admin.post(SECRETS, &empty).await.ok();
    grant(&admin).await;

    let mut kubeconfig: Value =
        serde_saphyr::from_str(&fs::read_to_string(bed.kubeconfig()).unwrap()).unwrap();
    kubeconfig["users"][0]["user"]["as"] = json!("hook");
    let path = bed.folder().join("few-rights");
    fs::write(&path, kubeconfig.to_string()).unwrap();
    flags.push("--certificate-life=30s");
    let Some(webhook) = or_skip(Companion::berth_with(bed, &path, "few", "webhook", &flags).await) else {
        return;
    };
    // Also through a renewal, with everybody told whom to trust.
    let first = admin.get(&format!("{SECRETS}/berth-webhook-tls")).await.ok()["data"]["tls.crt"].clone();
    assert!(first.is_string(), "{}", webhook.log());
    eventually("a renewed certificate that is trusted", async || {
        let secret = admin.get(&format!("{SECRETS}/berth-webhook-tls")).await.ok();
        for kind in CONFIGURATIONS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/berth-admission");
            for webhook in admin.get(&path).await.ok()["webhooks"].as_array().unwrap() {
                if webhook["clientConfig"]["caBundle"] != secret["data"]["ca.crt"] {
                    return None;
                }
                assert_eq!(webhook["clientConfig"]["service"]["name"], "berth-webhook");
            }
        }
        (secret["data"]["tls.crt"] != first).then_some(())
    })
    .await;
    let log = webhook.log();
    assert!(!log.contains("forbidden") && !log.contains("cannot"), "{log}");
}

#[test]
fn a_webhook_needs_few_rights_on_the_hub() {
    alone(Ground::Hub, few);
}

#[test]
fn a_webhook_needs_few_rights_on_kubernetes() {
    alone(Ground::Kubernetes, few);
}
