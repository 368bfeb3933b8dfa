//! The floor: a bare client that decides nothing and makes as many writes, to the same kinds, on the same server.

use std::time::Duration;

use anyhow::Context as _;
use berth_api::{Placement, PlacementDecision};
use berth_sim::{each, fleet, steadily};
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use super::arena::Arena;
use super::listener::Listener;
use super::requests::{Own, Requests};
use super::settle::{DECIDED, EVENTS, REQUESTS, SERVER, WRITES, decided_within, note_verbs};
use super::sheet::{Column, Kind, Sheet};
use super::steady::{BREATH, CHURN_CORE, CHURN_RATE, RATE};
use crate::figure::{millis, percentile};

const NAME: &str = "one write";
pub(crate) const TRIP: Kind = Kind { stage: NAME, name: "round trip, median", unit: "ms" };
const TRIP_NINETY_NINTH: Kind = Kind { stage: NAME, name: "round trip, 99th percentile", unit: "ms" };
pub(crate) const RESTED: Kind = Kind { stage: NAME, name: "round trip after a rest, median", unit: "ms" };
const RESTED_NINETY_NINTH: Kind =
    Kind { stage: NAME, name: "round trip after a rest, 99th percentile", unit: "ms" };
/// How many round trips are looked at, and how many after a rest as long as before each taint.
const TRIPS: usize = 100;
const RESTED_TRIPS: usize = 40;

/// How many writes of each kind to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    slices: usize,
    slice_statuses: usize,
    placement_statuses: usize,
    events: usize,
}

impl Mix {
    /// As many as somebody was seen to make.
    pub(crate) fn of(requests: &Requests) -> Self {
        Self {
            slices: requests.to("placementdecisions") as usize,
            slice_statuses: requests.to("placementdecisions/status") as usize,
            placement_statuses: requests.to("placements/status") as usize,
            events: requests.events() as usize,
        }
    }

    /// One of each for every placement.
    fn plain(placements: usize) -> Self {
        Self {
            slices: placements,
            slice_statuses: placements,
            placement_statuses: placements,
            events: placements,
        }
    }
}

/// Which of `total` things fall to `number` of `count`.
pub(crate) fn share(total: usize, number: usize, count: usize) -> usize {
    (number + 1) * total / count - number * total / count
}

/// Makes the writes of so many placements, which are there, one after the other for each: as who decides them has to. Says how
/// many seconds passed from the first decision to the last, as a reader saw them. Events come after: whoever is measured
/// against this lets them wait as well, and nobody waits for them.
async fn write(arena: &Arena, placements: usize, mix: Mix) -> anyhow::Result<f64> {
    let namespace = arena.sample.namespace();
    let slices: Api<PlacementDecision> = Api::namespaced(arena.client.clone(), namespace);
    let owners: Api<Placement> = Api::namespaced(arena.client.clone(), namespace);
    let events: Api<Event> = Api::namespaced(arena.client.clone(), namespace);
    let part = |total, number| share(total, number, placements);
    each(0..placements, async |number| {
        let owner = arena.sample.placement(number).metadata;
        let name = owner.name.clone().unwrap_or_default();
        let clusters = (0..10).map(|place| arena.sample.name((number + place) % arena.clusters));
        let mut slice = fleet::decision(&owner, clusters);
        for entry in slice.status.iter_mut().flat_map(|status| &mut status.decisions) {
            // The stock definition asks for one, be it empty.
            entry.reason = Some(String::new());
        }
        for _ in 0..part(mix.slices, number).min(1) {
            slices.create(&PostParams::default(), &slice).await?;
        }
        let turns = part(mix.slice_statuses, number);
        for turn in 0..turns {
            // Each differs from the one before, and the last has all.
            let kept = slice.decisions().len() - (turns - 1 - turn).min(1);
            let status = json!({"status": {"decisions": slice.decisions()[..kept]}});
            let slice = slice.metadata.name.as_deref().unwrap_or_default();
            slices.patch_status(slice, &PatchParams::default(), &Patch::Merge(status)).await?;
        }
        for turn in 0..part(mix.placement_statuses, number) {
            let status = json!({"status": {"numberOfSelectedClusters": 10 - turn, "conditions": [{
                "type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled",
                "message": "All cluster decisions scheduled", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]}});
            owners.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
        }
        Ok(())
    })
    .await?;
    arena.view.until("every decision of the bare client is seen", |state| state.lacking() == 0).await?;
    let seconds = arena.view.now(decided_within).context("no decision of the bare client was seen")?;
    each(0..placements, async |number| {
        let owner = arena.sample.placement(number).metadata;
        for turn in 0..part(mix.events, number) {
            events.create(&PostParams::default(), &event(&owner, turn)).await?;
        }
        Ok(())
    })
    .await?;
    Ok(seconds)
}

fn event(owner: &ObjectMeta, turn: usize) -> Event {
    let name = owner.name.clone().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{turn}")),
            namespace: owner.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            kind: Some("Placement".to_owned()),
            name: Some(name),
            namespace: owner.namespace.clone(),
            ..ObjectReference::default()
        },
        reason: Some("DecisionUpdate".to_owned()),
        message: Some("Decision is updated with placement ".to_owned()),
        type_: Some("Normal".to_owned()),
        ..Event::default()
    }
}

