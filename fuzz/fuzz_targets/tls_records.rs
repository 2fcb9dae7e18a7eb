//! Fuzz target: any bytes against `checks/tls_records.rs`, which states what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/tls_records.rs"]
mod tls_records;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tls_records::check(data));
