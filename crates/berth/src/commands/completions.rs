//! `berth completions`: scripts generated from the same definitions the parser uses.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::console::{Console, Outcome};

/// Arguments of `berth completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  source <(berth completions bash)\n  berth completions zsh > \"${fpath[1]}/_berth\"\n  berth completions fish > ~/.config/fish/completions/berth.fish"
)]
pub struct CompletionsArgs {
    /// The shell to complete in.
    pub shell: Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    // The generator cannot report a failed write, so it writes to memory and the script is written from there.
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "berth", &mut script);
    console.out.write_all(&script)?;
    Ok(Outcome::Done)
}
