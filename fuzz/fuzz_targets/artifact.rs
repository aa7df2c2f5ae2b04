//! See `drover_fuzz::artifact`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::artifact(bytes));
