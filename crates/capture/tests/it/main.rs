//! The integration tests of this crate, as one program.

mod keys;
mod threads;
mod watch;
