//! The integration tests of this crate, as one program.

mod threads;
mod watch;
