//! Opening window on a path: the time that a message takes with a window that doubles each round trip, as in slow start.
//!
//! Not a simulation: windows are assumed to be sent immediately, without HyStart or pacing.

use wire::Duration;

/// An opening window on a path.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Its first size in bytes.
    pub window: u64,
    /// Maximum size of the window.
    pub most: u64,
    /// The largest segment in bytes.
    pub mss: u64,
    /// The round trip without a queue.
    pub round_trip: Duration,
    /// Time that the slowest link needs per segment.
    pub segment: Duration,
}

impl Opening {
    /// Returns the time from the first segment until the byte after `sent` leaves the slowest link.
    pub fn time_to(&self, sent: u64) -> Duration {
        let (mut window, mut begun, mut time) = (self.window.max(1), 0, Duration::ZERO);
        // The acknowledgement of a window's first segment takes a round trip and that segment's transmission time.
        let round = |window| (self.round_trip + self.segment).max(self.sending(window));
        while sent - begun >= window && window < self.most {
            time += round(window);
            begun += window;
            window = window.saturating_mul(2).min(self.most);
        }
        let (rounds, rest) = ((sent - begun) / window, (sent - begun) % window);
        time + Duration::from_nanos(round(window).as_nanos().saturating_mul(rounds)) + self.sending(rest)
    }

    /// Returns the time that the window waits between the bytes after `from` and after `to`.
    pub fn waits(&self, from: u64, to: u64) -> Duration {
        self.time_to(to)
            .saturating_sub(self.time_to(from))
            .saturating_sub(self.sending(to.saturating_sub(from)))
    }

    fn sending(&self, bytes: u64) -> Duration {
        let nanos = u128::from(self.segment.as_nanos()) * u128::from(bytes) / u128::from(self.mss.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_doubles_each_round_trip_until_the_link_is_never_idle() {
        let [round_trip, segment] = [12, 1].map(Duration::from_millis);
        let opening = Opening { window: 2_000, most: 32_000, mss: 1_000, round_trip, segment };
        let after = |sent: u64| opening.time_to(sent).as_nanos() / 1_000_000;
        assert_eq!([0, 1_999, 2_000, 5_000, 6_000, 13_000, 14_000].map(after), [0, 1, 13, 16, 26, 33, 39]);
        // From 16 segments on the link is the limit.
        assert_eq!([30_000, 62_000, 100_000].map(after), [55, 87, 125]);
        assert_eq!(opening.waits(13_000, 100_000), Duration::from_millis(5));
    }
}
