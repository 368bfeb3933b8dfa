//! Any text as everything else that a request to the hub says in a notation.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| berth_fuzz::selectors(bytes));
