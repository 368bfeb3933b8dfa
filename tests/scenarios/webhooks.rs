//! Admission webhooks: when they are asked, what they are told, and what becomes of their answers.

use berth_bed::{Bed, scenario};
use serde_json::{Value, json};

use crate::{
    caller::{Caller, core, map, text},
    hook::{Hook, Verdict, patch},
    waiting::eventually,
};

/// A configuration with one webhook for the ConfigMaps of one namespace.
struct Configured<'a> {
    caller: &'a Caller,
    namespace: &'a str,
    collection: &'static str,
}

impl<'a> Configured<'a> {
    async fn validating(caller: &'a Caller, namespace: &'a str, hook: &Hook, more: &Value) -> Self {
        Self::new(caller, namespace, "Validating", hook, more).await
    }

    async fn mutating(caller: &'a Caller, namespace: &'a str, hook: &Hook, more: &Value) -> Self {
        Self::new(caller, namespace, "Mutating", hook, more).await
    }

    async fn new(caller: &'a Caller, namespace: &'a str, kind: &str, hook: &Hook, more: &Value) -> Self {
        let collection = if kind == "Mutating" {
            "mutatingwebhookconfigurations"
        } else {
            "validatingwebhookconfigurations"
        };
        let this = Self { caller, namespace, collection };
        caller.post(&this.path(""), &configuration(namespace, kind, hook, more)).await.ok();
        this
    }

    fn path(&self, rest: &str) -> String {
        format!("/apis/admissionregistration.k8s.io/v1/{}{rest}", self.collection)
    }

    /// Not in the namespace, so it would outlive the scenario.
    async fn end(self) {
        self.caller.delete(&self.path(&format!("/{}", self.namespace))).await.ok();
    }
}

fn configuration(namespace: &str, kind: &str, hook: &Hook, more: &Value) -> Value {
    let mut webhook = json!({
        "name": "hook.berth.dev",
        "clientConfig": hook.client_config(),
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    });
    webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": namespace}, "webhooks": [webhook],
    })
}

/// Waits until the hook is asked, by dry runs: Kubernetes reads configurations from a cache of its own.
async fn until_asked(caller: &Caller, namespace: &str, hook: &Hook, probe: &Value) {
    eventually("the hook being asked", async || {
        caller.post(&core(namespace, "configmaps?dryRun=All"), probe).await;
        (!hook.asked().is_empty()).then_some(())
    })
    .await;
}

/// Waits until a creation gets that code, by dry runs.
async fn until_answered(caller: &Caller, namespace: &str, code: u16) -> Value {
    eventually(&format!("a creation being answered with {code}"), async || {
        let answer = caller.post(&core(namespace, "configmaps?dryRun=All"), &map("probe", "")).await;
        (answer.code == code).then_some(answer.body)
    })
    .await
}

fn allow(_: &Value) -> Verdict {
    Verdict::Say(json!({"allowed": true}))
}

fn deny(_: &Value) -> Verdict {
    Verdict::Say(json!({"allowed": false, "status": {"code": 403, "message": "no"}}))
}

