//! What a drain asks of the API server: nodes are written, pods are read and watched, and the controller is looked for.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow, bail};
use berth_api::names::annotation;
use berth_control::ControllerName;
use berth_control::lead::Record;
use berth_control::world::Pod;
use futures::stream::{BoxStream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod as WholePod, Taint};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;

use super::node;
use super::roll::Roll;
use crate::world::near;

/// How often a node that changes under our hands is read again before it is given up.
const ATTEMPTS: usize = 10;
/// How much a holder's clock may be behind ours.
const SKEW_SECONDS: i64 = 10;

/// Where nodes are written and pods are read.
pub(super) struct Desk {
    pub(super) client: Client,
    nodes: Api<Node>,
    url: String,
}

impl Desk {
    pub(super) fn new(client: Client, url: String) -> Self {
        Self { nodes: Api::all(client.clone()), client, url }
    }

    /// The node of that name.
    pub(super) async fn node(&self, name: &str) -> anyhow::Result<Node> {
        if let Some(node) = self.nodes.get_opt(name).await.map_err(|error| self.refusal(error))? {
            return Ok(node);
        }
        let known = self.nodes.list_metadata(&ListParams::default()).await;
        let known: Vec<String> = known.into_iter().flatten().filter_map(|node| node.metadata.name).collect();
        bail!("there is no node {name} at {}{}", self.url, near(name, known.iter().map(String::as_str)))
    }

    /// What the server said, in words.
    fn refusal(&self, error: kube::Error) -> anyhow::Error {
        match error {
            kube::Error::Api(status) => {
                anyhow!("{} refuses it ({}): {}", self.url, status.code, status.message)
            }
            error => anyhow!(error).context(format!("{} does not answer", self.url)),
        }
    }

    /// Writes what `change` makes of a node, as it is when it is written; gives the node before and after it.
    async fn write(
        &self,
        name: &str,
        change: impl Fn(&Node) -> Option<Value>,
    ) -> anyhow::Result<(Node, Option<Node>)> {
        for _ in 0..ATTEMPTS {
            let before = self.node(name).await?;
            let Some(patch) = change(&before) else { return Ok((before, None)) };
            let parameters =
                PatchParams { field_manager: Some("berth-drain".to_owned()), ..PatchParams::default() };
            match self.nodes.patch(name, &parameters, &Patch::Merge(patch)).await {
                Ok(after) => return Ok((before, Some(after))),
                // Somebody else wrote it meanwhile.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(self.refusal(error)),
            }
        }
        bail!("node {name} changes all the time: gave up after {ATTEMPTS} attempts")
    }

    /// Begins a drain, or goes on with it; gives its taint and what to say.
    pub(super) async fn begin(&self, name: &str, reason: Option<&str>) -> anyhow::Result<(Taint, String)> {
        let (before, after) = self.write(name, |node| node::begin(node, reason, Timestamp::now())).await?;
        let begun = node::drain_taint(&before).is_some();
        let node = after.as_ref().unwrap_or(&before);
        let taint =
            node::drain_taint(node).with_context(|| format!("{} has lost the taint of {name}", self.url))?;
        let since = taint.time_added.as_ref().map(|time| format!(" since {}", time.0)).unwrap_or_default();
        let told = if begun {
            format!("{name} is drained{since}; it goes on")
        } else {
            format!("{name} is drained")
        };
        Ok((taint.clone(), told))
    }

    /// Takes a drain back, and gives what to say.
    pub(super) async fn undo(&self, name: &str) -> anyhow::Result<String> {
        let (before, after) = self.write(name, node::undo).await?;
        Ok(match after {
            None => format!("{name} is not drained"),
            Some(_) if node::stays_cordoned(&before) => {
                format!("{name} is not drained any more; it stays cordoned, as it was before")
            }
            Some(_) => format!("{name} is not drained any more, and takes pods again"),
        })
    }

