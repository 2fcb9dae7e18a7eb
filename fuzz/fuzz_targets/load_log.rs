//! Fuzz target: any bytes against `checks/load_log.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/load_log.rs"]
mod load_log;

libfuzzer_sys::fuzz_target!(|data: &[u8]| load_log::check(data));
