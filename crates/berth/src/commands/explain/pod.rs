//! `berth explain pod`: whether a pod must leave its node, when, because of what, and what holds it.

use std::fmt::Write as _;

use anyhow::{Context as _, anyhow};
use berth_api::core::Node;
use berth_control::lead::HOME;
use berth_control::world::{FREEZE, FreezeMap, Pod};
use berth_engine::Moment;
use berth_engine::evict::{Freeze, Leave, Tainted};
use berth_engine::moment::Span;
use berth_engine::taint::{Lasting, NodeEffect, Policy, Taint, lasting};
use clap::Args;
use http::Request;
use kube::Client;
use serde::de::DeserializeOwned;

use super::PlacementName as PodName;
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
    let (pod, node, freeze) = runtime.block_on(look(args))?;
    let now = Moment::from_timestamp(console.now);
    writeln!(console.out, "Pod {} at {now}", pod.identity.key)?;
    for sentence in sentences(&pod, node.as_ref(), freeze.as_ref(), now) {
        writeln!(console.out, "  {}", printable(&sentence))?;
    }
    Ok(Outcome::Done)
}

async fn look(args: &ExplainPodArgs) -> anyhow::Result<(Pod, Option<Node>, Option<Freeze>)> {
    let server = connect::find(&args.server, Otherwise::KubectlThenHub).await?;
    let url = server.url();
    let client = Client::try_from(server.config).with_context(|| format!("{url} cannot be talked to"))?;
    let PodName { namespace, name } = &args.name;
    let pod: Option<Pod> = get(&client, &url, &format!("/api/v1/namespaces/{namespace}/pods/{name}")).await?;
    let pod = pod.ok_or_else(|| anyhow!("there is no Pod {} at {url}", args.name))?;
    let node = match &*pod.node {
        "" => None,
        node => get(&client, &url, &format!("/api/v1/nodes/{node}")).await?,
    };
    let path = format!("/api/v1/namespaces/{}/configmaps/{FREEZE}", args.namespace);
    let freeze: Option<FreezeMap> = get(&client, &url, &path).await?;
    Ok((pod, node, freeze.map(|map| map.freeze)))
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
fn sentences(pod: &Pod, node: Option<&Node>, freeze: Option<&Freeze>, now: Moment) -> Vec<String> {
    let stays = |why: &str| vec![format!("It is left alone: {why}.")];
    if pod.is_terminating() {
        return stays("it is on its way out already");
    }
    if pod.is_terminal() {
        return stays("it has run to its end");
    }
    if pod.is_mirror {
        return stays("it is the image of a static pod, which only its kubelet can end");
    }
    if pod.node.is_empty() {
        return stays("it is on no node");
    }
    let Some(node) = node else { return stays(&format!("its node {} is not there", pod.node)) };
    let created = node.metadata.creation_timestamp.as_ref();
    let created = created.map_or(Moment::PAST, |time| Moment::from_timestamp(time.0));
    let mut tainted = Tainted::default();
    tainted.observe(node.no_execute().map(Into::into), created, now);
    let arrived = pod.since.min(now);
    let mut told = vec![match tainted.leave(&pod.tolerations, arrived) {
        None if tainted.is_empty() => {
            format!("It may stay: node {} has no NoExecute taints.", pod.node)
        }
        None => format!("It may stay: it tolerates every NoExecute taint of node {} for ever.", pod.node),
        Some(leave) => must_leave(&leave, &tainted, now),
    }];
    told.extend(tainted.taints().iter().map(|taint| answer(pod, taint)));
    if let Some(freeze) = freeze {
        let by = freeze.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let since = freeze.since.map(|since| format!(" since {since}")).unwrap_or_default();
        told.push(format!("Evictions are frozen{by}{since}: {}.", freeze.reason));
    }
    told
}

fn must_leave(leave: &Leave, tainted: &Tainted, now: Moment) -> String {
    let taint = &tainted.taints()[leave.taint];
    let mut text = format!("It must leave because of {taint}");
    // What does not say since when it counts from when the controller first saw it, and that is not known here.
    let written = if taint.added.is_none() {
        match leave.at.seconds_since(now) {
            ..=0 => write!(text, ", and is due; rates and breakers of the controller may hold it."),
            left => write!(
                text,
                " {} after the controller first sees that taint, which does not say since when it is there.",
                Span(left)
            ),
        }
    } else if leave.at <= now {
        let late = now.seconds_since(leave.at);
        write!(
            text,
            ", and was due at {} ({} ago); rates and breakers of the controller may hold it.",
            leave.at,
            Span(late)
        )
    } else {
        write!(text, " at {}, in {}.", leave.at, Span(leave.at.seconds_since(now)))
    };
    written.expect("text takes all that is written to it");
    text
}

/// What the pod says to one taint.
fn answer(pod: &Pod, taint: &Taint<NodeEffect>) -> String {
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
    format!("Taint {taint} {since}: {verdict}.")
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a literal reads better without a reference")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(pod: Value, taints: Value, freeze: Option<&Freeze>) -> Vec<String> {
        let node = json!({"metadata": {"name": "node", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"taints": taints}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let node: Node = serde_json::from_value(node).unwrap();
        let now = Moment::from_timestamp("2026-01-01T12:01:00Z".parse().unwrap());
        sentences(&pod, Some(&node), freeze, now)
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
        let freeze = Freeze { reason: "storm".into(), by: Some("ann".into()), since: None };
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
