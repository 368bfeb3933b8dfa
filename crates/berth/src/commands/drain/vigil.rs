//! Watching a drain until everybody has gone, and telling how far it has come.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use berth_control::world::Pod;
use berth_engine::Moment;
use berth_engine::moment::Span;
use futures::stream::{StreamExt as _, select_all};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as WholePod;
use kube::runtime::watcher::{self, Event};
use tokio::time::MissedTickBehavior;

use super::desk::{Desk, read};
use super::obstacles::Obstacles;
use super::roll::Roll;
use crate::console::{Console, Outcome};

/// How often progress is told, if there is any.
const TELL: Duration = Duration::from_secs(1);
/// How long a pod may be due before it is told what is in its way, and how often that is looked at.
const LATE_SECONDS: i64 = 5;
const LOOK: Duration = Duration::from_secs(5);

/// The watching until everybody has gone.
pub(super) struct Vigil<'d> {
    desk: &'d Desk,
    home: &'d str,
    rolls: BTreeMap<String, Roll>,
    /// What was said last about each node, and about what is in the way.
    told: BTreeMap<String, String>,
}

impl<'d> Vigil<'d> {
    pub(super) fn new(desk: &'d Desk, home: &'d str, rolls: BTreeMap<String, Roll>) -> Self {
        Self { desk, home, rolls, told: BTreeMap::new() }
    }

    /// Watches until everybody has gone, or for so long.
    pub(super) async fn keep(
        mut self,
        limit: Option<Duration>,
        console: &mut Console<'_>,
    ) -> anyhow::Result<Outcome> {
        let names: Vec<String> = self.rolls.keys().cloned().collect();
        let mut events = select_all(names.iter().map(|name| self.desk.watch(name)));
        let end = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut end = std::pin::pin!(end);
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let mut tell = tokio::time::interval(TELL);
        tell.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some((name, event)) = events.next() => self.hear(&name, event, console)?,
                _ = tell.tick() => self.tell(console)?,
                _ = look.tick() => self.tell_obstacles(console).await?,
                () = &mut end => bail!(self.unfinished(&format!("not empty after {}", told_span(limit)))),
                _ = &mut interrupt => bail!(self.unfinished("not empty yet")),
            }
            if self.rolls.values().all(Roll::is_done) {
                self.tell(console)?;
                for (name, roll) in &self.rolls {
                    let staying = roll.staying();
                    let staying = if staying.is_empty() { staying } else { format!("; stay: {staying}") };
                    writeln!(console.out, "{name} is empty: {} gone{staying}", roll.progress().gone)?;
                }
                return Ok(Outcome::Done);
            }
        }
    }

    fn hear(
        &mut self,
        name: &str,
        event: watcher::Result<Event<WholePod>>,
        console: &mut Console<'_>,
    ) -> anyhow::Result<()> {
        let roll = self.rolls.get_mut(name).expect("only the nodes that are drained are watched");
        match event {
            Ok(Event::Init) => roll.begin(),
            Ok(Event::InitApply(pod) | Event::Apply(pod)) => roll.apply(read(&pod)?),
            Ok(Event::InitDone) => roll.end(),
            Ok(Event::Delete(pod)) => roll.remove(pod.metadata.uid.as_deref().unwrap_or_default()),
            // It is watched again by itself; who drains wants to know that nothing is seen meanwhile.
            Err(error) => {
                let told = format!("{name} cannot be watched just now: {error}");
                self.say(format!("{name} trouble"), told, console)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, console: &mut Console<'_>) -> anyhow::Result<()> {
        let known = self.rolls.iter().filter(|(_, roll)| roll.is_whole());
        let lines: Vec<(String, String)> =
            known.map(|(name, roll)| (name.clone(), format!("{name}: {}", roll.progress()))).collect();
        lines.into_iter().try_for_each(|(name, line)| self.say(name, line, console))
    }

    async fn tell_obstacles(&mut self, console: &mut Console<'_>) -> anyhow::Result<()> {
        let late = Moment::from_timestamp(Timestamp::now()).plus_seconds(-LATE_SECONDS);
        let overdue: Vec<&Pod> = self.rolls.values().flat_map(|roll| roll.overdue(late)).collect();
        if overdue.is_empty() {
            return Ok(());
        }
        let looking = Obstacles::look(&self.desk.client, self.home, &overdue);
        // A server that does not answer must not keep anybody from what is told otherwise.
        let Ok(obstacles) = tokio::time::timeout(LOOK, looking).await else { return Ok(()) };
        let lines: Vec<String> =
            obstacles.lines(&overdue).into_iter().map(|line| format!("  {line}")).collect();
        self.say(String::new(), lines.join("\n"), console)
    }

    /// Says something about a subject, unless that was said last.
    fn say(&mut self, about: String, text: String, console: &mut Console<'_>) -> anyhow::Result<()> {
        if self.told.get(&about) != Some(&text) {
            writeln!(console.out, "{text}")?;
            console.out.flush()?;
            self.told.insert(about, text);
        }
        Ok(())
    }

    /// What is told when nobody watches any more: the drain itself has not ended.
    fn unfinished(&self, what: &str) -> String {
        let left = self.rolls.iter().filter(|(_, roll)| !roll.is_done());
        let left: Vec<String> = left.map(|(name, roll)| format!("{name} ({})", roll.progress())).collect();
        let names: Vec<&str> = self.rolls.keys().map(String::as_str).collect();
        let names = names.join(" ");
        format!(
            "{what}: {}. The drain goes on without this command: `berth drain {names}` shows how far it has come, \
             `berth drain {names} --undo` takes it back",
            left.join(", ")
        )
    }
}

fn told_span(limit: Option<Duration>) -> Span {
    Span(i64::try_from(limit.unwrap_or_default().as_secs()).unwrap_or(i64::MAX))
}
