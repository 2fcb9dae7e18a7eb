//! Fuzz target: any bytes against `checks/http2_frames.rs`, which states what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/http2_frames.rs"]
mod http2_frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| http2_frames::check(data));
