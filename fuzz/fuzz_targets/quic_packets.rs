//! Fuzz target: any bytes against `checks/quic_packets.rs`, which states what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/quic_packets.rs"]
mod quic_packets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| quic_packets::check(data));
