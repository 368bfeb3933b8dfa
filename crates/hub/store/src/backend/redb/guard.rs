//! The engine's failed assertions, as errors.
//!
//! A damaged file can bring redb to a state that its code rules out, and it says so by panicking. Owns turning that into
//! an error which names the file. Never lets it reach standard error first: a person with a damaged store needs advice,
//! not a backtrace.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::Path;
use std::sync::Once;

use crate::error::BackendError;

/// How much of the engine's own words is passed on, in characters.
const WORDS_MAX: usize = 200;

thread_local! {
    /// Whether a panic of this thread is ours to tell.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `work`; a panic in it is a damaged store.
pub(super) fn guard<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    listen();
    let around = GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(around);
    outcome.unwrap_or_else(|_| {
        let words = WORDS.take();
        let detail = format!("the engine met a state it rules out ({words})");
        Err(BackendError::Corrupted { path: path.to_owned(), detail })
    })
}

/// Puts an ear before the hook of this process, once. Panics outside of [`guard`] go on to the hook that was there.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if GUARDED.get() {
                WORDS.replace(words(info));
            } else {
                before(info);
            }
        }));
    });
}

fn words(info: &PanicHookInfo<'_>) -> String {
    let said = info.payload_as_str().unwrap_or_default();
    let first = said.lines().next().unwrap_or_default();
    first.chars().take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_first_words() {
        let told = guard::<()>(Path::new("x"), || panic!("a page of zeros\nand more")).unwrap_err();
        assert_eq!(
            told.to_string(),
            "the store x is damaged: the engine met a state it rules out (a page of zeros); restore a backup with \
             `berth hub restore --replace`, which keeps what is there under another name"
        );
        assert!(!GUARDED.get(), "later panics are told as before");
    }
}
