//! See `drover_fuzz::dns_message`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::dns_message(bytes));
