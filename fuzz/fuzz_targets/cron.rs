//! See `drover_fuzz::cron`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::cron(bytes));
