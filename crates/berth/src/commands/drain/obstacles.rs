//! What is in the way of pods that should be gone: whatever can be seen from here.
//!
//! Owns the looking and the wording. What may not be read is passed over: it is one reason less to show, and no failure.

use std::collections::{BTreeMap, HashMap};

use berth_control::ControllerName;
use berth_control::world::{FREEZE, FreezeMap, Pod};
use http::Request;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::core::{Selector, SelectorExt as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::manifest::printable;

/// How many pods are shown with what is in their way; each costs a request.
pub(super) const SHOWN_MAX: usize = 5;
/// How many events about one pod are looked at.
const EVENTS_MAX: u32 = 50;
/// Where the policies of evictions are.
const POLICIES: &str = "/apis/berth.dev/v1alpha1/evictionpolicies";

/// What is known to be in the way.
#[derive(Debug, Default)]
pub(super) struct Obstacles {
    frozen: Option<String>,
    budgets: Vec<PodDisruptionBudget>,
    holds: Vec<(String, Hold)>,
    /// What the controller has said last about a pod, by its uid.
    notes: HashMap<String, String>,
}

/// What a policy says in its status about pods that it holds.
#[derive(Debug, Deserialize)]
struct Hold {
    #[serde(default)]
    count: i64,
    #[serde(default)]
    example: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Policies {
    items: Vec<Policy>,
}

#[derive(Deserialize)]
struct Policy {
    metadata: kube::api::ObjectMeta,
    #[serde(default)]
    status: Option<PolicyStatus>,
}

#[derive(Deserialize)]
struct PolicyStatus {
    #[serde(default)]
    holds: Option<Vec<Hold>>,
}

impl Obstacles {
    /// Looks for what is in the way of these pods; `home` is the namespace of the controllers.
    pub(super) async fn look(client: &Client, home: &str, pods: &[&Pod]) -> Self {
        let freeze = format!("/api/v1/namespaces/{home}/configmaps/{FREEZE}");
        let freeze: Option<FreezeMap> = get(client, &freeze).await;
        let policies: Option<Policies> = get(client, POLICIES).await;
        let holds = policies.into_iter().flat_map(|policies| policies.items).flat_map(|policy| {
            let name = policy.metadata.name.unwrap_or_default();
            let holds = policy.status.and_then(|status| status.holds).unwrap_or_default();
            holds.into_iter().map(move |hold| (name.clone(), hold))
        });
        let mut found = Self {
            frozen: freeze.map(|map| map.freeze.reason.to_string()),
            holds: holds.collect(),
            ..Self::default()
        };
        let mut namespaces: Vec<&str> = pods.iter().map(|pod| &*pod.identity.key.namespace).collect();
        namespaces.dedup();
        for namespace in namespaces {
            let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), namespace);
            found.budgets.extend(budgets.list(&ListParams::default()).await.into_iter().flatten());
        }
        for pod in pods.iter().take(SHOWN_MAX) {
            let events: Api<Event> = Api::namespaced(client.clone(), &pod.identity.key.namespace);
            let about = ListParams::default()
                .fields(&format!("involvedObject.uid={}", pod.identity.uid))
                .limit(EVENTS_MAX);
            let events = events.list(&about).await.into_iter().flatten();
            if let Some(note) = last_note(events) {
                found.notes.insert(pod.identity.uid.to_string(), note);
            }
        }
        found
    }

    /// What is in the way, in lines: of these pods first, then what holds others.
    pub(super) fn lines(&self, pods: &[&Pod]) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        if let Some(reason) = &self.frozen {
            lines.push(format!(
                "evictions are frozen: {}; `berth unfreeze evictions` lets them go on",
                printable(reason)
            ));
        }
        for pod in pods.iter().take(SHOWN_MAX) {
            let key = &pod.identity.key;
            match self.of_pod(pod) {
                Some(why) => lines.push(format!("{key}: {}", printable(&why))),
                // What holds everybody has been said.
                None if self.frozen.is_some() => {}
                None => lines.push(format!(
                    "{key}: what holds it cannot be seen from here; `berth explain pod {key}` tells what it waits for"
                )),
            }
        }
        if pods.len() > SHOWN_MAX {
            lines.push(format!("and {} more", pods.len() - SHOWN_MAX));
        }
        for (policy, hold) in &self.holds {
            let (message, example) = (printable(&hold.message), printable(&hold.example));
            lines.push(format!("EvictionPolicy {policy} holds {}, such as {example}: {message}", hold.count));
        }
        lines
    }

    fn of_pod(&self, pod: &Pod) -> Option<String> {
        let key = &pod.identity.key;
        let budget = self.budgets.iter().find(|budget| {
            budget.metadata.namespace.as_deref() == Some(&*key.namespace)
                && is_spent(budget)
                && covers(budget, pod)
        });
        if let Some(budget) = budget {
            let name = budget.metadata.name.as_deref().unwrap_or_default();
            return Some(format!("PodDisruptionBudget {name} allows no disruption now"));
        }
        self.notes.get(&*pod.identity.uid).cloned()
    }
}

