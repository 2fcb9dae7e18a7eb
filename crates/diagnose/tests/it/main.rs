//! The integration tests of this crate, as one program.

extern crate roundtrip_diagnose as diagnose;

mod captures;
mod dhttp;
mod hostile;
mod openings;
