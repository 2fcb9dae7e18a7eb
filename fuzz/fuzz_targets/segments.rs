//! Fuzz target: any bytes against `checks/segments.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/segments.rs"]
mod segments;

libfuzzer_sys::fuzz_target!(|data: &[u8]| segments::check(data));
