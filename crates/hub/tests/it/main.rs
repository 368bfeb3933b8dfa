//! The hub from within the process: the same pipeline as over a socket, through `kube::Client`.

// Helpers of tests may unwrap as tests do.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod admission;
mod growth;
mod in_process;
mod keeping;
mod secrets;
