//! Who may do what: service accounts and their tokens, roles, reviews, impersonation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use berth_bed::{Bed, Kind, scenario};
use http::Method;
use serde_json::{Value, json};

use crate::{
    caller::{Caller, core, grouped, map, text},
    waiting::eventually,
};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// A service account with a token of its own.
async fn account(bed: &Bed, namespace: &str, name: &str) -> (Caller, String) {
    let admin = Caller::admin(bed);
    admin
        .apply(&format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: {namespace}}}"
        ))
        .await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
    let answer = admin.post(&core(namespace, &format!("serviceaccounts/{name}/token")), &request).await.ok();
    let token = text(&answer, "/status/token").to_owned();
    (Caller::with_token(bed, &token), token)
}

/// Grants rules, as a Role, to an account of the same namespace. The rules are YAML in one line.
async fn grant(bed: &Bed, namespace: &str, account: &str, rules: &str) {
    let admin = Caller::admin(bed);
    admin
        .apply(&format!(
            "apiVersion: {RBAC}
kind: Role
metadata: {{name: {account}, namespace: {namespace}}}
rules: {rules}
---
apiVersion: {RBAC}
kind: RoleBinding
metadata: {{name: {account}, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {account}}}
subjects: [{{kind: ServiceAccount, name: {account}, namespace: {namespace}}}]
"
        ))
        .await;
}

/// Waits until a grant works: Kubernetes' authorizer reads roles from caches of its own.
async fn until_allowed(caller: &Caller, target: &str) -> Value {
    eventually(&format!("{target} being allowed"), async || {
        let answer = caller.get(target).await;
        (answer.code == 200).then_some(answer.body)
    })
    .await
}

async fn until_refused(caller: &Caller, target: &str, code: u16) {
    let look = async || (caller.get(target).await.code == code).then_some(());
    eventually(&format!("{target} being refused with {code}"), look).await;
}

fn cluster_role(name: &str) -> String {
    format!("/apis/{RBAC}/clusterroles/{name}")
}

