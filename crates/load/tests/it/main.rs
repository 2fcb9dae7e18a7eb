//! The integration tests of this crate, as one program.

extern crate roundtrip_load as load;

mod bottlenecks;
mod servers;
