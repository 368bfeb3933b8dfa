//! The folders of examples, applied with kubectl: the controllers decide what `berth plan` says of the same objects, and
//! what the story expects wherever that does not depend on the time.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use berth_bed::or_skip;
use berth_tests::{
    caller::{Caller, condition, documents, text},
    waiting::until,
};
use serde_json::{Value, json};

use crate::{
    ground::{QUIET, Turn, grounds},
    handle::{GROUP, PATIENCE},
    slices::LABEL,
};

/// Folders that are not for here, and why.
const ELSEWHERE: [(&str, &str); 1] = [(
    "placement-05-thousands",
    "kubectl applies thousands of clusters one by one; `./dev bench control` has more",
)];

/// Stories about fields that the stock definitions do not have.
const TOO_NEW: [&str; 2] = ["placement-01-whole-fleet", "placement-06-one-per-region"];

/// What a fleet is made of, in the order in which it can go.
const KINDS: [&str; 6] = [
    "v1beta1/placements",
    "v1beta1/placementdecisions",
    "v1alpha1/addonplacementscores",
    "v1beta2/managedclustersetbindings",
    "v1beta2/managedclustersets",
    "v1/managedclusters",
];

/// What became of a placement: its clusters, and whether it is satisfied and makes sense.
pub(crate) type Standing = (Vec<String>, Value, Value);

/// The visible files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    files.sort();
    files
}

/// Where the stories are.
pub(crate) fn shelf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/stories")
}

/// The folders of stories.
fn stories() -> Vec<PathBuf> {
    let entries = fs::read_dir(shelf()).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.join(".expected").is_file()).collect();
    folders.sort();
    folders.retain(|path| !ELSEWHERE.iter().any(|(name, _)| path.ends_with(name)));
    folders
}

/// Whether there is what stories need.
pub(crate) fn can_be_told(turn: &Turn<'_>) -> bool {
    or_skip(turn.bed.kubectl()).is_some() && or_skip(turn.bed.berth()).is_some()
}

/// Runs a command to its end.
async fn output(mut command: Command) -> (Output, Command) {
    let (output, command) = tokio::task::spawn_blocking(move || (command.output(), command)).await.unwrap();
    (output.unwrap(), command)
}

