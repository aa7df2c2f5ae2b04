//! See `drover_fuzz::check`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::check(bytes));
