//! What a hub tells about its work, on standard error.
//!
//! Owns the filter and the form of the log. Results never go through it.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _};

use clap::Args;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::console::Colour;

/// How much to tell.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// What to log on standard error: off, error, warn, info, debug or trace, for all or by module.
    ///
    /// Several are separated by commas: `info,berth_hub=debug`.
    #[arg(long, value_name = "FILTER", env = "BERTH_LOG", hide_env_values = true, default_value = "info", value_parser = parse)]
    pub log: Targets,
}

fn parse(text: &str) -> Result<Targets, String> {
    let advice = "use off, error, warn, info, debug or trace, or MODULE=LEVEL, separated by commas";
    text.parse().map_err(|error| format!("{error}; {advice}"))
}

/// Sends the log of this process to standard error. A log that is set up already stays.
pub(super) fn start(args: &LogArgs) {
    let env = |name: &str| std::env::var_os(name);
    let colour = Colour::choose(
        io::stderr().is_terminal(),
        env("NO_COLOR").as_deref(),
        env("TERM").as_deref().or(Some(OsStr::new("dumb"))),
    );
    let lines =
        tracing_subscriber::fmt::layer().compact().with_ansi(colour == Colour::On).with_writer(io::stderr);
    // Only a process that runs a hub twice, as tests may, has one already.
    let _ = tracing_subscriber::registry().with(args.log.clone()).with(lines).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_for_all_or_by_module() {
        assert!(parse("debug").is_ok());
        assert!(parse("warn,berth_hub=trace").is_ok());
        assert!(parse("berth_hub=loud").unwrap_err().ends_with("separated by commas"));
    }
}
