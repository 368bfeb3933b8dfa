//! Custom resource definitions: how their kinds come to be served, change, and end.

use berth_bed::{Bed, scenario};
use serde_json::{Value, json};

use crate::{
    caller::{Caller, condition, grouped},
    waiting::eventually,
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of ships, in a group that is named after the scenario's namespace.
struct Ships<'a> {
    caller: &'a Caller,
    namespace: &'a str,
    definition: Value,
}

impl<'a> Ships<'a> {
    fn new(caller: &'a Caller, namespace: &'a str) -> Self {
        let group = format!("{namespace}.berth.dev");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("ships.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList", "shortNames": ["sh"]},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "properties": {
                            "berth": {"type": "string"},
                            "color": {"type": "string"},
                            "crew": {"type": "integer"},
                        }},
                        "status": {"type": "object", "properties": {
                            "phase": {"type": "string"}, "crew": {"type": "integer"}, "selector": {"type": "string"},
                        }},
                    }}},
                }],
            },
        });
        Self { caller, namespace, definition }
    }

    fn version(&mut self) -> &mut Value {
        &mut self.definition["spec"]["versions"][0]
    }

    fn spec_schema(&mut self) -> &mut Value {
        &mut self.version()["schema"]["openAPIV3Schema"]["properties"]["spec"]
    }

    /// Creates or changes the definition and waits until it is established.
    async fn establish(&self) -> Value {
        let target = format!("{}?fieldManager=scenario", self.path());
        self.caller.apply_to(&target, &self.definition).await.ok();
        let established = |object: &Value| condition(object, "Established")["status"] == "True";
        let object = self.caller.until(&self.path(), "is established", established).await;
        eventually("ships being served", async || {
            (self.caller.get(&self.ships("v1", "")).await.code == 200).then_some(())
        })
        .await;
        object
    }

    fn path(&self) -> String {
        format!("{DEFINITIONS}/{}", self.definition["metadata"]["name"].as_str().unwrap())
    }

    fn group(&self) -> String {
        format!("{}.berth.dev", self.namespace)
    }

    fn ships(&self, version: &str, rest: &str) -> String {
        grouped(&format!("{}/{version}", self.group()), self.namespace, &format!("ships{rest}"))
    }

    fn ship(&self, version: &str, name: &str, spec: &Value) -> Value {
        let version = format!("{}/{version}", self.group());
        json!({"apiVersion": version, "kind": "Ship", "metadata": {"name": name}, "spec": spec})
    }

    async fn launch(&self, name: &str, spec: &Value) -> Value {
        self.caller.post(&self.ships("v1", ""), &self.ship("v1", name, spec)).await.ok()
    }

    /// Definitions are not in the scenario's namespace and would outlive it.
    async fn end(&self) {
        self.caller.delete(&self.path()).await.ok();
        self.caller.until_gone(&self.path()).await;
    }
}

