//! Fuzz target: any bytes against `checks/dhttp_client.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/dhttp_client.rs"]
mod dhttp_client;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dhttp_client::check(data));
