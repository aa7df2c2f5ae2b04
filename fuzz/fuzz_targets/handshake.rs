//! See `drover_fuzz::handshake`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::handshake(bytes));
