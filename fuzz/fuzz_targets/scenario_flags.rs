//! Fuzz target: any bytes against `checks/scenario_flags.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/scenario_flags.rs"]
mod scenario_flags;

libfuzzer_sys::fuzz_target!(|data: &[u8]| scenario_flags::check(data));
