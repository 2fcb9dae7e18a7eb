//! The integration tests of this crate, as one program.

extern crate roundtrip_model as model;

mod papers;
mod predictions;
