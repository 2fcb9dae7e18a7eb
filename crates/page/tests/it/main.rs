//! The integration tests of this crate, as one program.

extern crate roundtrip_page as page;

mod har;
