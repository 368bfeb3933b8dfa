//! One scenario's runs, against all who are held against it.
//!
//! Scenarios wait for time far more than for the machine, and a test runner starts no more tests than there are processors; so
//! the first that is asked for starts the others as well, and each tells of its own.

#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

use std::{
    env,
    fmt::Debug,
    sync::Mutex,
    thread::{self, JoinHandle},
};

/// The runs of one scenario. `C` is against whom, or where, it runs.
pub struct Heat<C>(Mutex<Option<Vec<Run<C>>>>);

/// A run that has begun, and against whom.
type Run<C> = (C, JoinHandle<()>);

impl<C> Heat<C> {
    /// None has begun.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }
}

impl<C> Default for Heat<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Copy + PartialEq + Debug + Send + 'static> Heat<C> {
    /// Runs the scenario against a contestant, or waits for the run that has begun. Whoever asks for one by name, with a word
    /// that has `alone` in it, wants no other.
    ///
    /// # Panics
    /// When the run did.
    pub fn run(&self, contestant: C, all: &[C], alone: &str, scenario: fn(C)) {
        if env::args().skip(1).any(|argument| argument.contains(alone)) {
            return scenario(contestant);
        }
        let begin = || all.iter().map(|one| (*one, begin(*one, scenario))).collect();
        let mut runs = self.0.lock().unwrap();
        let runs_begun: &mut Vec<_> = runs.get_or_insert_with(begin);
        let own =
            runs_begun.iter().position(|(one, _)| *one == contestant).expect("a test for each contestant");
        let (_, handle) = runs_begun.swap_remove(own);
        drop(runs);
        if let Err(panic) = handle.join() {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            panic!("{}", text.unwrap_or("it failed without a word"));
        }
    }
}

fn begin<C: Copy + Debug + Send + 'static>(contestant: C, scenario: fn(C)) -> JoinHandle<()> {
    // Named as the test is, by what starts it, and by whom it is against: that is what a panic says.
    let name = format!("{}, {contestant:?}", thread::current().name().unwrap_or_default());
    thread::Builder::new().name(name).spawn(move || scenario(contestant)).unwrap()
}
