//! `Warning` headers: what the client should know about a request that went through.

/// Characters of warnings that go into one answer before they are cut.
const TOTAL_CHARS_MAX: usize = 4 * 1024;

/// Characters of each warning once they are cut.
const CUT_CHARS: usize = 256;

/// What a strict error about YAML begins with; each of its lines is a warning of its own.
const YAML_ERRORS: &str = "yaml: unmarshal errors:\n";

/// The values of the `Warning` headers for these texts: each text once, texts with control characters left out, and cut
/// when they are many.
pub fn headers<S: AsRef<str>>(texts: &[S]) -> Vec<String> {
    let mut kept: Vec<&str> = Vec::new();
    let lines = texts.iter().map(AsRef::as_ref).flat_map(|text: &str| {
        let (lines, whole) = match text.strip_prefix(YAML_ERRORS) {
            Some(lines) => (Some(lines.split('\n').map(str::trim)), None),
            None => (None, Some(text)),
        };
        lines.into_iter().flatten().chain(whole)
    });
    for text in lines {
        if !text.is_empty() && !text.chars().any(char::is_control) && !kept.contains(&text) {
            kept.push(text);
            // More than this cannot all be sent, however short they are.
            if kept.len() >= TOTAL_CHARS_MAX {
                break;
            }
        }
    }
    let total: usize = kept.iter().map(|text| text.chars().count()).sum();
    if total <= TOTAL_CHARS_MAX {
        return kept.into_iter().map(header).collect();
    }
    let mut written = 0;
    let mut out = Vec::new();
    for text in kept {
        if written >= TOTAL_CHARS_MAX {
            break;
        }
        let cut: String = text.chars().take(CUT_CHARS).collect();
        written += cut.chars().count();
        out.push(header(&cut));
    }
    out
}

fn header(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 10);
    out.push_str("299 - \"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_quoted_and_told_once() {
        assert_eq!(
            headers(&["unknown field \"spec.foo\"", "unknown field \"spec.foo\"", "", "a\nb"]),
            ["299 - \"unknown field \\\"spec.foo\\\"\""]
        );
    }

    #[test]
    fn each_line_about_yaml_is_a_warning() {
        assert_eq!(
            headers(&["yaml: unmarshal errors:\n  line 6: key \"a\" already set in map\n  line 8: x"]),
            ["299 - \"line 6: key \\\"a\\\" already set in map\"", "299 - \"line 8: x\""]
        );
    }

    #[test]
    fn many_long_warnings_are_cut() {
        let texts: Vec<String> = (0..100).map(|n| format!("{n:03}{}", "x".repeat(1000))).collect();
        let headers = headers(&texts);
        assert_eq!(headers.len(), TOTAL_CHARS_MAX / CUT_CHARS);
        assert!(headers.iter().all(|header| header.len() < CUT_CHARS + 20));
    }
}
