//! The integration tests of this crate, as one program.

extern crate roundtrip_diagnose as diagnose;

use diagnose::{Cause, Diagnosis, Options, PacketPosition, Share, cause, report};

mod captures;
mod clocks;
mod connection_per_request;
mod dhttp;
mod families;
mod host;
mod hostile;
mod losses;
mod nagle;
mod one_direction;
mod openings;
mod path_mtu;
mod quic;
mod resets;
mod retransmission;
mod vanished;
mod waits;
mod windows;

/// Faults that they show.
#[path = "../support/faults.rs"]
mod faults;
/// Scripted packets, which unit tests use, too.
#[path = "../support/script.rs"]
mod script;
