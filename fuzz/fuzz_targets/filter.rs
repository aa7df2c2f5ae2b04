//! See `drover_fuzz::filter`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::filter(bytes));
