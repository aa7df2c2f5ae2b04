//! See `drover_fuzz::attribute`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::attribute(bytes));
