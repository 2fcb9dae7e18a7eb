//! Fuzz target: any bytes against `checks/plan.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/plan.rs"]
mod plan;

libfuzzer_sys::fuzz_target!(|data: &[u8]| plan::check(data));
