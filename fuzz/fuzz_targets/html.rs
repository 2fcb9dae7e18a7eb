//! Fuzz target: any bytes against `checks/html.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/html.rs"]
mod html;

libfuzzer_sys::fuzz_target!(|data: &[u8]| html::check(data));
