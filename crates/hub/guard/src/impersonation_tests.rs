use super::*;
use crate::policy::PolicyKind;
use serde_json::{Value, json};

fn policy(rules: &Value) -> PolicySet {
    let mut set = PolicySet::new();
    set.apply(PolicyKind::ClusterRole, "", "r", Some(&json!({"rules": rules})));
    let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "al"}]});
    set.apply(PolicyKind::ClusterRoleBinding, "", "r", Some(&binding));
    set
}

fn plain() -> PolicySet {
    policy(&json!([
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"]},
        {"verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes", "uids"]},
    ]))
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    map
}

fn acting(policy: &PolicySet, pairs: &[(&str, &str)]) -> Result<Option<User>, Refusal> {
    let requestor = User::new("al", Vec::<String>::new());
    acting_by(policy, &requestor, pairs)
}

fn acting_by(policy: &PolicySet, requestor: &User, pairs: &[(&str, &str)]) -> Result<Option<User>, Refusal> {
    let target = ResourceTarget { version: "v1", resource: "pods", namespace: "apps", ..Default::default() };
    impersonate(&headers(pairs), &Attributes::resource(requestor, "list", target), policy)
}

#[test]
fn without_headers_nobody_is_impersonated() {
    assert_eq!(acting(&PolicySet::new(), &[("accept", "x")]), Ok(None));
}

#[test]
fn a_user_gets_the_groups_asked_for_and_authenticated() {
    let user = acting(
        &plain(),
        &[("Impersonate-User", "bo"), ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops")],
    );
    assert_eq!(user.unwrap().unwrap(), User::new("bo", ["dev", "ops", "system:authenticated"]));
    let user = acting(&plain(), &[("Impersonate-User", "system:anonymous")]).unwrap().unwrap();
    assert_eq!(user.groups, ["system:unauthenticated"]);
    let user =
        acting(&plain(), &[("Impersonate-User", "bo"), ("Impersonate-Group", "system:unauthenticated")]);
    assert_eq!(user.unwrap().unwrap().groups, ["system:unauthenticated"]);
}

#[test]
fn a_service_account_gets_its_own_groups_unless_others_are_named() {
    let user = acting(&plain(), &[("Impersonate-User", "system:serviceaccount:apps:bot")]).unwrap().unwrap();
    assert_eq!(
        user.groups,
        ["system:serviceaccounts", "system:serviceaccounts:apps", "system:authenticated"]
    );
    let named = [("Impersonate-User", "system:serviceaccount:apps:bot"), ("Impersonate-Group", "dev")];
    assert_eq!(acting(&plain(), &named).unwrap().unwrap().groups, ["dev", "system:authenticated"]);
}

#[test]
fn uid_and_extra_are_asked_about_one_by_one() {
    let pairs = [
        ("Impersonate-User", "bo"),
        ("Impersonate-Uid", "u-1"),
        ("Impersonate-Extra-Scopes", "a"),
        ("Impersonate-Extra-scopes", "b"),
    ];
    let user = acting(&plain(), &pairs).unwrap().unwrap();
    assert_eq!(user.uid, "u-1");
    assert_eq!(user.extra["scopes"], ["a", "b"]);
    assert!(acting(&plain(), &[("Impersonate-User", "bo"), ("Impersonate-Extra-Other", "a")]).is_err());
}

#[test]
fn extra_keys_are_percent_decoded_if_they_can_be() {
    assert_eq!(unescape("example.com%2fteam"), "example.com/team");
    assert_eq!(unescape("bad%2"), "bad%2");
    assert_eq!(unescape("bad%zz"), "bad%zz");
    assert_eq!(unescape("%c3%a9"), "é");
}

#[test]
fn a_refusal_is_the_first_mode_s_that_applies() {
    let message = |pairs: &[(&str, &str)]| acting(&PolicySet::new(), pairs).unwrap_err().message();
    assert_eq!(
        message(&[("Impersonate-User", "bo")]),
        "pods is forbidden: User \"al\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the \
         namespace \"apps\""
    );
    assert_eq!(
        message(&[("Impersonate-User", "system:serviceaccount:a:b"), ("Impersonate-Group", "g")]),
        "serviceaccounts \"b\" is forbidden: User \"al\" cannot impersonate resource \"serviceaccounts\" in API group \"\" \
         in the namespace \"a\""
    );
}

#[test]
fn headers_without_a_user_are_a_bad_request() {
    let refusal = acting(&plain(), &[("Impersonate-Group", "dev")]).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::BadRequest(
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, Extra:map[string][]string(nil)} \
             without impersonating a user name"
                .to_owned()
        )
    );
}

#[test]
fn the_constrained_mode_needs_both_who_and_for_what() {
    let who = json!({"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users", "groups"]});
    let what = json!({"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]});
    let both = policy(&json!([who, what]));
    assert!(acting(&both, &[("Impersonate-User", "bo")]).is_ok());
    assert!(acting(&policy(&json!([who])), &[("Impersonate-User", "bo")]).is_err());
    let refusal = acting(&policy(&json!([what])), &[("Impersonate-User", "bo")]).unwrap_err();
    assert!(refusal.message().starts_with("users.authentication.k8s.io \"bo\" is forbidden"), "{refusal}");
    let masters = [("Impersonate-User", "bo"), ("Impersonate-Group", "system:masters")];
    let refusal = acting(&both, &masters).unwrap_err();
    assert!(
        refusal.message().ends_with("impersonating the system:masters group is not allowed"),
        "{refusal}"
    );
}

#[test]
fn a_service_account_may_be_allowed_to_act_as_its_own_node_only() {
    let set = policy(&json!([
        {"verbs": ["impersonate:associated-node"], "apiGroups": ["authentication.k8s.io"], "resources": ["nodes"]},
        {"verbs": ["impersonate-on:associated-node:list"], "apiGroups": [""], "resources": ["pods"]},
    ]));
    let mut set = set;
    let subject = json!({"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": "ops"}]});
    set.apply(PolicyKind::ClusterRoleBinding, "", "agents", Some(&subject));
    let mut agent = User::service_account("ops", "agent", "u");
    agent.extra.insert(NODE_NAME_EXTRA.to_owned(), vec!["n1".to_owned()]);
    let user = acting_by(&set, &agent, &[("Impersonate-User", "system:node:n1")]).unwrap().unwrap();
    assert_eq!(user.groups, ["system:nodes", "system:authenticated"]);
    assert!(acting_by(&set, &agent, &[("Impersonate-User", "system:node:n2")]).is_err());
}
