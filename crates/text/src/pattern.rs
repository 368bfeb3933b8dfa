//! Regular expressions in RE2's notation, which Go, CEL and with them Kubernetes use.
//!
//! Owns the translation into the notation of the engine used here (`\d`, `\w`, `\s` and `\b` mean ASCII, brackets
//! inside a class are plain characters) and the words about an expression that cannot be read. Never keeps a compiled
//! expression: callers know what to share and for how long.

use std::{iter::Peekable, str::Chars};

pub use regex::Regex;
use regex::RegexBuilder;

/// What a compiled expression may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the program; nested repetitions multiply.
    pub program_bytes: usize,
    /// Bytes of the automaton that is built while matching.
    pub automaton_bytes: usize,
    /// How deep groups and classes may nest.
    pub nesting: u32,
}

/// Compiles an expression, or says in Go's words what is wrong with it.
pub fn compile(pattern: &str, limits: &Limits) -> Result<Regex, String> {
    RegexBuilder::new(&translate(pattern))
        .size_limit(limits.program_bytes)
        .dfa_size_limit(limits.automaton_bytes)
        .nest_limit(limits.nesting)
        .build()
        .map_err(|error| format!("error parsing regexp: {}: `{pattern}`", reason(&error)))
}

fn reason(error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(_) = error {
        return "expression too large".to_owned();
    }
    // Before the reason, the engine shows the translated expression, which is not what was written.
    let text = error.to_string();
    match text.lines().last().unwrap_or_default().trim_start_matches("error: ") {
        "unclosed group" => "missing closing )",
        "unopened group" => "unexpected )",
        "unclosed character class" => "missing closing ]",
        "repetition operator missing expression" => "missing argument to repetition operator",
        nested if nested.starts_with("exceed the maximum number of nested") => "expression nests too deeply",
        other => other,
    }
    .to_owned()
}

/// Rewrites a pattern in RE2's notation so that the engine used here gives it the same meaning.
pub fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    // Doubled inside a class, a hyphen is a set operation for the engine and two characters in RE2.
    let mut after_hyphen = false;
    // Whether the next character opens the class: there, `]` is an ordinary member.
    let mut class_start = false;
    while let Some(c) = chars.next() {
        let opening = std::mem::replace(&mut class_start, false);
        let second_hyphen = std::mem::replace(&mut after_hyphen, in_class && c == '-') && c == '-';
        match c {
            '\\' => match chars.next() {
                Some(escaped) => escape(escaped, in_class, &mut chars, &mut out),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    out.push('^');
                    chars.next();
                }
            }
            '[' if chars.peek() == Some(&':') => {
                // A named class such as `[:alpha:]`.
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' if in_class && !opening => {
                in_class = false;
                out.push(']');
            }
            '-' if second_hyphen => out.push_str("\\-"),
            '[' | ']' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn escape(c: char, in_class: bool, chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    let replacement = match (c, in_class) {
        ('d', true) => "0-9",
        ('d', false) => "[0-9]",
        ('D', _) => "[^0-9]",
        ('w', true) => "0-9A-Za-z_",
        ('w', false) => "[0-9A-Za-z_]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', true) => "\\t\\n\\f\\r ",
        ('s', false) => "[\\t\\n\\f\\r ]",
        ('S', _) => "[^\\t\\n\\f\\r ]",
        ('b', false) => "(?-u:\\b)",
        ('B', false) => "(?-u:\\B)",
        ('Q', false) => {
            // Literal up to `\E`.
            while let Some(literal) = chars.next() {
                if literal == '\\' && chars.peek() == Some(&'E') {
                    chars.next();
                    break;
                }
                out.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
            }
            return;
        }
        _ => {
            out.push('\\');
            out.push(c);
            return;
        }
    };
    out.push_str(replacement);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { program_bytes: 256 * 1024, automaton_bytes: 512 * 1024, nesting: 64 };

    #[test]
    fn classes_and_escapes_mean_what_they_mean_in_re2() {
        let cases = [
            (r"^\d+$", "42", true),
            (r"^\d+$", "٤٢", false),
            (r"^[\w-]+$", "a-b_1", true),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"^\s$", "\u{a0}", false),
            (r"^[[]$", "[", true),
            (r"^[]a]$", "]", true),
            (r"^[^]a]$", "]", false),
            (r"^[a&&b]+$", "&", true),
            (r"^[+--]+$", "+,-", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[[:digit:]x]+$", "1x", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"(?i)^ABC$", "abc", true),
            (r"^[0-9]+[hms]$", "10m\n", false),
            (r"^[0-9]+[hms]$", "x\n10m", false),
        ];
        for (pattern, text, wanted) in cases {
            let compiled = compile(pattern, &LIMITS).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.is_match(text), wanted, "{pattern} on {text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_explained_in_the_words_of_go() {
        for (pattern, reason) in [
            ("(", "missing closing )"),
            (")", "unexpected )"),
            ("[", "missing closing ]"),
            ("*", "missing argument to repetition operator"),
            ("((((a{100}){100}){100}){100})", "expression too large"),
        ] {
            let told = compile(pattern, &LIMITS).unwrap_err();
            assert_eq!(told, format!("error parsing regexp: {reason}: `{pattern}`"));
        }
        let deep = format!("{}{}", "(".repeat(5000), ")".repeat(5000));
        assert!(compile(&deep, &LIMITS).unwrap_err().contains(": expression nests too deeply: "));
    }
}
