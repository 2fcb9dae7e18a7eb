//! Fuzz target: any bytes against `checks/scenario_toml.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/scenario_toml.rs"]
mod scenario_toml;

libfuzzer_sys::fuzz_target!(|data: &[u8]| scenario_toml::check(data));
