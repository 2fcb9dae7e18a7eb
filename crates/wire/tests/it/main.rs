//! The integration tests of this crate, as one program.

extern crate roundtrip_wire as wire;

mod link;
mod packet;
