//! One stream of documents cut at its `---` lines.
//!
//! The cut is made on the text, before any parsing, as Kubernetes tools do: a syntax error in one document then
//! costs that document only, and every other fault in the file is still found. Never looks inside a document.

/// One part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'t> {
    /// How many lines of the stream come before this part.
    pub lines_before: usize,
    /// The part's text, its `---` line included.
    pub text: &'t str,
}

/// Cuts a stream. Directives and comments stay with the document that follows them.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parts = Vec::new();
    let mut start = 0;
    let mut lines_before = 0;
    let mut offset = 0;
    // Only directives and blanks so far: a `---` now belongs to this part rather than ending it.
    let mut prologue = true;
    for (line_number, line) in text.split_inclusive('\n').enumerate() {
        if is_separator(line) {
            if !prologue {
                parts.push(Part { lines_before, text: &text[start..offset] });
                start = offset;
                lines_before = line_number;
            }
            prologue = false;
        } else if prologue {
            let bare = line.trim();
            prologue = bare.is_empty() || bare.starts_with('#') || line.starts_with('%');
        }
        offset += line.len();
    }
    parts.push(Part { lines_before, text: &text[start..] });
    parts
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(usize, &str)> {
        parts(text).into_iter().map(|p| (p.lines_before, p.text)).collect()
    }

    #[test]
    fn a_stream_is_cut_at_its_separators_and_lines_are_kept() {
        assert_eq!(cut("a: 1\n---\nb: 2\n"), [(0, "a: 1\n"), (1, "---\nb: 2\n")]);
        assert_eq!(cut("a: 1\r\n--- # x\r\nb: 2"), [(0, "a: 1\r\n"), (1, "--- # x\r\nb: 2")]);
        assert_eq!(
            cut("---\na: 1\n---\n---\nb: 2\n"),
            [(0, "---\na: 1\n"), (2, "---\n"), (3, "---\nb: 2\n")]
        );
    }

    #[test]
    fn directives_and_comments_stay_with_their_document() {
        assert_eq!(cut("%YAML 1.2\n# c\n---\na: 1\n"), [(0, "%YAML 1.2\n# c\n---\na: 1\n")]);
    }

    #[test]
    fn dashes_inside_a_line_do_not_cut() {
        assert_eq!(cut("a: |\n  ---\n----\n"), [(0, "a: |\n  ---\n----\n")]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped() {
        assert_eq!(cut("\u{feff}a: 1"), [(0, "a: 1")]);
    }
}
