//! See `drover_fuzz::exec_message`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::exec_message(bytes));
