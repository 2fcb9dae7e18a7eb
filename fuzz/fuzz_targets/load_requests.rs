//! Fuzz target: any bytes against `checks/load_requests.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/load_requests.rs"]
mod load_requests;

libfuzzer_sys::fuzz_target!(|data: &[u8]| load_requests::check(data));
