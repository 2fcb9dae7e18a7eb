//! Fuzz target: any bytes against `checks/qlog_file.rs`, which states what must hold. Not a test of its own.
#![no_main]

#[path = "../checks/qlog_file.rs"]
mod qlog_file;

libfuzzer_sys::fuzz_target!(|data: &[u8]| qlog_file::check(data));
