//! What the API server is told: which writes to ask about, where, and what to do when nobody answers.
//!
//! Owns the two webhook configurations, as `berth install` applies them and as `berth webhook --register` does. Never
//! talks to a server.
//!
//! # When nobody answers
//!
//! A write that the rules must judge is refused (`Fail`): who could make the webhook fail could otherwise bind any set. A
//! write that is only warned about goes through (`Ignore`), and soon. What the controllers live on never comes here at all:
//! - subresources: status, and with it leases that ran out, decisions and conditions;
//! - leases, PlacementDecisions and scores, which have no rules;
//! - writes of the controllers themselves ([`Registration::trusted`]), so that a cluster that fails while the webhook is
//!   down is tainted all the same;
//! - the last steps of a deletion: an update of what is being deleted that changes neither labels nor spec.

use berth_admission::{Operation, RESOURCES};
use berth_engine::select::DETAILS_ANNOTATION;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Where objects are changed on their way in.
pub(crate) const MUTATE_PATH: &str = "/mutate";
/// Where they are accepted or refused.
pub(crate) const VALIDATE_PATH: &str = "/validate";

/// How long the API server waits where it needs an answer; as upstream does.
pub(crate) const TIMEOUT_S: i32 = 10;
/// How long it waits for a warning.
pub(crate) const WARNING_TIMEOUT_S: i32 = 2;

/// The port of the Service.
const SERVICE_PORT: i32 = 443;
/// What all webhook names end in.
const DOMAIN: &str = "admission.berth.dev";

/// The way to the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door<'a> {
    /// A Service of the cluster.
    Service {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// An address outside: `https://HOST:PORT`.
    Url(&'a str),
}

/// What the configurations are made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration<'a> {
    /// What both are called.
    pub(crate) name: &'a str,
    /// Where the webhook is.
    pub(crate) door: Door<'a>,
    /// Whom the API server trusts there, PEM; `None` leaves it to the webhook to fill in.
    pub(crate) ca_bundle: Option<&'a [u8]>,
    /// Users whose writes are never asked about: the account of the controllers.
    pub(crate) trusted: &'a [String],
}

/// What one webhook asks about.
#[derive(Clone, Copy, Debug)]
struct Scope {
    /// The first part of its name.
    name: &'static str,
    rules: &'static [(&'static str, &'static [Operation])],
    conditions: &'static [Condition],
    /// Whether a write goes through when nobody answers.
    is_advice: bool,
}

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const ENDINGS: &[Operation] = &[Operation::Delete];
const CHANGES: &[Operation] = &[Operation::Update, Operation::Delete];

/// What a write must be like to be asked about.
#[derive(Clone, Copy, Debug)]
enum Condition {
    /// An object that is being deleted and keeps its labels and spec is only let go of: finalizers are taken off it.
    NotLettingGo,
    /// The rules of a Placement are about its spec, and one annotation.
    JudgedChanges,
    /// The rules are about the spec.
    SpecChanges,
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Self::NotLettingGo => "not-letting-go",
            Self::JudgedChanges => "judged-changes",
            Self::SpecChanges => "spec-changes",
        }
    }

    /// In CEL.
    fn expression(self) -> String {
        let differs = |field: &str| {
            let of = |object: &str| format!("(has({object}.{field}) ? {object}.{field} : {{}})");
            format!("{} != {}", of("object"), of("oldObject"))
        };
        match self {
            Self::NotLettingGo => format!(
                "request.operation != 'UPDATE' || !has(object.metadata.deletionTimestamp) || {} || {}",
                differs("spec"),
                differs("metadata.labels")
            ),
            Self::SpecChanges => format!("request.operation != 'UPDATE' || {}", differs("spec")),
            Self::JudgedChanges => {
                let asked = |object: &str| {
                    let annotations = format!("{object}.metadata.annotations");
                    format!(
                        "(has({annotations}) && '{DETAILS_ANNOTATION}' in {annotations} ? \
                         {annotations}['{DETAILS_ANNOTATION}'] : '')"
                    )
                };
                let (now, before) = (asked("object"), asked("oldObject"));
                format!("request.operation != 'UPDATE' || {} || {now} != {before}", differs("spec"))
            }
        }
    }
}

