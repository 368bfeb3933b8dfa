//! The rules of roles and bindings.

use berth_schema::{Problem, ProblemKind, names};

use super::{
    place::{At, Found, internal},
    selector,
};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(object: &At<'_>, namespaced: bool, found: &mut Found) {
    for rule in object.get("rules").items() {
        if rule.get("verbs").len() == 0 {
            found.required(&rule.get("verbs"), "verbs must contain at least one value");
        }
        let urls = rule.get("nonResourceURLs");
        let [groups, resources, resource_names] =
            ["apiGroups", "resources", "resourceNames"].map(|field| rule.get(field));
        if urls.len() > 0 {
            if namespaced {
                found.invalid(&urls, "namespaced rules cannot apply to non-resource URLs");
            }
            if [&groups, &resources, &resource_names].iter().any(|list| list.len() > 0) {
                found.invalid(&urls, "rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if groups.len() == 0 {
            found.required(&groups, "resource rules must supply at least one api group");
        }
        if resources.len() == 0 {
            found.required(&resources, "resource rules must supply at least one resource");
        }
    }
    let aggregation = object.get("aggregationRule");
    if aggregation.is_set() {
        let selectors = aggregation.get("clusterRoleSelectors");
        if selectors.len() == 0 {
            found.required(
                &selectors,
                "at least one clusterRoleSelector required if aggregationRule is non-nil",
            );
        }
        for one in selectors.items() {
            selector::check(&one, found);
        }
    }
}

pub(super) fn binding(object: &At<'_>, namespaced: bool, found: &mut Found) {
    let role = object.get("roleRef");
    if role.get("apiGroup").text() != GROUP {
        found.not_supported(&role.get("apiGroup"), &[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&role.get("kind").text()) {
        found.not_supported(&role.get("kind"), kinds);
    }
    let name = role.get("name");
    if name.text().is_empty() {
        found.required(&name, "");
    } else {
        found.sentences(&name, names::path_segment(name.text(), false));
    }
    for subject in object.get("subjects").items() {
        subject_rules(&subject, namespaced, found);
    }
}

fn subject_rules(subject: &At<'_>, namespaced: bool, found: &mut Found) {
    let (name, group) = (subject.get("name"), subject.get("apiGroup"));
    if name.text().is_empty() {
        found.required(&name, "");
    }
    match subject.get("kind").text() {
        "ServiceAccount" => {
            if !name.text().is_empty() {
                found.subdomain(&name);
            }
            if !group.text().is_empty() {
                found.not_supported(&group, &[""]);
            }
            if !namespaced && subject.get("namespace").text().is_empty() {
                found.required(&subject.get("namespace"), "");
            }
        }
        "User" | "Group" if group.text() != GROUP => found.not_supported(&group, &[GROUP]),
        "User" | "Group" => {}
        _ => found.not_supported(&subject.get("kind"), &["ServiceAccount", "User", "Group"]),
    }
}

pub(super) fn binding_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    let role = new.get("roleRef");
    if role.value != old.get("roleRef").value {
        let shown = internal(&[
            ("APIGroup", role.get("apiGroup").value),
            ("Kind", role.get("kind").value),
            ("Name", role.get("name").value),
        ]);
        let message = format!("Invalid value: {shown}: cannot change roleRef");
        found.extend(vec![Problem { path: role.path, kind: ProblemKind::Invalid, message }]);
    }
}
