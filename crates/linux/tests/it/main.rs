//! The integration tests of this crate, as one program.

extern crate roundtrip_linux as linux;

mod namespace;
