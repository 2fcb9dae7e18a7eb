//! The integration tests of this crate, as one program.

extern crate roundtrip_model as model;

mod http3;
mod papers;
mod predictions;
