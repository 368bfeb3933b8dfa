//! The whole life of an installation: put over what was there, used, broken, mended, taken away. Controllers and webhook run
//! with the arguments of their Deployments and the tokens of their accounts.

use std::{collections::BTreeSet, fs, path::Path, process::Output};

use berth_tests::{
    caller::{condition, documents, text},
    definitions::stock,
    waiting::{PATIENCE, until},
};
use serde_json::{Value, json};

use crate::{
    ground::{GROUP, Ground, project, run},
    pod::Pod,
    proof::none_refused,
    rules::granted,
    team::{PLACEMENTS, POLICY_PATHS, as_list, contents, fleet, granted_by_rbac, policies, unbound},
};

/// What a check told, and with which exit code.
fn told(output: &Output) -> (Option<i32>, String) {
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap())
}

/// Lets every Deployment say that its pods are ready: nobody else does here.
async fn all_ready(ground: &Ground, objects: &[Value]) {
    for deployment in objects.iter().filter(|object| object["kind"] == "Deployment") {
        let path = path_of(deployment);
        let generation = ground.caller.get(&path).await.ok()["metadata"]["generation"].clone();
        let status = json!({"status": {
            "observedGeneration": generation, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
        }});
        ground.caller.merge(&format!("{path}/status"), &status).await.ok();
    }
}

fn path_of(object: &Value) -> String {
    let version = text(object, "/apiVersion");
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let place = object["metadata"]["namespace"].as_str().map(|name| format!("/namespaces/{name}"));
    let plural = format!("{}s", text(object, "/kind").to_lowercase());
    format!("{root}/{version}{}/{plural}/{}", place.unwrap_or_default(), text(object, "/metadata/name"))
}

/// The version of each object: equal if nothing was written.
async fn versions(ground: &Ground, objects: &[Value]) -> Vec<String> {
    let mut versions = Vec::new();
    for object in objects {
        let found = ground.caller.get(&path_of(object)).await.ok();
        versions.push(format!("{} {}", path_of(object), text(&found, "/metadata/resourceVersion")));
    }
    versions
}

/// The definitions of an earlier day: ours without a field that users have come to rely on since.
fn older() -> Vec<Value> {
    let mut all = Vec::new();
    for entry in fs::read_dir(project().join("deploy/crds")).unwrap() {
        let mut definition = documents(&fs::read_to_string(entry.unwrap().path()).unwrap()).remove(0);
        if definition["spec"]["names"]["kind"] == "Placement" {
            let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
            schema["spec"]["properties"].as_object_mut().unwrap().remove("antiAffinity").unwrap();
        }
        all.push(definition);
    }
    all
}

/// Everything but those who would miss an agent.
const CALM: &str =
    "*,-cluster-lease-controller,-cluster-taint-controller,taint-eviction-controller,replacement-controller";
const FREEZE: &str = "/api/v1/namespaces/berth-system/configmaps/berth-freeze-evictions";

