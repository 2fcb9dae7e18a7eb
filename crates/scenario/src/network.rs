//! The path between client and server.
//!
//! Not the emulated link: an engine makes that from a network. The rate counts payload, as the papers measured
//! it (`papers/heidemann-model#table-2`: "our segment sizes already account for link-level headers"). The
//! papers' thirteen networks by name are in [`catalogue`].

mod catalogue;

use wire::{Bytes, Duration, Rate};

/// A path: what the model needs, and what the emulated link is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Lower-case with hyphens; `custom` for one given by flags.
    pub name: String,
    /// There and back, without the time it takes to send anything.
    pub rtt: Duration,
    /// Payload bits per second, the same in both directions.
    pub rate: Rate,
    /// The largest segment's payload.
    pub mss: Bytes,
}

impl Network {
    /// The time to send one full segment (`stt` in `papers/heidemann-model#table-2`), seconds.
    pub fn segment_time_s(&self) -> f64 {
        self.mss.as_f64() * 8.0 / self.rate.bits_per_second_f64()
    }

    /// The window, in segments, that keeps the path full (`muws`, the same table).
    pub fn window_to_fill(&self) -> u64 {
        // Both are positive and bounded by the checks on a network: the quotient fits.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let segments = (self.rtt.as_secs_f64() / self.segment_time_s()).ceil() as u64;
        segments
    }
}
