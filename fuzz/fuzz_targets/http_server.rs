//! Fuzz target: any bytes against `checks/http_server.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/http_server.rs"]
mod http_server;

libfuzzer_sys::fuzz_target!(|data: &[u8]| http_server::check(data));
