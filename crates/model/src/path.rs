//! The five characteristics of a network that the formulas use (`papers/heidemann-model#table-1`).

use scenario::Network;
use wire::{Bytes, Duration, Rate};

/// A path between a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Round trip time without transmission time (`rtt`).
    pub rtt: Duration,
    /// Payload bits per second towards the client (`bw`).
    pub rate: Rate,
    /// Payload bits per second towards the server; `bw` again in the paper.
    pub rate_up: Rate,
    /// Maximum payload of a segment, at least 1 byte (`mss`).
    pub mss: Bytes,
}

impl Path {
    /// Returns the transmission time of one full segment: `stt = mss / bw`.
    pub fn segment_time(&self) -> Duration {
        self.rate.time_for(self.mss)
    }

    /// Returns the transmission time of `segments` full segments, rounded once.
    pub fn segments_time(&self, segments: u64) -> Duration {
        self.rate.time_for(Bytes::new(self.mss.get().saturating_mul(segments)))
    }

    /// Returns the window, in segments, that keeps the path full: `muws = ceil(rtt / stt)`, exactly.
    pub fn window_to_fill(&self) -> u64 {
        let in_flight = u128::from(self.rtt.as_nanos()) * u128::from(self.rate.millibits_per_second());
        let segment = u128::from(self.mss.get().max(1)) * NANO_MILLIBITS_PER_BYTE;
        u64::try_from(in_flight.div_ceil(segment)).unwrap_or(u64::MAX)
    }
}

/// `rtt` is in nanoseconds and `bw` in thousandths of a bit per second: their product counts these.
const NANO_MILLIBITS_PER_BYTE: u128 = 8 * 1_000 * 1_000_000_000;

impl From<&Network> for Path {
    fn from(network: &Network) -> Self {
        Self {
            rtt: network.rtt,
            rate: network.rate,
            rate_up: network.rate_up.unwrap_or(network.rate),
            mss: network.mss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_that_fills_the_path_exactly_is_not_rounded_up() {
        let direcpc = Path::from(&Network::named("direcpc").unwrap());
        assert_eq!(direcpc.window_to_fill(), 128);
        let longer = Path { rtt: direcpc.rtt + Duration::from_nanos(1), ..direcpc };
        assert_eq!(longer.window_to_fill(), 129);
    }

    #[test]
    fn path_without_delay_needs_no_window() {
        let path = Path { rtt: Duration::ZERO, ..Path::from(&Network::named("modem").unwrap()) };
        assert_eq!(path.window_to_fill(), 0);
    }
}
