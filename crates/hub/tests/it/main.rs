//! The hub from within the process: the same pipeline as over a socket, through `kube::Client`.

// Helpers of tests may unwrap as tests do.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod in_process;
