//! Fuzz target: any bytes against `checks/network_trace.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/network_trace.rs"]
mod network_trace;

libfuzzer_sys::fuzz_target!(|data: &[u8]| network_trace::check(data));
