//! `berth convert`: manifests in older forms in, the same manifests in the current form out.

use clap::Args;
use serde_json::Value;

use super::{InputArgs, ManifestFormat};
use crate::console::{Console, Outcome};
use crate::convert::{Remark, concerns, convert};
use crate::manifest::{Notice, load};

/// Arguments of `berth convert`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth convert -f old/ > new.yaml\n  kubectl get placements -A -o yaml | berth convert -f - -o json"
)]
pub struct ConvertArgs {
    /// What to convert.
    #[command(flatten)]
    pub input: InputArgs,

    /// How to print the manifests.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ManifestFormat,
}

/// Converts and prints; with any fault in the input nothing is printed but the faults.
pub fn run(args: &ConvertArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let mut loaded = load(&args.input.files, &mut console.input);
    let mut values: Vec<Value> = Vec::new();
    for object in std::mem::take(&mut loaded.objects) {
        if !concerns(object.group(), &object.kind) {
            values.push(object.value);
            continue;
        }
        // A copy, as the lines of remarks are found in the value as it was given.
        let converted = convert(object.value.clone());
        let placed = |remark: Remark| object.problem(&remark.path, remark.message);
        loaded.notices.extend(converted.changes.into_iter().map(placed).map(Notice));
        loaded.problems.extend(converted.conflicts.into_iter().map(placed));
        values.push(converted.value);
    }
    if !loaded.problems.is_empty() {
        console.report(loaded.problems)?;
        return Ok(Outcome::Faulty);
    }
    // In the order of the text, which is how the user will go through them.
    loaded.notices.sort_by(|a, b| (&a.0.file, a.0.line).cmp(&(&b.0.file, b.0.line)));
    console.notify(&loaded.notices)?;
    args.output.write(&values, console)?;
    Ok(Outcome::Done)
}
