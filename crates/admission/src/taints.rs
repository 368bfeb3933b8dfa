//! Taints: since when they count, and who may touch the system's own.
//!
//! A taint is the same as long as its key, value and effect are; then its time stays, also where a manifest that never
//! named a time is applied again. A time is otherwise the server's to set, because tolerations run from it: who could
//! set it could make a cluster leave at once or never. Who may touch the system's taints may set times, too: the
//! controller that turns one system taint into another keeps their clock. [`TimeAdded::Client`] lets everybody.

use std::collections::{BTreeSet, HashMap};

use berth_api::ManagedCluster;
use berth_api::names::{self, system_taint};
use berth_engine::health::Health;
use serde_json::{Value, json};

use crate::attempt::{Attempt, Operation, TimeAdded, text};
use crate::denial::Denial;
use crate::oracle::{Access, Oracle, Question};

const TAINTS: &str = "/spec/taints";
/// The keys of the system's taints.
const SYSTEM: [&str; 2] = [system_taint::UNAVAILABLE, system_taint::UNREACHABLE];

/// Puts back the system's taint that the cluster's health asks for, where a write leaves it out. `spec.taints` is one list
/// to the API: who applies a manifest with taints of its own replaces all of them, and does not mean the system's.
pub(crate) fn keep(attempt: &Attempt<'_>, object: &mut Value) {
    let stored = attempt.old.and_then(|old| old.pointer(TAINTS)).and_then(Value::as_array);
    let is_system = |taint: &&Value| SYSTEM.contains(&text(Some(*taint), "/key"));
    let stored: Vec<&Value> = stored.into_iter().flatten().filter(is_system).collect();
    if stored.is_empty() {
        return;
    }
    let cluster = attempt.old.and_then(|old| serde_json::from_value::<ManagedCluster>(old.clone()).ok());
    let Some(wanted) = cluster.and_then(|cluster| Health::of(&cluster)?.taint_key()) else { return };
    let Some(kept) = stored.into_iter().find(|taint| text(Some(taint), "/key") == wanted) else { return };
    // What is no object is the schema's to refuse, after us.
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if taints.is_null() {
        *taints = json!([]);
    }
    let Some(taints) = taints.as_array_mut() else { return };
    if !taints.iter().any(|taint| SYSTEM.contains(&field(taint, "key"))) {
        taints.push(kept.clone());
    }
}

/// Gives every taint the time it counts from.
pub(crate) fn stamp(attempt: &Attempt<'_>, object: &mut Value, oracle: &dyn Oracle) -> Result<(), Denial> {
    let now = json!(jiff::Timestamp::from_second(attempt.now.as_second()).unwrap_or(attempt.now).to_string());
    let Some(taints) = object.pointer_mut(TAINTS).and_then(Value::as_array_mut) else { return Ok(()) };
    let stored = attempt.old.and_then(|old| old.pointer(TAINTS)).and_then(Value::as_array);
    // The first of equals counts. By identity: a cluster may carry very many, and whoever writes it waits.
    let mut known_times: HashMap<Identity<'_>, Option<&Value>> = HashMap::new();
    for known in stored.into_iter().flatten() {
        known_times.entry(identity(known)).or_insert_with(|| time(known));
    }
    let mut set_by_hand: Vec<String> = Vec::new();
    for taint in taints.iter_mut().filter(|taint| taint.is_object()) {
        let known = known_times.get(&identity(taint)).copied();
        let given = time(taint).cloned();
        match (known, given) {
            // Dated before: that is its time, and saying nothing about it changes nothing.
            (Some(Some(since)), None) => taint["timeAdded"] = since.clone(),
            (Some(Some(since)), Some(given)) if is_same_time(since, &given) => {}
            (_, None) => taint["timeAdded"] = now.clone(),
            (_, Some(_)) => set_by_hand.push(text(Some(taint), "/key").to_owned()),
        }
    }
    if set_by_hand.is_empty()
        || attempt.time_added == TimeAdded::Client
        || oracle.answer(&Question::May(right(attempt.name)))
    {
        return Ok(());
    }
    if attempt.operation == Operation::Create {
        // Manifests exported from elsewhere carry times; a new cluster's taints begin now.
        taints
            .iter_mut()
            .filter(|taint| taint.is_object())
            .for_each(|taint| taint["timeAdded"] = now.clone());
        return Ok(());
    }
    let keys = set_by_hand.join(",");
    Err(Denial::bad_request(format!("It is not allowed to set TimeAdded of Taint {keys:?}.")))
}

/// The system's taints come and go with a cluster's health; who writes them must have that right.
pub(crate) fn guard(attempt: &Attempt<'_>, object: &Value, oracle: &dyn Oracle) -> Result<(), Denial> {
    fn system(object: Option<&Value>) -> BTreeSet<Identity<'_>> {
        let taints = object.and_then(|object| object.pointer(TAINTS)).and_then(Value::as_array);
        let own = taints.into_iter().flatten().filter(|taint| SYSTEM.contains(&field(taint, "key")));
        own.map(identity).collect()
    }
    let (before, after) = (system(attempt.old), system(Some(object)));
    if before == after || oracle.answer(&Question::May(right(attempt.name))) {
        return Ok(());
    }
    let key = before.symmetric_difference(&after).next().map_or(system_taint::UNREACHABLE, |(key, ..)| key);
    Err(Denial::forbidden(format!(
        "user {:?} cannot change the taint {key}, which follows the health of the cluster; use a taint of another key",
        attempt.user
    )))
}

/// The right to touch the system's taints and the times of all of them.
fn right(cluster: &str) -> Access {
    Access {
        group: names::GROUP,
        resource: "managedclusters",
        subresource: "systemtaints",
        verb: "update",
        name: cluster.to_owned(),
    }
}

/// What makes a taint the same: key, value, effect.
type Identity<'v> = (&'v str, &'v str, &'v str);

fn identity(taint: &Value) -> Identity<'_> {
    (field(taint, "key"), field(taint, "value"), field(taint, "effect"))
}

/// A text in a taint; empty where there is none.
fn field<'v>(taint: &'v Value, name: &str) -> &'v str {
    taint.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn time(taint: &Value) -> Option<&Value> {
    taint.get("timeAdded").filter(|time| !time.is_null())
}

/// The same moment, however it is written.
fn is_same_time(one: &Value, other: &Value) -> bool {
    let read = |value: &Value| value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    one == other || (read(one).is_some() && read(one) == read(other))
}
