//! Fuzz target: any bytes against `checks/http_client.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/http_client.rs"]
mod http_client;

libfuzzer_sys::fuzz_target!(|data: &[u8]| http_client::check(data));
