//! Where something stands, and what is wrong there.
//!
//! Owns the one form in which every fault of the input is shown, `file:line: field.path: message`. Never decides
//! whether something is a fault.

use std::fmt;
use std::sync::Arc;

/// A place in a text. Lines and columns count from one, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl Position {
    /// The first character of a text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// A position from counts that start at one; texts are bounded far below `u32::MAX` lines.
    pub(crate) fn new(line: usize, column: usize) -> Self {
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { line: narrow(line), column: narrow(column) }
    }
}

/// One fault of the input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file as the user named it, or as it was found below a folder the user named; empty when it is about the
    /// input as a whole.
    pub file: Arc<str>,
    /// The line, when the fault has one (a file that cannot be opened has none).
    pub line: Option<u32>,
    /// The field, as in `spec.tolerations[0].effect`; empty when the fault is not about a field.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl Problem {
    /// A fault of a whole file.
    pub fn of_file(file: &Arc<str>, message: impl Into<String>) -> Self {
        Self { file: Arc::clone(file), line: None, path: String::new(), message: message.into() }
    }

    /// A fault of the input as a whole.
    pub fn of_input(message: impl Into<String>) -> Self {
        Self::of_file(&Arc::from(""), message)
    }

    /// A fault at a place in a file.
    pub fn at(file: &Arc<str>, at: Position, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: Arc::clone(file), line: Some(at.line), path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}", printable(&self.file))?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", printable(&self.path))?;
        }
        write!(f, "{}", printable(&self.message))
    }
}

/// Something the user should know that is no fault: a document that was skipped, a default that was taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice(pub Problem);

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "notice: {}", self.0)
    }
}

/// Something that will not work as it is written, though the rest goes on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning(pub Problem);

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warning: {}", self.0)
    }
}

/// Text from the input made safe to show: characters that cannot be seen become their escapes, so that a name in a file
/// can neither drive the terminal of whoever reads the message nor turn the line around.
pub fn printable(text: &str) -> std::borrow::Cow<'_, str> {
    if text.chars().any(is_unseen) {
        let mut safe = String::with_capacity(text.len() + 8);
        for c in text.chars() {
            if is_unseen(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
        }
        safe.into()
    } else {
        text.into()
    }
}

/// Whether a character does something to its neighbours instead of being seen: controls, marks that turn or isolate the
/// direction of text, separators of lines, and what has no width. Joiners stay: words of some scripts need them.
pub(super) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A message on one line: the excerpts that a compiler draws below its errors are left out.
pub fn one_line(message: &str) -> String {
    let lines = message.lines().filter(|line| !line.starts_with(" |")).map(str::trim);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpts_of_a_compiler_are_left_out_of_a_line() {
        let message = "compilation failed: ERROR: <input>:1:3: bad\n | a = b\n | ..^\nERROR: <input>:1:5: worse\n | a = b\n | ....^";
        assert_eq!(
            one_line(message),
            "compilation failed: ERROR: <input>:1:3: bad; ERROR: <input>:1:5: worse"
        );
        assert_eq!(one_line("plain"), "plain");
    }

    #[test]
    fn a_problem_reads_file_line_path_message() {
        let file: Arc<str> = "fleet/p.yaml".into();
        let at = Position { line: 7, column: 3 };
        let problem = Problem::at(&file, at, "spec.tolerations[0].effect", "unsupported value \"X\"");
        assert_eq!(
            problem.to_string(),
            "fleet/p.yaml:7: spec.tolerations[0].effect: unsupported value \"X\""
        );
        assert_eq!(Problem::of_file(&file, "no such file").to_string(), "fleet/p.yaml: no such file");
        assert_eq!(Problem::at(&file, at, "", "bad").to_string(), "fleet/p.yaml:7: bad");
        assert_eq!(Notice(Problem::of_input("3 skipped")).to_string(), "notice: 3 skipped");
    }

    #[test]
    fn control_characters_of_the_input_never_reach_the_terminal() {
        let file: Arc<str> = "a\u{1b}[31m.yaml".into();
        assert_eq!(Problem::of_file(&file, "x\ny").to_string(), "a\\u{1b}[31m.yaml: x\\ny");
    }

    #[test]
    fn marks_that_turn_a_line_around_are_shown_as_what_they_are() {
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{200f}"), "a\\u{202e}b\\u{2066}c\\u{200f}");
        assert_eq!(
            printable("شبكة می\u{200c}خواهم 集群 é"),
            "شبكة می\u{200c}خواهم 集群 é",
            "scripts are no marks"
        );
    }
}