/// From definitions of before to nothing but what users made.
async fn life(ground: &Ground, before: &[Value]) {
    ground.kubectl(&["apply", "-f", "-"], &as_list(before));
    ground.served().await;
    fleet(ground).await;
    let has_policies = before.iter().any(|definition| definition["spec"]["group"] == "berth.dev");
    if has_policies {
        policies(ground).await;
    }
    let placement = format!("{GROUP}/v1beta1/namespaces/team/placements/web");
    let uid = ground.caller.get(&placement).await.ok()["metadata"]["uid"].clone();
    let left = contents(ground, has_policies).await;

    let flags = ["--controllers", CALM];
    let install = [&["install"], &flags[..]].concat();
    let check = [&["install", "--check"], &flags[..]].concat();
    let (code, lines) = told(&ground.berth(&check));
    assert_eq!(code, Some(1), "{lines}");
    let found = |wanted: &str, lines: &str| assert!(lines.contains(wanted), "{wanted} is not in: {lines}");
    found("older      CustomResourceDefinition placements.cluster.open-cluster-management.io", &lines);
    found("v1beta1 spec.antiAffinity: missing\n", &lines);
    found("missing    Namespace berth-system\n", &lines);
    found("missing    ClusterRole berth:placement-controller\n", &lines);

    // Over what was applied before, one way and the other, and again: nothing is left to change.
    let printed = ground.print(&install);
    assert_eq!(printed, ground.print(&install), "the same flags print the same bytes");
    ground.kubectl(&["apply", "--server-side", "--validate=strict", "-f", "-"], &printed);
    ground.kubectl(&["apply", "--validate=strict", "-f", "-"], &printed);
    let objects = documents(&printed);
    let before = versions(ground, &objects).await;
    ground.kubectl(&["apply", "-f", "-"], &printed);
    assert_eq!(versions(ground, &objects).await, before);
    ground.kubectl(
        &["apply", "--server-side", "--force-conflicts", "-f", "-"],
        &ground.print(&[&install[..], &["-o", "json"]].concat()),
    );
    assert_eq!(
        contents(ground, has_policies).await,
        left,
        "objects outlive an upgrade, with all that is in them"
    );

    let (code, lines) = told(&ground.berth(&check));
    assert_eq!(code, Some(1));
    found("not ready  Deployment berth-system/berth-controllers: 0 of 2 pods are ready\n", &lines);
    found("not ready  Deployment berth-system/berth-webhook: 0 of 2 pods are ready\n", &lines);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    all_ready(ground, &objects).await;
    let (code, lines) = told(&ground.berth(&check));
    assert_eq!((code, &lines[..12]), (Some(0), "all is well:"), "{lines}");

    let Some(mut controllers) =
        Pod::start(ground, "controllers", deployment(&objects, "berth-controllers")).await
    else {
        return;
    };
    let is_satisfied = |placement: &Value| condition(placement, "PlacementSatisfied")["status"] == "True";
    // Nobody answers for the webhook yet. The controllers' own writes are not asked about.
    ground.caller.until(&placement, "is satisfied", is_satisfied).await;
    refused_for_want_of_a_webhook(ground).await;
    let Some(mut webhook) = Pod::start(ground, "webhook", deployment(&objects, "berth-webhook")).await else {
        return;
    };
    webhook.serve(ground, "berth-webhook", 443).await;
    admitted(ground, "early").await;
    granted_by_rbac(ground).await;
    if !has_policies {
        policies(ground).await;
    }
    for path in POLICY_PATHS {
        let is_accepted = |policy: &Value| condition(policy, "Accepted")["status"] == "True";
        ground.caller.until(path, "is accepted", is_accepted).await;
    }
    // A field that the definitions of before did not have.
    let anti = json!({"spec": {"antiAffinity": {"topologyKey": "region", "topologyKeyType": "Label"}}});
    let edited = ground.caller.merge(&placement, &anti).await.ok();
    assert_eq!(edited["spec"]["antiAffinity"], anti["spec"]["antiAffinity"]);

    none_refused(ground, &granted(&objects, "berth"), &controllers.user);
    none_refused(ground, &granted(&objects, "berth-webhook"), &webhook.user);

    broken(ground, &check, &printed, &objects).await;
    // Whom to trust is the webhook's to say, and applying leaves it alone. The Service has another address.
    webhook.serve(ground, "berth-webhook", 443).await;
    admitted(ground, "after").await;
    // Whether somebody has confirmed it in time is told by the exit code; the stop stands either way.
    ground.berth(&["freeze", "evictions", "--reason", "until Berth is gone"]);
    assert_eq!(ground.caller.get(FREEZE).await.code, 200);
    // As it is uninstalled in earnest, where pods are asked to end only when their Deployments are gone.
    gone(ground, &flags, &objects).await;
    controllers.process.stop().await.unwrap();
    webhook.process.stop().await.unwrap();
    nothing_kept(ground).await;
    unbound(ground, &flags).await;
    assert_eq!(ground.caller.get(&placement).await.ok()["metadata"]["uid"], uid);
}

/// One of the Deployments.
fn deployment<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    let is_it = |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["name"] == name;
    objects.iter().find(is_it).unwrap()
}