scenario! {
    managed async fn a_definition_is_established_and_then_served(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("established").await);
        let ships = Ships::new(&caller, &namespace);
        assert_eq!(caller.get(&ships.ships("v1", "")).await.code, 404);
        let object = ships.establish().await;
        assert_eq!(condition(&object, "NamesAccepted")["status"], "True");
        assert_eq!(condition(&object, "NamesAccepted")["reason"], "NoConflicts");
        assert_eq!(condition(&object, "Established")["reason"], "InitialNamesAccepted");
        assert_eq!(object["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(object["status"]["acceptedNames"], ships.definition["spec"]["names"]);

        let ship = ships.launch("sloop", &json!({"crew": 3, "sails": 2})).await;
        assert_eq!(ship["spec"], json!({"crew": 3}), "what the schema does not know is pruned");
        assert_eq!(ship["metadata"]["generation"], 1);
        let served = caller.get(&format!("/apis/{}/v1", ships.group())).await.ok();
        assert_eq!(served["resources"][0]["shortNames"], json!(["sh"]));
        ships.end().await;
        eventually("the group being gone", async || {
            (caller.get(&format!("/apis/{}", ships.group())).await.code == 404).then_some(())
        })
        .await;
    }

    managed async fn a_definition_that_is_deleted_waits_for_its_objects(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("ending").await);
        let ships = Ships::new(&caller, &namespace);
        ships.establish().await;
        let mut held = ships.ship("v1", "held", &json!({}));
        held["metadata"]["finalizers"] = json!(["berth.dev/hold"]);
        caller.post(&ships.ships("v1", ""), &held).await.ok();
        ships.launch("free", &json!({})).await;

        let answer = caller.delete(&ships.path()).await.ok();
        assert_eq!(answer["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
        caller.until_gone(&ships.ships("v1", "/free")).await;
        let held = ships.ships("v1", "/held");
        caller
            .until(&held, "is being deleted", |ship| ship["metadata"]["deletionTimestamp"].is_string())
            .await;
        let ending = |object: &Value| condition(object, "Terminating")["status"] == "True";
        caller.until(&ships.path(), "is terminating", ending).await;
        eventually("a refusal of new ships", async || {
            let late = caller.post(&ships.ships("v1", ""), &ships.ship("v1", "late", &json!({}))).await;
            (late.code == 403).then_some(())
        })
        .await;

        caller.merge(&held, &json!({"metadata": {"finalizers": null}})).await.ok();
        caller.until_gone(&ships.path()).await;
        caller.until_gone(&ships.ships("v1", "")).await;
    }

    managed async fn several_versions_show_one_object(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("versions").await);
        let mut ships = Ships::new(&caller, &namespace);
        let mut second = ships.version().clone();
        second["name"] = json!("v2");
        second["storage"] = json!(false);
        second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["flag"] =
            json!({"type": "string", "default": "none"});
        ships.definition["spec"]["versions"].as_array_mut().unwrap().push(second);
        let object = ships.establish().await;
        assert_eq!(object["spec"]["conversion"], json!({"strategy": "None"}));

        let ship = ships.launch("sloop", &json!({"crew": 3})).await;
        let second = eventually("v2 being served", async || {
            let answer = caller.get(&ships.ships("v2", "/sloop")).await;
            (answer.code == 200).then_some(answer.body)
        })
        .await;
        assert_eq!(second["apiVersion"], format!("{}/v2", ships.group()));
        assert_eq!(second["metadata"]["uid"], ship["metadata"]["uid"]);
        assert_eq!(second["spec"]["crew"], 3);

        // Written through the one, seen through the other.
        caller.merge(&ships.ships("v2", "/sloop"), &json!({"spec": {"crew": 4}})).await.ok();
        let first = caller.get(&ships.ships("v1", "/sloop")).await.ok();
        assert_eq!(first["spec"], json!({"crew": 4}), "v1 does not know flags");
        let listed = caller.get(&ships.ships("v2", "")).await.ok();
        assert_eq!(listed["items"][0]["apiVersion"], format!("{}/v2", ships.group()));

        // Another storage version is remembered beside the first.
        ships.definition["spec"]["versions"][0]["storage"] = json!(false);
        ships.definition["spec"]["versions"][1]["storage"] = json!(true);
        ships.establish().await;
        caller
            .until(&ships.path(), "remembers both", |object| {
                object["status"]["storedVersions"] == json!(["v1", "v2"])
            })
            .await;
        ships.end().await;
    }

    managed async fn defaults_that_are_added_later_show_in_older_objects(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("defaults").await);
        let mut ships = Ships::new(&caller, &namespace);
        ships.establish().await;
        let before = ships.launch("sloop", &json!({"crew": 3})).await;
        ships.spec_schema()["properties"]["color"]["default"] = json!("white");
        ships.establish().await;
        let path = ships.ships("v1", "/sloop");
        let after = caller.until(&path, "is white", |ship| ship["spec"]["color"] == "white").await;
        assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
        let listed = caller.get(&ships.ships("v1", "")).await.ok();
        assert_eq!(listed["items"][0]["spec"]["color"], "white");
        ships.end().await;
    }

    managed async fn a_field_that_leaves_the_schema_leaves_what_is_read(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("pruned").await);
        let mut ships = Ships::new(&caller, &namespace);
        ships.establish().await;
        ships.launch("sloop", &json!({"crew": 3, "color": "red"})).await;
        ships.spec_schema()["properties"].as_object_mut().unwrap().remove("color");
        ships.establish().await;
        let path = ships.ships("v1", "/sloop");
        caller.until(&path, "has no color", |ship| ship["spec"] == json!({"crew": 3})).await;
        ships.end().await;
    }

    managed async fn selectable_fields_select(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("selected").await);
        let mut ships = Ships::new(&caller, &namespace);
        ships.version()["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
        ships.establish().await;
        ships.launch("one", &json!({"color": "red"})).await;
        let two = ships.launch("two", &json!({"color": "blue"})).await;
        let listed = caller.get(&ships.ships("v1", "?fieldSelector=spec.color%3Dred")).await.ok();
        let names: Vec<_> =
            listed["items"].as_array().unwrap().iter().map(|ship| &ship["metadata"]["name"]).collect();
        assert_eq!(names, ["one"]);
        let refusal = caller.get(&ships.ships("v1", "?fieldSelector=spec.crew%3D3")).await.refused(400);
        assert!(refusal.message().contains("field label not supported: spec.crew"), "{refusal:?}");

        let version = two["metadata"]["resourceVersion"].as_str().unwrap();
        let query = format!("?fieldSelector=spec.color%3Dred&resourceVersion={version}");
        let mut watch = caller.watch(&ships.ships("v1", &query)).await;
        caller.merge(&ships.ships("v1", "/two"), &json!({"spec": {"color": "red"}})).await.ok();
        assert_eq!(watch.step().await, ("ADDED".to_owned(), "two".to_owned()));
        caller.merge(&ships.ships("v1", "/one"), &json!({"spec": {"color": "blue"}})).await.ok();
        assert_eq!(watch.step().await, ("DELETED".to_owned(), "one".to_owned()));
        ships.end().await;
    }

    managed async fn printer_columns_make_the_table(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("columns").await);
        let mut ships = Ships::new(&caller, &namespace);
        ships.version()["additionalPrinterColumns"] = json!([
            {"name": "Crew", "type": "integer", "jsonPath": ".spec.crew"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "of the hull"},
        ]);
        ships.establish().await;
        ships.launch("sloop", &json!({"crew": 3})).await;
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let table = eventually("columns of the definition", async || {
            let table = caller.get_as(&ships.ships("v1", ""), accept).await.ok();
            (table["columnDefinitions"].as_array()?.len() == 3).then_some(table)
        })
        .await;
        assert_eq!(table["kind"], "Table");
        let columns: Vec<_> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| (column["name"].as_str().unwrap(), column["priority"].as_i64().unwrap()))
            .collect();
        assert_eq!(columns, [("Name", 0), ("Crew", 0), ("Color", 1)]);
        assert_eq!(table["columnDefinitions"][2]["description"], "of the hull");
        assert_eq!(table["rows"][0]["cells"], json!(["sloop", 3, null]));
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        ships.end().await;
    }

    managed async fn rules_hold_on_creation_and_between_old_and_new(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("rules").await);
        let mut ships = Ships::new(&caller, &namespace);
        ships.spec_schema()["x-kubernetes-validations"] = json!([
            {"rule": "!has(self.crew) || self.crew > 0", "message": "a ship needs a crew"},
            {
                "rule": "!has(oldSelf.berth) || (has(self.berth) && self.berth == oldSelf.berth)",
                "messageExpression": "'the berth is ' + oldSelf.berth", "fieldPath": ".berth", "reason": "FieldValueForbidden",
            },
        ]);
        ships.establish().await;
        let crewless = ships.ship("v1", "crewless", &json!({"crew": 0}));
        let refusal = eventually("the rules being enforced", async || {
            let answer = caller.post(&ships.ships("v1", "?dryRun=All"), &crewless).await;
            (answer.code != 201).then_some(answer)
        })
        .await
        .refused(422);
        assert_eq!(refusal.causes(), ["FieldValueInvalid"]);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], "spec");
        assert!(refusal.message().ends_with("a ship needs a crew"), "{refusal:?}");

        ships.launch("sloop", &json!({"berth": "a1"})).await;
        let path = ships.ships("v1", "/sloop");
        let refusal = caller.merge(&path, &json!({"spec": {"berth": "b2"}})).await.refused(422);
        assert_eq!(refusal.causes(), ["FieldValueForbidden"]);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], "spec.berth");
        assert!(refusal.message().ends_with("the berth is a1"), "{refusal:?}");
        caller.merge(&path, &json!({"spec": {"crew": 2}})).await.ok();
        ships.end().await;
    }

    managed async fn status_and_scale_are_apart(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("scaled").await);
        let mut ships = Ships::new(&caller, &namespace);
        ships.version()["subresources"] = json!({
            "status": {},
            "scale": {"specReplicasPath": ".spec.crew", "statusReplicasPath": ".status.crew", "labelSelectorPath": ".status.selector"},
        });
        ships.establish().await;
        let mut ship = ships.ship("v1", "sloop", &json!({"crew": 3}));
        ship["status"] = json!({"phase": "Sailing"});
        let path = ships.ships("v1", "/sloop");
        eventually("status being apart", async || {
            let made = caller.post(&ships.ships("v1", "?dryRun=All"), &ship).await.ok();
            made.get("status").is_none().then_some(())
        })
        .await;
        caller.post(&ships.ships("v1", ""), &ship).await.ok();

        let patch =
            json!({"spec": {"crew": 9}, "status": {"phase": "Moored", "crew": 2, "selector": "ship=sloop"}});
        let after = caller.merge(&format!("{path}/status"), &patch).await.ok();
        assert_eq!((&after["spec"]["crew"], &after["status"]["phase"]), (&json!(3), &json!("Moored")));
        assert_eq!(after["metadata"]["generation"], 1, "a status is not a change of what is wanted");
        let after =
            caller.merge(&path, &json!({"spec": {"crew": 4}, "status": {"phase": "Lost"}})).await.ok();
        assert_eq!(
            (&after["status"]["phase"], &after["metadata"]["generation"]),
            (&json!("Moored"), &json!(2))
        );

        let mut scale = caller.get(&format!("{path}/scale")).await.ok();
        assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
        assert_eq!(
            (&scale["spec"], &scale["status"]),
            (&json!({"replicas": 4}), &json!({"replicas": 2, "selector": "ship=sloop"}))
        );
        scale["spec"]["replicas"] = json!(6);
        assert_eq!(caller.put(&format!("{path}/scale"), &scale).await.ok()["spec"]["replicas"], 6);
        assert_eq!(caller.get(&path).await.ok()["spec"]["crew"], 6);
        caller.put(&format!("{path}/scale"), &scale).await.refused(409);
        ships.end().await;
    }

    managed async fn names_that_are_taken_are_not_accepted_until_they_are_free(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("names").await);
        let ships = Ships::new(&caller, &namespace);
        ships.establish().await;
        let mut rival = ships.definition.clone();
        rival["metadata"]["name"] = json!(format!("boats.{}", ships.group()));
        rival["spec"]["names"] = json!({"plural": "boats", "singular": "boat", "kind": "Ship", "listKind": "BoatList", "shortNames": ["sh"]});
        caller.post(DEFINITIONS, &rival).await.ok();
        let path = format!("{DEFINITIONS}/boats.{}", ships.group());
        let refused = |object: &Value| condition(object, "NamesAccepted")["status"] == "False";
        let object = caller.until(&path, "is not accepted", refused).await;
        // Of two reasons the last that was looked at is told.
        assert_eq!(condition(&object, "NamesAccepted")["reason"], "KindConflict");
        assert_eq!(condition(&object, "NamesAccepted")["message"], "\"Ship\" is already in use");
        assert_eq!(condition(&object, "Established")["status"], "False");
        assert_eq!(condition(&object, "Established")["reason"], "NotAccepted");
        assert_eq!(
            caller.get(&grouped(&format!("{}/v1", ships.group()), &namespace, "boats")).await.code,
            404
        );

        ships.end().await;
        caller
            .until(&path, "is established", |object| condition(object, "Established")["status"] == "True")
            .await;
        caller.delete(&path).await.ok();
        caller.until_gone(&path).await;
    }

    managed async fn custom_objects_go_with_their_namespace(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("along").await);
        let ships = Ships::new(&caller, &namespace);
        ships.establish().await;
        let mut held = ships.ship("v1", "held", &json!({}));
        held["metadata"]["finalizers"] = json!(["berth.dev/hold"]);
        caller.post(&ships.ships("v1", ""), &held).await.ok();
        ships.launch("free", &json!({})).await;
        let path = format!("/api/v1/namespaces/{namespace}");
        caller.delete(&path).await.ok();
        caller.until_gone(&ships.ships("v1", "/free")).await;
        let told = |object: &Value| condition(object, "NamespaceContentRemaining")["status"] == "True";
        let object = caller.until(&path, "tells what is left", told).await;
        let message =
            format!("Some resources are remaining: ships.{} has 1 resource instances", ships.group());
        assert_eq!(condition(&object, "NamespaceContentRemaining")["message"], message);
        caller.merge(&ships.ships("v1", "/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
        caller.until_gone(&path).await;
        ships.end().await;
    }

    managed async fn a_version_that_is_no_longer_served_is_gone_while_its_objects_stay(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("retired").await);
        let mut ships = Ships::new(&caller, &namespace);
        let mut second = ships.version().clone();
        second["name"] = json!("v2");
        second["storage"] = json!(false);
        second["deprecated"] = json!(true);
        ships.definition["spec"]["versions"].as_array_mut().unwrap().push(second);
        ships.establish().await;
        ships.launch("sloop", &json!({"crew": 3})).await;
        let group = ships.group();
        let warned = eventually("v2 being served", async || {
            let answer = caller.get(&ships.ships("v2", "/sloop")).await;
            (answer.code == 200).then_some(answer.warnings)
        })
        .await;
        assert_eq!(warned, [format!("299 - \"{group}/v2 Ship is deprecated\"")]);
        ships.definition["spec"]["versions"][1]["served"] = json!(false);
        ships.establish().await;
        caller.until_gone(&ships.ships("v2", "/sloop")).await;
        assert_eq!(caller.get(&ships.ships("v1", "/sloop")).await.ok()["spec"]["crew"], 3);
        ships.end().await;
    }
}
