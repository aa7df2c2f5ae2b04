//! See `drover_fuzz::hcl_format`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::hcl_format(bytes));
