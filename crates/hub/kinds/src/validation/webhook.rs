//! The rules of webhook configurations.

use berth_schema::names;

use super::{
    place::{At, Found},
    selector,
};

/// The review versions this server speaks.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn configuration(object: &At<'_>, found: &mut Found) {
    let mut seen: Vec<&str> = Vec::new();
    for hook in object.get("webhooks").items() {
        webhook(&hook, found);
        review_versions(&hook.get("admissionReviewVersions"), found);
        let name = hook.get("name");
        if name.text().is_empty() {
            continue;
        }
        if seen.contains(&name.text()) {
            found.duplicate(&name);
        }
        seen.push(name.text());
    }
}

fn webhook(hook: &At<'_>, found: &mut Found) {
    let name = hook.get("name");
    if name.text().is_empty() {
        found.required(&name, "");
    } else {
        let problems = names::dns_subdomain(name.text());
        if !problems.is_empty() {
            found.invalid_text(&name, name.text(), &problems.join(","));
        } else if name.text().split('.').count() < 3 {
            found.invalid_text(
                &name,
                name.text(),
                "should be a domain with at least three segments separated by dots",
            );
        }
    }
    for rule in hook.get("rules").items() {
        rule_with_operations(&rule, found);
    }
    found.one_of_if_set(&hook.get("failurePolicy"), &["Fail", "Ignore"]);
    found.one_of_if_set(&hook.get("matchPolicy"), &["Equivalent", "Exact"]);
    let effects = hook.get("sideEffects");
    if !effects.is_set() {
        found.required(&effects, "must specify one of None, NoneOnDryRun");
    }
    found.one_of_if_set(&effects, &["None", "NoneOnDryRun"]);
    let timeout = hook.get("timeoutSeconds");
    if timeout.int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        found.invalid(&timeout, "the timeout value must be between 1 and 30 seconds");
    }
    for field in ["namespaceSelector", "objectSelector"] {
        selector::check(&hook.get(field), found);
    }
    found.one_of_if_set(&hook.get("reinvocationPolicy"), &["IfNeeded", "Never"]);
    client(&hook.get("clientConfig"), found);
}

fn client(client: &At<'_>, found: &mut Found) {
    let (url, service) = (client.get("url"), client.get("service"));
    if url.is_set() == service.is_set() {
        found.required(client, "exactly one of url or service is required");
    } else if url.is_set() {
        check_url(&url, found);
    } else {
        for field in ["name", "namespace"] {
            if service.get(field).text().is_empty() {
                found.required(&service.get(field), "");
            }
        }
        let port = service.get("port");
        if port.int().is_some_and(|port| !(1..=65535).contains(&port)) {
            found.invalid(&port, "port is not valid: must be between 1 and 65535, inclusive");
        }
        check_path(&service.get("path"), found);
    }
}

fn check_path(path: &At<'_>, found: &mut Found) {
    let text = path.text();
    if text.is_empty() || text == "/" {
        return;
    }
    if !text.starts_with('/') {
        found.invalid(path, "must start with a '/'");
    }
    let mut chars = text.chars();
    chars.next();
    let rest = chars.as_str();
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            found.invalid(path, &format!("segment[{index}] may not be empty"));
            continue;
        }
        for sentence in names::dns_subdomain(step) {
            found.invalid(path, &format!("segment[{index}]: {sentence}"));
        }
    }
}

fn check_url(url: &At<'_>, found: &mut Found) {
    const FORM: &str = "; desired format: https://host[/path]";
    let text = url.text();
    let Some((scheme, rest)) = text.split_once("://") else {
        return found.invalid_text(url, text, &format!("'https' is the only allowed URL scheme{FORM}"));
    };
    if scheme != "https" {
        found.invalid_text(url, scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.rsplit('@').next().is_some_and(str::is_empty) {
        found.invalid_text(url, "", &format!("host must be specified{FORM}"));
    }
    if let Some((user, _)) = authority.split_once('@') {
        found.invalid_text(url, user, "user information is not permitted in the URL");
    }
    if let Some((_, fragment)) = text.split_once('#') {
        found.invalid_text(url, fragment, "fragments are not permitted in the URL");
    }
    let before = text.split('#').next().unwrap_or_default();
    if let Some((_, query)) = before.split_once('?') {
        found.invalid_text(url, query, "query parameters are not permitted in the URL");
    }
}

fn review_versions(versions: &At<'_>, found: &mut Found) {
    if versions.len() == 0 {
        return found.required(versions, &format!("must specify one of {}", REVIEWS.join(", ")));
    }
    let mut seen: Vec<&str> = Vec::new();
    for version in versions.items() {
        if seen.contains(&version.text()) {
            found.invalid(&version, "duplicate version");
            continue;
        }
        seen.push(version.text());
        found.sentences(&version, names::dns_1035_label(version.text()));
    }
    if !seen.iter().any(|version| REVIEWS.contains(version)) {
        found.invalid(versions, &format!("must include at least one of {}", REVIEWS.join(", ")));
    }
}

fn rule_with_operations(rule: &At<'_>, found: &mut Found) {
    let wild = |list: &At<'_>| list.len() > 1 && list.items().any(|item| item.text() == "*");
    let operations = rule.get("operations");
    if operations.len() == 0 {
        found.required(&operations, "");
    }
    if wild(&operations) {
        found.invalid(&operations, "if '*' is present, must not specify other operations");
    }
    for operation in operations.items() {
        found.one_of_if_set(&operation, &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]);
    }
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.get(field);
        if list.len() == 0 {
            found.required(&list, "");
        }
        if wild(&list) {
            found.invalid(&list, &format!("if '*' is present, must not specify other {what}"));
        }
        for item in list.items().filter(|item| field == "apiVersions" && item.text().is_empty()) {
            found.required(&item, "");
        }
    }
    resources(&rule.get("resources"), found);
    found.one_of_if_set(&rule.get("scope"), &["*", "Cluster", "Namespaced"]);
}

fn resources(list: &At<'_>, found: &mut Found) {
    if list.len() == 0 {
        found.required(list, "");
    }
    let (mut wild_subs, mut wild_resources): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut plain = false;
    for item in list.items() {
        let Some((resource, sub)) = item.text().split_once('/') else {
            if item.text().is_empty() {
                found.required(&item, "");
            } else {
                plain = item.text() != "*";
            }
            continue;
        };
        if wild_subs.contains(&resource) {
            found.invalid(&item, &format!("if '{resource}/*' is present, must not specify {}", item.text()));
        }
        if wild_resources.contains(&sub) {
            found.invalid(&item, &format!("if '*/{sub}' is present, must not specify {}", item.text()));
        }
        if sub == "*" {
            wild_subs.push(resource);
        }
        if resource == "*" {
            wild_resources.push(sub);
        }
    }
    if list.len() > 1 && list.items().any(|item| item.text() == "*/*") {
        found.invalid(list, "if '*/*' is present, must not specify other resources");
    }
    if plain && list.items().any(|item| item.text() == "*") {
        found.invalid(list, "if '*' is present, must not specify other resources without subresources");
    }
}
