//! See `drover_fuzz::pem`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::pem(bytes));
