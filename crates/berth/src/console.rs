//! The streams a command talks through.
//!
//! Owns where output goes, whether it may carry colour, and what the outcome of a command means for the exit code.
//! Never formats content.

use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::process::ExitCode;

use jiff::Timestamp;

use crate::manifest::{Notice, Problem, Warning};

/// Whether a stream takes colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Escape sequences are welcome.
    On,
    /// Text only.
    Off,
}

impl Colour {
    /// Colour is for terminals only, and only when neither `NO_COLOR` (set and not empty) nor a dumb terminal says
    /// otherwise.
    pub fn choose(is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> Self {
        let refused = no_color.is_some_and(|value| !value.is_empty());
        let dumb = term.is_some_and(|value| value == "dumb");
        if is_terminal && !refused && !dumb { Self::On } else { Self::Off }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked.
    Done,
    /// The input has faults, all of which were shown.
    Faulty,
    /// The plan moves more than the user allowed.
    TooManyMoves,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        // 2 is left to usage errors, which the argument parser reports.
        Self::from(match outcome {
            Outcome::Done => 0,
            Outcome::Faulty => 1,
            Outcome::TooManyMoves => 3,
        })
    }
}

/// What a command needs of the world outside.
pub struct Console<'c> {
    /// Standard input.
    pub input: Box<dyn Read + 'c>,
    /// Results.
    pub out: Box<dyn Write + 'c>,
    /// Problems and notices.
    pub err: Box<dyn Write + 'c>,
    /// Whether results may be coloured.
    pub colour: Colour,
    /// How many warnings were shown so far.
    pub warnings: usize,
    /// The moment of the run: read once, so that everything in one run agrees on it.
    pub now: Timestamp,
}

impl Console<'static> {
    /// The streams of this process.
    pub fn of_process() -> Self {
        let colour = Colour::choose(
            io::stdout().is_terminal(),
            std::env::var_os("NO_COLOR").as_deref(),
            std::env::var_os("TERM").as_deref(),
        );
        Self {
            input: Box::new(io::stdin().lock()),
            out: Box::new(BufWriter::new(io::stdout().lock())),
            // Not locked: a hub's log goes there too, from other threads.
            err: Box::new(io::stderr()),
            colour,
            warnings: 0,
            now: Timestamp::now(),
        }
    }
}

impl Console<'_> {
    /// Shows problems sorted by place, each once.
    pub fn report(&mut self, mut problems: Vec<Problem>) -> io::Result<()> {
        problems.sort();
        problems.dedup();
        for problem in problems {
            writeln!(self.err, "{problem}")?;
        }
        Ok(())
    }

    /// Shows warnings sorted by place, each once.
    pub fn warn(&mut self, mut warnings: Vec<Warning>) -> io::Result<()> {
        warnings.sort();
        warnings.dedup();
        self.warnings += warnings.len();
        warnings.iter().try_for_each(|warning| writeln!(self.err, "{warning}"))
    }

    /// Shows notices.
    pub fn notify(&mut self, notices: &[Notice]) -> io::Result<()> {
        notices.iter().try_for_each(|notice| writeln!(self.err, "{notice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_needs_a_terminal_and_no_refusal() {
        let os = OsStr::new;
        assert_eq!(Colour::choose(true, None, Some(os("xterm"))), Colour::On);
        assert_eq!(Colour::choose(true, Some(os("")), None), Colour::On, "an empty NO_COLOR says nothing");
        assert_eq!(Colour::choose(true, Some(os("1")), None), Colour::Off);
        assert_eq!(Colour::choose(true, None, Some(os("dumb"))), Colour::Off);
        assert_eq!(Colour::choose(false, None, Some(os("xterm"))), Colour::Off);
    }
}
