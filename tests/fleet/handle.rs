//! A scenario's part of the fleet: a namespace and names of its own, the objects it makes, and what it waits for.

use berth_bed::Bed;
pub(crate) use berth_tests::waiting::PATIENCE;
use berth_tests::{
    caller::{Answer, Caller, condition, core, documents, text},
    waiting::until,
};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, whole},
    ground::Ground,
    sentinel::Sentinel,
    slices::{LABEL, Slices, clusters, number},
};

/// The group of all kinds here.
pub(crate) const GROUP: &str = "/apis/cluster.open-cluster-management.io";

/// A scenario's handle on the fleet.
#[derive(Clone)]
pub(crate) struct Fleet {
    pub(crate) caller: Caller,
    pub(crate) ground: Ground,
    /// Also what every name of a thing in no namespace begins with.
    pub(crate) namespace: String,
}

impl Fleet {
    pub(crate) async fn new(bed: &Bed, ground: Ground) -> Self {
        let namespace = bed.namespace("fleet").await;
        Self { caller: Caller::admin(bed), ground, namespace }
    }

    /// The same with connections of its own.
    pub(crate) fn again(&self, bed: &Bed) -> Self {
        Self { caller: Caller::admin(bed), ..self.clone() }
    }

    /// The whole name of something that is in no namespace.
    pub(crate) fn name(&self, short: &str) -> String {
        format!("{}-{short}", self.namespace)
    }

    /// Where placements, decisions and bindings of this scenario are.
    pub(crate) fn path(&self, version: &str, rest: &str) -> String {
        format!("{GROUP}/{version}/namespaces/{}/{rest}", self.namespace)
    }

    pub(crate) fn placement_path(&self, name: &str) -> String {
        self.path("v1beta1", &format!("placements/{name}"))
    }

    pub(crate) fn decision_path(&self, name: &str, number: usize) -> String {
        self.path("v1beta1", &format!("placementdecisions/{name}-decision-{number}"))
    }

    pub(crate) fn binding_path(&self, set: &str) -> String {
        self.path("v1beta2", &format!("managedclustersetbindings/{}", self.name(set)))
    }

    pub(crate) fn cluster_path(&self, name: &str) -> String {
        format!("{GROUP}/v1/managedclusters/{}", self.name(name))
    }

    pub(crate) fn set_path(&self, name: &str) -> String {
        format!("{GROUP}/v1beta2/managedclustersets/{}", self.name(name))
    }

    // Sets and bindings.

    /// Makes a set that clusters are put into.
    pub(crate) async fn set(&self, name: &str) {
        self.set_of(name, &json!({"selectorType": "ExclusiveClusterSetLabel"})).await;
    }

