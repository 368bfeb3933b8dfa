//! The streams a command talks through.
//!
//! Owns where output goes, whether it may carry colour, and what the outcome of a command means for the exit code.
//! Never formats content.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::process::ExitCode;

use jiff::Timestamp;

use crate::manifest::{Notice, Problem, Warning};

/// Lines of one sort that are shown: whoever mends these will see the next, and more than that nobody reads.
const LINES_SHOWN_MAX: usize = 200;

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
    /// The flags do not go together, as was told.
    Misused,
    /// The plan moves more than the user allowed.
    TooManyMoves,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        // 2 is for usage errors, most of which the argument parser reports.
        Self::from(match outcome {
            Outcome::Done => 0,
            Outcome::Faulty => 1,
            Outcome::Misused => 2,
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
        self.show(&problems)
    }

    /// Shows warnings sorted by place, each once.
    pub fn warn(&mut self, mut warnings: Vec<Warning>) -> io::Result<()> {
        warnings.sort();
        warnings.dedup();
        self.warnings += warnings.len();
        self.show(&warnings)
    }

    /// Shows notices.
    pub fn notify(&mut self, notices: &[Notice]) -> io::Result<()> {
        self.show(notices)
    }

    fn show(&mut self, lines: &[impl fmt::Display]) -> io::Result<()> {
        let shown = lines.len().min(LINES_SHOWN_MAX);
        lines[..shown].iter().try_for_each(|line| writeln!(self.err, "{line}"))?;
        match lines.len() - shown {
            0 => Ok(()),
            more => writeln!(self.err, "and {more} more"),
        }
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

    #[test]
    fn a_flood_of_problems_is_cut_and_the_rest_counted() {
        let mut shown = Vec::new();
        let mut console = Console {
            input: Box::new(io::empty()),
            out: Box::new(io::sink()),
            err: Box::new(&mut shown),
            colour: Colour::Off,
            warnings: 0,
            now: Timestamp::UNIX_EPOCH,
        };
        let file: std::sync::Arc<str> = "a.yaml".into();
        let problem = |number: usize| Problem::of_file(&file, format!("fault {number:04}"));
        console.report((0..LINES_SHOWN_MAX).map(problem).collect()).unwrap();
        console.report((0..LINES_SHOWN_MAX + 7).chain(0..3).map(problem).collect()).unwrap();
        console.warn((0..=LINES_SHOWN_MAX).map(problem).map(Warning).collect()).unwrap();
        assert_eq!(console.warnings, LINES_SHOWN_MAX + 1, "all count, also those that are not shown");
        drop(console);
        let shown = String::from_utf8(shown).unwrap();
        let rest: Vec<&str> = shown.lines().filter(|line| line.starts_with("and")).collect();
        assert_eq!(rest, ["and 7 more", "and 1 more"], "what is given twice is one");
        assert_eq!(shown.lines().count(), 3 * LINES_SHOWN_MAX + 2);
    }
}
