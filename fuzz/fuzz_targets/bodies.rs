//! Any bytes as the body of a request to the hub.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| berth_fuzz::bodies(bytes));
