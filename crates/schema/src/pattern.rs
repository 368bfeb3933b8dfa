//! Regular expressions of schemas.
//!
//! Owns matching and sharing; what an expression means is said by [`berth_text::pattern`]. An expression is compiled when
//! it is first needed and then kept with its schema; equal expressions share one program as long as there is room.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock},
};

use berth_text::pattern::{Limits, Regex, compile};

/// The most programs shared between schemas. The limit bounds what definitions that are gone again leave behind.
const SHARED_MAX: usize = 1024;
/// Roomy: only those who may define resources write expressions, and each is compiled once.
const LIMITS: Limits = Limits { program_bytes: 4 << 20, automaton_bytes: 2 << 20, nesting: 250 };

static SHARED: LazyLock<RwLock<HashMap<Box<str>, Program>>> = LazyLock::new(RwLock::default);

/// A compiled expression, or why there is none.
type Program = Result<Arc<Regex>, Arc<str>>;

/// The compiled form of a node's `pattern`, made at its first use.
#[derive(Clone, Debug, Default)]
pub struct Pattern(OnceLock<Program>);

impl Pattern {
    /// Whether the text contains a match of the expression this belongs to.
    pub(crate) fn is_match(&self, pattern: &str, text: &str) -> Result<bool, Arc<str>> {
        match self.0.get_or_init(|| program(pattern)) {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(reason) => Err(Arc::clone(reason)),
        }
    }
}

/// Whether the text contains a match; an error says why the expression itself cannot be understood.
pub fn is_match(pattern: &str, text: &str) -> Result<bool, Arc<str>> {
    program(pattern).map(|regex| regex.is_match(text))
}

fn program(pattern: &str) -> Program {
    if let Some(shared) = SHARED.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return shared.clone();
    }
    // Shared, not cloned: each clone of a `Regex` would begin with an empty cache of its own.
    let program = compile(pattern, &LIMITS).map(Arc::new).map_err(Arc::from);
    let mut shared = SHARED.write().unwrap_or_else(PoisonError::into_inner);
    if shared.len() < SHARED_MAX {
        shared.insert(pattern.into(), program.clone());
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(pattern: &str, text: &str) -> Option<bool> {
        is_match(pattern, text).ok()
    }

    #[test]
    fn anchors_mean_the_ends_of_the_whole_text() {
        assert_eq!(holds("^[0-9]+[hms]$", "10m"), Some(true));
        assert_eq!(holds("^[0-9]+[hms]$", "10m\n"), Some(false));
        assert_eq!(holds("^[0-9]+[hms]$", "x\n10m"), Some(false));
        assert_eq!(holds("[0-9]", "no anchor: 7"), Some(true));
    }

    #[test]
    fn an_expression_nobody_can_read_is_reported() {
        assert_eq!(holds("(", "x"), None);
        assert_eq!(holds("a{1000}{1000}{1000}", "x"), None);
    }
}
