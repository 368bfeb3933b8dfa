//! Tests of the API as a whole, many of them against the reference definitions and the documents the project
//! began with, where those are at hand.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod accepted;
mod comparison;
mod deployed;
mod examples;
mod hostile;
mod seeds;
mod shared;
mod strategy;
