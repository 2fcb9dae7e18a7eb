//! The integration tests of this crate, as one program.

mod rfc9111;
mod server;
mod smuggling;
