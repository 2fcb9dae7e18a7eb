//! Fuzz target: any bytes against `checks/http3_streams.rs`, which states what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/http3_streams.rs"]
mod http3_streams;

libfuzzer_sys::fuzz_target!(|data: &[u8]| http3_streams::check(data));
