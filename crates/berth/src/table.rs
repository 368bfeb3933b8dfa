//! Columns of text as `kubectl get` prints them.
//!
//! Owns widths, padding and colour of a table of words. Never wraps, and never draws lines.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use crate::console::Colour;
use crate::manifest::printable;

/// Columns of blank between two columns of text.
const PADDING_COLUMNS: usize = 3;

/// The least width of a column, padding included.
const WIDTH_COLUMNS_MIN: usize = 6;

/// How a cell is meant, which decides its colour on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// Something gained, or in order.
    Good,
    /// Something lost, or wrong.
    Bad,
    /// Something to watch.
    Warn,
    /// Beside the point.
    Dim,
}

impl Tone {
    /// The text in this tone; on a plain stream the text alone.
    pub fn paint(self, text: &str, colour: Colour) -> String {
        let code = match (colour, self) {
            (Colour::Off, _) | (_, Self::Plain) => return text.to_owned(),
            (Colour::On, Self::Good) => "32",
            (Colour::On, Self::Bad) => "31",
            (Colour::On, Self::Warn) => "33",
            (Colour::On, Self::Dim) => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// One cell: its text and its tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell in a tone of its own.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        let text = text.into();
        Self { text: printable(&text).into_owned(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// A table under construction.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
    has_header: bool,
}

impl Table {
    /// A table with a header line.
    pub fn with_header<C: Into<Cell>>(header: impl IntoIterator<Item = C>) -> Self {
        Self { rows: vec![header.into_iter().map(Into::into).collect()], has_header: true }
    }

    /// Adds a row. Rows may be shorter than the header; the rest of the line stays empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether there are rows below the header.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == usize::from(self.has_header)
    }

    /// Writes the table. No line ends in blanks.
    pub fn write(&self, out: &mut dyn Write, colour: Colour) -> io::Result<()> {
        self.write_indented(out, colour, 0)
    }

    /// Writes the table with `indent` blanks before each line.
    pub fn write_indented(&self, out: &mut dyn Write, colour: Colour, indent: usize) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![WIDTH_COLUMNS_MIN; columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width() + PADDING_COLUMNS);
            }
        }
        for row in &self.rows {
            let shown = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
            if shown > 0 {
                write!(out, "{:indent$}", "")?;
            }
            for (index, (cell, width)) in row[..shown].iter().zip(&widths).enumerate() {
                out.write_all(cell.tone.paint(&cell.text, colour).as_bytes())?;
                if index + 1 < shown {
                    write!(out, "{:1$}", "", width - cell.text.width())?;
                }
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(table: &Table, colour: Colour) -> String {
        let mut out = Vec::new();
        table.write(&mut out, colour).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_three_more() {
        let mut table = Table::with_header(["NAME", "N", "REASON"]);
        assert!(table.is_empty());
        table.row(["web".into(), "3".into(), "all decisions scheduled".into()]);
        table.row(["a-long-name".into(), "12".into(), "".into()]);
        table.row(["short".into()]);
        assert!(!table.is_empty());
        assert_eq!(
            shown(&table, Colour::Off),
            "NAME          N     REASON\nweb           3     all decisions scheduled\na-long-name   12\nshort\n"
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::default();
        table.row(["集群".into(), "x".into()]);
        table.row(["abcd".into(), "y".into()]);
        assert_eq!(shown(&table, Colour::Off), "集群   x\nabcd   y\n");
    }

    #[test]
    fn colour_changes_no_width() {
        let mut table = Table::default();
        table.row([Cell::toned("+c1", Tone::Good), "x".into()]);
        assert_eq!(shown(&table, Colour::Off), "+c1   x\n");
        assert_eq!(shown(&table, Colour::On), "\u{1b}[32m+c1\u{1b}[0m   x\n");
    }

    #[test]
    fn a_cell_cannot_drive_the_terminal() {
        let mut table = Table::default();
        table.row(["a\u{1b}[2Jb".into()]);
        assert_eq!(shown(&table, Colour::On), "a\\u{1b}[2Jb\n");
    }
}