fn placement(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// Whoever makes a Placement finds the door shut.
async fn refused_for_want_of_a_webhook(ground: &Ground) {
    let refused = ground.caller.post(PLACEMENTS, &placement("late", &json!({}))).await;
    assert_eq!(refused.code, 500, "{refused:?}");
    assert!(text(&refused.body, "/message").contains("failed calling webhook"), "{refused:?}");
}

/// A good Placement is let in and satisfied, a cluster gets its set, and a bad Placement is refused with the field.
async fn admitted(ground: &Ground, name: &str) {
    let good = placement(name, &json!({"numberOfClusters": 1}));
    // The API server hears whom to trust when it hears it.
    until("a Placement being let in", PATIENCE, async || {
        let answer = ground.caller.post(PLACEMENTS, &good).await;
        if answer.code == 201 { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
    let is_satisfied = |placement: &Value| condition(placement, "PlacementSatisfied")["status"] == "True";
    ground.caller.until(&format!("{PLACEMENTS}/{name}"), "is satisfied", is_satisfied).await;
    // Without a key, only Exists makes sense: it fits the schema and could not work.
    let bad = placement("bad", &json!({"tolerations": [{"operator": "Equal", "value": "a"}]}));
    let refusal = ground.caller.post(PLACEMENTS, &bad).await.refused(422);
    assert!(refusal.message().contains("spec.tolerations[0]"), "{}", refusal.message());
    let cluster = format!("c-{name}");
    ground.make("v1", None, "ManagedCluster", &cluster, json!({"hubAcceptsClient": true})).await;
    let made = ground.caller.get(&format!("{GROUP}/v1/managedclusters/{cluster}")).await.ok();
    assert_eq!(made["metadata"]["labels"]["cluster.open-cluster-management.io/clusterset"], "default");
}

/// What was broken is told with its place, and applying mends it.
async fn broken(ground: &Ground, check: &[&str], printed: &str, objects: &[Value]) {
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth:rbac-binding-controller";
    let more = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    ground.caller.merge(role, &more).await.ok();
    ground.kubectl(&["delete", "clusterrolebinding", "berth:placement-controller"], "");
    ground.kubectl(&["scale", "-n", "berth-system", "deployment/berth-controllers", "--replicas=1"], "");
    ground.kubectl(
        &["set", "image", "-n", "berth-system", "deployment/berth-controllers", "berth=elsewhere"],
        "",
    );
    // As an installation with one controller more leaves it behind.
    let left = "berth:cluster-lease-controller";
    let account = "--serviceaccount=berth-system:berth";
    ground.kubectl(&["create", "clusterrolebinding", left, "--clusterrole=view", account], "");
    // As somebody makes it who is tired of refusals.
    let further = "tired";
    ground.kubectl(&["create", "clusterrolebinding", further, "--clusterrole=cluster-admin", account], "");
    let (code, lines) = told(&ground.berth(check));
    assert_eq!(code, Some(1));
    for wanted in [
        "missing    ClusterRoleBinding berth:placement-controller\n",
        "left over  ClusterRoleBinding berth:cluster-lease-controller: gives rights that this installation does not need",
        "further    ClusterRoleBinding tired: gives berth the ClusterRole cluster-admin, which berth does not install\n",
        "different  ClusterRole berth:rbac-binding-controller\n             rules: lacks {",
        "different  Deployment berth-system/berth-controllers\n             spec.replicas: wanted 2, found 1\n",
        "             spec.template.spec.containers[berth].image: wanted \"berth:",
        ", found \"elsewhere\"\n",
    ] {
        assert!(lines.contains(wanted), "{wanted:?} is not in: {lines}");
    }
    assert!(lines.contains("\n5 of "), "{lines}");
    ground.kubectl(&["delete", "clusterrolebinding", left, further], "");
    ground.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"], printed);
    all_ready(ground, objects).await;
    let (code, lines) = told(&ground.berth(check));
    assert_eq!(code, Some(0), "{lines}");
    other_flags(ground, check);
    tampered(ground, check, printed, objects).await;
}

/// What only other flags install is told as well: a webhook that nobody meant to have keeps writes out when it is down.
fn other_flags(ground: &Ground, check: &[&str]) {
    let (code, lines) = told(&ground.berth(&[check, &["--without-webhooks"]].concat()));
    assert_eq!(code, Some(1));
    for wanted in [
        "left over  Deployment berth-system/berth-webhook: of an installation with other flags; \
         kubectl delete deployment -n berth-system berth-webhook\n",
        "left over  ValidatingWebhookConfiguration berth-admission: of an installation with other flags; ",
        "left over  RoleBinding berth-system/berth:webhook: gives rights that this installation does not need; ",
    ] {
        assert!(lines.contains(wanted), "{wanted:?} is not in: {lines}");
    }
}

/// What somebody added where it gives power is told as well. Applying does not take it away: whoever added it owns it.
async fn tampered(ground: &Ground, check: &[&str], printed: &str, objects: &[Value]) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let gathered = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"any": "thing"}}]}});
    let role = format!("{rbac}/clusterroles/berth:clusterset-controller");
    ground.caller.merge(&role, &gathered).await.ok();
    let deployment = "/apis/apps/v1/namespaces/berth-system/deployments/berth-webhook";
    let powers = json!({"spec": {"template": {"spec": {"hostNetwork": true, "hostPID": true}}}});
    ground.caller.merge(deployment, &powers).await.ok();
    let binding = format!("{rbac}/clusterrolebindings/berth:placement-controller");
    let subject =
        |namespace: &str| json!({"kind": "ServiceAccount", "name": "berth", "namespace": namespace});
    let both = json!({"subjects": [subject("berth-system"), subject("elsewhere")]});
    ground.caller.merge(&binding, &both).await.ok();
    let narrowed = "/api/v1/namespaces/berth-system/services/berth-webhook";
    ground.caller.merge(narrowed, &json!({"spec": {"selector": {"any": "thing"}}})).await.ok();
    let (code, lines) = told(&ground.berth(check));
    assert_eq!(code, Some(1));
    for wanted in [
        "different  ClusterRole berth:clusterset-controller\n             aggregationRule: wanted nothing, found {",
        "             spec.template.spec.hostNetwork: wanted nothing, found true\n",
        "             spec.template.spec.hostPID: wanted nothing, found true\n",
        "             subjects[berth]: wanted nothing, found {\"kind\":\"ServiceAccount\",\"name\":\"berth\",\"namespace\":\"elsewhere\"}\n",
        "different  Service berth-system/berth-webhook\n             spec.selector.any: wanted nothing, found \"thing\"\n",
    ] {
        assert!(lines.contains(wanted), "{wanted:?} is not in: {lines}");
    }
    assert!(lines.contains("\n4 of "), "{lines}");
    for path in [&*role, deployment, &*binding, narrowed] {
        ground.caller.delete(path).await.ok();
    }
    ground.caller.until_gone(deployment).await;
    ground.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"], printed);
    all_ready(ground, objects).await;
    let (code, lines) = told(&ground.berth(check));
    assert_eq!(code, Some(0), "{lines}");
}

