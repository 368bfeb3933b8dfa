//! `berth get`: how things stand, one line each.

use berth_engine::Moment;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{OutputFormat, WorldArgs};
use crate::change::Moment as Typed;
use crate::console::{Console, Outcome};
use crate::manifest::{write_json_document, write_yaml_document};
use crate::replacements::{Entry, Ledger, State, cause, roll};
use crate::table::{Cell, Table, Tone};

/// Arguments of `berth get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// What to show.
    #[command(subcommand)]
    pub subject: Subject,
}

/// What can be shown.
#[derive(Debug, Subcommand)]
pub enum Subject {
    /// Show the members of stateful workloads that are to be replaced, are being replaced, or have been.
    ///
    /// Reads the status of ReplacementPolicies and the Replacements, as the replacement-controller has written them. Members
    /// that nothing is wrong with are not listed.
    Replacements(GetReplacementsArgs),
}

/// Arguments of `berth get replacements`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth get replacements\n  berth get replacements --namespace shop -o wide\n  kubectl get replacementpolicies,replacements -A -o yaml | berth get replacements -f -"
)]
pub struct GetReplacementsArgs {
    /// Only those in this namespace; in all unless given.
    #[arg(short, long, value_name = "NS")]
    pub namespace: Option<String>,

    /// Where they are.
    #[command(flatten)]
    pub input: WorldArgs,

    /// The moment to look at: RFC 3339, or a span such as +5m from now [default: now].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<Typed>,

    /// How to print: wide adds the fault domain and the Replacement.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Shows.
pub fn run(args: &GetArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let Subject::Replacements(args) = &args.subject;
    let Some(ledger) = Ledger::read(&args.input, console)? else { return Ok(Outcome::Faulty) };
    let now = match args.at {
        Some(at) => at.resolve(console.now)?,
        None => console.now,
    };
    let now = Moment::from_timestamp(now);
    let is_wanted =
        |entry: &Entry<'_>| args.namespace.as_deref().is_none_or(|namespace| namespace == entry.namespace);
    let entries: Vec<Entry<'_>> = roll(&ledger).into_iter().filter(is_wanted).collect();
    match args.output {
        OutputFormat::Json => write_json_document(&mut console.out, &document(&entries, now))?,
        OutputFormat::Yaml => write_yaml_document(&mut console.out, &document(&entries, now), true)?,
        OutputFormat::Table | OutputFormat::Wide if entries.is_empty() => {
            writeln!(console.out, "No member is to be replaced, is being replaced or has been.")?;
        }
        output => {
            table(&entries, now, output == OutputFormat::Wide).write(&mut console.out, console.colour)?;
        }
    }
    Ok(Outcome::Done)
}

fn table(entries: &[Entry<'_>], now: Moment, is_wide: bool) -> Table {
    let mut header = vec!["NAMESPACE", "MEMBER", "POLICY", "STATE", "NODE", "CAUSE", "SINCE"];
    if is_wide {
        header.extend(["FAULT DOMAIN", "REPLACEMENT"]);
    }
    header.push("WHY");
    let mut table = Table::with_header(header);
    let or_none = |text: Option<&str>| text.unwrap_or("-").to_owned();
    for entry in entries {
        let state = entry.state(now);
        let leading = entry.leading().map(cause);
        let since = entry.since().map(|since| since.to_string());
        let mut row: Vec<Cell> = vec![
            entry.namespace.into(),
            entry.pod.into(),
            entry.policy_name.into(),
            Cell::toned(state.word(), tone(state)),
            or_none(entry.node()).into(),
            or_none(leading.as_deref()).into(),
            or_none(since.as_deref()).into(),
        ];
        if is_wide {
            let name = entry.replacement.and_then(|replacement| replacement.metadata.name.as_deref());
            row.extend([or_none(entry.fault_domain()).into(), or_none(name).into()]);
        }
        row.push(entry.why().unwrap_or_default().into());
        table.row(row);
    }
    table
}

fn tone(state: State<'_>) -> Tone {
    match state {
        State::Course("Done") => Tone::Good,
        State::Course("Failed") => Tone::Bad,
        State::Course("Aborted") | State::Healthy => Tone::Dim,
        State::Queued | State::Course(_) => Tone::Warn,
        State::Detected | State::Replacing => Tone::Plain,
    }
}

/// The same for programs.
fn document(entries: &[Entry<'_>], now: Moment) -> Value {
    let told = |entry: &Entry<'_>| {
        json!({
            "namespace": entry.namespace, "member": entry.pod, "policy": entry.policy_name,
            "state": entry.state(now).word(), "node": entry.node(), "faultDomain": entry.fault_domain(),
            "cause": entry.leading().map(cause), "since": entry.since().map(|since| since.to_string()),
            "next": entry.next().map(|next| next.to_string()), "why": entry.why(),
            "replacement": entry.replacement.and_then(|replacement| replacement.metadata.name.as_deref()),
        })
    };
    json!({"at": now.to_string(), "members": entries.iter().map(told).collect::<Vec<_>>()})
}
