//! Any text as a CEL expression.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| berth_fuzz::cel(bytes));
