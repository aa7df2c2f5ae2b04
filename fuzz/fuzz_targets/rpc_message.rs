//! See `drover_fuzz::rpc_message`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::rpc_message(bytes));
