//! Fuzz target: any bytes against `checks/access_log.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/access_log.rs"]
mod access_log;

libfuzzer_sys::fuzz_target!(|data: &[u8]| access_log::check_w3c(data));