    /// Looks for a controller that will do the work. Where none does, nobody would go; and where Kubernetes' own does instead,
    /// all would go at once, whatever budgets and policies say.
    pub(super) async fn confirm_controller(&self, home: &str) -> anyhow::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), home);
        let leases = leases.list(&ListParams::default()).await.map_err(|error| self.refusal(error))?;
        let now = Timestamp::now();
        if leases.items.iter().any(|lease| leads_evictions(lease, now)) {
            return Ok(());
        }
        bail!(
            "nothing was changed: no Lease in the namespace {home} tells that a taint-eviction-controller of Berth works, which \
             would do it. Start one (`berth run --controllers=taint-eviction-controller`, with that of Kubernetes turned off), or \
             give the namespace of its Lease with --namespace, or --unconfirmed if it runs without leader election"
        )
    }

    /// The pods of nodes as they are now.
    pub(super) async fn rolls(
        &self,
        nodes: impl IntoIterator<Item = (String, Taint)>,
    ) -> anyhow::Result<BTreeMap<String, Roll>> {
        let pods: Api<WholePod> = Api::all(self.client.clone());
        let mut rolls = BTreeMap::new();
        for (name, taint) in nodes {
            let listed = pods.list(&ListParams::default().fields(&format!("spec.nodeName={name}"))).await;
            let mut roll = Roll::new(node::as_cause(&taint));
            roll.begin();
            for pod in listed.map_err(|error| self.refusal(error))? {
                roll.apply(read(&pod)?);
            }
            roll.end();
            rolls.insert(name, roll);
        }
        Ok(rolls)
    }

    /// Everything that happens to the pods of a node.
    pub(super) fn watch(&self, node: &str) -> BoxStream<'static, (String, watcher::Result<Event<WholePod>>)> {
        let config = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
        let name = node.to_owned();
        let events = watcher(Api::all(self.client.clone()), config).default_backoff();
        events.map(move |event| (name.clone(), event)).boxed()
    }
}

/// Whether somebody holds a Lease and evicts.
fn leads_evictions(lease: &Lease, now: Timestamp) -> bool {
    let record = lease.spec.as_ref().map(Record::from).unwrap_or_default();
    let held = i64::from(record.duration_seconds).saturating_add(SKEW_SECONDS);
    let is_held = !record.holder.is_empty()
        && record.renewed.is_some_and(|renewed| now.as_second() - renewed.as_second() <= held);
    let told = lease.metadata.annotations.iter().flatten();
    let evicts = told.into_iter().any(|(key, value)| {
        key == annotation::LEADING_CONTROLLERS
            && value.split(',').any(|name| name == ControllerName::TaintEviction.as_str())
    });
    is_held && evicts
}

/// A pod as the controllers read it.
pub(super) fn read(pod: &WholePod) -> anyhow::Result<Pod> {
    let text = serde_json::to_string(pod).context("a pod is JSON")?;
    serde_json::from_str(&text).context("a pod cannot be read")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_controller_works_that_holds_a_lease_and_evicts() {
        let now: Timestamp = "2026-11-17T08:00:00Z".parse().unwrap();
        let leads = |controllers: &str, holder: &str, renewed: &str| {
            let lease = json!({
                "metadata": {"annotations": {"berth.dev/controllers": controllers}},
                "spec": {
                    "holderIdentity": holder, "leaseDurationSeconds": 15,
                    "renewTime": format!("2026-11-17T{renewed}.000000Z"),
                },
            });
            leads_evictions(&serde_json::from_value(lease).unwrap(), now)
        };
        let both = "node-lifecycle-controller,taint-eviction-controller";
        assert!(leads(both, "one", "07:59:55"));
        assert!(leads(both, "one", "08:00:05"), "its clock may be ahead");
        assert!(!leads(both, "one", "07:59:30"), "it has run out");
        assert!(!leads(both, "", "07:59:55"), "nobody holds it");
        assert!(!leads("placement-controller", "one", "07:59:55"), "it does something else");
        assert!(!leads_evictions(&Lease::default(), now));
    }
}
