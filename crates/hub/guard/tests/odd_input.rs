//! Whatever is sent: an answer or a refusal, never a panic.

use berth_hub_guard::token::DEFAULT_ISSUER;
use berth_hub_guard::{
    Attributes, Authenticator, Authority, ObjectLookup, PolicyKind, PolicySet, PolicyWrite, ResourceTarget,
    ServiceAccountRef, ServiceAccountTokens, StaticTokens, User, WebhookKind, WebhookSet,
    aggregate_cluster_roles, bootstrap, local_subject_access_review, self_subject_access_review,
    self_subject_rules_review, subject_access_review, token_review,
};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Keys that mean something somewhere, so that odd values end up in odd places.
const KEYS: &[&str] = &[
    "metadata",
    "spec",
    "rules",
    "subjects",
    "roleRef",
    "name",
    "namespace",
    "uid",
    "kind",
    "apiVersion",
    "verbs",
    "labels",
    "apiGroups",
    "resources",
    "aggregationRule",
    "clusterRoleSelectors",
    "matchLabels",
    "matchExpressions",
    "user",
    "groups",
    "extra",
    "resourceAttributes",
    "nonResourceAttributes",
    "fieldSelector",
    "requirements",
    "token",
    "audiences",
    "expirationSeconds",
    "boundObjectRef",
    "webhooks",
    "clientConfig",
    "url",
    "service",
    "caBundle",
    "matchConditions",
    "expression",
    "annotations",
    "status",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        proptest::sample::select(
            &["", "*", "ClusterRole", "User", "Pod", "al", "In", "x/y", "1 +", "\u{0}é"][..]
        )
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map(
                proptest::sample::select(KEYS).prop_map(str::to_owned),
                inner,
                0..5
            )
            .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

struct Same(Value);
impl ObjectLookup for Same {
    fn find(&self, _: &str, _: &str, _: &str) -> Option<Value> {
        Some(self.0.clone())
    }
}

proptest! {
    #[test]
    fn any_body_and_any_object_gets_an_answer(body in any_value(), other in any_value()) {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().map_err(|_| TestCaseError::fail("a fixed time"))?;
        let user = User::new("al", ["dev"]);
        let mut policy = PolicySet::new();
        for kind in PolicyKind::ALL {
            policy.apply(kind, "ns", "al", Some(&other));
            let write = PolicyWrite { user: &user, kind, namespace: "ns", request_name: "al", object: &body, old: Some(&other) };
            let _ = policy.check_write(&write);
        }
        let target = ResourceTarget { resource: "pods", namespace: "ns", ..ResourceTarget::default() };
        policy.authorize(&Attributes::resource(&user, "get", target));
        let _ = subject_access_review(&policy, &body);
        let _ = self_subject_access_review(&policy, &user, &body);
        let _ = local_subject_access_review(&policy, "ns", &body);
        let _ = self_subject_rules_review(&policy, &user, &body);
        aggregate_cluster_roles(&[body.clone(), other.clone()]);
        bootstrap::reconcile(&bootstrap::cluster_roles()[5], Some(&body));
        WebhookSet::check(&body);
        let mut hooks = WebhookSet::new();
        hooks.apply(WebhookKind::Mutating, "c", Some(&body));
        hooks.is_empty(WebhookKind::Mutating);
        let authority = Authority::in_memory(now).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let tokens = ServiceAccountTokens::new(authority.signing_key(), DEFAULT_ISSUER);
        let account = ServiceAccountRef { namespace: "ns".into(), name: "al".into(), uid: "u".into() };
        let lookup = Same(other);
        if let Ok(answer) = tokens.request(&body, &account, now, &lookup) {
            let token = answer["status"]["token"].as_str().unwrap_or_default();
            let _ = tokens.verify(token, None, now, &lookup);
        }
        let _ = token_review(&Authenticator::new(StaticTokens::default(), tokens), &body, now, &lookup);
    }

    #[test]
    fn any_text_is_a_token_or_none(text in ".{0,80}", parts in proptest::collection::vec("[A-Za-z0-9_=-]{0,40}", 0..5)) {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().map_err(|_| TestCaseError::fail("a fixed time"))?;
        let authority = Authority::in_memory(now).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let tokens = ServiceAccountTokens::new(authority.signing_key(), DEFAULT_ISSUER);
        let lookup = Same(Value::Null);
        prop_assert_eq!(tokens.verify(&text, None, now, &lookup), Ok(None));
        prop_assert_eq!(tokens.verify(&parts.join("."), None, now, &lookup), Ok(None));
        let _ = StaticTokens::parse(&text, "f");
    }
}
