//! See `drover_fuzz::tls_name`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::tls_name(bytes));