/// Runs a command that must succeed; what it printed.
pub(crate) async fn printed(command: Command) -> String {
    let (output, command) = output(command).await;
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

/// Where an object of a fleet is.
fn path_of(object: &Value) -> String {
    let kind = text(object, "/kind").to_lowercase();
    let namespace = object["metadata"]["namespace"].as_str();
    let within = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
    format!("/apis/{}/{within}{kind}s/{}", text(object, "/apiVersion"), text(object, "/metadata/name"))
}

/// Takes every fleet off the server.
pub(crate) async fn wipe(caller: &Caller) {
    for kind in KINDS {
        until(&format!("no {kind} on the server"), 2 * PATIENCE, async || {
            let list = caller.get(&format!("{GROUP}/{kind}")).await.ok();
            let items = list["items"].as_array().unwrap();
            // The standard sets are kept by the controllers, which may not have ended yet.
            let is_kept = |item: &&Value| ["default", "global"].contains(&text(item, "/metadata/name"));
            let left: Vec<&Value> = items.iter().filter(|item| !is_kept(item)).collect();
            for item in &left {
                let namespace = item["metadata"]["namespace"].as_str();
                let within = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
                let (version, plural) = kind.split_once('/').unwrap();
                let path = format!("{GROUP}/{version}/{within}{plural}/{}", text(item, "/metadata/name"));
                if item["metadata"]["finalizers"].is_array() {
                    caller.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
                }
                caller.delete(&path).await;
            }
            if left.is_empty() { Ok(()) } else { Err(format!("{} left", left.len())) }
        })
        .await;
    }
}

/// How placements stand among these objects, by namespace and name.
fn standings(objects: &[Value]) -> BTreeMap<String, Standing> {
    let key = |namespace: &str, name: &str| format!("{namespace}/{name}");
    let of = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let mut found: BTreeMap<String, Standing> = of("Placement")
        .map(|placement| {
            let status = |kind: &str| condition(placement, kind)["reason"].clone();
            let standing = (Vec::new(), status("PlacementSatisfied"), status("PlacementMisconfigured"));
            (key(text(placement, "/metadata/namespace"), text(placement, "/metadata/name")), standing)
        })
        .collect();
    for slice in of("PlacementDecision") {
        let owner = slice["metadata"]["labels"][format!("{LABEL}/placement")].as_str().unwrap_or_default();
        if let Some((clusters, ..)) = found.get_mut(&key(text(slice, "/metadata/namespace"), owner)) {
            let decisions = slice["status"]["decisions"].as_array().into_iter().flatten();
            clusters.extend(decisions.map(|decision| text(decision, "/clusterName").to_owned()));
            clusters.sort();
        }
    }
    found
}

/// The same on the server.
pub(crate) async fn live(caller: &Caller) -> BTreeMap<String, Standing> {
    let mut objects = Vec::new();
    for (path, kind) in [("placements", "Placement"), ("placementdecisions", "PlacementDecision")] {
        let list = caller.get(&format!("{GROUP}/v1beta1/{path}")).await.ok();
        for item in list["items"].as_array().unwrap() {
            let mut item = item.clone();
            item["kind"] = json!(kind);
            objects.push(item);
        }
    }
    standings(&objects)
}

/// What a story expects of placements that no deadline is ahead of, so of those for which today is as good as its day.
fn expected(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let told: Value = serde_json::from_str(&fs::read_to_string(folder.join(".expected")).unwrap()).unwrap();
    let placements = told["placements"].as_object().unwrap().iter();
    let timeless = placements.filter(|(_, wanted)| wanted.get("next").is_some_and(Value::is_null));
    timeless
        .filter_map(|(name, wanted)| {
            let selected = wanted["selected"].as_array()?.iter();
            let mut selected: Vec<String> = selected.map(|name| name.as_str().unwrap().to_owned()).collect();
            selected.sort();
            Some((name.clone(), selected))
        })
        .collect()
}

/// A document as the stock definitions have it: one version, predicates in their present form, claims by expressions,
/// prioritizers as they are spelt now, and a spec. What they have no room for stays as it is.
fn in_stock(mut document: Value) -> Value {
    if ["Placement", "PlacementDecision"].contains(&text(&document, "/kind")) {
        document["apiVersion"] = json!("cluster.open-cluster-management.io/v1beta1");
    }
    if document["kind"] == "Placement" && document["spec"].is_null() {
        document["spec"] = json!({});
    }
    let predicates = document.pointer_mut("/spec/predicates").and_then(Value::as_array_mut);
    for predicate in predicates.into_iter().flatten() {
        if predicate.get("requiredClusterSelector").is_none() {
            *predicate = json!({"requiredClusterSelector": predicate});
        }
        let claims = predicate.pointer_mut("/requiredClusterSelector/claimSelector");
        let Some(claims) = claims.and_then(Value::as_object_mut) else { continue };
        if let Some(Value::Object(wanted)) = claims.remove("matchClaims") {
            let is_in = |(key, value)| json!({"key": key, "operator": "In", "values": [value]});
            claims.insert("matchExpressions".into(), wanted.into_iter().map(is_in).collect());
        }
    }
    let configurations = document.pointer_mut("/spec/prioritizerPolicy/configurations");
    for configuration in configurations.and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(coordinate) = configuration["scoreCoordinate"].as_object_mut() else { continue };
        if let Some(name) = coordinate.remove("buildIn") {
            coordinate.insert("builtIn".into(), name);
            coordinate.insert("type".into(), json!("BuiltIn"));
        }
    }
    document
}

