//! See `drover_fuzz::cni_answer`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::cni_answer(bytes));
