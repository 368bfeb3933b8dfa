//! What a test does without its bed: say so once, or fail where beds are required.

use std::{
    collections::BTreeSet,
    env,
    io::{self, Write},
    sync::{Mutex, PoisonError},
};

use crate::BedError;

/// Set to `1` where every bed must be there, as in CI.
const REQUIRED: &str = "BERTH_REQUIRE_UPSTREAM";

/// The bed; or nothing when its programs are not on this machine, after saying so in one line of standard error.
///
/// # Panics
/// When the bed is there and does not start, and when it is not there although `BERTH_REQUIRE_UPSTREAM` is `1`.
pub fn or_skip<T>(bed: Result<T, BedError>) -> Option<T> {
    match bed {
        Ok(bed) => Some(bed),
        Err(absent @ BedError::Absent { .. }) if !required() => {
            say_once(format!("skipped: {absent}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn required() -> bool {
    env::var_os(REQUIRED).is_some_and(|value| value == "1")
}

/// Past the capture of the test runner, which hides what a passing test prints, and once for all tests of a binary.
fn say_once(line: String) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&line) {
        // A closed standard error leaves nobody to tell.
        let _ = writeln!(io::stderr(), "{line}");
        said.insert(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bed_that_is_there_and_does_not_start_fails_the_test() {
        let broken = BedError::System { doing: "start it".into(), source: io::Error::other("no") };
        let failure = std::thread::spawn(|| or_skip::<()>(Err(broken))).join().unwrap_err();
        assert_eq!(failure.downcast_ref::<String>().unwrap(), "cannot start it: no");
    }
}