/// Everything goes but what users made, and nothing waits for anything.
async fn gone(ground: &Ground, flags: &[&str], objects: &[Value]) {
    let removal = ground.print(&[&["uninstall"], flags].concat());
    assert!(
        !removal.contains("CustomResourceDefinition") && !removal.contains("kind: Namespace"),
        "{removal}"
    );
    ground.kubectl(&["delete", "--ignore-not-found", "--timeout=60s", "-f", "-"], &removal);
    for object in objects {
        let code = ground.caller.get(&path_of(object)).await.code;
        let stays = ["Namespace", "CustomResourceDefinition"].contains(&text(object, "/kind"));
        assert_eq!(code, if stays { 200 } else { 404 }, "{}", path_of(object));
    }
    assert_eq!(ours(ground), ["namespace/berth-system"], "of whatever kind");
    nothing_kept(ground).await;
    assert_eq!(ground.caller.get(FREEZE).await.code, 404, "whoever comes next evicts");
    for kind in [
        "cluster.open-cluster-management.io/v1/managedclusters",
        "cluster.open-cluster-management.io/v1beta2/managedclustersets",
        "cluster.open-cluster-management.io/v1beta1/placements",
        "cluster.open-cluster-management.io/v1beta1/placementdecisions",
        "berth.dev/v1alpha1/evictionpolicies",
        "berth.dev/v1alpha1/replacementpolicies",
    ] {
        let list = ground.caller.get(&format!("/apis/{kind}")).await.ok();
        let items = list["items"].as_array().unwrap();
        assert!(!items.is_empty(), "{kind} are users' and stay");
        for item in items {
            assert!(item["metadata"]["finalizers"].is_null(), "{item}");
            assert!(item["metadata"]["deletionTimestamp"].is_null(), "{item}");
        }
    }
}

/// Nothing of ours is in the namespace: no lease, no secret. Who still runs makes none anew.
async fn nothing_kept(ground: &Ground) {
    for kind in [
        "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases",
        "/api/v1/namespaces/berth-system/secrets",
    ] {
        assert_eq!(ground.caller.get(kind).await.ok()["items"], json!([]), "{kind}");
    }
}

