//! `berth explain pod`: whether a pod must leave its node, when, by what way, because of what, and what holds it.
//!
//! Owns the words. The verdict is the engine's, the same that the controller acts on.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use berth_api::EvictionPolicy;
use berth_api::core::Node;
use berth_api::eviction_policy::status::EvictionPolicyStatus;
use berth_control::lead::HOME;
use berth_control::world::{FREEZE, FreezeMap, Pod, owner_of};
use berth_engine::Moment;
use berth_engine::evict::policy::{
    Act, Authority, Book, Demand, Keep, NodeSight, PodFacts, Rule, compile, demands, force,
};
use berth_engine::evict::{Freeze, Tainted};
use berth_engine::gate::{self, Sight, Standing};
use berth_engine::moment::Span;
use berth_engine::taint::{Lasting, NodeEffect, Policy, Taint, lasting};
use clap::Args;
use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{PlacementName as PodName, bars};
use crate::console::{Console, Outcome};
use crate::fleet::connect::{self, Otherwise, ServerArgs};
use crate::manifest::printable;

/// Arguments of `berth explain pod`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth explain pod ns1/web-0\n  berth explain pod ns1/web-0 --context production --namespace fleet"
)]
pub struct ExplainPodArgs {
    /// The pod; without a namespace it is looked for in `default`.
    #[arg(value_name = "NAMESPACE/NAME")]
    pub name: PodName,

