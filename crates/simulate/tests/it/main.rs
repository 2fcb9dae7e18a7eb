//! The integration tests of this crate, as one program.

extern crate roundtrip_simulate as simulate;

mod dhttp;
mod neighbours;
mod packets;
mod papers;
mod real_page;
mod scripts;
