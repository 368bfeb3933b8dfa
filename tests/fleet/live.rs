//! `berth plan` and `berth explain` about a live fleet: what they tell is what is, and what they foretell comes true.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use berth_bed::{Bed, or_skip};
use berth_tests::caller::text;
use jiff::{SignedDuration, Timestamp};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::{
    cluster::{taint, whole},
    ground::{QUIET, Turn, grounds},
    handle::Fleet,
};

/// Runs a command to its end, without holding up the scenario.
async fn ended(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// `berth ARGUMENTS` as the administrator.
async fn berth(bed: &Bed, arguments: &[&str]) -> Output {
    let mut command = bed.berth().unwrap();
    command.args(arguments);
    ended(command).await
}

/// The same, which must succeed; what it printed.
async fn printed(bed: &Bed, arguments: &[&str]) -> String {
    let output = berth(bed, arguments).await;
    assert!(output.status.success(), "berth {arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The same with another kubeconfig, which must fail; what it said about it.
async fn failing(bed: &Bed, kubeconfig: &Path, arguments: &[&str]) -> String {
    let mut command = bed.berth().unwrap();
    command.env("KUBECONFIG", kubeconfig).args(arguments);
    let output = ended(command).await;
    assert_eq!(output.status.code(), Some(1), "berth {arguments:?}: {}", said(&output));
    assert!(output.stdout.is_empty(), "{}", said(&output));
    String::from_utf8(output.stderr).unwrap()
}

/// The clusters that a plan in JSON gives a placement of the scenario, by their short names.
fn planned(fleet: &Fleet, plan: &str, placement: &str) -> Vec<String> {
    let list: Value = serde_json::from_str(plan).unwrap();
    let prefix = format!("{}-", fleet.namespace);
    let slices = list["items"].as_array().unwrap().iter().filter(|item| {
        item["kind"] == "PlacementDecision"
            && item["metadata"]["namespace"] == *fleet.namespace
            && text(item, "/metadata/name").starts_with(&format!("{placement}-decision-"))
    });
    let mut names: Vec<String> = slices
        .flat_map(|slice| slice["status"]["decisions"].as_array().cloned().unwrap_or_default())
        .map(|decision| text(&decision, "/clusterName").trim_start_matches(&prefix).to_owned())
        .collect();
    names.sort_unstable();
    names
}

/// A kubeconfig, changed, as a file of the bed.
fn kubeconfig(bed: &Bed, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let mut config = serde_json::to_value(Kubeconfig::read_from(bed.kubeconfig()).unwrap()).unwrap();
    change(&mut config);
    let path = bed.folder().join(name);
    // YAML has JSON in it.
    fs::write(&path, config.to_string()).unwrap();
    path
}

async fn fleet_of_four(fleet: &Fleet) {
    fleet.bound_set("blue").await;
    fleet.add_many("blue", 4).await;
    fleet.place("p", "numberOfClusters: 2").await;
    fleet.selects("p", &["blue1", "blue2"]).await;
    fleet
        .place(
            "q",
            "{numberOfClusters: 1, tolerations: [{key: gone, operator: Exists, tolerationSeconds: 3600}]}",
        )
        .await;
    fleet.selects("q", &["blue3"]).await;
}

grounds! {
    /// The engine is one and the same, so what the controllers have done leaves nothing to do; and what it says a taint will
    /// do is what the taint does.
    turn async fn a_plan_agrees_with_the_controllers_and_its_forecast_comes_true(turn: &mut Turn<'_>) {
        let Some(_controllers) = or_skip(turn.run("controllers", QUIET).await) else { return };
        let fleet = turn.fleet.clone();
        fleet_of_four(&fleet).await;
        let bed = &*turn.bed;
        let now = printed(bed, &["plan", "-o", "json", "--fail-on-moves", "0"]).await;
        assert_eq!(planned(&fleet, &now, "p"), ["blue1", "blue2"]);
        assert_eq!(planned(&fleet, &now, "q"), ["blue3"]);

        let gone = [format!("{}=gone:NoSelect", fleet.name("blue1")), format!("{}=gone:NoSelect", fleet.name("blue3"))];
        let what_if = ["plan", "--taint", &gone[0], "--taint", &gone[1]];
        let told = printed(bed, &what_if).await;
        assert!(told.contains(&fleet.name("blue1")) && told.contains("gone:NoSelect"), "{told}");
        let forecast = printed(bed, &[&what_if[..], &["-o", "json"]].concat()).await;
        let (p, q) = (planned(&fleet, &forecast, "p"), planned(&fleet, &forecast, "q"));
        assert!(!p.contains(&"blue1".to_owned()), "{p:?}");
        assert_eq!(q, ["blue3"], "it tolerates the taint for an hour");
        let judged = berth(bed, &[&what_if[..], &["--fail-on-moves", "0"]].concat()).await;
        assert_eq!(judged.status.code(), Some(3), "{}", said(&judged));
        assert_eq!(planned(&fleet, &printed(bed, &["plan", "-o", "json", "--fail-on-moves", "0"]).await, "p"), ["blue1", "blue2"], "asking changes nothing");

        let added = Timestamp::now();
        for cluster in ["blue1", "blue3"] {
            fleet.taint(cluster, &[taint("gone", "", "NoSelect", added)]).await;
        }
        let names = |names: &[String]| names.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let (p, q) = (names(&p), names(&q));
        fleet.selects("p", &p.split(' ').collect::<Vec<_>>()).await;
        fleet.selects("q", &q.split(' ').collect::<Vec<_>>()).await;
        printed(bed, &["plan", "--fail-on-moves", "0"]).await;
    }

    /// Objects from a file over those of the server.
    turn async fn a_file_is_laid_over_a_live_fleet(turn: &mut Turn<'_>) {
        let Some(_controllers) = or_skip(turn.run("controllers", QUIET).await) else { return };
        let fleet = turn.fleet.clone();
        fleet_of_four(&fleet).await;
        let bed = &*turn.bed;
        let change = bed.folder().join("change.yaml");
        let spec = "{numberOfClusters: 3}";
        fs::write(&change, format!(
            "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
             metadata: {{name: p, namespace: {}}}\nspec: {spec}\n", fleet.namespace
        )).unwrap();
        let plan = printed(bed, &["plan", "--with", change.to_str().unwrap(), "-o", "json"]).await;
        let forecast = planned(&fleet, &plan, "p");
        assert_eq!(forecast.len(), 3);
        fleet.edit("p", spec).await;
        fleet.selects("p", &forecast.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }

    /// Why, until when, and the same moment as the object says.
    turn async fn an_explanation_names_the_taint_and_the_moment_of_the_status(turn: &mut Turn<'_>) {
        let Some(_controllers) = or_skip(turn.run("controllers", QUIET).await) else { return };
        let fleet = turn.fleet.clone();
        fleet_of_four(&fleet).await;
        let added = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        fleet.taint("blue3", &[taint("gone", "", "NoSelect", added)]).await;
        fleet.taint("blue4", &[taint("broken", "", "NoSelect", added)]).await;
        let deadline = whole(added + SignedDuration::from_hours(1));
        if fleet.ground.is_ours() {
            fleet.until(&fleet.placement_path("q"), "says when it will change", |placement| {
                placement["status"]["nextTransition"]["time"] == deadline
            }).await;
        }
        let name = format!("{}/q", fleet.namespace);
        let bed = &*turn.bed;
        let told = printed(bed, &["explain", "placement", &name]).await;
        assert!(told.contains("gone:NoSelect") && told.contains(&deadline), "{told}");
        let one = printed(bed, &["explain", "placement", &name, "--cluster", &fleet.name("blue4")]).await;
        assert!(one.contains("Taint broken:NoSelect is not tolerated."), "{one}");
        let account: Value = serde_json::from_str(&printed(bed, &["explain", "placement", &name, "-o", "json"]).await).unwrap();
        assert_eq!(account["next"]["at"], deadline, "{account}");
        assert_eq!(account["next"]["cluster"], *fleet.name("blue3"));
        assert_eq!(account["outcome"]["kind"], "Decided");
    }

    /// What is in the way is told, with what would help.
    turn async fn a_server_that_cannot_be_asked_is_told_of(turn: &mut Turn<'_>) {
        let fleet = turn.fleet.clone();
        let bed = &*turn.bed;
        if or_skip(bed.berth()).is_none() {
            return;
        }
        // Somebody who may see all but the scores.
        let token = fleet.token("viewer").await;
        let (rbac, role) = ("rbac.authorization.k8s.io", fleet.name("viewer"));
        fleet.caller.apply(&format!(
            "apiVersion: {rbac}/v1\nkind: ClusterRole\nmetadata: {{name: {role}}}\n\
             rules: [{{apiGroups: [cluster.open-cluster-management.io], verbs: [list], resources: [managedclusters, \
             managedclustersets, managedclustersetbindings, placements, placementdecisions, clusterclaims]}}]\n---\n\
             apiVersion: {rbac}/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {role}}}\n\
             roleRef: {{apiGroup: {rbac}, kind: ClusterRole, name: {role}}}\n\
             subjects: [{{kind: ServiceAccount, name: viewer, namespace: {}}}]\n", fleet.namespace
        )).await;
        let limited = kubeconfig(bed, "limited", |config| {
            config["users"][0]["user"] = json!({"token": token});
        });
        let told = berth_tests::waiting::until("the grant to be known", crate::handle::PATIENCE, async || {
            let told = failing(bed, &limited, &["plan"]).await;
            if told.contains("addonplacementscores") { Ok(told) } else { Err(told) }
        }).await;
        assert!(told.contains("does not show its addonplacementscores (403)"), "{told}");
        assert!(told.contains("cannot list resource \"addonplacementscores\""), "the right that is missing: {told}");

        let nowhere = kubeconfig(bed, "nowhere", |config| {
            // Taken by nobody: only the first user of the machine may listen there.
            config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
        });
        let told = failing(bed, &nowhere, &["plan"]).await;
        assert!(told.contains("https://127.0.0.1:1 does not answer") && told.contains("refused"), "{told}");

        let told = failing(bed, bed.kubeconfig(), &["plan", "--context", "nope"]).await;
        assert!(told.contains("nope") && told.contains("this kubeconfig cannot be used"), "{told}");
        let told = failing(bed, &bed.folder().join("missing"), &["plan"]).await;
        assert!(told.contains("no such file, as $KUBECONFIG names it"), "{told}");
        let stale = kubeconfig(bed, "stale", |config| config["users"][0]["user"] = json!({"token": "stale"}));
        let told = failing(bed, &stale, &["explain", "placement", "a/b"]).await;
        assert!(told.contains("(401)"), "{told}");
        let told = failing(bed, bed.kubeconfig(), &["explain", "placement", &format!("{}/none", fleet.namespace)]).await;
        assert!(told.contains("there is no Placement") && told.contains("on the server"), "{told}");
    }

    /// The server is found as kubectl finds it: files in a list are one, and a program on the path is a command of kubectl.
    turn async fn the_server_is_found_as_kubectl_finds_it(turn: &mut Turn<'_>) {
        let Some(_controllers) = or_skip(turn.run("controllers", QUIET).await) else { return };
        let fleet = turn.fleet.clone();
        fleet_of_four(&fleet).await;
        let bed = &*turn.bed;
        // Contexts in one file, what they are made of in another, and one that is not there.
        let parts = kubeconfig(bed, "parts", |config| {
            config["contexts"] = json!([]);
            config["current-context"] = Value::Null;
        });
        let whole = serde_json::to_value(Kubeconfig::read_from(bed.kubeconfig()).unwrap()).unwrap();
        let context = &whole["contexts"][0]["context"];
        let contexts = bed.folder().join("contexts");
        fs::write(&contexts, json!({
            "apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "current-context": "wrong",
            "contexts": [
                {"name": "fleet", "context": context},
                {"name": "wrong", "context": {"cluster": "none", "user": "none"}},
            ],
        }).to_string()).unwrap();
        let listed = std::env::join_paths([contexts, bed.folder().join("absent"), parts]).unwrap();
        let mut command = bed.berth().unwrap();
        command.env("KUBECONFIG", &listed).args(["plan", "--context", "fleet", "-o", "json"]);
        let output = ended(command).await;
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(planned(&fleet, &String::from_utf8(output.stdout).unwrap(), "p"), ["blue1", "blue2"]);

        let Some(mut kubectl) = or_skip(bed.kubectl()) else { return };
        let plugins = bed.folder().join("plugins");
        fs::create_dir_all(&plugins).unwrap();
        let link = plugins.join("kubectl-berth");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(bed.berth().unwrap().get_program(), &link).unwrap();
        let path = std::env::join_paths([plugins]).unwrap();
        kubectl.env("PATH", path).args(["berth", "plan", "-o", "json"]);
        let output = ended(kubectl).await;
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(planned(&fleet, &String::from_utf8(output.stdout).unwrap(), "q"), ["blue3"]);
    }

    /// More clusters than a page of a list has.
    turn async fn a_large_fleet_is_read_page_by_page(turn: &mut Turn<'_>) {
        let Some(_controllers) = or_skip(turn.run("controllers", QUIET).await) else { return };
        let fleet = turn.fleet.clone();
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 501).await;
        fleet.place("p", "{}").await;
        fleet.holds("p", 501, 6).await;
        let plan = printed(turn.bed, &["plan", "-o", "json", "--fail-on-moves", "0"]).await;
        assert_eq!(planned(&fleet, &plan, "p").len(), 501);
    }
}
