//! Fuzz target: any bytes against `checks/tls_decryption.rs`, which states what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/tls_decryption.rs"]
mod tls_decryption;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tls_decryption::check(data));
