//! The integration tests of this crate, as one program.

extern crate roundtrip_diagnose as diagnose;

use diagnose::{Diagnosis, Options, PacketPosition, Share, report};

mod captures;
mod dhttp;
mod families;
mod hostile;
mod losses;
mod openings;

/// Scripted packets, which unit tests use, too.
#[path = "../support/script.rs"]
mod script;
