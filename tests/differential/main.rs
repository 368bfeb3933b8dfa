//! The same generated requests go to the hub and to a real kube-apiserver; every answer must be the same.
//!
//! A script is a few dozen requests of one random walk: objects of several kinds created, read, listed, updated,
//! patched in every way and deleted, well formed and not, by several field managers, while watches are open. What
//! differs between any two servers (uids, times, resource versions) is replaced by the order in which it is first
//! seen, so that what is left must be equal to the letter. What the hub does differently on purpose is in
//! `known.rs`, with the reason, and in the documentation.
//!
//! The same scripts are played every time unless `BERTH_SEED=N` or `BERTH_SEED=fresh` says otherwise; the seed is printed. `BERTH_SCRIPTS=N` sets how many scripts.

// A table of chances reads best with one line each, and a kind's kind is called so by Kubernetes.
#![allow(clippy::match_same_arms, clippy::struct_field_names, clippy::semicolon_if_nothing_returned)]
// Without the star the type of a choice among texts cannot be told.
#![allow(clippy::explicit_auto_deref, clippy::assigning_clones, clippy::print_stderr)]

mod by_hand;
mod exchange;
mod known;
mod learned;
mod mask;
mod script;
mod vocabulary;
mod walk;
mod watching;

use std::fmt::Write as _;

use berth_bed::{Bed, or_skip};

use crate::exchange::Server;
use crate::script::{Flavour, Script};
use berth_tests::random::Random;

/// The walk that everybody takes, so that a failure is a change of ours. `BERTH_SEED=fresh` takes a new one.
const SEED: u64 = 20_261_116;

/// Differences shown before a run gives up: enough to see a pattern.
const SHOWN_MAX: usize = 12;

/// The real server, without what needs controllers that are not running: they would finish what these plugins begin.
fn real() -> berth_bed::Kubernetes {
    Bed::kubernetes().without_fsync().api_server(&[
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection",
    ])
}

async fn compare(flavour: Flavour, scripts: usize) {
    let Some(real) = or_skip(real().await) else { return };
    // For work on the test itself: the real server must agree with itself.
    let ours = if std::env::var_os("BERTH_DIFFERENTIAL_SELF").is_some() {
        self::real().await
    } else {
        Bed::hub().await
    };
    let ours = ours.expect("the other side starts");
    let seed = match std::env::var("BERTH_SEED") {
        Ok(seed) if seed == "fresh" => berth_tests::random::fresh_seed(),
        Ok(seed) => seed.parse().expect("BERTH_SEED is a number or `fresh`"),
        Err(_) => SEED,
    };
    let scripts = std::env::var("BERTH_SCRIPTS").ok().and_then(|count| count.parse().ok()).unwrap_or(scripts);
    let (real, ours) = (Server::new(&real), Server::new(&ours));
    vocabulary::prepare(&real).await;
    vocabulary::prepare(&ours).await;

    let (mut steps, mut differences, mut shown) = (0, 0, String::new());
    for number in 0..scripts {
        let script = Script::generate(Random::new(seed).fork(number as u64), flavour, number);
        let (theirs, mine) = tokio::join!(script.play(&real), script.play(&ours));
        steps += script.len();
        for (step, (theirs, mine)) in theirs.iter().zip(&mine).enumerate() {
            if theirs == mine {
                continue;
            }
            differences += 1;
            if differences <= SHOWN_MAX {
                let _ = writeln!(
                    shown,
                    "\n--- script {number}, step {step}: {}\n{}",
                    script.describe(step),
                    mask::difference(theirs, mine)
                );
            }
            break; // What follows in this script follows from the difference.
        }
    }
    eprintln!(
        "{flavour:?}: seed {seed}, {scripts} scripts, {steps} steps, {differences} scripts with a difference"
    );
    assert!(steps >= scripts, "a script has at least one step");
    assert_eq!(
        differences, 0,
        "seed {seed} (repeat with BERTH_SEED={seed}); real server first, then ours:{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_and_built_in_kinds_answer_as_on_the_real_server() {
    compare(Flavour::Mixed, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_side_apply_answers_as_on_the_real_server() {
    compare(Flavour::Apply, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strategic_merge_patches_answer_as_on_the_real_server() {
    compare(Flavour::Strategic, 30).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_pages_and_watches_answer_as_on_the_real_server() {
    compare(Flavour::Reading, 30).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_found_to_differ_once_answers_as_on_the_real_server() {
    let Some(real) = or_skip(self::real().await) else { return };
    let ours = Bed::hub().await.expect("the other side starts");
    let (real, ours) = (Server::new(&real), Server::new(&ours));
    vocabulary::prepare(&real).await;
    vocabulary::prepare(&ours).await;
    let (mut theirs, mut mine) = (mask::Mask::default(), mask::Mask::default());
    let mut shown = String::new();
    for request in by_hand::requests() {
        let (left, right) = tokio::join!(real.send(&request), ours.send(&request));
        let (left, right) = (theirs.answer(&request.target, &left), mine.answer(&request.target, &right));
        if left != right {
            let _ = writeln!(
                shown,
                "\n--- {} {} {:?}\n{}",
                request.method,
                request.target,
                request.body,
                mask::difference(&left, &right)
            );
        }
    }
    assert!(shown.is_empty(), "real server first, then ours:{shown}");
}
