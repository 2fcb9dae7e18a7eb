//! Fuzz target: any bytes against `checks/har.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/har.rs"]
mod har;

libfuzzer_sys::fuzz_target!(|data: &[u8]| har::check(data));
