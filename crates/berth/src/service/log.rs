//! What a running command tells about its work, on standard error.
//!
//! Owns the filter and the form of the log. Results never go through it.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _};

use clap::{Args, ValueEnum};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::console::Colour;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// How much to tell, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct LogArgs {
    /// What to log on standard error: off, error, warn, info, debug or trace, for all or by module [default: info].
    ///
    /// Several are separated by commas: `info,berth_hub=debug`.
    #[arg(long, value_name = "FILTER", env = "BERTH_LOG", hide_env_values = true, value_parser = parse)]
    pub log: Option<Targets>,

    /// The form of the log [default: text].
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// Reads a filter.
pub(crate) fn parse(text: &str) -> Result<Targets, String> {
    let advice = "use off, error, warn, info, debug or trace, or MODULE=LEVEL, separated by commas";
    // The library takes a word that is no level for a module, and so a slip for the wish to hear of nothing else.
    for part in text.split(',') {
        let level = match part.split_once('=') {
            Some((module, level)) if is_module(module) => level,
            Some((module, _)) => return Err(format!("'{module}' is not a module; {advice}")),
            None => part,
        };
        if !LEVELS.iter().any(|known| level.eq_ignore_ascii_case(known)) {
            return Err(format!("'{level}' is not a level; {advice}"));
        }
    }
    text.parse().map_err(|error| format!("{error}; {advice}"))
}

fn is_module(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte))
}

/// What is logged unless somebody says otherwise. The client's own log repeats, once for every attempt, what whoever made
/// the attempt tells once.
fn usual() -> Targets {
    Targets::new().with_default(LevelFilter::INFO).with_target("kube_client", LevelFilter::OFF)
}

/// Sends the log of this process to standard error. A log that is set up already stays.
pub(crate) fn start(args: &LogArgs) {
    let filter = args.log.clone().unwrap_or_else(usual);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match args.log_format.unwrap_or_default() {
        LogFormat::Text => {
            let env = |name: &str| std::env::var_os(name);
            let colour = Colour::choose(
                io::stderr().is_terminal(),
                env("NO_COLOR").as_deref(),
                env("TERM").as_deref().or(Some(OsStr::new("dumb"))),
            );
            lines.compact().with_ansi(colour == Colour::On).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // Only a process that runs two commands, as tests may, has one already.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_for_all_or_by_module() {
        assert!(parse("debug").is_ok());
        assert!(parse("warn,berth_hub=trace").is_ok());
        assert!(parse("OFF").is_ok() && parse("berth_hub::keep=trace,Warn").is_ok());
        for wrong in
            ["berth_hub=loud", "inof", "", "info,", "info, debug", "berth_hub", "=info", "a b=info", "3"]
        {
            assert!(parse(wrong).unwrap_err().ends_with("separated by commas"), "{wrong}");
        }
    }

    #[test]
    fn attempts_of_the_client_are_not_told_one_by_one() {
        use tracing::Level;
        assert!(!usual().would_enable("kube_client::client::builder", &Level::ERROR));
        assert!(usual().would_enable("berth_control::watch", &Level::INFO));
        assert!(!usual().would_enable("berth_control::watch", &Level::DEBUG));
    }
}