const CLUSTERS: Scope = Scope {
    name: "managedclusters",
    rules: &[("managedclusters", WRITES)],
    conditions: &[Condition::NotLettingGo],
    is_advice: false,
};
const BINDINGS: Scope = Scope {
    name: "managedclustersetbindings",
    rules: &[("managedclustersetbindings", WRITES)],
    conditions: &[Condition::NotLettingGo],
    is_advice: false,
};
const PLACEMENTS: Scope = Scope {
    name: "placements",
    rules: &[("placements", WRITES)],
    conditions: &[Condition::JudgedChanges],
    is_advice: false,
};
const POLICIES: Scope = Scope {
    name: "evictionpolicies",
    rules: &[("evictionpolicies", WRITES)],
    conditions: &[Condition::SpecChanges],
    is_advice: false,
};
const REPLACEMENTS: Scope = Scope {
    name: "replacements",
    rules: &[("replacementpolicies", WRITES), ("replacements", WRITES)],
    conditions: &[Condition::SpecChanges],
    is_advice: false,
};
/// What has no rule and may still make clusters leave.
const IMPACT: Scope = Scope {
    name: "impact",
    rules: &[
        ("managedclusters", ENDINGS),
        ("managedclustersetbindings", ENDINGS),
        ("managedclustersets", CHANGES),
        ("placements", ENDINGS),
    ],
    conditions: &[],
    is_advice: true,
};

/// Who changes objects on their way in.
pub(crate) fn mutating(registration: &Registration<'_>) -> MutatingWebhookConfiguration {
    let webhook = |scope: &Scope| MutatingWebhook {
        name: format!("{}.{DOMAIN}", scope.name),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client(registration, MUTATE_PATH),
        failure_policy: Some(scope.failure_policy()),
        match_conditions: Some(conditions(scope, registration)).filter(|list| !list.is_empty()),
        match_policy: Some("Equivalent".to_owned()),
        // What others change after us cannot undate a taint unless they mean to.
        reinvocation_policy: Some("Never".to_owned()),
        rules: Some(rules(scope)),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(scope.timeout_s()),
        ..MutatingWebhook::default()
    };
    MutatingWebhookConfiguration {
        metadata: metadata(registration),
        webhooks: Some([CLUSTERS].iter().map(webhook).collect()),
    }
}

/// Who accepts and refuses them, and warns.
pub(crate) fn validating(registration: &Registration<'_>) -> ValidatingWebhookConfiguration {
    let webhook = |scope: &Scope| ValidatingWebhook {
        name: format!("{}.{DOMAIN}", scope.name),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client(registration, VALIDATE_PATH),
        failure_policy: Some(scope.failure_policy()),
        match_conditions: Some(conditions(scope, registration)).filter(|list| !list.is_empty()),
        match_policy: Some("Equivalent".to_owned()),
        rules: Some(rules(scope)),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(scope.timeout_s()),
        ..ValidatingWebhook::default()
    };
    ValidatingWebhookConfiguration {
        metadata: metadata(registration),
        webhooks: Some(
            [CLUSTERS, BINDINGS, PLACEMENTS, POLICIES, REPLACEMENTS, IMPACT].iter().map(webhook).collect(),
        ),
    }
}

impl Scope {
    fn failure_policy(&self) -> String {
        if self.is_advice { "Ignore" } else { "Fail" }.to_owned()
    }

    fn timeout_s(&self) -> i32 {
        if self.is_advice { WARNING_TIMEOUT_S } else { TIMEOUT_S }
    }
}

fn metadata(registration: &Registration<'_>) -> ObjectMeta {
    ObjectMeta { name: Some(registration.name.to_owned()), ..ObjectMeta::default() }
}

fn client(registration: &Registration<'_>, path: &str) -> WebhookClientConfig {
    let mut client = WebhookClientConfig {
        ca_bundle: registration.ca_bundle.map(|bundle| ByteString(bundle.to_vec())),
        ..WebhookClientConfig::default()
    };
    match registration.door {
        Door::Service { namespace, name } => {
            client.service = Some(ServiceReference {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                path: Some(path.to_owned()),
                port: Some(SERVICE_PORT),
            });
        }
        Door::Url(base) => client.url = Some(format!("{}{path}", base.trim_end_matches('/'))),
    }
    client
}

fn rules(scope: &Scope) -> Vec<RuleWithOperations> {
    let word = |operation: &Operation| {
        match operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
        .to_owned()
    };
    let rule = |(resource, operations): &(&str, &[Operation])| RuleWithOperations {
        api_groups: Some(vec![group_of(resource).to_owned()]),
        api_versions: Some(vec!["*".to_owned()]),
        operations: Some(operations.iter().map(word).collect()),
        resources: Some(vec![(*resource).to_owned()]),
        scope: Some("*".to_owned()),
    };
    scope.rules.iter().map(rule).collect()
}

/// The group of a resource that is asked about.
fn group_of(resource: &str) -> &'static str {
    let known = RESOURCES.iter().find(|(_, plural)| *plural == resource);
    known.map(|(group, _)| *group).expect("only what has rules is asked about")
}

