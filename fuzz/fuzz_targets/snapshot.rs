//! See `drover_fuzz::snapshot`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::snapshot(bytes));
