//! See `drover_fuzz::websocket_frame`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drover_fuzz::websocket_frame(bytes));
