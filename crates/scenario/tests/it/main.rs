//! The integration tests of this crate, as one program.

extern crate roundtrip_scenario as scenario;

mod examples;
mod properties;
mod sentences;
