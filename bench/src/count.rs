//! Counting what does not depend on the machine: allocations and instructions.
//!
//! Allocations are counted in this process, by the allocator; the counting itself is part of every wall time and
//! costs some nanoseconds each. Instructions are counted by running this program again under callgrind, which
//! collects only inside [`counted_call`] and writes one file after each.

use std::alloc::System;
use std::env;
use std::fs;
use std::hint::black_box;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What a piece of work took from the allocator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocated {
    /// Calls that gave or grew memory.
    pub(crate) times: usize,
    /// Bytes asked for.
    pub(crate) bytes: usize,
    /// Bytes still in use afterwards.
    pub(crate) kept: isize,
}

/// Does `work` and says what it took.
pub(crate) fn allocated<T>(work: impl FnOnce() -> T) -> (T, Allocated) {
    let region = Region::new(ALLOCATOR);
    let done = work();
    let change = region.change();
    let allocated = Allocated {
        times: change.allocations + change.reallocations,
        bytes: change.bytes_allocated,
        kept: change.bytes_allocated as isize - change.bytes_deallocated as isize,
    };
    (done, allocated)
}

/// Does `work` where callgrind looks for it: it collects inside `collected` and writes a file after `counted_call`.
/// They are two because callgrind does only one of both for a function.
#[inline(never)]
pub(crate) fn counted_call(work: &mut dyn FnMut()) {
    collected(work);
    black_box(());
}

/// The part of a counted call that counts. What follows `work` keeps the call from becoming a jump, whose return
/// callgrind would not see.
#[inline(never)]
fn collected(work: &mut dyn FnMut()) {
    work();
    black_box(());
}

/// Whether instructions can be counted here.
pub(crate) fn can_count_instructions() -> bool {
    let version =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Runs this program with `arguments` and gives the instructions of each of its `calls` counted calls.
pub(crate) fn instructions(arguments: &[&str], calls: usize) -> anyhow::Result<Vec<u64>> {
    let directory = tempfile::tempdir().context("cannot make a directory for callgrind's files")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=berth_bench::count::collected"])
        .arg("--dump-after=berth_bench::count::counted_call")
        .arg(format!("--callgrind-out-file={}", directory.path().join("calls").display()))
        .arg(env::current_exe().context("cannot find this program")?)
        .args(arguments)
        .output()
        .context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed: {}", said.trim());
    (1..=calls)
        .map(|call| {
            let file = directory.path().join(format!("calls.{call}"));
            let text = fs::read_to_string(&file)
                .with_context(|| format!("callgrind wrote nothing for call {call}"))?;
            let total = text.lines().find_map(|line| line.strip_prefix("summary: ")?.trim().parse().ok());
            total.with_context(|| format!("callgrind's file for call {call} has no sum"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_given_back_counts_as_asked_for_and_not_as_kept() {
        let (kept, allocated) = allocated(|| {
            drop(black_box(Vec::<u8>::with_capacity(1000)));
            black_box(Vec::<u8>::with_capacity(500))
        });
        // Other tests allocate at the same time, so these are bounds.
        assert!(allocated.times >= 2 && allocated.bytes >= 1500 && kept.capacity() == 500);
    }
}
