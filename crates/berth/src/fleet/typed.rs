//! Arguments together with the words they were given in, for who hands them on to another process.
//!
//! Owns how a flag is written down again. It knows none by name: whatever a group of arguments has is handed on.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};

/// Arguments, and the flags that said them, in the order in which the group defines them.
#[derive(Debug, Clone, Default)]
pub struct Typed<A> {
    /// What was said.
    pub args: A,
    /// The same as it was typed, each as `--flag=value`; what was not said is not there.
    pub flags: Vec<String>,
}

/// The headings of a group end with it, wherever it stands among other arguments.
const NO_HEADING: Option<&str> = None;

fn flags<A: Args>(matches: &ArgMatches) -> Vec<String> {
    let group = A::augment_args(Command::new("group"));
    let typed = group
        .get_arguments()
        .filter(|arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine));
    let written = typed.filter_map(|arg| {
        let values = matches.get_raw(arg.get_id().as_str())?;
        let long = arg.get_long()?;
        Some(values.map(move |value| format!("--{long}={}", value.to_string_lossy())).collect::<Vec<_>>())
    });
    written.flatten().collect()
}

impl<A: Args> FromArgMatches for Typed<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        // Reading them takes them out.
        let flags = flags::<A>(matches);
        Ok(Self { args: A::from_arg_matches_mut(matches)?, flags })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<A: Args> Args for Typed<A> {
    fn group_id() -> Option<Id> {
        A::group_id()
    }

    fn augment_args(command: Command) -> Command {
        A::augment_args(command).next_help_heading(NO_HEADING)
    }

    fn augment_args_for_update(command: Command) -> Command {
        A::augment_args_for_update(command).next_help_heading(NO_HEADING)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::nodes::NodeArgs;
    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        nodes: Typed<NodeArgs>,
    }

    fn read(line: &[&str]) -> Typed<NodeArgs> {
        Line::try_parse_from(["berth"].iter().chain(line)).unwrap().nodes
    }

    #[test]
    fn what_was_typed_is_written_down_and_nothing_else() {
        assert_eq!(read(&[]).flags, Vec::<String>::new());
        let line = ["--node-flap-hold", "1m", "--eviction-rate=2.50", "--when-all-zones-down=hold"];
        let typed = read(&line);
        let flags = ["--eviction-rate=2.50", "--when-all-zones-down=hold", "--node-flap-hold=1m"];
        assert_eq!(typed.flags, flags);
        let flags: Vec<&str> = typed.flags.iter().map(String::as_str).collect();
        assert_eq!(read(&flags).args, typed.args, "and means the same again");
    }

    #[test]
    fn every_flag_of_nodes_can_be_handed_on() {
        for arg in NodeArgs::augment_args(Command::new("group")).get_arguments() {
            assert!(arg.get_long().is_some(), "{}", arg.get_id());
        }
    }
}