scenario! {
    managed async fn a_hook_is_told_what_is_asked_of_the_server(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("told").await);
        let hook = Hook::new(allow).await;
        let configured = Configured::validating(&caller, &namespace, &hook, &json!({})).await;
        until_asked(&caller, &namespace, &hook, &map("probe", "")).await;

        caller.post(&core(&namespace, "configmaps?fieldManager=me"), &map("a", "one")).await.ok();
        let review = hook.asked().pop().unwrap();
        assert_eq!(
            (&review["apiVersion"], &review["kind"]),
            (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
        );
        let request = &review["request"];
        assert_eq!(request["operation"], "CREATE");
        assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
        assert_eq!(request["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
        assert_eq!(
            (&request["requestKind"], &request["requestResource"]),
            (&request["kind"], &request["resource"])
        );
        assert_eq!((text(request, "/name"), text(request, "/namespace")), ("a", namespace.as_str()));
        assert_eq!(
            (&request["object"]["data"]["value"], &request["oldObject"]),
            (&json!("one"), &Value::Null)
        );
        assert!(
            request["userInfo"]["groups"].as_array().unwrap().contains(&json!("system:masters")),
            "{request}"
        );
        assert_eq!(request["dryRun"], false);
        assert_eq!(request["options"]["kind"], "CreateOptions");
        assert_eq!(request["options"]["fieldManager"], "me");

        caller.merge(&core(&namespace, "configmaps/a"), &json!({"data": {"value": "two"}})).await.ok();
        let request = hook.asked().pop().unwrap()["request"].clone();
        assert_eq!(request["operation"], "UPDATE");
        assert_eq!(
            (&request["oldObject"]["data"]["value"], &request["object"]["data"]["value"]),
            (&json!("one"), &json!("two"))
        );
        assert_eq!(request["options"]["kind"], "UpdateOptions");

        caller.delete(&core(&namespace, "configmaps/a")).await.ok();
        let request = hook.asked().pop().unwrap()["request"].clone();
        assert_eq!(request["operation"], "DELETE");
        assert_eq!(
            (&request["oldObject"]["data"]["value"], &request["object"]),
            (&json!("two"), &Value::Null)
        );
        assert_eq!(request["options"]["kind"], "DeleteOptions");
        configured.end().await;
    }

    managed async fn a_hook_that_denies_is_quoted(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("denied").await);
        let hook = Hook::new(|request| {
            Verdict::Say(match request["name"].as_str() {
                Some("silent") => json!({"allowed": false}),
                Some("coded") => json!({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": "too big"}}),
                _ => json!({"allowed": false, "status": {"code": 403, "message": "not today"}, "warnings": ["try tomorrow"]}),
            })
        })
        .await;
        let configured = Configured::validating(&caller, &namespace, &hook, &json!({})).await;
        until_answered(&caller, &namespace, 403).await;
        let answer = caller.post(&core(&namespace, "configmaps"), &map("a", "")).await;
        assert_eq!(answer.warnings, ["299 - \"try tomorrow\""]);
        let refusal = answer.refused(403);
        assert_eq!(refusal.message(), "admission webhook \"hook.berth.dev\" denied the request: not today");
        let refusal = caller.post(&core(&namespace, "configmaps"), &map("silent", "")).await.refused(400);
        assert_eq!(
            refusal.message(),
            "admission webhook \"hook.berth.dev\" denied the request without explanation"
        );
        let refusal = caller.post(&core(&namespace, "configmaps"), &map("coded", "")).await.refused(422);
        assert_eq!(refusal.reason(), "Invalid");
        assert_eq!(refusal.message(), "admission webhook \"hook.berth.dev\" denied the request: too big");
        caller.get(&core(&namespace, "configmaps/a")).await.refused(404);
        configured.end().await;
        until_answered(&caller, &namespace, 201).await;
    }

    managed async fn what_a_hook_patches_is_stored_and_shown_to_the_next(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("patched").await);
        let changer = Hook::new(|_| {
            let mut response = patch(&json!([
                {"op": "add", "path": "/data/added", "value": "by the hook"},
                {"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}},
            ]));
            response["warnings"] = json!(["changed", "twice, \"even\""]);
            Verdict::Say(response)
        })
        .await;
        let witness = Hook::new(allow).await;
        let creations = json!({"rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]});
        let first = Configured::mutating(&caller, &namespace, &changer, &creations).await;
        let second = Configured::validating(&caller, &namespace, &witness, &creations).await;
        until_asked(&caller, &namespace, &changer, &map("probe", "")).await;
        until_asked(&caller, &namespace, &witness, &map("probe", "")).await;

        let answer = caller.post(&core(&namespace, "configmaps"), &map("a", "")).await;
        assert_eq!(answer.warnings, ["299 - \"changed\"", "299 - \"twice, \\\"even\\\"\""]);
        let object = answer.ok();
        assert_eq!(object["data"], json!({"value": "", "added": "by the hook"}));
        assert_eq!(object["metadata"]["labels"], json!({"hooked": "yes"}));
        let stored = caller.get(&core(&namespace, "configmaps?labelSelector=hooked%3Dyes")).await.ok();
        assert_eq!(stored["items"].as_array().unwrap().len(), 1);
        let seen = witness.asked().pop().unwrap();
        assert_eq!(seen["request"]["object"]["data"]["added"], "by the hook");
        first.end().await;
        second.end().await;
    }

    managed async fn a_hook_that_is_down_fails_or_is_ignored_as_configured(bed: &Bed) {
        let caller = Caller::admin(bed);
        let (strict, lenient) = (bed.namespace("strict").await, bed.namespace("lenient").await);
        let (one, two) = (Hook::new(deny).await, Hook::new(deny).await);
        let failing = Configured::validating(&caller, &strict, &one, &json!({"failurePolicy": "Fail"})).await;
        let ignoring =
            Configured::validating(&caller, &lenient, &two, &json!({"failurePolicy": "Ignore"})).await;
        until_answered(&caller, &strict, 403).await;
        until_answered(&caller, &lenient, 403).await;
        let url = text(&one.client_config(), "/url").to_owned();
        drop((one, two));

        // A connection that was kept open may break first.
        let refusal = eventually("nobody listening any more", async || {
            let refusal = until_answered(&caller, &strict, 500).await;
            text(&refusal, "/message").ends_with("connection refused").then_some(refusal)
        })
        .await;
        assert_eq!(refusal["reason"], "InternalError");
        let begins = format!(
            "Internal error occurred: failed calling webhook \"hook.berth.dev\": failed to call webhook: Post \"{url}?timeout=10s\": "
        );
        let message = text(&refusal, "/message");
        assert!(message.starts_with(&begins), "{message}");
        until_answered(&caller, &lenient, 201).await;
        failing.end().await;
        ignoring.end().await;
    }

    managed async fn a_hook_that_is_silent_is_waited_for_no_longer_than_configured(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("silent").await);
        let hook = Hook::new(|_| Verdict::Silence).await;
        let configured =
            Configured::validating(&caller, &namespace, &hook, &json!({"timeoutSeconds": 1})).await;
        let refusal = until_answered(&caller, &namespace, 500).await;
        let begins = format!(
            "Internal error occurred: failed calling webhook \"hook.berth.dev\": failed to call webhook: Post \"{}?timeout=1s\": ",
            text(&hook.client_config(), "/url")
        );
        let message = text(&refusal, "/message");
        assert!(message.starts_with(&begins) && message.contains("deadline exceeded"), "{message}");
        configured.end().await;
    }

    managed async fn a_dry_run_is_announced_and_side_effects_must_be_declared(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("dry").await);
        let hook = Hook::new(allow).await;
        let refused = configuration(&namespace, "Validating", &hook, &json!({"sideEffects": "Some"}));
        let collection = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let refusal = caller.post(collection, &refused).await.refused(422);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], "webhooks[0].sideEffects");

        let configured =
            Configured::validating(&caller, &namespace, &hook, &json!({"sideEffects": "NoneOnDryRun"})).await;
        until_asked(&caller, &namespace, &hook, &map("probe", "")).await;
        assert_eq!(hook.asked().pop().unwrap()["request"]["dryRun"], true);
        assert_eq!(hook.asked().pop().unwrap()["request"]["options"]["dryRun"], json!(["All"]));
        caller.get(&core(&namespace, "configmaps/probe")).await.refused(404);
        configured.end().await;
    }

    managed async fn selectors_choose_objects_and_namespaces(bed: &Bed) {
        let (caller, namespace, other) =
            (Caller::admin(bed), bed.namespace("chosen").await, bed.namespace("chosen").await);
        let hook = Hook::new(deny).await;
        let selector =
            json!({"objectSelector": {"matchExpressions": [{"key": "guarded", "operator": "Exists"}]}});
        let configured = Configured::validating(&caller, &namespace, &hook, &selector).await;
        let mut guarded = map("guarded", "");
        guarded["metadata"]["labels"] = json!({"guarded": ""});
        until_asked(&caller, &namespace, &hook, &guarded).await;
        caller.post(&core(&namespace, "configmaps"), &guarded).await.refused(403);
        let plain = caller.post(&core(&namespace, "configmaps"), &map("plain", "")).await.ok();
        caller.post(&core(&other, "configmaps"), &guarded).await.ok();
        // An object that leaves the selection, or enters it, is looked at.
        assert!(plain["metadata"].get("labels").is_none());
        let patch = json!({"metadata": {"labels": {"guarded": ""}}});
        caller.merge(&core(&namespace, "configmaps/plain"), &patch).await.refused(403);
        configured.end().await;
    }

    managed async fn conditions_decide_whether_a_hook_is_asked(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("conditions").await);
        let hook = Hook::new(deny).await;
        let condition =
            |expression: &str| json!({"matchConditions": [{"name": "when", "expression": expression}]});
        let broken = configuration(&namespace, "Validating", &hook, &condition("object.metadata."));
        let collection = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let refusal = caller.post(collection, &broken).await.refused(422);
        assert_eq!(refusal.0["details"]["causes"][0]["field"], "webhooks[0].matchConditions[0].expression");

        let expression = "request.operation == 'CREATE' && object.metadata.name.startsWith('p') && !('berth.dev' in request.userInfo.groups)";
        let configured = Configured::validating(&caller, &namespace, &hook, &condition(expression)).await;
        until_answered(&caller, &namespace, 403).await;
        caller.post(&core(&namespace, "configmaps"), &map("a", "")).await.ok();
        caller.post(&core(&namespace, "configmaps"), &map("p", "")).await.refused(403);
        configured.end().await;
    }

    managed async fn a_hook_is_not_trusted_without_the_authority_that_vouches_for_it(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("distrust").await);
        let (hook, stranger) = (Hook::new(allow).await, Hook::new(allow).await);
        let mut config = hook.client_config();
        config["caBundle"] = stranger.client_config()["caBundle"].clone();
        let configured =
            Configured::validating(&caller, &namespace, &hook, &json!({"clientConfig": config})).await;
        let refusal = until_answered(&caller, &namespace, 500).await;
        assert!(text(&refusal, "/message").contains("failed to call webhook"), "{refusal}");
        assert!(hook.asked().is_empty());
        configured.end().await;
    }

    managed async fn a_deletion_can_be_denied_with_a_warning(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("kept").await);
        let hook = Hook::new(|_| {
            let status = json!({"code": 403, "message": "still needed"});
            Verdict::Say(json!({"allowed": false, "status": status, "warnings": ["ask its owner"]}))
        })
        .await;
        caller.post(&core(&namespace, "configmaps"), &map("a", "")).await.ok();
        let deletions = json!([{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]);
        let configured =
            Configured::validating(&caller, &namespace, &hook, &json!({"rules": deletions})).await;
        let path = core(&namespace, "configmaps/a");
        let dry = json!({"dryRun": ["All"], "propagationPolicy": "Foreground", "gracePeriodSeconds": 7});
        let answer = eventually("a deletion being denied", async || {
            let answer = caller.delete_with(&path, &dry).await;
            (answer.code == 403).then_some(answer)
        })
        .await;
        assert_eq!(answer.warnings, ["299 - \"ask its owner\""]);
        let options = hook.asked().pop().unwrap()["request"]["options"].clone();
        assert_eq!((&options["kind"], &options["dryRun"]), (&json!("DeleteOptions"), &json!(["All"])));
        assert_eq!(
            (&options["propagationPolicy"], &options["gracePeriodSeconds"]),
            (&json!("Foreground"), &json!(7))
        );
        caller.delete(&path).await.refused(403);
        caller.delete(&core(&namespace, "configmaps")).await.refused(403);
        caller.get(&path).await.ok();
        configured.end().await;
        let gone = async || (caller.delete(&path).await.code == 200).then_some(());
        eventually("a deletion being allowed", gone).await;
    }

    managed async fn one_hook_sees_what_another_made_of_the_object(bed: &Bed) {
        let (caller, namespace) = (Caller::admin(bed), bed.namespace("chain").await);
        let adding = |key: &'static str| {
            move |request: &Value| {
                let seen = request["object"]["data"].as_object().unwrap().len();
                let path = format!("/data/{key}");
                Verdict::Say(patch(&json!([{"op": "add", "path": path, "value": format!("after {seen}")}])))
            }
        };
        let (first, second) = (Hook::new(adding("first")).await, Hook::new(adding("second")).await);
        let mut both = configuration(&namespace, "Mutating", &first, &json!({"name": "a.berth.dev"}));
        let more = json!({"name": "b.berth.dev"});
        let other = configuration(&namespace, "Mutating", &second, &more)["webhooks"][0].clone();
        both["webhooks"].as_array_mut().unwrap().push(other);
        let collection = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        caller.post(collection, &both).await.ok();
        until_asked(&caller, &namespace, &second, &map("probe", "")).await;
        let made = caller.post(&core(&namespace, "configmaps"), &map("a", "")).await.ok();
        assert_eq!(made["data"], json!({"value": "", "first": "after 1", "second": "after 2"}));
        caller.delete(&format!("{collection}/{namespace}")).await.ok();
    }
}
