//! Fuzz target: any bytes against `checks/table.rs`, which says what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/table.rs"]
mod table;

libfuzzer_sys::fuzz_target!(|data: &[u8]| table::check(data));