    /// Makes a set that finds its clusters by a label.
    pub(crate) async fn set_by_label(&self, name: &str, key: &str, value: &str) {
        let selector =
            json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {key: value}}});
        self.set_of(name, &selector).await;
    }

    pub(crate) async fn set_of(&self, name: &str, selector: &Value) {
        let set = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
            "metadata": {"name": self.name(name)}, "spec": {"clusterSelector": selector},
        });
        self.caller.post(&format!("{GROUP}/v1beta2/managedclustersets"), &set).await.ok();
    }

    /// Binds a set to the namespace.
    pub(crate) async fn bind(&self, set: &str) {
        let binding = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
            "metadata": {"name": self.name(set)}, "spec": {"clusterSet": self.name(set)},
        });
        self.caller.post(&self.path("v1beta2", "managedclustersetbindings"), &binding).await.ok();
    }

    /// Makes a set and binds it.
    pub(crate) async fn bound_set(&self, name: &str) {
        self.set(name).await;
        self.bind(name).await;
    }

    // Clusters.

    /// Lets a cluster join.
    pub(crate) async fn add(&self, cluster: Cluster) {
        let mut labels = cluster.labels;
        labels.insert("fleet".into(), json!(self.namespace));
        if let Some(set) = &cluster.set {
            labels.insert(format!("{LABEL}/clusterset"), json!(self.name(set)));
        }
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": self.name(&cluster.name), "labels": labels}, "spec": cluster.spec,
        });
        self.caller.post(&format!("{GROUP}/v1/managedclusters"), &object).await.ok();
        if !cluster.status.is_empty() {
            self.report(&cluster.name, &json!(cluster.status)).await;
        }
    }

    /// Lets as many clusters join a set, named after it: `blue1` and so on.
    pub(crate) async fn add_many(&self, set: &str, count: usize) {
        let add = |number: usize| self.add(Cluster::named(&format!("{set}{number}")).of(set));
        futures::future::join_all((1..=count).map(add)).await;
    }

    /// What the agent of a cluster says.
    pub(crate) async fn report(&self, cluster: &str, status: &Value) {
        let path = format!("{}/status", self.cluster_path(cluster));
        self.caller.merge(&path, &json!({"status": status})).await.ok();
    }

    pub(crate) async fn change(&self, cluster: &str, patch: &Value) {
        self.caller.merge(&self.cluster_path(cluster), patch).await.ok();
    }

    /// Replaces the taints of a cluster.
    pub(crate) async fn taint(&self, cluster: &str, taints: &[Value]) {
        self.change(cluster, &json!({"spec": {"taints": taints}})).await;
    }

    pub(crate) async fn remove(&self, cluster: &str) {
        self.caller.delete(&self.cluster_path(cluster)).await.ok();
    }

    /// Makes the namespace of a cluster.
    pub(crate) async fn home(&self, cluster: &str) -> String {
        let name = self.name(cluster);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let made = self.caller.post("/api/v1/namespaces", &namespace).await;
        assert!(matches!(made.code, 201 | 409), "{made:?}");
        name
    }

    /// Says how good a cluster is, as the AddOnPlacementScore `demo` with the one score `demo`.
    pub(crate) async fn score(&self, cluster: &str, value: i32, valid_until: Option<jiff::Timestamp>) {
        let home = self.home(cluster).await;
        let path = format!("{GROUP}/v1alpha1/namespaces/{home}/addonplacementscores");
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore",
            "metadata": {"name": "demo"},
        });
        let made = self.caller.post(&path, &object).await;
        assert!(matches!(made.code, 201 | 409), "{made:?}");
        let status =
            json!({"scores": [{"name": "demo", "value": value}], "validUntil": valid_until.map(whole)});
        self.caller.merge(&format!("{path}/demo/status"), &json!({"status": status})).await.ok();
    }

    /// Returns when the controllers know all clusters and scores of before. Kinds are watched apart: until then a new placement may
    /// be decided without them, and once more with them.
    pub(crate) async fn clusters_and_scores_are_known(&self) {
        self.bound_set("known").await;
        self.add_many("known", 2).await;
        self.score("known2", 90, None).await;
        let spec = format!(
            "
            clusterSets: [{}]
            numberOfClusters: 1
            prioritizerPolicy:
              mode: Exact
              configurations: [{{scoreCoordinate: {{type: AddOn, addOn: {{resourceName: demo, scoreName: demo}}}}}}]
            ",
            self.name("known")
        );
        self.place("known", &spec).await;
        self.selects("known", &["known2"]).await;
    }

    // Placements.

    /// Makes a placement with that spec in YAML.
    pub(crate) async fn place(&self, name: &str, spec: &str) {
        let spec = documents(spec).pop().unwrap_or_else(|| json!({}));
        self.try_place(name, &spec).await.ok();
    }

    pub(crate) async fn try_place(&self, name: &str, spec: &Value) -> Answer {
        let placement = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": name}, "spec": spec,
        });
        self.caller.post(&self.path("v1beta1", "placements"), &placement).await
    }

    /// Changes the spec of a placement by a merge patch in YAML.
    pub(crate) async fn edit(&self, name: &str, spec: &str) {
        let spec = documents(spec).pop().unwrap();
        self.caller.merge(&self.placement_path(name), &json!({"spec": spec})).await.ok();
    }

    pub(crate) async fn placement(&self, name: &str) -> Value {
        self.read(&self.placement_path(name)).await
    }

    /// Reads, also from a kube-apiserver that is about to start and asks for another attempt.
    async fn read(&self, path: &str) -> Value {
        until(path, PATIENCE, async || {
            let answer = self.caller.get(path).await;
            if answer.code == 429 { Err(answer.body.to_string()) } else { Ok(answer.ok()) }
        })
        .await
    }

    /// The slices of a placement, found as consumers find them.
    pub(crate) async fn slices(&self, placement: &str) -> Slices {
        let query = format!("placementdecisions?labelSelector={LABEL}%2Fplacement%3D{placement}");
        Slices::of(&self.read(&self.path("v1beta1", &query)).await)
    }

    /// The short names of clusters.
    fn short<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        names.iter().map(|name| name.strip_prefix(&format!("{}-", self.namespace)).unwrap_or(name)).collect()
    }

    /// Waits until a placement has exactly these clusters, in the order of names, and says so in its status.
    pub(crate) async fn selects(&self, placement: &str, wanted: &[&str]) -> Slices {
        let what = format!("placement {placement} selecting {wanted:?}");
        until(&what, PATIENCE, async || {
            let slices = self.slices(placement).await;
            let mut there = self.short(&slices.clusters());
            there.sort_unstable();
            if there != wanted {
                return Err(format!("{there:?}"));
            }
            self.is_told(placement, &slices).await?;
            Ok(slices)
        })
        .await
    }

    /// Waits until a placement has as many decisions in as many slices, and says so in its status.
    pub(crate) async fn holds(&self, placement: &str, decisions: usize, count: usize) -> Slices {
        let what = format!("placement {placement} with {decisions} decisions in {count} slices");
        until(&what, PATIENCE, async || {
            let slices = self.slices(placement).await;
            let there = (slices.clusters().len(), slices.0.len());
            if there != (decisions, count) {
                return Err(format!("{there:?}"));
            }
            self.is_told(placement, &slices).await?;
            Ok(slices)
        })
        .await
    }

    /// Whether the status of a placement tells what its slices are, and these are as consumers rely on.
    async fn is_told(&self, name: &str, slices: &Slices) -> Result<(), String> {
        let placement = self.placement(name).await;
        let status = &placement["status"];
        let selected = status["numberOfSelectedClusters"].as_u64().unwrap_or_default();
        if selected != slices.clusters().len() as u64 {
            return Err(format!("numberOfSelectedClusters is {selected}"));
        }
        let generation = &placement["metadata"]["generation"];
        for kind in ["PlacementSatisfied", "PlacementMisconfigured"] {
            let said = condition(&placement, kind);
            if said["observedGeneration"] != *generation {
                return Err(format!("generation {generation}, and {kind} is {said}"));
            }
        }
        let groups = status["decisionGroups"].as_array().into_iter().flatten();
        let told: Vec<&str> = groups
            .flat_map(|group| group["decisions"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .collect();
        let names: Vec<&str> = slices.0.iter().map(|slice| text(slice, "/metadata/name")).collect();
        if told != names {
            return Err(format!("decisionGroups tell of {told:?}, and there are {names:?}"));
        }
        for (place, slice) in slices.0.iter().enumerate() {
            assert_eq!(number(slice), place + 1, "slices are numbered from 1 without gaps: {names:?}");
            assert!(clusters(slice).len() <= 100, "a slice of more than 100 clusters: {slice}");
            let owner = &slice["metadata"]["ownerReferences"][0];
            let expected = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": name,
                "uid": placement["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
            });
            assert_eq!(*owner, expected, "{slice}");
            let labels = &slice["metadata"]["labels"];
            assert_eq!(labels[format!("{LABEL}/placement")], *name);
            let index = labels[format!("{LABEL}/decision-group-index")].as_str().unwrap();
            let group = &status["decisionGroups"][index.parse::<usize>().unwrap()];
            // Empty names are left out of an object, and are there as a label.
            let group_name = group["decisionGroupName"].as_str().unwrap_or_default();
            assert_eq!(labels[format!("{LABEL}/decision-group-name")], *group_name, "{slice}");
            let listed = group["decisions"].as_array().unwrap();
            assert!(listed.contains(&slice["metadata"]["name"]), "{slice} is not in its group {group}");
        }
        Ok(())
    }

    /// Waits until a placement says this of itself, about its present spec.
    pub(crate) async fn says(&self, placement: &str, kind: &str, status: &str, reason: &str) -> Value {
        let what = format!("placement {placement} saying {kind}={status} {reason}");
        until(&what, PATIENCE, async || {
            let object = self.placement(placement).await;
            let said = condition(&object, kind).clone();
            let is_current = said["observedGeneration"] == object["metadata"]["generation"];
            if is_current && said["status"] == status && said["reason"] == reason {
                Ok(said)
            } else {
                Err(said.to_string())
            }
        })
        .await
    }

    /// Waits until a placement is satisfied.
    pub(crate) async fn is_satisfied(&self, placement: &str) {
        let said = self.says(placement, "PlacementSatisfied", "True", "AllDecisionsScheduled").await;
        assert_eq!(said["message"], "All cluster decisions scheduled");
    }

    /// Waits until a placement says that so many clusters are missing.
    pub(crate) async fn misses(&self, placement: &str, missing: usize) {
        let said = self.says(placement, "PlacementSatisfied", "False", "NotAllDecisionsScheduled").await;
        assert_eq!(said["message"], format!("{missing} cluster decisions unscheduled"));
    }

    /// Waits until the groups of a placement have these names and numbers of clusters.
    pub(crate) async fn groups(&self, placement: &str, wanted: &[(&str, u64)]) {
        until(&format!("groups {wanted:?} of placement {placement}"), PATIENCE, async || {
            let object = self.placement(placement).await;
            let groups = object["status"]["decisionGroups"].as_array().into_iter().flatten();
            let there: Vec<(&str, u64)> = groups
                .map(|group| {
                    let name = group["decisionGroupName"].as_str().unwrap_or_default();
                    (name, group["clusterCount"].as_u64().unwrap_or_default())
                })
                .collect();
            if there == wanted { Ok(()) } else { Err(format!("{there:?}")) }
        })
        .await;
    }

    /// The events about a placement, as reason and note.
    pub(crate) async fn events(&self, placement: &str) -> Vec<Value> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.namespace);
        let list = self.read(&path).await;
        let events = list["items"].as_array().cloned().unwrap_or_default();
        events.into_iter().filter(|event| event["regarding"]["name"] == placement).collect()
    }

    /// Waits for an event about a placement.
    pub(crate) async fn event(&self, placement: &str, reason: &str, note: &str) -> Value {
        until(&format!("event {reason} {note:?} of placement {placement}"), PATIENCE, async || {
            let events = self.events(placement).await;
            let found = events.iter().find(|event| {
                event["reason"] == reason && event["note"].as_str().is_some_and(|text| text.contains(note))
            });
            found.cloned().ok_or_else(|| {
                let told = events.iter().map(|event| format!("{}: {}", event["reason"], event["note"]));
                format!("{:?}", told.collect::<Vec<_>>())
            })
        })
        .await
    }

    /// Waits until an object is as it should be.
    pub(crate) async fn until(&self, path: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{path}: {what}"), PATIENCE, async || {
            let object = self.caller.get(path).await.body;
            if good(&object) { Ok(object) } else { Err(object.to_string()) }
        })
        .await
    }

    /// A sign that the controllers have heard all that was said before.
    pub(crate) async fn sentinel(&self) -> Sentinel {
        Sentinel::post(self).await
    }

    /// Makes a service account of the namespace.
    pub(crate) async fn account(&self, name: &str) {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        self.caller.post(&core(&self.namespace, "serviceaccounts"), &account).await.ok();
    }

    /// Makes a service account of the namespace and gives its token.
    pub(crate) async fn token(&self, account: &str) -> String {
        self.account(account).await;
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let path = core(&self.namespace, &format!("serviceaccounts/{account}/token"));
        text(&self.caller.post(&path, &request).await.ok(), "/status/token").to_owned()
    }
}
