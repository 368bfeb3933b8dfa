//! What printed roles grant, one verb on one resource at a time, held against what was asked for.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use crate::ledger::{Asked, Ledger};

/// One verb on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Granted {
    group: String,
    pub(crate) resource: String,
    /// Empty for any.
    name: String,
    pub(crate) verb: String,
    /// Empty for all.
    namespace: String,
}

impl fmt::Display for Granted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource, name, verb, namespace } = self;
        write!(formatter, "{verb} {group}/{resource}")?;
        if !name.is_empty() {
            write!(formatter, " {name}")?;
        }
        if !namespace.is_empty() {
            write!(formatter, " in {namespace}")?;
        }
        Ok(())
    }
}

impl Granted {
    fn covers(&self, asked: &Asked) -> bool {
        self.verb == asked.verb
            && self.group == asked.group
            && self.resource == asked.resource
            && (self.name.is_empty() || self.name == asked.name)
            && (self.namespace.is_empty() || self.namespace == asked.namespace)
    }
}

/// What the roles among printed objects grant to an account.
pub(crate) fn granted(objects: &[Value], account: &str) -> BTreeSet<Granted> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_of = |binding: &&Value| {
        binding["subjects"].as_array().is_some_and(|list| list.iter().any(|one| one["name"] == account))
    };
    let mut granted = BTreeSet::new();
    for binding in objects.iter().filter(is_of) {
        let reference = &binding["roleRef"];
        let role = objects
            .iter()
            .find(|role| role["kind"] == reference["kind"] && role["metadata"]["name"] == reference["name"]);
        let role = role.unwrap_or_else(|| panic!("no role for {binding}"));
        assert_eq!(role["metadata"]["namespace"], binding["metadata"]["namespace"]);
        for rule in role["rules"].as_array().unwrap() {
            let list = |name: &str| -> Vec<String> {
                rule[name].as_array().into_iter().flatten().map(text).collect()
            };
            let mut names = list("resourceNames");
            if names.is_empty() {
                names.push(String::new());
            }
            for (group, resource, verb, name) in list("apiGroups").iter().flat_map(|group| {
                let names = &names;
                list("resources").into_iter().flat_map(move |resource| {
                    list("verbs").into_iter().flat_map({
                        let resource = resource.clone();
                        move |verb| {
                            let resource = resource.clone();
                            names.iter().map(move |name| {
                                (group.clone(), resource.clone(), verb.clone(), name.clone())
                            })
                        }
                    })
                })
            }) {
                let namespace = text(&role["metadata"]["namespace"]);
                granted.insert(Granted { group, resource, name, verb, namespace });
            }
        }
    }
    granted
}

/// What a user was refused, and what it asked for, or somebody about it, without a rule that covers it.
pub(crate) fn refused(granted: &BTreeSet<Granted>, ledger: &Ledger, user: &str) -> Vec<String> {
    let is_covered = |asked: &Asked| granted.iter().any(|rule| rule.covers(asked));
    let all = ledger.of(user).chain(ledger.about(user));
    all.filter(|asked| asked.code == 403 || !is_covered(asked)).map(ToString::to_string).collect()
}

/// The rules that no request used, and that nobody asked about.
pub(crate) fn unused(granted: &BTreeSet<Granted>, ledger: &Ledger, user: &str) -> Vec<Granted> {
    let is_used = |rule: &Granted| {
        ledger.of(user).chain(ledger.about(user)).any(|asked| asked.code < 300 && rule.covers(asked))
    };
    granted.iter().filter(|rule| !is_used(rule)).cloned().collect()
}

/// The comparison itself, on a log in the hand: what would be missed here is missed by every proof.
#[test]
fn a_right_too_many_and_a_right_too_few_are_told() {
    use serde_json::json;

    let role = json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [
        {"apiGroups": ["g"], "resources": ["as", "bs/status"], "verbs": ["list", "patch"]},
        {"apiGroups": ["g"], "resources": ["leases"], "resourceNames": ["one"], "verbs": ["get"]},
        {"apiGroups": ["g"], "resources": ["as/bind", "as/join"], "verbs": ["create"]},
    ]});
    let binding = json!({
        "kind": "ClusterRoleBinding", "metadata": {"name": "r"},
        "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"name": "account"}],
    });
    let rules = granted(&[role, binding], "account");
    assert_eq!(rules.len(), 7);
    let line = |verb: &str, resource: &str, part: &str, name: &str, code: u64| {
        let event = json!({
            "verb": verb, "user": {"username": "me"}, "responseStatus": {"code": code},
            "objectRef": {"apiGroup": "g", "resource": resource, "subresource": part, "name": name},
        });
        format!("{event}\n")
    };
    let review = |user: &str, part: &str| {
        let event = json!({
            "verb": "create", "user": {"username": "hook"}, "responseStatus": {"code": 201},
            "objectRef": {"apiGroup": "authorization.k8s.io", "resource": "subjectaccessreviews"},
            "requestObject": {"spec": {"user": user, "resourceAttributes": {
                "verb": "create", "group": "g", "resource": "as", "subresource": part, "name": "a",
            }}},
        });
        format!("{event}\n")
    };
    let log = [
        line("list", "as", "", "", 200),
        line("patch", "bs", "status", "b", 200),
        line("get", "leases", "", "two", 403),
        line("delete", "as", "", "a", 200),
        // Refused although there is a rule: by admission.
        line("patch", "as", "", "a", 403),
        // Somebody wants to know of me, and of another.
        review("me", "bind"),
        review("me", "leave"),
        review("another", "join"),
    ];
    let ledger = Ledger::of_text(&log.concat());
    let told = |rules: Vec<Granted>| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        told(unused(&rules, &ledger, "me")),
        ["patch g/as", "create g/as/join", "list g/bs/status", "get g/leases one"]
    );
    assert_eq!(
        refused(&rules, &ledger, "me"),
        [
            "delete g/as /a by me: 200",
            "get g/leases /two by me: 403",
            "patch g/as /a by me: 403",
            "create g/as/leave /a by me: 201"
        ]
    );
    assert_eq!(unused(&rules, &ledger, "another").len(), 6);
}
