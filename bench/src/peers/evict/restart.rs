//! Pods that bear a taint for a while, and a controller that is started anew in the middle of it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use berth_sim::nodes::Departures;

use super::NAMESPACE;
use super::crowd::{Crowd, taint_all};
use crate::peers::arena::Arena;
use crate::peers::contender::Contender;
use crate::peers::requests::Own;
use crate::peers::sheet::{Column, Kind, Sheet};
use crate::peers::stage::Stage;

const NAME: &str = "restart 30 s into a toleration of 60 s";
const FIRST: Kind = Kind { stage: NAME, name: "taint until the first pod is gone", unit: "s" };
pub(crate) const LAST: Kind = Kind { stage: NAME, name: "taint until the last pod is gone", unit: "s" };

/// For how many seconds the pods bear the taint.
pub(crate) const BORNE: u32 = 60;
/// When the controller is started anew, after the taint.
const HALF_TIME: Duration = Duration::from_secs(30);
/// Few pods: when they go is the question, not how fast.
const FEW: Crowd = Crowd { nodes: 1, pods: 10, bear: Some(BORNE) };

/// Whether a restart begins the time anew.
pub(crate) struct Restart;

impl Stage for Restart {
    fn title(&self) -> String {
        NAME.to_owned()
    }

    async fn measure(&self, arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()> {
        FEW.lay(&arena.client).await?;
        let mut running = arena.start(contender)?;
        running.rest().await?;
        let departures = Departures::new(arena.client.clone(), NAMESPACE);
        departures.ready().await?;
        let window = arena.open(None).await?;
        let begun = Instant::now();
        taint_all(&arena.client, 0..FEW.nodes).await?;
        tokio::time::sleep_until((begun + HALF_TIME).into()).await;
        running.alive()?;
        running.stop().await?;
        let mut running = arena.start(contender)?;
        let mut gone = Vec::new();
        running
            .until(async {
                gone = departures.gone(FEW.all_pods()).await?;
                Ok(())
            })
            .await?;
        let spent = arena.close(window, Some(&running), Own::Nodes(FEW.nodes)).await?;
        running.stop().await?;
        let took: Vec<f64> =
            gone.iter().map(|moment| moment.saturating_duration_since(begun).as_secs_f64()).collect();
        let column = Column::Of(contender);
        sheet.note(FIRST, column, *took.first().context("no pod was seen to leave")?);
        sheet.note(LAST, column, *took.last().context("no pod was seen to leave")?);
        sheet.keep(column, NAME, spent, took);
        Ok(())
    }
}
