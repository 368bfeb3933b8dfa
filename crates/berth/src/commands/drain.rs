//! `berth drain`: empty nodes, by the hands of the taint-eviction-controller.
//!
//! Owns the beginning (a cordon and a taint, `node`), the watching (`vigil`: who is there is in a `roll`, what is in the
//! way are `obstacles`) and the undoing. It evicts nobody itself: the controller does, by its policies and bounds, and goes on
//! when this command has ended. So the same command again shows how far it has come.

mod desk;
mod node;
mod obstacles;
mod roll;
mod vigil;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use berth_control::lead::HOME;
use berth_engine::Moment;
use berth_engine::moment::Span;
use clap::Args;

use self::desk::Desk;
use self::roll::{Roll, Standing};
use self::vigil::Vigil;
use crate::console::{Console, Outcome};
use crate::fleet::connect::{self, Otherwise, ServerArgs};
use crate::fleet::settings::parse_span;
use crate::table::{Cell, Table, Tone};

/// Nodes in one command; each has a watch.
const NODES_MAX: usize = 64;
/// The longest reason: it is the value of a taint.
const REASON_CHARS_MAX: usize = 63;

/// Arguments of `berth drain`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(
    after_help = "Examples:\n  berth drain node-7 --dry-run\n  berth drain node-7 node-8 --reason kernel-update --timeout 30m\n  berth drain node-7 --undo"
)]
pub struct DrainArgs {
    /// The nodes.
    #[arg(value_name = "NODE", required = true, num_args = 1..=NODES_MAX)]
    pub nodes: Vec<String>,

    /// Why, in a word: the value of the taint, which policies can select by.
    #[arg(long, value_name = "WORD", value_parser = parse_reason)]
    pub reason: Option<String>,

    /// Stop watching after so long, such as 10m, with exit code 1; the drain goes on [default: never].
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub timeout: Option<Duration>,

    /// Begin, and do not wait for the end.
    #[arg(long, conflicts_with = "timeout")]
    pub no_wait: bool,

    /// Show who would go and who would stay by taints and tolerations, and change nothing.
    #[arg(long, conflicts_with_all = ["timeout", "no_wait"])]
    pub dry_run: bool,

    /// Take a drain back: whoever has not gone stays, and nodes that the drain cordoned take pods again.
    #[arg(long, conflicts_with_all = ["timeout", "no_wait", "dry_run", "reason", "unconfirmed"])]
    pub undo: bool,

    /// Begin although no Lease tells that a taint-eviction-controller of Berth works, as where it runs without leader election.
    #[arg(long)]
    pub unconfirmed: bool,

    /// The namespace of the controllers: that of the Lease by which they choose a leader.
    #[arg(long, value_name = "NS", default_value = HOME)]
    pub namespace: String,

    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Drains.
pub fn run(args: &DrainArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(drain(args, console))
}

async fn drain(args: &DrainArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let server = connect::find(&args.server, Otherwise::Kubectl).await?;
    let url = server.url();
    let client = server.client().with_context(|| format!("{url} cannot be talked to"))?;
    let desk = Desk::new(client, url);
    let mut names = args.nodes.clone();
    names.sort();
    names.dedup();
    // All are looked up before the first is touched: a slip of the keyboard changes nothing.
    let mut found = Vec::new();
    for name in &names {
        found.push(desk.node(name).await?);
    }
    if args.undo {
        for name in &names {
            let told = desk.undo(name).await?;
            writeln!(console.out, "{told}")?;
        }
        return Ok(Outcome::Done);
    }
    if !args.dry_run && !args.unconfirmed {
        desk.confirm_controller(&args.namespace).await?;
    }
    // Who is there before it begins: some may be gone before they could be watched.
    let planned = found
        .iter()
        .map(|node| node::drain_taint(node).cloned().unwrap_or_else(|| node::new_taint(None, console.now)));
    let mut rolls = desk.rolls(names.iter().cloned().zip(planned)).await?;
    if args.dry_run {
        return show(&rolls, console);
    }
    for (name, roll) in &mut rolls {
        let (taint, told) = desk.begin(name, args.reason.as_deref()).await?;
        roll.begun(node::as_cause(&taint));
        writeln!(console.out, "{told}")?;
    }
    console.out.flush()?;
    if args.no_wait {
        return Ok(Outcome::Done);
    }
    Vigil::new(&desk, &args.namespace, rolls).keep(args.timeout, console).await
}

/// Who would go and who would stay.
fn show(rolls: &BTreeMap<String, Roll>, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let mut table = Table::with_header(["NODE", "POD", "WOULD"]);
    for (name, roll) in rolls {
        for (pod, standing) in roll.all() {
            let (text, tone) = match standing {
                Standing::Goes(at) => match at.seconds_since(Moment::from_timestamp(console.now)) {
                    ..=0 => ("go".to_owned(), Tone::Warn),
                    left => (format!("go in {}", Span(left)), Tone::Warn),
                },
                Standing::Leaving => ("go: it is on its way".to_owned(), Tone::Dim),
                Standing::Stays(why) => (format!("stay: {why}"), Tone::Plain),
            };
            table.row([
                Cell::from(name.as_str()),
                Cell::from(pod.identity.key.to_string()),
                Cell::toned(text, tone),
            ]);
        }
    }
    table.write(&mut console.out, console.colour)?;
    let mut all = rolls.values().flat_map(Roll::all);
    if all.any(|(_, standing)| matches!(standing, Standing::Goes(_))) {
        writeln!(
            console.out,
            "\nEvictionPolicies, disruption budgets and bounds are asked when it is a pod's turn, and may keep it longer."
        )?;
    }
    Ok(Outcome::Done)
}

/// A word that can be the value of a taint.
fn parse_reason(text: &str) -> Result<String, String> {
    let is_end = |char: Option<char>| char.is_some_and(|char| char.is_ascii_alphanumeric());
    let is_inside = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let fits = text.len() <= REASON_CHARS_MAX
        && is_end(text.chars().next())
        && is_end(text.chars().last())
        && text.chars().all(is_inside);
    if fits {
        return Ok(text.to_owned());
    }
    Err(format!(
        "give one word of at most {REASON_CHARS_MAX} letters, digits, '-', '_' and '.', such as kernel-update"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_what_a_taint_can_hold() {
        for good in ["kernel-update", "a", "INC-42.b_c"] {
            assert_eq!(parse_reason(good), Ok(good.to_owned()));
        }
        for bad in ["", "two words", "-x", "x-", "ä", &"x".repeat(64)] {
            assert!(parse_reason(bad).is_err(), "{bad}");
        }
    }
}
