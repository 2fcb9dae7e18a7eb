//! Stage 2c, real kernels: the same scenario over kernel TCP and an emulated link.
//!
//! In flows a [`scenario::Scenario`]; out flow elapsed times, packets and bytes, run by run, with what the
//! kernel was pinned to. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`privilege`] | what the system lets this process do, and a sentence when it is not enough |
//! | [`namespace`] | two networks of our own, each held by a thread, gone with the process |
//! | [`netlink`] | links, addresses, and routes that tell TCP how to behave |
//! | [`clock`] | the one place that reads the clock |
//! | [`tun`] | network interfaces whose other end is a descriptor |
//! | [`emulator`] | the link between two of them, in real time, with its own lateness measured |
//! | [`ack_heartbeat`] | BSD's delayed acknowledgements, for a client whose kernel has others |
//! | [`lateness`] | how late things were, in a histogram |
//! | [`error`] | what can go wrong, and the remedy |
//!
//! What it is not: it predicts nothing, and a measurement is never repeatable to the byte. Only this crate and
//! `dhttp` touch the operating system on behalf of an engine.

pub mod ack_heartbeat;
pub mod clock;
pub mod emulator;
pub mod error;
pub mod lateness;
pub mod namespace;
pub mod netlink;
mod netlink_message;
pub mod privilege;
pub mod profile;
pub mod statistics;
pub mod tun;

pub use emulator::Emulator;
pub use error::Error;
pub use namespace::Namespace;
pub use privilege::{available, prepare};