fn is_spent(budget: &PodDisruptionBudget) -> bool {
    budget.status.as_ref().is_none_or(|status| status.disruptions_allowed <= 0)
}

fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
    let labels: BTreeMap<String, String> =
        pod.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    selector.is_some_and(|selector| selector.matches(&labels))
}

/// The latest of what the controller has said about a pod that was no success.
fn last_note(events: impl Iterator<Item = Event>) -> Option<String> {
    let ours = events.filter(|event| {
        event.reporting_component.as_deref() == Some(ControllerName::TaintEviction.as_str())
            && event.type_.as_deref() == Some("Warning")
    });
    let time = |event: &Event| {
        let told = event.event_time.as_ref().map(|time| time.0);
        told.or_else(|| event.metadata.creation_timestamp.as_ref().map(|time| time.0))
    };
    ours.max_by_key(time)?.message
}

/// What is at a path, if it is there and may be read.
async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Option<T> {
    let request = Request::get(path).body(Vec::new()).ok()?;
    serde_json::from_str(&client.request_text(request).await.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str) -> Pod {
        let pod = json!({
            "metadata": {"namespace": "shop", "name": name, "uid": name, "labels": {"app": "db"}},
            "spec": {"nodeName": "n"},
        });
        serde_json::from_str(&pod.to_string()).unwrap()
    }

    fn budget(selector: &serde_json::Value, allowed: i32) -> PodDisruptionBudget {
        serde_json::from_value(json!({
            "metadata": {"namespace": "shop", "name": "db"},
            "spec": {"selector": selector},
            "status": {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": allowed, "expectedPods": 1},
        }))
        .unwrap()
    }

    #[test]
    fn a_budget_that_is_spent_is_named_where_it_is_about_the_pod() {
        let pod = pod("db-0");
        let told = |budget| Obstacles { budgets: vec![budget], ..Obstacles::default() }.of_pod(&pod);
        let of_db = || json!({"matchLabels": {"app": "db"}});
        assert_eq!(told(budget(&of_db(), 0)).unwrap(), "PodDisruptionBudget db allows no disruption now");
        assert_eq!(told(budget(&json!({}), 0)).unwrap(), "PodDisruptionBudget db allows no disruption now");
        assert_eq!(told(budget(&of_db(), 1)), None);
        assert_eq!(told(budget(&json!({"matchLabels": {"app": "web"}}), 0)), None);
        assert_eq!(told(budget(&json!(null), 0)), None);
    }

    #[test]
    fn what_is_in_the_way_is_told_once_for_all_and_then_for_each() {
        let pods: Vec<Pod> = (0..7).map(|number| pod(&format!("db-{number}"))).collect();
        let pods: Vec<&Pod> = pods.iter().collect();
        let hold =
            Hold { count: 3, example: "shop/db-0".to_owned(), message: "gate backup is shut".to_owned() };
        let obstacles = Obstacles {
            frozen: Some("a storm".to_owned()),
            holds: vec![("careful".to_owned(), hold)],
            notes: [("db-1".to_owned(), "it failed\u{7}".to_owned())].into(),
            ..Obstacles::default()
        };
        assert_eq!(
            obstacles.lines(&pods),
            [
                "evictions are frozen: a storm; `berth unfreeze evictions` lets them go on",
                "shop/db-1: it failed\\u{7}",
                "and 2 more",
                "EvictionPolicy careful holds 3, such as shop/db-0: gate backup is shut",
            ]
        );
        assert_eq!(
            Obstacles::default().lines(&pods[..1]),
            [
                "shop/db-0: what holds it cannot be seen from here; `berth explain pod shop/db-0` tells what it waits for"
            ]
        );
    }

    #[test]
    fn the_last_word_of_the_controller_counts_and_nobody_elses() {
        let event = |time: &str, reporter: &str, kind: &str, message: &str| -> Event {
            serde_json::from_value(json!({
                "metadata": {}, "involvedObject": {}, "eventTime": format!("2026-11-17T{time}.000000Z"),
                "reportingComponent": reporter, "type": kind, "message": message,
            }))
            .unwrap()
        };
        let ours = "taint-eviction-controller";
        let events = [
            event("08:00:02", ours, "Warning", "second"),
            event("08:00:01", ours, "Warning", "first"),
            event("08:00:03", ours, "Normal", "a success"),
            event("08:00:04", "kubelet", "Warning", "another"),
        ];
        assert_eq!(last_note(events.into_iter()).as_deref(), Some("second"));
        assert_eq!(last_note([].into_iter()), None);
    }
}
