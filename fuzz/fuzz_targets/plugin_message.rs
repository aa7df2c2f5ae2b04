//! See `drover_fuzz::plugin_message`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::plugin_message(bytes));
