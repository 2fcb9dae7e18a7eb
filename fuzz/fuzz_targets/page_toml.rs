//! Fuzz target: any bytes against `checks/page_toml.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/page_toml.rs"]
mod page_toml;

libfuzzer_sys::fuzz_target!(|data: &[u8]| page_toml::check(data));
