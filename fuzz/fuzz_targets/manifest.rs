//! Any bytes as a stream of manifests.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| berth_fuzz::manifest(bytes));
