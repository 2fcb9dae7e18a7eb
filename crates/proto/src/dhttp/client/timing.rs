//! How long to wait for an answer before asking again.
//!
//! Round trips are measured as RFC 6298 has it, and only on answers to what was sent once (Karn): RFC 8085, section
//! 3.1.1. An answer by TCP takes a round trip more than one by UDP, so the wait is for two. Not a congestion window:
//! what is lost is answered over TCP, which has one.

use wire::Duration;

use super::config::Resend;

/// What is known of the round trips to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RoundTrips(Option<Estimate>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Estimate {
    srtt: Duration,
    rttvar: Duration,
}

impl RoundTrips {
    /// An answer came after this time (RFC 6298, section 2).
    pub(super) fn measured(&mut self, rtt: Duration) {
        let estimate = match self.0 {
            None => Estimate { srtt: rtt, rttvar: rtt / 2 },
            Some(Estimate { srtt, rttvar }) => {
                let off = srtt.saturating_sub(rtt) + rtt.saturating_sub(srtt);
                Estimate { srtt: (srtt * 7 + rtt) / 8, rttvar: (rttvar * 3 + off) / 4 }
            }
        };
        self.0 = Some(estimate);
    }

    /// How long to wait after having resent so many times; `None` if the last wait is over.
    pub(super) fn wait(&self, resend: &Resend, resends: u8) -> Option<Duration> {
        match *resend {
            Resend::Fixed { waits: [first, second] } => match resends {
                0 => Some(first),
                1 | 2 => Some(second),
                3.. => None,
            },
            Resend::Adaptive { first, least, most, times } => {
                let base = self.0.map_or(first, |Estimate { srtt, rttvar }| srtt * 2 + rttvar * 4);
                let doubled = base.max(least) * 1_u64.checked_shl(u32::from(resends)).unwrap_or(u64::MAX);
                (resends <= times).then_some(doubled.min(most))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhttp::ClientConfig;

    fn waits(round_trips: &RoundTrips, resend: &Resend) -> Vec<u64> {
        (0..)
            .map_while(|resends| round_trips.wait(resend, resends))
            .map(|wait| wait.as_nanos() / 1_000_000)
            .collect()
    }

    #[test]
    fn paper_a_request_is_resent_after_5_and_after_10_seconds() {
        let waits = waits(&RoundTrips::default(), &ClientConfig::paper().resend);
        assert_eq!(waits, [5_000, 10_000, 10_000], "and given up after 10 more");
    }

    #[test]
    fn a_client_waits_a_second_until_it_knows_better_and_doubles() {
        let resend = ClientConfig::internet().resend;
        let mut round_trips = RoundTrips::default();
        assert_eq!(waits(&round_trips, &resend), [1_000, 2_000, 4_000, 8_000]);
        for _ in 0..100 {
            round_trips.measured(Duration::from_millis(200));
        }
        assert_eq!(waits(&round_trips, &resend), [400, 800, 1_600, 3_200], "two round trips");
        for _ in 0..100 {
            round_trips.measured(Duration::from_millis(1));
        }
        assert_eq!(waits(&round_trips, &resend)[0], 300, "never below the least");
    }

    #[test]
    fn paper_the_estimate_is_that_of_rfc_6298() {
        let mut round_trips = RoundTrips::default();
        round_trips.measured(Duration::from_millis(100));
        round_trips.measured(Duration::from_millis(180));
        let expected = Estimate { srtt: Duration::from_millis(110), rttvar: Duration::from_micros(57_500) };
        assert_eq!(round_trips.0, Some(expected));
    }
}
