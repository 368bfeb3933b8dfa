//! The debugger of an installation: reached by its Service, with exactly the rights that are printed for it.

use berth_tests::{
    caller::{Caller, text},
    waiting::eventually,
};
use kube::Config;
use serde_json::{Value, json};

use crate::{
    ground::{Ground, run},
    pod::{Pod, token},
    proof::{all_used, none_refused},
    rules::granted,
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Lets an account ask about the Placements of every namespace, as the guide says it.
async fn viewer(ground: &Ground) -> String {
    let account = json!({"metadata": {"name": "viewer"}});
    ground.caller.post("/api/v1/namespaces/team/serviceaccounts", &account).await.ok();
    let role = json!({"metadata": {"name": "placement-debugger"}, "rules": [
        {"nonResourceURLs": ["/debug/placements/*"], "verbs": ["get", "post"]},
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["placements"], "verbs": ["get", "create"]},
    ]});
    ground.caller.post(&format!("{RBAC}/clusterroles"), &role).await.ok();
    let binding = json!({
        "metadata": {"name": "placement-debugger"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "placement-debugger"},
        "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": "team"}],
    });
    ground.caller.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.ok();
    token(ground, "team", "viewer").await
}

/// Somebody with a token, who takes the certificate for what it is: signed by nobody.
fn asking(address: &str, token: String) -> Caller {
    let mut config = Config::new(address.parse().unwrap());
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(token.into());
    Caller::of(config)
}

#[test]
fn the_debugger_answers_with_exactly_the_rights_it_is_given() {
    run(async {
        let Some(ground) = Ground::new().await else { return };
        let flags = ["--debugger", "--without-webhooks", "--controllers=placement-controller"];
        let objects = ground.install(&flags).await;
        ground.namespace("team").await;
        ground.make("v1beta1", Some("team"), "Placement", "web", json!({})).await;
        let token = viewer(&ground).await;
        let is_it = |object: &&Value| object["kind"] == "Deployment";
        let Some(mut pod) = Pod::start(&ground, "debugged", objects.iter().find(is_it).unwrap()).await else {
            return;
        };
        let line = pod.process.announcement().to_owned();
        let address = line.split("debugger ").nth(1).unwrap().strip_suffix("/debug/placements/").unwrap();
        let (viewer, stranger) = (asking(address, token), asking(address, "nobody".to_owned()));
        let question = "/debug/placements/team/web";
        let answer = eventually("the Placement being explained", async || {
            let answer = viewer.get(question).await;
            (answer.code == 200).then_some(answer.body)
        })
        .await;
        assert_eq!(text(&answer, "/placement/metadata/name"), "web", "{answer}");
        assert_eq!(stranger.get(question).await.code, 401);
        let mut rules = granted(&objects, "berth");
        // The controller's own rules are proven where it works.
        rules.retain(|rule| rule.resource.ends_with("reviews"));
        assert_eq!(rules.len(), 2, "{rules:?}");
        all_used(&ground, &rules, &pod.user).await;
        pod.process.stop().await.unwrap();
        none_refused(&ground, &granted(&objects, "berth"), &pod.user);
    });
}
