//! Regular expressions: `matches`, `find`, `findAll`.
//!
//! Owns how much a pattern may take and cost. What it means is said by [`berth_text::pattern`].

use std::sync::Arc;

use berth_text::pattern::{Limits, Regex};

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("matches", "matches", "(string, string) -> bool", matches),
    ("matches", "matches_string", "string.(string) -> bool", matches),
    ("find", "string_find_string", "string.(string) -> string", find),
    ("findAll", "string_find_all_string", "string.(string) -> list(string)", find_all),
    ("findAll", "string_find_all_string_int", "string.(string, int) -> list(string)", find_all),
];

/// What a compiled pattern may take. Anybody who may write an expression can write patterns, even compose them while it
/// runs, so there is less room than where patterns are part of a definition.
const LIMITS: Limits = Limits { program_bytes: 256 * 1024, automaton_bytes: 512 * 1024, nesting: 64 };
/// The longest pattern accepted, in bytes.
const PATTERN_BYTES_MAX: usize = 4096;

/// The work of compiling a pattern that is only known at run time: of beginning to, of each of its bytes, and of each
/// state of the automaton. The time these take, in units of copying.
const COMPILE_WORK: u64 = 100_000;
const COMPILE_BYTE_WORK: u64 = 1000;
const COMPILE_STATE_WORK: u64 = 150;
/// The work of a class that reaches beyond ASCII where case does not matter: every letter in it is looked up.
const FOLDED_CLASS_WORK: u64 = 4_000_000;
/// So many states are one more unit of work for each byte of a text, where all of them have to be followed at once.
const STATES_PER_WORK: u64 = 2;

/// A compiled pattern and about how large it is.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    states: u64,
}

impl Pattern {
    /// Compiles a pattern, or says what is wrong with it.
    pub(crate) fn compile(pattern: &str) -> Result<Self, String> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("pattern is longer than {PATTERN_BYTES_MAX} bytes"));
        }
        let regex = berth_text::pattern::compile(pattern, &LIMITS)?;
        Ok(Self { regex, states: states(pattern) })
    }

    /// The work of compiling, known before it is begun.
    pub(crate) fn compile_work(pattern: &str) -> u64 {
        if pattern.len() > PATTERN_BYTES_MAX {
            return COMPILE_WORK;
        }
        let flags = pattern.split("(?").skip(1).map(|rest| rest.split([':', ')']).next().unwrap_or_default());
        let folds = flags.into_iter().any(|flags| flags.contains('i'));
        let wide = !pattern.is_ascii() || [r"\x", r"\p", r"\P"].iter().any(|escape| pattern.contains(escape));
        let folded = if folds && wide { pattern.matches('[').count() as u64 } else { 0 };
        COMPILE_WORK
            + COMPILE_BYTE_WORK * pattern.len() as u64
            + COMPILE_STATE_WORK * states(pattern)
            + FOLDED_CLASS_WORK * folded
    }

    /// The work of going through a text once.
    fn search_work(&self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(1 + self.states / STATES_PER_WORK)
    }
}