scenario! {
    managed async fn an_account_may_do_what_its_role_says_and_nothing_else(bed: &Bed) {
        let (here, there) = (bed.namespace("role").await, bed.namespace("role").await);
        let admin = Caller::admin(bed);
        for namespace in [&here, &there] {
            admin.post(&core(namespace, "configmaps"), &map("a", "")).await.ok();
        }
        let (caller, _) = account(bed, &here, "reader").await;
        let refusal = caller.get(&core(&here, "configmaps/a")).await.refused(403);
        assert_eq!(
            refusal.message(),
            format!(
                "configmaps \"a\" is forbidden: User \"system:serviceaccount:{here}:reader\" cannot get resource \
                 \"configmaps\" in API group \"\" in the namespace \"{here}\""
            )
        );
        grant(bed, &here, "reader", "[{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]").await;
        until_allowed(&caller, &core(&here, "configmaps/a")).await;
        until_allowed(&caller, &core(&here, "configmaps")).await;
        caller.get(&core(&there, "configmaps/a")).await.refused(403);
        caller.get("/api/v1/configmaps").await.refused(403);
        caller.get(&core(&here, "secrets")).await.refused(403);
        caller.post(&core(&here, "configmaps"), &map("b", "")).await.refused(403);
        caller.delete(&core(&here, "configmaps/a")).await.refused(403);
        // What is taken back is gone.
        admin.delete(&grouped(RBAC, &here, "rolebindings/reader")).await.ok();
        until_refused(&caller, &core(&here, "configmaps/a"), 403).await;
    }

    managed async fn a_cluster_role_counts_where_it_is_bound(bed: &Bed) {
        let (here, there) = (bed.namespace("bound").await, bed.namespace("bound").await);
        let (admin, (caller, _)) = (Caller::admin(bed), account(bed, &here, "reader").await);
        admin
            .apply(&format!(
                "apiVersion: {RBAC}
kind: ClusterRole
metadata: {{name: {here}}}
rules: [{{apiGroups: [''], resources: [configmaps], verbs: [list]}}, {{nonResourceURLs: [/metrics], verbs: [get]}}]
---
apiVersion: {RBAC}
kind: RoleBinding
metadata: {{name: reader, namespace: {here}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {here}}}
subjects: [{{kind: ServiceAccount, name: reader, namespace: {here}}}]
"
            ))
            .await;
        until_allowed(&caller, &core(&here, "configmaps")).await;
        caller.get(&core(&there, "configmaps")).await.refused(403);
        caller.get("/metrics").await.refused(403);
        admin
            .apply(&format!(
                "apiVersion: {RBAC}
kind: ClusterRoleBinding
metadata: {{name: {here}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {here}}}
subjects: [{{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccounts:{here}'}}]
"
            ))
            .await;
        until_allowed(&caller, &core(&there, "configmaps")).await;
        until_allowed(&caller, "/api/v1/configmaps").await;
        until_allowed(&caller, "/metrics").await;
        admin.delete(&format!("/apis/{RBAC}/clusterrolebindings/{here}")).await.ok();
        admin.delete(&cluster_role(&here)).await.ok();
    }

    managed async fn a_rule_with_names_is_about_these_objects(bed: &Bed) {
        let namespace = bed.namespace("named").await;
        let (admin, (caller, _)) = (Caller::admin(bed), account(bed, &namespace, "reader").await);
        for name in ["mine", "yours"] {
            admin.post(&core(&namespace, "configmaps"), &map(name, "")).await.ok();
        }
        let rules = "[{apiGroups: [''], resources: [configmaps], resourceNames: [mine], verbs: ['*']}]";
        grant(bed, &namespace, "reader", rules).await;
        until_allowed(&caller, &core(&namespace, "configmaps/mine")).await;
        caller.get(&core(&namespace, "configmaps/yours")).await.refused(403);
        caller.get(&core(&namespace, "configmaps")).await.refused(403);
        // A list that selects one name is about that object.
        caller.get(&core(&namespace, "configmaps?fieldSelector=metadata.name%3Dmine")).await.ok();
        caller.get(&core(&namespace, "configmaps?fieldSelector=metadata.name%3Dyours")).await.refused(403);
        caller.post(&core(&namespace, "configmaps"), &map("mine", "")).await.refused(403);
        caller.delete(&core(&namespace, "configmaps/mine")).await.ok();
    }

    managed async fn nobody_grants_more_than_they_have(bed: &Bed) {
        let namespace = bed.namespace("escalation").await;
        let (caller, _) = account(bed, &namespace, "ambitious").await;
        let rules = "[{apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [list, create]}, \
                     {apiGroups: [''], resources: [configmaps], verbs: [get]}]";
        grant(bed, &namespace, "ambitious", rules).await;
        let roles = grouped(RBAC, &namespace, "roles");
        until_allowed(&caller, &roles).await;
        let role = |name: &str, verbs: Value| {
            json!({
                "apiVersion": RBAC, "kind": "Role", "metadata": {"name": name},
                "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}],
            })
        };
        caller.post(&roles, &role("small", json!(["get"]))).await.ok();
        let refusal = caller.post(&roles, &role("large", json!(["get", "delete"]))).await.refused(403);
        let expected = format!(
            "roles.rbac.authorization.k8s.io \"large\" is forbidden: user \
             \"system:serviceaccount:{namespace}:ambitious\" (groups=[\"system:serviceaccounts\" \
             \"system:serviceaccounts:{namespace}\" \"system:authenticated\"]) is attempting to grant RBAC permissions \
             not currently held:\n{{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"delete\"]}}"
        );
        assert_eq!(refusal.message(), expected);
        // Binding a role is granting what is in it.
        let binding = json!({
            "apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "all"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "ambitious", "namespace": namespace}],
        });
        let refusal = caller.post(&grouped(RBAC, &namespace, "rolebindings"), &binding).await.refused(403);
        assert!(
            refusal.message().contains("is attempting to grant RBAC permissions not currently held"),
            "{refusal:?}"
        );
    }

    managed async fn a_role_aggregates_the_rules_of_others(bed: &Bed) {
        let namespace = bed.namespace("aggregated").await;
        let admin = Caller::admin(bed);
        let part = |name: &str, resource: &str| {
            format!(
                "apiVersion: {RBAC}
kind: ClusterRole
metadata: {{name: {namespace}-{name}, labels: {{part-of: {namespace}}}}}
rules: [{{apiGroups: [''], resources: [{resource}], verbs: [get]}}]
"
            )
        };
        let whole = format!(
            "apiVersion: {RBAC}
kind: ClusterRole
metadata: {{name: {namespace}}}
aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{part-of: {namespace}}}}}]}}
"
        );
        let resources = |role: &Value| -> Vec<String> {
            let rules = role["rules"].as_array().into_iter().flatten();
            rules.map(|rule| text(rule, "/resources/0").to_owned()).collect()
        };
        admin.apply(&part("a", "pods")).await;
        admin.apply(&whole).await;
        let path = cluster_role(&namespace);
        admin.until(&path, "has one rule", |role| resources(role) == ["pods"]).await;
        admin.apply(&part("b", "nodes")).await;
        admin.until(&path, "has both rules", |role| resources(role) == ["pods", "nodes"]).await;
        admin.delete(&cluster_role(&format!("{namespace}-a"))).await.ok();
        admin.until(&path, "has the other rule", |role| resources(role) == ["nodes"]).await;
        for role in [format!("{namespace}-b"), namespace] {
            admin.delete(&cluster_role(&role)).await.ok();
        }
    }

    managed async fn impersonation_is_a_right_of_its_own(bed: &Bed) {
        let namespace = bed.namespace("masks").await;
        let (caller, _) = account(bed, &namespace, "actor").await;
        let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let review =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
        let ask = async |headers: &[(&str, &str)]| {
            let mut all = vec![("content-type", "application/json")];
            all.extend_from_slice(headers);
            caller.send(Method::POST, who, &all, Some(review.clone())).await
        };
        let own = ask(&[]).await.ok();
        assert_eq!(
            text(&own, "/status/userInfo/username"),
            format!("system:serviceaccount:{namespace}:actor")
        );
        let refusal = ask(&[("impersonate-user", "jane")]).await.refused(403);
        assert_eq!(
            refusal.message(),
            format!(
                "selfsubjectreviews.authentication.k8s.io is forbidden: User \"system:serviceaccount:{namespace}:actor\" cannot \
                 impersonate-on:user-info:create resource \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at \
                 the cluster scope"
            )
        );
        Caller::admin(bed)
            .apply(&format!(
                "apiVersion: {RBAC}
kind: ClusterRole
metadata: {{name: {namespace}}}
rules:
- {{apiGroups: [''], resources: [users], resourceNames: [jane], verbs: [impersonate]}}
- {{apiGroups: [''], resources: [groups], resourceNames: [pilots], verbs: [impersonate]}}
---
apiVersion: {RBAC}
kind: ClusterRoleBinding
metadata: {{name: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {namespace}}}
subjects: [{{kind: ServiceAccount, name: actor, namespace: {namespace}}}]
"
            ))
            .await;
        let jane = eventually("jane being impersonated", async || {
            let answer = ask(&[("impersonate-user", "jane"), ("impersonate-group", "pilots")]).await;
            (answer.code == 201).then_some(answer.body)
        })
        .await;
        assert_eq!(jane["status"]["userInfo"]["username"], "jane");
        assert_eq!(jane["status"]["userInfo"]["groups"], json!(["pilots", "system:authenticated"]));
        ask(&[("impersonate-user", "joan")]).await.refused(403);
        ask(&[("impersonate-user", "jane"), ("impersonate-group", "system:masters")]).await.refused(403);
        let admin = Caller::admin(bed);
        admin.delete(&format!("/apis/{RBAC}/clusterrolebindings/{namespace}")).await.ok();
        admin.delete(&cluster_role(&namespace)).await.ok();
    }

    managed async fn an_account_can_ask_what_it_may_do(bed: &Bed) {
        let namespace = bed.namespace("asking").await;
        let (caller, _) = account(bed, &namespace, "curious").await;
        grant(
            bed,
            &namespace,
            "curious",
            "[{apiGroups: [''], resources: [configmaps], resourceNames: [a], verbs: [get]}]",
        )
        .await;
        until_refused(&caller, &core(&namespace, "configmaps/a"), 404).await;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace},
        });
        let answer = caller.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review).await.ok();
        let rules = answer["status"]["resourceRules"].as_array().unwrap();
        let granted =
            json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get"]});
        assert!(rules.contains(&granted), "{answer}");
        let everyones = json!(["selfsubjectaccessreviews", "selfsubjectrulesreviews"]);
        assert!(rules.iter().any(|rule| rule["resources"] == everyones), "{answer}");
        assert_eq!(answer["status"]["incomplete"], false);
        let paths = answer["status"]["nonResourceRules"].as_array().unwrap();
        assert!(
            paths.iter().any(|rule| rule["nonResourceURLs"].as_array().unwrap().contains(&json!("/healthz"))),
            "{answer}"
        );

        let ask = async |verb: &str, name: &str| {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, "resource": "configmaps", "name": name}},
            });
            caller.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await.ok()["status"].clone()
        };
        let yes = ask("get", "a").await;
        assert_eq!(yes["allowed"], true);
        let reason = format!(
            "RBAC: allowed by RoleBinding \"curious/{namespace}\" of Role \"curious\" to ServiceAccount \"curious/{namespace}\""
        );
        assert_eq!(yes["reason"], reason);
        assert_eq!(ask("get", "b").await["allowed"], false);
        assert_eq!(ask("update", "a").await["allowed"], false);
    }

    managed async fn a_subresource_that_nobody_serves_can_be_granted_and_asked_for(bed: &Bed) {
        let namespace = bed.namespace("virtual").await;
        let admin = Caller::admin(bed);
        admin
            .apply(&format!(
                "apiVersion: {RBAC}
kind: ClusterRole
metadata: {{name: {namespace}}}
rules:
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclustersets/bind]
  resourceNames: [blue]
  verbs: [create]
---
apiVersion: {RBAC}
kind: ClusterRoleBinding
metadata: {{name: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {namespace}}}
subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'user-{namespace}'}}]
"
            ))
            .await;
        let ask = async |set: &str, subresource: &str| {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {
                    "user": format!("user-{namespace}"), "groups": ["system:authenticated"],
                    "resourceAttributes": {
                        "group": "cluster.open-cluster-management.io", "resource": "managedclustersets",
                        "subresource": subresource, "verb": "create", "name": set,
                    },
                },
            });
            let answer = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.ok();
            answer["status"]["allowed"].as_bool().unwrap()
        };
        eventually("binding blue being allowed", async || ask("blue", "bind").await.then_some(())).await;
        assert!(!ask("red", "bind").await);
        assert!(!ask("blue", "").await);
        admin.delete(&format!("/apis/{RBAC}/clusterrolebindings/{namespace}")).await.ok();
        admin.delete(&cluster_role(&namespace)).await.ok();
    }

    managed async fn the_token_of_a_deleted_account_stops_working(bed: &Bed) {
        let namespace = bed.namespace("tokens").await;
        let (admin, (caller, token)) = (Caller::admin(bed), account(bed, &namespace, "leaver").await);
        caller.get("/version").await.ok();
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
        let status = admin.post(reviews, &review).await.ok()["status"].clone();
        assert_eq!(status["authenticated"], true);
        assert_eq!(text(&status, "/user/username"), format!("system:serviceaccount:{namespace}:leaver"));
        let groups = json!([
            "system:serviceaccounts",
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated"
        ]);
        assert_eq!(status["user"]["groups"], groups);

        admin.delete(&core(&namespace, "serviceaccounts/leaver")).await.ok();
        // Kubernetes remembers a token that was good for some seconds.
        until_refused(&caller, "/api/v1/namespaces", 401).await;
        // A namesake is another account.
        admin
            .apply(&format!(
                "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: leaver, namespace: {namespace}}}"
            ))
            .await;
        until_refused(&caller, "/api/v1/namespaces", 401).await;
        let status = admin.post(reviews, &review).await.ok()["status"].clone();
        assert!(status["authenticated"] != true && status["error"].is_string(), "{status}");
    }

    managed async fn a_token_for_another_audience_is_not_ours(bed: &Bed) {
        let namespace = bed.namespace("audience").await;
        let admin = Caller::admin(bed);
        account(bed, &namespace, "a").await;
        let request = json!({"spec": {"audiences": ["https://elsewhere"]}});
        let answer = admin.post(&core(&namespace, "serviceaccounts/a/token"), &request).await.ok();
        let token = text(&answer, "/status/token");
        let refusal = Caller::with_token(bed, token).get("/api/v1/namespaces").await.refused(401);
        assert_eq!(refusal.message(), "Unauthorized");
        let review = json!({"spec": {"token": token, "audiences": ["https://elsewhere"]}});
        let status =
            admin.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.ok()["status"].clone();
        assert_eq!(
            (&status["authenticated"], &status["audiences"]),
            (&json!(true), &json!(["https://elsewhere"]))
        );
    }

    managed async fn a_token_in_a_secret_is_good_for_as_long_as_the_secret_holds_it(bed: &Bed) {
        let namespace = bed.namespace("kept").await;
        let (admin, _) = (Caller::admin(bed), account(bed, &namespace, "robot").await);
        let target = core(&namespace, "secrets/robot");
        admin
            .apply(&format!(
                "apiVersion: v1
kind: Secret
metadata:
  name: robot
  namespace: {namespace}
  annotations: {{kubernetes.io/service-account.name: robot}}
type: kubernetes.io/service-account-token
"
            ))
            .await;
        let secret = eventually("a token in the secret", async || {
            let answer = admin.get(&target).await;
            answer.body.pointer("/data/token").is_some().then_some(answer.body)
        })
        .await;
        let held = |key: &str| {
            let text = text(&secret, &format!("/data/{key}")).to_owned();
            String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
        };
        assert_eq!(held("namespace"), namespace);
        let root = admin.get(&core(&namespace, "configmaps/kube-root-ca.crt")).await.ok();
        assert_eq!(held("ca.crt"), text(&root, "/data/ca.crt"));
        assert!(text(&secret, "/metadata/annotations/kubernetes.io~1service-account.uid").len() > 30, "{secret}");

        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": held("token")}});
        let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
        let status = admin.post(reviews, &review).await.ok();
        assert_eq!(
            text(&status, "/status/user/username"),
            format!("system:serviceaccount:{namespace}:robot"),
            "{status}"
        );
        let caller = Caller::with_token(bed, &held("token"));
        caller.get(&target).await.refused(403);
        admin.delete(&target).await.ok();
        until_refused(&caller, &target, 401).await;
    }

    managed async fn a_secret_with_a_token_goes_with_its_account(bed: &Bed) {
        let namespace = bed.namespace("kept").await;
        let (admin, _) = (Caller::admin(bed), account(bed, &namespace, "robot").await);
        let secret = |account: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
                "metadata": {"name": account, "annotations": {"kubernetes.io/service-account.name": account}}})
        };
        admin.post(&core(&namespace, "secrets"), &secret("robot")).await.ok();
        admin.post(&core(&namespace, "secrets"), &secret("nobody")).await.ok();
        admin.until_gone(&core(&namespace, "secrets/nobody")).await;
        eventually("a token in the secret", async || {
            let answer = admin.get(&core(&namespace, "secrets/robot")).await.ok();
            answer.pointer("/data/token").is_some().then_some(())
        })
        .await;
        admin.delete(&core(&namespace, "serviceaccounts/robot")).await.ok();
        admin.until_gone(&core(&namespace, "secrets/robot")).await;
    }

    managed async fn nobody_in_particular_sees_health_and_nothing_else(bed: &Bed) {
        let mut config = bed.config();
        config.auth_info = kube::config::AuthInfo::default();
        let stranger = Caller::of(config);
        for health in ["/healthz", "/livez", "/readyz"] {
            assert_eq!(stranger.get(health).await.ok(), "ok");
        }
        for path in ["/api", "/apis", "/openapi/v3", "/metrics"] {
            stranger.get(path).await.refused(403);
        }
        // A real server tells its version to everybody.
        if bed.kind() == Kind::Hub {
            let refusal = stranger.get("/version").await.refused(403);
            assert_eq!(
                refusal.message(),
                "forbidden: User \"system:anonymous\" cannot get path \"/version\""
            );
        }
        Caller::admin(bed).get("/version").await.ok();
        let refusal = stranger.get("/api/v1/namespaces").await.refused(403);
        assert!(
            refusal.message().contains("User \"system:anonymous\" cannot list resource \"namespaces\""),
            "{refusal:?}"
        );
        Caller::with_token(bed, "nonsense").get("/api/v1/namespaces").await.refused(401);
        let viewer = Caller::acting_as(bed, "jane", &["nobody"]);
        viewer.get("/api/v1/namespaces").await.refused(403);
    }

    managed async fn a_role_that_says_so_is_part_of_what_viewers_may_do(bed: &Bed) {
        let namespace = bed.namespace("viewers").await;
        let (admin, (caller, _)) = (Caller::admin(bed), account(bed, &namespace, "viewer").await);
        admin
            .apply(&format!(
                "apiVersion: {RBAC}
kind: RoleBinding
metadata: {{name: viewer, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}
subjects: [{{kind: ServiceAccount, name: viewer, namespace: {namespace}}}]
"
            ))
            .await;
        until_allowed(&caller, &core(&namespace, "configmaps")).await;
        caller.get(&core(&namespace, "secrets")).await.refused(403);
        caller.get(&grouped(RBAC, &namespace, "roles")).await.refused(403);
        let name = format!("{namespace}-view");
        admin
            .apply(&format!(
                "apiVersion: {RBAC}
kind: ClusterRole
metadata: {{name: {name}, labels: {{rbac.authorization.k8s.io/aggregate-to-view: 'true'}}}}
rules: [{{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [list]}}]
"
            ))
            .await;
        until_allowed(&caller, &grouped(RBAC, &namespace, "roles")).await;
        admin.delete(&cluster_role(&name)).await.ok();
        until_refused(&caller, &grouped(RBAC, &namespace, "roles"), 403).await;
    }
}
