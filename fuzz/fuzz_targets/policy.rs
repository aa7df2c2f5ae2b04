//! See `drover_fuzz::policy`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::policy(bytes));
