//! Fuzz target: any bytes against `checks/dhttp_server.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/dhttp_server.rs"]
mod dhttp_server;

libfuzzer_sys::fuzz_target!(|data: &[u8]| dhttp_server::check(data));