#[test]
fn an_installation_goes_over_our_older_definitions_and_goes_away_again() {
    run(async {
        let Some(ground) = Ground::new().await else { return };
        life(&ground, &older()).await;
        kustomize(&ground).await;
        blocked(&ground).await;
        vanished(&ground).await;
    });
}

#[test]
fn an_installation_goes_over_the_stock_definitions_and_goes_away_again() {
    let Some(folder) = stock() else { return };
    let files = fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let stock: Vec<Value> = files.flat_map(|text| documents(&text)).collect();
    run(async {
        let Some(ground) = Ground::new().await else { return };
        life(&ground, &stock).await;
    });
}

/// Tokens of pods last an hour, and kubelets renew the file before.
#[test]
fn a_token_that_was_renewed_is_used() {
    run(async {
        let Some(ground) = Ground::new().await else { return };
        let objects = ground.install(&["--without-webhooks"]).await;
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let Some(mut pod) = Pod::start(&ground, "renewed", deployment).await else { return };
        let tokens =
            || ground.ledger().of(&pod.user).map(|asked| asked.credential.clone()).collect::<BTreeSet<_>>();
        assert_eq!(tokens().len(), 1, "one token so far");
        pod.renew_token(&ground).await;
        // It looks at the file once a minute; the Lease is renewed all the time.
        until("a request with the other token", 2 * PATIENCE, async || match tokens().len() {
            1 => Err("the first is still in use".to_owned()),
            _ => Ok(()),
        })
        .await;
        pod.process.stop().await.unwrap();
    });
}

/// The base for kustomize is what `berth install` prints.
async fn kustomize(ground: &Ground) {
    let deploy = project().join("deploy");
    ground.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", path(&deploy)], "");
    let objects = documents(&ground.print(&["install"]));
    let (guide, count) = (
        fs::read_to_string(project().join("docs/install.md")).unwrap(),
        format!("of {} objects", objects.len()),
    );
    assert!(guide.contains(&count), "docs/install.md has another number in its example: {count}");
    all_ready(ground, &objects).await;
    let (code, lines) = told(&ground.berth(&["install", "--check"]));
    assert_eq!(code, Some(0), "{lines}");
    // Nobody serves monitors here, and that is told.
    let (code, lines) = told(&ground.berth(&["install", "--check", "--service-monitor"]));
    let monitor = "missing    ServiceMonitor berth-system/berth-metrics: the server does not serve monitoring.coreos.com/v1";
    assert!(code == Some(1) && lines.contains(monitor), "{lines}");
}

/// A webhook that nobody answers for keeps Placements out, and no longer once it is uninstalled.
async fn blocked(ground: &Ground) {
    refused_for_want_of_a_webhook(ground).await;
    gone(ground, &[], &documents(&ground.print(&["install"]))).await;
    ground.caller.post(PLACEMENTS, &placement("late", &json!({}))).await.ok();
}

/// With the definitions and the namespace nothing at all is left, and nothing keeps users' namespaces from going.
async fn vanished(ground: &Ground) {
    let output = ground.berth(&["uninstall", "--with-crds", "--with-namespace"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("EVERY ManagedCluster"), "{output:?}");
    let removal = String::from_utf8(output.stdout).unwrap();
    ground.kubectl(&["delete", "--ignore-not-found", "--timeout=60s", "-f", "-"], &removal);
    ground.kubectl(&["delete", "namespace", "team", "--timeout=60s"], "");
    assert_eq!(ours(ground), [""; 0]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(ground.caller.get(definitions).await.ok()["items"], json!([]));
    assert_eq!(ground.caller.get("/api/v1/namespaces/berth-system").await.code, 404);
}

/// Everything on the server that says it belongs to Berth, of whatever kind.
fn ours(ground: &Ground) -> Vec<String> {
    // Without what goes to standard error, where kinds of yesterday are warned about.
    let lines = |arguments: &[&str]| -> Vec<String> {
        let output = ground.try_kubectl(arguments, "");
        assert!(output.status.success(), "kubectl {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let kinds = lines(&["api-resources", "--verbs=list", "--output=name"]).join(",");
    let label = "app.kubernetes.io/part-of=berth";
    lines(&["get", &kinds, "--all-namespaces", "--selector", label, "--output=name", "--ignore-not-found"])
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