/// Takes every fleet off the server and applies a folder with kubectl, but for some of its files. What is wrong with it comes
/// back, if the definitions have no room for it.
pub(crate) async fn bring(turn: &Turn<'_>, folder: &Path, without: &[&str]) -> Result<(), String> {
    let caller = &turn.fleet.caller;
    wipe(caller).await;
    let is_wanted = |file: &PathBuf| !without.iter().any(|name| file.ends_with(name));
    let files: Vec<PathBuf> = files(folder).into_iter().filter(is_wanted).collect();
    let read = files.iter().flat_map(|file| documents(&fs::read_to_string(file).unwrap()));
    // A comment before the first `---` is a document of nothing.
    let read = read.filter(|document| !document.is_null());
    let is_ours = turn.fleet.ground.is_ours();
    let objects: Vec<Value> = if is_ours { read.collect() } else { read.map(in_stock).collect() };
    for namespace in objects.iter().filter_map(|object| object["metadata"]["namespace"].as_str()) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let made = caller.post("/api/v1/namespaces", &namespace).await;
        assert!(matches!(made.code, 201 | 409), "{made:?}");
    }
    let mut apply = turn.bed.kubectl().unwrap();
    apply.args(["apply", "--server-side", "--force-conflicts", "--validate=strict"]);
    let rewritten = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    if is_ours {
        for file in &files {
            apply.arg("-f").arg(file);
        }
    } else {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        fs::write(rewritten.path(), list.to_string()).unwrap();
        apply.arg("-f").arg(rewritten.path());
    }
    let (output, _) = output(apply).await;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // What agents and controllers have said so far.
    for object in objects.iter().filter(|object| object["status"].is_object()) {
        let path = format!("{}/status", path_of(object));
        caller.merge(&path, &json!({"status": object["status"]})).await.ok();
    }
    Ok(())
}

/// Tells a story to the controllers; as many placements as have an expectation that holds today.
async fn tell(turn: &Turn<'_>, folder: &Path) -> Result<usize, String> {
    let (bed, caller) = (&*turn.bed, &turn.fleet.caller);
    bring(turn, folder, &[]).await?;
    // Of what is there now, and at this time: deadlines of the stories may have passed.
    let mut plan = bed.berth().unwrap();
    plan.args(["plan", "-o", "json"]);
    let plan: Value = serde_json::from_str(&printed(plan).await).unwrap();
    let wanted = standings(plan["items"].as_array().unwrap());
    assert!(!wanted.is_empty(), "{}: no placement", folder.display());
    let mut controllers = turn.run("controllers", QUIET).await.unwrap();
    let what = format!("{} coming out as planned, {wanted:?}", folder.display());
    until(&what, PATIENCE, async || {
        let there = live(caller).await;
        if there == wanted { Ok(()) } else { Err(format!("{there:?}")) }
    })
    .await;
    controllers.stop().await.unwrap();
    let expected = expected(folder);
    let there = live(caller).await;
    for (name, selected) in &expected {
        assert_eq!(there[name].0, *selected, "{}: {name}", folder.display());
    }
    Ok(expected.len())
}

grounds! {
    /// Every user story, from the objects its reader would apply to the decisions its workloads would follow.
    turn async fn every_story_comes_out_as_it_is_planned(turn: &mut Turn<'_>) {
        if !can_be_told(turn) {
            return;
        }
        let stories = stories();
        assert!(stories.len() > 20, "{stories:?}");
        let mut expected = 0;
        let mut refused = Vec::new();
        for folder in &stories {
            match tell(turn, folder).await {
                Ok(count) => expected += count,
                Err(why) if turn.fleet.ground.is_ours() => panic!("{}: {why}", folder.display()),
                Err(why) => {
                    assert!(why.contains("unknown field"), "{}: {why}", folder.display());
                    refused.push(folder.file_name().unwrap().to_str().unwrap());
                }
            }
        }
        let too_new: &[&str] = if turn.fleet.ground.is_ours() { &[] } else { &TOO_NEW };
        assert_eq!(refused, too_new, "stories that the definitions have no room for");
        assert!(expected > 20, "only {expected} placements have an expectation that holds today");
        wipe(&turn.fleet.caller).await;
    }
}