/// About how many states a pattern has: repetitions multiply what they repeat, and a class of Unicode has hundreds.
/// Reads it far less closely than a compiler does; a pattern that is wrong may have any number.
fn states(pattern: &str) -> u64 {
    /// Beyond this a pattern is refused as too large.
    const STATES_MAX: u64 = LIMITS.program_bytes as u64 / 16;
    const UNICODE_CLASS: u64 = 400;
    const CLASS: u64 = 8;
    // For each open group, the states in it so far and those of its last part.
    let mut groups: Vec<(u64, u64)> = Vec::new();
    let (mut all, mut last) = (0_u64, 0_u64);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        last = match c {
            '(' => {
                groups.push((all, last));
                (all, last) = (0, 0);
                continue;
            }
            ')' => {
                let (before, _) = groups.pop().unwrap_or_default();
                std::mem::replace(&mut all, before)
            }
            '{' => {
                let Some((bounds, after)) = rest.split_once('}') else { continue };
                let bound = |text: &str| text.parse::<u64>().unwrap_or(1);
                let times = bounds.split(',').map(bound).max().unwrap_or(1).max(1);
                rest = after;
                // The part itself is counted already.
                all = all.saturating_add(last.saturating_mul(times - 1)).min(STATES_MAX);
                last = last.saturating_mul(times).min(STATES_MAX);
                continue;
            }
            '*' | '+' | '?' => continue,
            '\\' => {
                let escaped = rest.chars().next();
                rest = &rest[escaped.map_or(0, char::len_utf8)..];
                if matches!(escaped, Some('p' | 'P')) {
                    // Its name is in braces or has one letter.
                    let braced = rest.strip_prefix('{').and_then(|name| name.split_once('}'));
                    let letter = rest.chars().next().map_or(0, char::len_utf8);
                    rest = braced.map_or(&rest[letter..], |(_, after)| after);
                    UNICODE_CLASS
                } else {
                    1
                }
            }
            '[' => {
                // A bracket that comes first is one of the class.
                let first = rest.strip_prefix('^').unwrap_or(rest);
                let skipped = rest.len() - first.len() + usize::from(first.starts_with(']'));
                let mut end = rest.len();
                let mut escaped = false;
                for (at, c) in rest.char_indices().skip_while(|(at, _)| *at < skipped) {
                    if c == ']' && !escaped {
                        end = at;
                        break;
                    }
                    escaped = c == '\\' && !escaped;
                }
                let class = &rest[..end];
                rest = rest.get(end + 1..).unwrap_or_default();
                let unicode = (class.matches("\\p").count() + class.matches("\\P").count()) as u64;
                CLASS + unicode * UNICODE_CLASS
            }
            '.' => CLASS,
            _ => 1,
        };
        all = all.saturating_add(last).min(STATES_MAX);
    }
    groups.into_iter().fold(all, |all, (before, _)| all.saturating_add(before)).min(STATES_MAX)
}

/// The text and the compiled pattern of a call. Matching is linear in their product, and accounted for
/// as such.
fn prepare<'v>(
    context: &mut Context<'_>,
    args: &'v [Value],
) -> Result<(&'v Arc<str>, Arc<Pattern>), EvalError> {
    let [Value::String(text), Value::String(pattern), ..] = args else {
        return Err(EvalError::NoSuchOverload);
    };
    let compiled = context.pattern(pattern)?;
    context.budget.work(compiled.search_work(text.len()))?;
    Ok((text, compiled))
}

fn matches(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, pattern) = prepare(context, args)?;
    Ok(Value::Bool(pattern.regex.is_match(text)))
}

fn find(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (text, pattern) = prepare(context, args)?;
    Ok(Value::string(pattern.regex.find(text).map_or("", |found| found.as_str())))
}

fn find_all(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let limit = match args {
        [_, _, Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
        [_, _] => usize::MAX,
        _ => return Err(EvalError::NoSuchOverload),
    };
    let (text, pattern) = prepare(context, args)?;
    let mut found = Vec::new();
    for matched in pattern.regex.find_iter(text).take(limit) {
        // Each search may look through all that is left to find a match that ends early.
        let left = (text.len() - matched.end()) as u64 / 2;
        context.budget.work(64 + matched.len() as u64 + left)?;
        found.push(Value::string(matched.as_str()));
    }
    Ok(Value::list(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_multiplies_is_refused_quickly() {
        assert!(Pattern::compile("((((a{100}){100}){100}){100})").is_err());
        assert!(Pattern::compile(&"(".repeat(5000)).is_err());
    }

    #[test]
    fn the_states_of_a_pattern_follow_its_repetitions_and_classes() {
        let cases = [
            ("", 0),
            ("abc", 3),
            ("a{10}", 10),
            ("a{3,10}b", 11),
            ("(ab){10}c", 21),
            ("((a{10}){10}){10}", 1000),
            ("(a|b)*c", 4),
            ("[0-9a-f]{8}-[0-9a-f]{4}", 97),
            (r"\pL{50}", 16_384),
            (r"\p{Greek}x", 401),
            (r"[]\]a]b", 9),
            (r"[^]]b", 9),
            (r"[\pL\PN]", 808),
            (r"\.\{a", 3),
            ("(a", 1),
            ("a)", 1),
            ("a{", 1),
            ("x{9999999999999999999999}", 1),
        ];
        for (pattern, wanted) in cases {
            assert_eq!(states(pattern), wanted, "{pattern}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_pattern_has_a_number_of_states(pattern in "([ab()|*+?{}0-9,.^$\\[\\]\\\\pLé]|\\{[0-9]{1,6}\\}){0,40}") {
            proptest::prop_assert!(states(&pattern) <= LIMITS.program_bytes as u64 / 16);
        }
    }
}
