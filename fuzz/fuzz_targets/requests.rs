//! Any text as a few requests to a hub.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| berth_fuzz::requests(bytes));
