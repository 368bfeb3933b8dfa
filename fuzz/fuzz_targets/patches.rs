//! Any two documents as a stored object and a patch of it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| berth_fuzz::patches(bytes));
