//! See `drover_fuzz::docker_answer`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::docker_answer(bytes));
