//! `berth explain replacement`: why a member is to be replaced, how far that is, and what holds it.

use anyhow::bail;
use berth_engine::Moment;
use clap::Args;

use super::PlacementName as Name;
use crate::change::Moment as Typed;
use crate::commands::WorldArgs;
use crate::console::{Console, Outcome};
use crate::manifest::printable;
use crate::replacements::{Entry, Ledger, roll, sentences};
use crate::world::near;

/// Arguments of `berth explain replacement`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth explain replacement shop/db-1\n  berth explain replacement shop/db-5d41402abc --context production\n  kubectl get replacementpolicies,replacements -A -o yaml | berth explain replacement shop/db-1 -f -"
)]
pub struct ExplainReplacementArgs {
    /// The pod, or the Replacement; without a namespace it is looked for in `default`.
    #[arg(value_name = "NAMESPACE/NAME")]
    pub name: Name,

    /// Where it is.
    #[command(flatten)]
    pub input: WorldArgs,

    /// The moment to look at: RFC 3339, or a span such as +5m from now [default: now].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<Typed>,
}

/// Explains.
pub(super) fn run(args: &ExplainReplacementArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let Some(ledger) = Ledger::read(&args.input, console)? else { return Ok(Outcome::Faulty) };
    let now = match args.at {
        Some(at) => at.resolve(console.now)?,
        None => console.now,
    };
    let now = Moment::from_timestamp(now);
    let all = roll(&ledger);
    let is_meant = |entry: &&Entry<'_>| {
        let object = entry.replacement.and_then(|replacement| replacement.metadata.name.as_deref());
        entry.namespace == args.name.namespace
            && (entry.pod == args.name.name || object == Some(&*args.name.name))
    };
    let meant: Vec<&Entry<'_>> = all.iter().filter(is_meant).collect();
    if meant.is_empty() {
        let known: Vec<String> =
            all.iter().map(|entry| format!("{}/{}", entry.namespace, entry.pod)).collect();
        bail!(
            "no ReplacementPolicy {} has anything to say about {}: nothing is wrong with it, or no policy speaks of it{}",
            args.input.place(),
            args.name,
            near(&args.name.to_string(), known.iter().map(String::as_str))
        );
    }
    // Several policies may speak of one pod; then none of them acts, and all are told.
    for entry in meant {
        let node = entry.node().map(|node| format!(" on {node}")).unwrap_or_default();
        writeln!(console.out, "Member {}/{}{node} at {now}", entry.namespace, entry.pod)?;
        for sentence in sentences(entry, now) {
            writeln!(console.out, "  {}", printable(&sentence))?;
        }
    }
    Ok(Outcome::Done)
}