fn conditions(scope: &Scope, registration: &Registration<'_>) -> Vec<MatchCondition> {
    let own = scope.conditions.iter().map(|condition| MatchCondition {
        name: condition.name().to_owned(),
        expression: condition.expression(),
    });
    let others = (!registration.trusted.is_empty()).then(|| MatchCondition {
        name: "not-the-controllers".to_owned(),
        expression: format!("!(request.userInfo.username in {:?})", registration.trusted),
    });
    own.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration<'a>(door: Door<'a>, trusted: &'a [String]) -> Registration<'a> {
        Registration { name: "berth-admission", door, ca_bundle: Some(b"PEM"), trusted }
    }

    const SERVICE: Door<'static> = Door::Service { namespace: "berth-system", name: "berth-webhook" };

    #[test]
    fn what_the_rules_judge_fails_closed_and_what_is_only_warned_about_goes_through() {
        let validating = validating(&registration(SERVICE, &[]));
        let policies: Vec<(String, String, i32)> = validating
            .webhooks
            .unwrap()
            .into_iter()
            .map(|webhook| {
                let first = webhook.name.split('.').next().unwrap().to_owned();
                (first, webhook.failure_policy.unwrap(), webhook.timeout_seconds.unwrap())
            })
            .collect();
        let told: Vec<(&str, &str, i32)> =
            policies.iter().map(|(name, policy, time)| (&**name, &**policy, *time)).collect();
        assert_eq!(
            told,
            [
                ("managedclusters", "Fail", 10),
                ("managedclustersetbindings", "Fail", 10),
                ("placements", "Fail", 10),
                ("evictionpolicies", "Fail", 10),
                ("replacements", "Fail", 10),
                ("impact", "Ignore", 2),
            ]
        );
        let mutating = mutating(&registration(SERVICE, &[])).webhooks.unwrap();
        assert_eq!(mutating.len(), 1);
        assert_eq!(mutating[0].failure_policy.as_deref(), Some("Fail"));
    }

    #[test]
    fn no_subresource_and_no_other_kind_ever_comes_here() {
        let validating = validating(&registration(SERVICE, &[]));
        for rule in validating.webhooks.iter().flatten().flat_map(|webhook| webhook.rules.iter().flatten()) {
            for resource in rule.resources.iter().flatten() {
                let ours = ["evictionpolicies", "replacementpolicies", "replacements"];
                let group = if ours.contains(&resource.as_str()) {
                    "berth.dev"
                } else {
                    "cluster.open-cluster-management.io"
                };
                assert_eq!(rule.api_groups.as_deref(), Some(&[group.to_owned()][..]));
                assert!(!resource.contains('/') && !resource.contains('*'), "{resource}");
                assert!(resource != "placementdecisions" && resource != "addonplacementscores");
            }
        }
    }

    #[test]
    fn conditions_read_as_written() {
        assert_eq!(
            Condition::NotLettingGo.expression(),
            "request.operation != 'UPDATE' || !has(object.metadata.deletionTimestamp) \
             || (has(object.spec) ? object.spec : {}) != (has(oldObject.spec) ? oldObject.spec : {}) \
             || (has(object.metadata.labels) ? object.metadata.labels : {}) \
             != (has(oldObject.metadata.labels) ? oldObject.metadata.labels : {})"
        );
        assert_eq!(
            Condition::JudgedChanges.expression(),
            "request.operation != 'UPDATE' \
             || (has(object.spec) ? object.spec : {}) != (has(oldObject.spec) ? oldObject.spec : {}) \
             || (has(object.metadata.annotations) && 'berth.dev/decision-details' in object.metadata.annotations \
             ? object.metadata.annotations['berth.dev/decision-details'] : '') \
             != (has(oldObject.metadata.annotations) && 'berth.dev/decision-details' in oldObject.metadata.annotations \
             ? oldObject.metadata.annotations['berth.dev/decision-details'] : '')"
        );
    }

    #[test]
    fn the_controllers_are_named_as_cel_reads_it() {
        let trusted = ["system:serviceaccount:a:b".to_owned(), "odd\"one".to_owned()];
        let validating = validating(&registration(SERVICE, &trusted));
        for webhook in validating.webhooks.unwrap() {
            let last = webhook.match_conditions.unwrap().pop().unwrap();
            assert_eq!(
                last.expression,
                r#"!(request.userInfo.username in ["system:serviceaccount:a:b", "odd\"one"])"#
            );
        }
    }

    #[test]
    fn the_door_is_a_service_or_an_address() {
        let clients = |door| {
            let mutating = mutating(&registration(door, &[])).webhooks.unwrap();
            mutating[0].client_config.clone()
        };
        let service = clients(SERVICE).service.unwrap();
        assert_eq!((&*service.namespace, &*service.name), ("berth-system", "berth-webhook"));
        assert_eq!((service.path.as_deref(), service.port), (Some("/mutate"), Some(443)));
        let url = clients(Door::Url("https://127.0.0.1:9443/"));
        assert_eq!(url.url.as_deref(), Some("https://127.0.0.1:9443/mutate"));
        assert!(url.service.is_none());
    }
}
