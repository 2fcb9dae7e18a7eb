//! The integration tests of this crate, as one program.

extern crate roundtrip_testbed as testbed;

mod emulator;
mod topology;
mod two_hosts;