    /// The namespace of the controllers, where a freeze would be.
    #[arg(long, value_name = "NS", default_value = HOME)]
    pub namespace: String,

    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Explains.
pub(super) fn run(args: &ExplainPodArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let seen = runtime.block_on(look(args))?;
    let now = Moment::from_timestamp(console.now);
    writeln!(console.out, "Pod {} at {now}", seen.pod.identity.key)?;
    for sentence in sentences(&seen, now) {
        writeln!(console.out, "  {}", printable(&sentence))?;
    }
    Ok(Outcome::Done)
}

/// A pod and everything that has a say in whether it leaves.
struct Seen {
    pod: Pod,
    node: Option<Node>,
    freeze: Option<Freeze>,
    book: Book,
    /// How policies stand, by their names.
    standings: BTreeMap<String, EvictionPolicyStatus>,
    namespace_labels: Option<BTreeMap<String, String>>,
    /// The objects as gates see them.
    objects: Objects,
}

#[derive(Default)]
struct Objects {
    pod: Value,
    node: Option<Value>,
    owner: Option<Value>,
}

async fn look(args: &ExplainPodArgs) -> anyhow::Result<Seen> {
    let server = connect::find(&args.server, Otherwise::KubectlThenHub).await?;
    let url = server.url();
    let client = Client::try_from(server.config).with_context(|| format!("{url} cannot be talked to"))?;
    let PodName { namespace, name } = &args.name;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let pod: Option<Value> = get(&client, &url, &path).await?;
    let object = pod.ok_or_else(|| anyhow!("there is no Pod {} at {url}", args.name))?;
    let pod: Pod = read(&object, &url, &path)?;
    let path = format!("/api/v1/nodes/{}", pod.node);
    let shown: Option<Value> = if pod.node.is_empty() { None } else { get(&client, &url, &path).await? };
    let node = shown.as_ref().map(|node| read(node, &url, &path)).transpose()?;
    let path = format!("/api/v1/namespaces/{}/configmaps/{FREEZE}", args.namespace);
    let freeze: Option<FreezeMap> = get(&client, &url, &path).await?;
    // A server that has never heard of policies has none.
    let listed: Option<Policies> = get(&client, &url, "/apis/berth.dev/v1alpha1/evictionpolicies").await?;
    let mut book = Book::default();
    let mut standings = BTreeMap::new();
    for mut policy in listed.into_iter().flat_map(|list| list.items) {
        book.set(Arc::new(compile(&policy)));
        standings.extend(policy.metadata.name.take().zip(policy.status.take()));
    }
    let namespace: Option<Namespace> = if book.needs_namespaces() {
        get(&client, &url, &format!("/api/v1/namespaces/{namespace}")).await?
    } else {
        None
    };
    let reads_owner = |rule: &Arc<Rule>| {
        rule.orders.as_ref().is_ok_and(|orders| orders.gates.iter().any(gate::Gate::reads_owner))
    };
    let owner: Option<Value> = match owner_of(&object).filter(|_| book.rules().any(reads_owner)) {
        Some((path, uid)) => {
            let owner: Option<Value> = get(&client, &url, &path).await?;
            owner.filter(|owner| owner["metadata"]["uid"] == uid)
        }
        None => None,
    };
    Ok(Seen {
        pod,
        node,
        freeze: freeze.map(|map| map.freeze),
        book,
        standings,
        namespace_labels: namespace.map(|namespace| namespace.metadata.labels.unwrap_or_default()),
        objects: Objects { pod: object, node: shown, owner },
    })
}

/// All policies.
#[derive(Deserialize)]
struct Policies {
    items: Vec<EvictionPolicy>,
}

fn read<T: DeserializeOwned>(object: &Value, url: &str, path: &str) -> anyhow::Result<T> {
    // Through text: what is kept of a pod is read in place.
    serde_json::from_str(&object.to_string())
        .with_context(|| format!("what {url} says of {path} cannot be read"))
}

async fn get<T: DeserializeOwned>(client: &Client, url: &str, path: &str) -> anyhow::Result<Option<T>> {
    let request = Request::get(path).body(Vec::new()).with_context(|| format!("{path} is no path"))?;
    match client.request_text(request).await {
        Ok(text) => {
            let read = serde_json::from_str(&text);
            read.map(Some).with_context(|| format!("what {url} says of {path} cannot be read"))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Api(status)) => {
            Err(anyhow!("{url} does not show {path} ({}): {}", status.code, status.message))
        }
        Err(error) => Err(error).with_context(|| format!("{url} does not answer")),
    }
}

/// What there is to say, the verdict first.
fn sentences(seen: &Seen, now: Moment) -> Vec<String> {
    let Seen { pod, node, freeze, book, namespace_labels, .. } = seen;
    let stays = |why: &str| vec![format!("It is left alone: {why}.")];
    let facts = PodFacts {
        namespace: &pod.identity.key.namespace,
        namespace_labels: namespace_labels.as_ref(),
        labels: &pod.labels,
        owner_kind: pod.owner.as_ref().map(|owner| &*owner.kind),
        tolerations: &pod.tolerations,
        arrived: pod.since.min(now),
    };
    if pod.is_mirror {
        return stays("it is the image of a static pod, which only its kubelet can end");
    }
    if pod.is_terminating() {
        let mut told = stays("it is on its way out already");
        told.extend(by_force(seen, &facts, now));
        return told;
    }
    if pod.is_terminal() {
        return stays("it has run to its end");
    }
    if pod.node.is_empty() {
        return stays("it is on no node");
    }
    let Some(node) = node else { return stays(&format!("its node {} is not there", pod.node)) };
    let tainted = tainted(node, now);
    let demands = demands(&facts, &tainted, book, now);
    let mut told = Vec::new();
    // The first that takes it away, or else the first that would.
    match demands.iter().find(|demand| !matches!(demand.act, Act::Hold(_))).or_else(|| demands.first()) {
        None if tainted.is_empty() => {
            told.push(format!("It may stay: node {} has no NoExecute taints.", pod.node));
        }
        None if tainted.is_drained() && facts.owner_kind == Some("DaemonSet") => {
            told.push("It may stay: it belongs to its node, which is drained.".to_owned());
        }
        None => {
            told.push(format!(
                "It may stay: it tolerates every NoExecute taint of node {} for ever.",
                pod.node
            ));
        }
        Some(demand) => {
            told.push(must_leave(demand, &tainted, now));
            told.extend(by_policy(demand, &seen.objects, now));
            // Who is held by its own policy or is not due yet waits for nothing of this.
            let rule = demand.authority.rule().filter(|_| demand.at <= now);
            if let Some(rule) = rule.filter(|_| !matches!(demand.act, Act::Hold(_))) {
                let standing = seen.standings.get(&*rule.name);
                let key = pod.identity.key.to_string();
                told.extend(bars::sentences(&rule.name, standing, &key, &node.zone().to_string()));
            }
        }
    }
    told.extend(tainted.taints().iter().enumerate().map(|(place, taint)| {
        let demand = demands.iter().find(|demand| demand.taint == place);
        answer(pod, taint, demand)
    }));
    if let Some(freeze) = freeze {
        let by = freeze.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let since = freeze.since.map(|since| format!(" since {since}")).unwrap_or_default();
        told.push(format!("Evictions are frozen{by}{since}: {}.", freeze.reason));
    }
    told
}

fn tainted(node: &Node, now: Moment) -> Tainted {
    let created = node.metadata.creation_timestamp.as_ref();
    let created = created.map_or(Moment::PAST, |time| Moment::from_timestamp(time.0));
    let mut tainted = Tainted::default();
    tainted.observe(node.no_execute().map(Into::into), created, now);
    tainted
}

fn must_leave(demand: &Demand, tainted: &Tainted, now: Moment) -> String {
    let taint = &tainted.taints()[demand.taint];
    if let Act::Hold(keep) = &demand.act {
        let when = if demand.at <= now { String::new() } else { format!(" when it is due at {}", demand.at) };
        return format!("It must leave because of {taint}, and is held{when}: {keep}.");
    }
    let text = format!("It must leave because of {taint}");
    // What does not say since when it counts from when the controller first saw it, and that is not known here.
    if taint.added.is_none() {
        match demand.at.seconds_since(now) {
            ..=0 => format!("{text}, and is due; rates and breakers of the controller may hold it."),
            left => format!(
                "{text} {} after the controller first sees that taint, which does not say since when it is there.",
                Span(left)
            ),
        }
    } else if demand.at <= now {
        let late = now.seconds_since(demand.at);
        format!(
            "{text}, and was due at {} ({} ago); rates and breakers of the controller may hold it.",
            demand.at,
            Span(late)
        )
    } else {
        format!("{text} at {}, in {}.", demand.at, Span(demand.at.seconds_since(now)))
    }
}

/// Who says how it leaves, and what has to hold before.
fn by_policy(demand: &Demand, objects: &Objects, now: Moment) -> Vec<String> {
    let way = match &demand.act {
        Act::Delete => "it is deleted, whatever its disruption budget says".to_owned(),
        Act::Evict => match demand.deadline {
            Some(end) => format!("it is evicted if its disruption budget allows it, until {end}"),
            None => "it is evicted if its disruption budget allows it".to_owned(),
        },
        Act::Hold(Keep::Window { opens }) if opens.is_finite() => format!("it stays until {opens}"),
        Act::Hold(_) => "it stays".to_owned(),
    };
    let rule = match &demand.authority {
        Authority::Kubernetes => return Vec::new(),
        Authority::Drain => return vec![format!("Its node is drained: {way}.")],
        Authority::Policy(rule) => rule,
    };
    let others = match &demand.others[..] {
        [] => String::new(),
        others => format!(", which is more specific than {}", others.join(", ")),
    };
    let mut told = vec![format!("By policy {}{others}: {way}.", rule.name)];
    match &rule.orders {
        Err(complaints) => {
            told.extend(complaints.iter().map(|complaint| {
                format!(
                    "Policy {} cannot be understood: {}: {}.",
                    rule.name, complaint.path, complaint.message
                )
            }));
        }
        Ok(orders) => {
            // Who is not due yet goes by the windows there are then.
            let closes = orders.windows.closes_at(demand.at.max(now)).filter(|closes| closes.is_finite());
            told.extend(closes.map(|closes| format!("Its window closes at {closes}.")));
            let Objects { pod, node, owner } = objects;
            let sight = Sight { pod, node: node.as_ref(), owner: owner.as_ref(), company: None };
            told.extend(gate::all(&orders.gates, sight).into_iter().map(|(name, standing)| match standing {
                Standing::Open => format!("Gate {name} is open."),
                Standing::Shut(why) => format!("Gate {name} is shut: {why}."),
                Standing::Unasked => {
                    format!("Gate {name} is for a service to open, which the controller asks just before.")
                }
            }));
            if orders.is_dry_run {
                told.push("The policy is a dry run: the pod is only counted, and stays.".to_owned());
            }
        }
    }
    told
}

/// When a pod that is on its way out is deleted by force, if a policy says so.
fn by_force(seen: &Seen, facts: &PodFacts<'_>, now: Moment) -> Option<String> {
    let Seen { pod, node, book, .. } = seen;
    let rule = match node {
        Some(node) => {
            let demands = demands(facts, &tainted(node, now), book, now);
            Arc::clone(demands.iter().find_map(|demand| demand.authority.rule())?)
        }
        None => Arc::clone(book.governing_without_node(facts)?.rule),
    };
    let terms = rule.orders.as_ref().ok()?.force.as_ref()?;
    let sight = match node {
        None => NodeSight::Gone,
        Some(node) => NodeSight::of(node),
    };
    Some(match force(terms, pod.deletion?, sight) {
        (at, Some(ground)) => {
            format!("If it is still there at {at}, policy {} deletes it by force: {ground}.", rule.name)
        }
        (at, None) => format!(
            "Policy {} would delete it by force from {at} on, but nothing proves that nothing runs on its node any more.",
            rule.name
        ),
    })
}

/// What the pod says to one taint.
fn answer(pod: &Pod, taint: &Taint<NodeEffect>, demand: Option<&Demand>) -> String {
    let since = match taint.added {
        Some(added) => format!("since {added}"),
        None => {
            "which does not say since when, so it counts from when the controller first saw it".to_owned()
        }
    };
    let by = pod.tolerations.iter().find(|toleration| toleration.matches(taint));
    let by = by.map(|toleration| format!(" by \"{toleration}\"")).unwrap_or_default();
    let verdict = match lasting(taint, &pod.tolerations, Policy::FirstMatch) {
        Lasting::Not => "not tolerated".to_owned(),
        Lasting::Forever => format!("tolerated for ever{by}"),
        Lasting::Seconds(seconds) => format!("tolerated for {}{by}", Span(seconds)),
    };
    let policy = demand.and_then(|demand| demand.authority.rule());
    let policy = policy.map(|rule| format!("; policy {}", rule.name)).unwrap_or_default();
    format!("Taint {taint} {since}: {verdict}{policy}.")
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a literal reads better without a reference")]
mod tests {
    use berth_engine::evict::Cause;
    use serde_json::json;

    use super::*;

    fn told(pod: Value, taints: Value, freeze: Option<&Freeze>) -> Vec<String> {
        told_by(&[], pod, taints, freeze)
    }

    fn told_by(
        policies: &[(&str, Value)],
        pod: Value,
        taints: Value,
        freeze: Option<&Freeze>,
    ) -> Vec<String> {
        let node = json!({"metadata": {"name": "node", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"taints": taints}});
        let mut book = Book::default();
        let mut standings = BTreeMap::new();
        for (name, spec) in policies {
            let policy = json!({"metadata": {"name": name}, "spec": spec});
            book.set(Arc::new(compile(&serde_json::from_value(policy).unwrap())));
            let held = json!([{
                "reason": "Breaker", "zone": "", "count": 2, "example": "n/p",
                "message": "2 of 4 in the zone without a name are affected, which is too many at once",
            }]);
            let standing = if *name == "broken-zone" { json!({"holds": held}) } else { json!({}) };
            standings.insert((*name).to_owned(), serde_json::from_value(standing).unwrap());
        }
        let seen = Seen {
            pod: read(&pod, "", "").unwrap(),
            node: Some(read(&node, "", "").unwrap()),
            freeze: freeze.cloned(),
            book,
            standings,
            namespace_labels: None,
            objects: Objects { pod, node: Some(node), owner: None },
        };
        sentences(&seen, Moment::from_timestamp("2026-01-01T12:01:00Z".parse().unwrap()))
    }

    fn pod(tolerations: Value) -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "n", "creationTimestamp": "2026-01-01T11:00:00Z"},
            "spec": {"nodeName": "node", "tolerations": tolerations}, "status": {"phase": "Running"},
        })
    }

    fn down() -> Value {
        json!([{"key": "down", "effect": "NoExecute", "timeAdded": "2026-01-01T12:00:00Z"}])
    }

    #[test]
    fn a_pod_that_must_leave_is_told_when_and_why() {
        let patient =
            json!([{"key": "down", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]);
        assert_eq!(
            told(pod(patient), down(), None),
            [
                "It must leave because of down:NoExecute at 2026-01-01T12:05:00Z, in 4m.",
                "Taint down:NoExecute since 2026-01-01T12:00:00Z: tolerated for 5m by \"down Exists (NoExecute) for 300s\".",
            ]
        );
        let freeze = Freeze { by: Some("ann".into()), ..Freeze::of(Cause::Person, "storm") };
        assert_eq!(
            told(pod(json!([])), down(), Some(&freeze)),
            [
                "It must leave because of down:NoExecute, and was due at 2026-01-01T12:00:00Z (1m ago); rates and breakers of the controller may hold it.",
                "Taint down:NoExecute since 2026-01-01T12:00:00Z: not tolerated.",
                "Evictions are frozen by ann: storm.",
            ]
        );
    }

    #[test]
    fn the_policy_its_gates_and_its_way_are_told() {
        let careful = json!({
            "pods": {"namespaces": ["n"]}, "way": "Evict", "evict": {"deadlineSeconds": 600, "fallback": "Delete"},
            "gates": [
                {"name": "saved", "annotation": {"key": "example.org/saved"}},
                {"name": "named", "cel": {"expression": "pod.metadata.name == 'p'"}},
                {"name": "backup", "review": {"url": "https://backups.example.com/"}},
            ],
        });
        let policies = [("careful", careful), ("wide", json!({"way": "Delete"}))];
        assert_eq!(
            told_by(&policies, pod(json!([])), down(), None),
            [
                "It must leave because of down:NoExecute, and was due at 2026-01-01T12:00:00Z (1m ago); rates and breakers of the controller may hold it.",
                "By policy careful, which is more specific than wide: it is evicted if its disruption budget allows it, until 2026-01-01T12:10:00Z.",
                "Gate saved is shut: the pod has no annotation example.org/saved.",
                "Gate named is open.",
                "Gate backup is for a service to open, which the controller asks just before.",
                "Taint down:NoExecute since 2026-01-01T12:00:00Z: not tolerated; policy careful.",
            ]
        );
        assert_eq!(
            told_by(&[("broken", json!({"way": "Push"}))], pod(json!([])), down(), None),
            [
                "It must leave because of down:NoExecute, and is held: its policy cannot be understood.",
                "By policy broken: it stays.",
                "Policy broken cannot be understood: spec.way: \"Push\" is not known: allowed are \"Delete\", \"Evict\", \"Hold\".",
                "Taint down:NoExecute since 2026-01-01T12:00:00Z: not tolerated; policy broken.",
            ]
        );
    }

    #[test]
    fn what_holds_it_in_the_queue_is_told_when_it_is_due() {
        let policies = [("broken-zone", json!({"way": "Delete"}))];
        assert_eq!(
            told_by(&policies, pod(json!([])), down(), None)[1..3],
            [
                "By policy broken-zone: it is deleted, whatever its disruption budget says.",
                "It is held (Breaker), as the status of policy broken-zone tells: 2 of 4 in the zone without a name are affected, which is too many at once.",
            ]
        );
        let patient = json!([{"key": "down", "operator": "Exists", "tolerationSeconds": 300}]);
        let told = told_by(&policies, pod(patient), down(), None);
        assert!(told.iter().all(|sentence| !sentence.contains("Breaker")), "{told:?}");
    }

    #[test]
    fn the_window_it_waits_for_or_goes_in_is_told() {
        let nightly = |schedule: &str| {
            json!({
                "way": "Evict", "evict": {"deadlineSeconds": 600, "fallback": "Delete"},
                "when": {"windows": [{"schedule": schedule, "durationSeconds": 3600}]},
            })
        };
        assert_eq!(
            told_by(&[("nightly", nightly("0 2 * * *"))], pod(json!([])), down(), None),
            [
                "It must leave because of down:NoExecute, and is held: no window of its policy is open before 2026-01-02T02:00:00Z.",
                "By policy nightly: it stays until 2026-01-02T02:00:00Z.",
                "Taint down:NoExecute since 2026-01-01T12:00:00Z: not tolerated; policy nightly.",
            ]
        );
        assert_eq!(
            told_by(&[("nightly", nightly("30 11 * * *"))], pod(json!([])), down(), None)[1..3],
            [
                "By policy nightly: it is evicted if its disruption budget allows it, until 2026-01-01T12:10:00Z.",
                "Its window closes at 2026-01-01T12:30:00Z.",
            ]
        );
    }

    #[test]
    fn who_does_not_end_is_told_what_comes_next() {
        let mut ending = pod(json!([]));
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:30Z");
        let spec = json!({"way": "Delete", "after": {"forceDeleteAfterSeconds": 300, "proofs": [{"type": "OutOfServiceTaint"}]}});
        let told =
            |taints: Value| told_by(&[("force", spec.clone())], ending.clone(), taints, None).remove(1);
        assert_eq!(
            told(down()),
            "Policy force would delete it by force from 2026-01-01T12:05:30Z on, but nothing proves that nothing runs on its node any more."
        );
        let out = json!([
            {"key": "down", "effect": "NoExecute", "timeAdded": "2026-01-01T12:00:00Z"},
            {"key": "node.kubernetes.io/out-of-service", "effect": "NoSchedule"},
        ]);
        assert_eq!(
            told(out),
            "If it is still there at 2026-01-01T12:05:30Z, policy force deletes it by force: its node has the taint node.kubernetes.io/out-of-service."
        );
    }

    #[test]
    fn a_pod_that_may_stay_is_told_why() {
        assert_eq!(
            told(pod(json!([])), json!([]), None),
            ["It may stay: node node has no NoExecute taints."]
        );
        assert_eq!(
            told(pod(json!([{"operator": "Exists"}])), json!([{"key": "down", "effect": "NoExecute"}]), None),
            [
                "It may stay: it tolerates every NoExecute taint of node node for ever.",
                "Taint down:NoExecute which does not say since when, so it counts from when the controller first saw it: tolerated for ever by \"* Exists\".",
            ]
        );
        let mut ended = pod(json!([]));
        ended["status"]["phase"] = json!("Failed");
        assert_eq!(told(ended, down(), None), ["It is left alone: it has run to its end."]);
    }
}
