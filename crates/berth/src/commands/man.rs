//! `berth man`: manual pages generated from the same definitions the parser uses.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _, ValueHint};

use crate::cli::Cli;
use crate::console::{Console, Outcome};

/// Arguments of `berth man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  berth man | man -l -\n  berth man --dir /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Write the page of every command into this folder, which must exist.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// Prints or writes the pages.
pub fn run(args: &ManArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let command = Cli::command();
    if let Some(dir) = &args.dir {
        clap_mangen::generate_to(command, dir)
            .with_context(|| format!("{}: the manual pages cannot be written", dir.display()))?;
    } else {
        clap_mangen::Man::new(command).render(&mut console.out)?;
    }
    Ok(Outcome::Done)
}
