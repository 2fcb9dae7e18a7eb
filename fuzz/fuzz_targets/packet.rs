//! Fuzz target: any bytes against `checks/packet.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/packet.rs"]
mod packet;

libfuzzer_sys::fuzz_target!(|data: &[u8]| packet::check(data));
