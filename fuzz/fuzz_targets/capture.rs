//! Fuzz target: any bytes against `checks/capture.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/capture.rs"]
mod capture;

libfuzzer_sys::fuzz_target!(|data: &[u8]| capture::check(data));
