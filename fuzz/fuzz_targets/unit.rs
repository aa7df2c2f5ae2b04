//! See `drover_fuzz::unit`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::unit(bytes));