/// Lets the server make its first writes, which nobody is measured by.
pub(crate) async fn warm_up(arena: &Arena, placements: usize) -> anyhow::Result<()> {
    arena.clear().await?;
    arena.place(placements).await?;
    write(arena, placements, Mix::plain(placements)).await?;
    Ok(())
}

/// Measures many writes at once, one after the other, and reading alone. Nobody else is at work.
pub(crate) async fn measure(
    arena: &Arena,
    placements: usize,
    mix: Mix,
    churn: Duration,
    sheet: &mut Sheet,
) -> anyhow::Result<()> {
    arena.clear().await?;
    arena.place(placements).await?;
    let window = arena.open(None).await?;
    let seconds = write(arena, placements, mix).await?;
    let spent = arena.close(window, None, Own::Nothing).await?;
    let each = |count: usize| count as f64 / placements as f64;
    let writes = mix.slices + mix.slice_statuses + mix.placement_statuses;
    sheet.note(DECIDED, Column::Floor, seconds);
    sheet.note(WRITES, Column::Floor, each(writes));
    note_verbs(sheet, Column::Floor, &spent.requests, placements);
    sheet.note(EVENTS, Column::Floor, each(mix.events));
    sheet.note(REQUESTS, Column::Floor, each(writes + mix.events));
    sheet.note(SERVER, Column::Floor, spent.api_server_seconds + spent.etcd_seconds);
    sheet.keep(Column::Floor, DECIDED.stage, spent, Vec::new());

    let (mut trips, mut rested) = (Vec::new(), Vec::new());
    let window = arena.open(None).await?;
    for _ in 0..TRIPS {
        trips.push(millis(arena.beat().await?));
    }
    for _ in 0..RESTED_TRIPS {
        tokio::time::sleep(BREATH).await;
        rested.push(millis(arena.beat().await?));
    }
    let spent = arena.close(window, None, Own::Clusters(TRIPS + RESTED_TRIPS)).await?;
    for (median, ninety_ninth, trips) in
        [(TRIP, TRIP_NINETY_NINTH, &mut trips), (RESTED, RESTED_NINETY_NINTH, &mut rested)]
    {
        sheet.note(median, Column::Floor, percentile(trips, 0.5));
        sheet.note(ninety_ninth, Column::Floor, percentile(trips, 0.99));
    }
    sheet.keep(Column::Floor, NAME, spent, trips);
    listen(arena, churn, sheet).await
}

/// Measures what it takes to hear of changes, and to do nothing about them.
async fn listen(arena: &Arena, churn: Duration, sheet: &mut Sheet) -> anyhow::Result<()> {
    let listener = Listener::start(&arena.bed).await?;
    let before = listener.processor_seconds()?;
    let (changes, during) = steadily(RATE, churn, async |_| arena.beat().await.map(drop)).await?;
    let used = listener.processor_seconds()? - before;
    listener.end();
    sheet.note(CHURN_RATE, Column::Floor, changes as f64 / during.as_secs_f64());
    sheet.note(CHURN_CORE, Column::Floor, used * 100.0 / during.as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_whatever_they_are_of() {
        for (total, count) in [(0, 7), (3, 7), (7, 7), (20, 7)] {
            assert_eq!((0..count).map(|number| share(total, number, count)).sum::<usize>(), total);
        }
    }
}
