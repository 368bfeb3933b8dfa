use super::*;
use crate::policy::PolicyKind;

fn policy() -> PolicySet {
    let mut set = PolicySet::new();
    let role = json!({"rules": [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
        {"verbs": ["get"], "nonResourceURLs": ["/version"]},
    ]});
    set.apply(PolicyKind::ClusterRole, "", "r", Some(&role));
    let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "Group", "name": "dev"}]});
    set.apply(PolicyKind::ClusterRoleBinding, "", "r", Some(&binding));
    set
}

const ALLOWED: &str = "RBAC: allowed by ClusterRoleBinding \"r\" of ClusterRole \"r\" to Group \"dev\"";

#[test]
fn a_subject_access_review_answers_for_the_subject_it_names() {
    let body = json!({"spec": {"groups": ["dev"], "resourceAttributes": {"verb": "get", "resource": "pods", "name": "a"}}});
    let answer = subject_access_review(&policy(), &body).unwrap();
    assert_eq!(answer["status"], json!({"allowed": true, "reason": ALLOWED}));
    assert_eq!(answer["spec"], body["spec"]);
    let body = json!({"spec": {"user": "x", "nonResourceAttributes": {"verb": "get", "path": "/version"}}});
    assert_eq!(subject_access_review(&policy(), &body).unwrap()["status"], json!({"allowed": false}));
}

#[test]
fn a_self_subject_access_review_answers_for_the_user_who_asks() {
    let body = json!({"spec": {"nonResourceAttributes": {"verb": "get", "path": "/version"}}});
    let dev = User::new("d", ["dev"]);
    assert_eq!(self_subject_access_review(&policy(), &dev, &body).unwrap()["status"]["reason"], ALLOWED);
    assert_eq!(
        self_subject_access_review(&policy(), &User::anonymous(), &body).unwrap()["status"],
        json!({"allowed": false})
    );
}

fn problems(result: Result<Value, Refusal>) -> Vec<String> {
    match result.unwrap_err() {
        Refusal::Invalid { problems, .. } => {
            problems.into_iter().map(|p| format!("{}: {}", p.field, p.message)).collect()
        }
        other => vec![other.message()],
    }
}

#[test]
fn a_review_must_ask_exactly_one_thing_about_somebody() {
    assert_eq!(
        problems(subject_access_review(&policy(), &json!({"metadata": {"name": "x"}, "spec": {}}))),
        [
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
            "metadata: Invalid value: {\"name\":\"x\"}: must be empty",
        ]
    );
    let both = json!({"spec": {"user": "u", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/p", "verb": "get"}}});
    assert_eq!(
        problems(subject_access_review(&policy(), &both)),
        [
            "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/p\",\"Verb\":\"get\"}: cannot be specified in combination with resourceAttributes"
        ]
    );
}

#[test]
fn a_local_review_stays_in_its_namespace() {
    let body = |own: &str, asked: &str| {
        json!({"metadata": {"namespace": own}, "spec": {"user": "u", "groups": ["dev"],
               "resourceAttributes": {"namespace": asked, "verb": "get", "resource": "pods", "name": "a"}}})
    };
    let answer = local_subject_access_review(&policy(), "n", &body("n", "n")).unwrap();
    assert_eq!(answer["status"]["allowed"], true);
    assert_eq!(
        problems(local_subject_access_review(&policy(), "n", &body("n", "m"))),
        ["spec.resourceAttributes.namespace: Invalid value: \"m\": must match metadata.namespace"]
    );
    assert_eq!(
        problems(local_subject_access_review(&policy(), "m", &body("n", "n"))),
        ["spec.resourceAttributes.namespace must match namespace: m"]
    );
    let path = json!({"metadata": {"namespace": "n"}, "spec": {"user": "u", "nonResourceAttributes": {"path": "/"}}});
    assert_eq!(
        problems(local_subject_access_review(&policy(), "n", &path)),
        [
            "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/\",\"Verb\":\"\"}: disallowed on this kind of request"
        ]
    );
}

#[test]
fn selectors_in_a_review_must_be_given_one_way() {
    let body = json!({"spec": {"user": "u", "resourceAttributes": {
        "fieldSelector": {}, "labelSelector": {"rawSelector": "a=b", "requirements": [{"key": "k", "operator": "In"}]}}}});
    assert_eq!(
        problems(subject_access_review(&policy(), &body)),
        [
            "spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
            "spec.resourceAttributes.labelSelector.rawSelector: Invalid value: \"a=b\": may not specified at the same time as requirements",
            "spec.resourceAttributes.labelSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ]
    );
}

#[test]
fn a_rules_review_lists_what_applies_in_a_namespace() {
    let dev = User::new("d", ["dev"]);
    let answer = self_subject_rules_review(&policy(), &dev, &json!({"spec": {"namespace": "n"}})).unwrap();
    assert_eq!(
        answer["status"],
        json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version"]}],
        })
    );
    let refusal = self_subject_rules_review(&policy(), &dev, &json!({"spec": {}})).unwrap_err();
    assert_eq!(refusal, Refusal::BadRequest("no namespace on request".to_owned()));
}
