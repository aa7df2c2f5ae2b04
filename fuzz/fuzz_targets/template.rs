//! See `drover_fuzz::template`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::template(bytes));
