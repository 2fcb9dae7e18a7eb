//! The integration tests of this crate, as one program.

extern crate roundtrip_measure as measure;

mod page;
mod profile;
