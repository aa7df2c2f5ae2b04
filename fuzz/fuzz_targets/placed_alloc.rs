//! See `drover_fuzz::placed_alloc`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::placed_alloc(bytes));
