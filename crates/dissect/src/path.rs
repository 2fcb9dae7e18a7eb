//! Path facts from the capture: the distance of each end from the point of capture.
//!
//! Both a packet towards an end and that end's response are seen at the point of capture. The time between them is
//! the round trip to that end. The sum for both ends is the round trip of the path, and their ratio shows where the
//! point of capture is. Not a delay model: minima and a smoothed deviation are stored, no samples.

use wire::Duration;

use crate::{Both, Side};

/// Point of capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VantagePoint {
    /// At the client, or on its network.
    Client,
    /// At the server, or on its network.
    Server,
    /// Elsewhere on the path.
    Between,
    /// The packets do not show it.
    Unknown,
}

/// Number of samples near the minimum from which on the minimum is trusted.
const ENOUGH: u8 = 4;
/// No path takes longer.
const LONGEST: Duration = Duration::from_secs(1);
/// Minimum retransmission timeout.
const MIN_RTO: Duration = Duration::from_millis(200);

/// A proxy that acknowledges for a side.
#[derive(Clone, Copy, Debug)]
pub struct Proxy {
    /// Round trip of the handshake.
    pub handshake: Duration,
    /// The minimum round trip of data.
    pub data: Duration,
}

/// A queue, as shown by acknowledgements of two full segments or more.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// The minimum round trip of such acknowledgements.
    pub least: Duration,
    /// The longest.
    pub worst: Duration,
    /// Number of such acknowledgements.
    pub samples: u16,
    /// Number of those that took three times as long as the fastest.
    pub inflated: u16,
}

/// A handshake that takes less does not indicate a proxy: a host may have been busy.
const FAR: Duration = Duration::from_millis(20);

/// Both parts of the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    parts: Both<PathPart>,
}

/// From the point of capture to one end and back.
#[derive(Clone, Copy, Debug, Default)]
struct PathPart {
    /// The minimum time to an acknowledgement.
    answered: Shortest,
    /// The minimum time from an acknowledgement to the data that it allowed. Never less than the true round trip if the
    /// sender waited for it, hence the second choice.
    echoed: Shortest,
    /// The round trip to this host in another connection, for one that was captured in the middle.
    elsewhere: Shortest,
    /// The minimum time to the echo of a timestamp.
    stamped: Shortest,
    /// The minimum time to an acknowledgement that no receiver delays: of two full segments or more. On a slow link it
    /// exceeds the overall minimum, which was for a segment without data.
    answered_at_once: Shortest,
    smoothed: Duration,
    deviation: Duration,
    /// From a SYN to its SYN/ACK, if the SYN was sent once.
    handshake: Shortest,
    /// Acknowledgements since the handshake: their number, the number within a tenth of its time, and the fastest.
    samples: u16,
    quick: u16,
    data: Shortest,
    /// Undelayed acknowledgements: their number, the numbers that took ten times as long as the handshake and three
    /// times as long as the fastest, and the slowest.
    immediate: u16,
    slow: u16,
    inflated: u16,
    slowest: Duration,
    /// Remaining TTL or hop limit of its packets.
    hop_limit: Option<u8>,
    /// Number of samples of `answered`, of `echoed`, and of `stamped`.
    times_answered: u8,
    times_echoed: u8,
    times_stamped: u8,
}

/// The shortest of some times, in the memory of one; [`Duration::MAX`] before the first.
#[derive(Clone, Copy, Debug)]
struct Shortest(Duration);

impl Default for Shortest {
    fn default() -> Self {
        Self(Duration::MAX)
    }
}

impl Shortest {
    fn sample(&mut self, time: Duration) {
        self.0 = self.0.min(time);
    }

    fn get(self) -> Option<Duration> {
        Some(self.0).filter(|time| *time < Duration::MAX)
    }
}

impl PathPart {
    /// Returns the minimum time to an acknowledgement, or what another connection shows of it.
    fn measured(&self) -> Option<Duration> {
        self.answered.get().or(self.elsewhere.get())
    }
}

impl Path {
    /// Records that `side` acknowledged a packet `after` it had passed.
    pub fn answered(&mut self, side: Side, after: Duration) {
        let part = self.parts.of_mut(side);
        // As RFC 6298 smooths: an eighth for the mean, a quarter for the deviation.
        match part.answered.get() {
            None => (part.smoothed, part.deviation) = (after, after / 2),
            Some(_) => {
                let away = after.saturating_sub(part.smoothed) + part.smoothed.saturating_sub(after);
                part.deviation = (part.deviation * 3 + away) / 4;
                part.smoothed = (part.smoothed * 7 + after) / 8;
            }
        }
        part.answered.sample(after);
        part.times_answered = part.times_answered.saturating_add(1);
        if let Some(handshake) = part.handshake.get() {
            part.samples = part.samples.saturating_add(1);
            part.quick = part.quick.saturating_add(u16::from(after * 10 <= handshake));
            part.data.sample(after);
        }
    }

    /// Returns how much longer than at best the latest acknowledgements of `side` took; zero after few: one burst is no standing queue.
    pub fn queueing(&self, side: Side) -> Duration {
        /// The smoothed time reaches six sevenths of a new level by then.
        const SETTLED: u8 = 16;
        let part = self.parts.of(side);
        let least = part.answered.get().filter(|_| part.times_answered >= SETTLED);
        least.map_or(Duration::ZERO, |least| part.smoothed.saturating_sub(least))
    }

    /// Records the round trip to `side` in another connection between the same hosts. Its own acknowledgements take precedence.
    pub fn measured_elsewhere(&mut self, side: Side, round_trip: Duration) {
        let part = self.parts.of_mut(side);
        part.elsewhere.sample(round_trip);
        (part.smoothed, part.deviation) = (round_trip, round_trip / 2);
    }

    /// Records that `side` echoed a timestamp `after` it had passed. Where no acknowledgement shows its distance, the minimum of some does.
    pub fn echoed_stamp(&mut self, side: Side, after: Duration) {
        let part = self.parts.of_mut(side);
        if after > LONGEST || part.answered.get().is_some() {
            return;
        }
        part.stamped.sample(after);
        part.times_stamped = part.times_stamped.saturating_add(1);
        let least = part.stamped.get().filter(|_| part.times_stamped >= ENOUGH);
        if let Some(least) = least.filter(|least| part.elsewhere.get().is_none_or(|known| *least < known)) {
            self.measured_elsewhere(side, least);
        }
    }

    /// Returns whether neither its own acknowledgements nor another connection have shown the round trip to `side`.
    pub fn lacks_distance(&self, side: Side) -> bool {
        self.parts.of(side).measured().is_none()
    }

    /// Returns the possible error of the minimum time to `side`: a minimum of few samples exceeds the true one.
    pub fn slack(&self, side: Side) -> Duration {
        let to = self.to(side).unwrap_or_default();
        if self.parts.of(side).times_answered < ENOUGH { to / 4 } else { to / 20 }
    }

    /// Returns the variation of the round trip to `side`: four mean deviations, once there are enough samples.
    pub fn noise(&self, side: Side) -> Duration {
        let part = self.parts.of(side);
        if part.times_answered < ENOUGH { self.slack(side) } else { part.deviation * 4 }
    }

    /// Records that `side` responded to a SYN that was sent once, `after` it had passed.
    pub fn opened(&mut self, side: Side, after: Duration) {
        self.parts.of_mut(side).handshake = Shortest(after);
    }

    /// Records that `side` acknowledged two full segments or more `after` they had passed.
    pub fn acknowledged_immediately(&mut self, side: Side, after: Duration) {
        const NOTICEABLE: Duration = Duration::from_millis(50);
        let part = self.parts.of_mut(side);
        part.answered_at_once.sample(after);
        let least = part.answered.get().unwrap_or(after);
        let is_slow = part.handshake.get().is_some_and(|handshake| after >= handshake * 10);
        part.immediate = part.immediate.saturating_add(1);
        part.slow = part.slow.saturating_add(u16::from(is_slow));
        if after >= least * 3 + NOTICEABLE {
            part.inflated = part.inflated.saturating_add(1);
            part.slowest = part.slowest.max(after);
        }
    }

    /// Returns whether a proxy near the capture acknowledges for `side`, or completes handshakes for it.
    pub fn proxy(&self, side: Side) -> Option<Proxy> {
        let part = self.parts.of(side);
        let (handshake, data) = (part.handshake.get()?, part.data.get()?);
        let is_quick = u32::from(part.quick) * 5 >= u32::from(part.samples) * 4;
        let is_near = is_quick && handshake >= FAR && part.samples >= 2;
        let is_front =
            data >= FAR && part.immediate >= 3 && part.slow == part.immediate && data >= handshake * 10;
        (is_near || is_front).then_some(Proxy { handshake, data })
    }

    /// Returns the round trip beyond a proxy that acknowledges for `side`, if all acknowledgements so far show one.
    pub fn beyond_proxy(&self, side: Side) -> Option<Duration> {
        let part = self.parts.of(side);
        part.handshake
            .get()
            .filter(|handshake| *handshake >= FAR && part.samples > 0 && part.quick == part.samples)
    }

    /// Returns the standing queue in which data to `receiver` waits.
    pub fn standing_queue(&self, receiver: Side) -> Option<Queue> {
        const ENOUGH: u16 = 8;
        let part = self.parts.of(receiver);
        let is_standing = part.immediate >= ENOUGH && part.inflated >= part.immediate / 2;
        let (least, worst) = (part.answered.get()?, part.slowest);
        is_standing.then_some(Queue { least, worst, samples: part.immediate, inflated: part.inflated })
    }

    /// Returns the time until `side` acknowledges data without delay, as far as is known.
    pub fn prompt(&self, side: Side) -> Option<Duration> {
        let part = self.parts.of(side);
        self.to(side).map(|to| to.max(part.answered_at_once.get().unwrap_or_default()))
    }

    /// Records that `side` sent data `after` an acknowledgement for it had passed. A longer time is a pause of its own.
    pub fn echoed(&mut self, side: Side, after: Duration) {
        let part = self.parts.of_mut(side);
        if after <= LONGEST {
            part.echoed.sample(after);
            part.times_echoed = part.times_echoed.saturating_add(1);
        }
    }

    /// Records that a packet of `side` passed with this remaining hop limit.
    pub fn passed(&mut self, side: Side, hop_limit: u8) {
        let part = self.parts.of_mut(side);
        if part.hop_limit.is_none() {
            part.hop_limit = Some(hop_limit);
        }
    }

    /// Returns the number of routers that the first packet of `side` had passed, if it began with a usual hop limit.
    pub fn hops(&self, side: Side) -> Option<u8> {
        let left = self.parts.of(side).hop_limit?;
        [64, 128, 255].into_iter().find(|initial| left <= *initial).map(|initial| initial - left)
    }

    /// Returns the remaining hop limit of the first packet of `side`.
    pub fn hop_limit(&self, side: Side) -> Option<u8> {
        self.parts.of(side).hop_limit
    }

    /// Returns the minimum round trip from the point of capture to `side`. A few reactions to acknowledgements may have
    /// been pauses, which show no distance.
    pub fn to(&self, side: Side) -> Option<Duration> {
        let part = self.parts.of(side);
        part.measured().or(part.echoed.get().filter(|_| part.times_echoed >= ENOUGH))
    }

    /// Returns the round trip between client and server.
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.parts.client.measured()? + self.parts.server.measured()?)
    }

    /// Returns the round trip that packets took on average, if it was several times the minimum: they waited in a queue.
    pub fn inflated_round_trip(&self) -> Option<Duration> {
        const NOTICEABLE: Duration = Duration::from_millis(50);
        let least = self.round_trip()?;
        let Both { client, server } = &self.parts;
        let is_known = client.times_answered.max(server.times_answered) >= ENOUGH;
        Some(self.estimate().0).filter(|smoothed| is_known && *smoothed >= least * 3 + NOTICEABLE)
    }

    /// Returns the known part of the round trip; an unknown part counts as zero.
    pub fn round_trip_at_least(&self) -> Duration {
        self.to(Side::Client).unwrap_or_default() + self.to(Side::Server).unwrap_or_default()
    }

    /// Returns the minimum retransmission timeout of a sender with this path: RFC 6298's estimate with the lower bound
    /// of 200 ms that most stacks have.
    pub fn retransmission_timeout(&self) -> Duration {
        let (smoothed, deviation) = self.estimate();
        (smoothed + deviation * 4).max(MIN_RTO)
    }

    /// Returns Linux's retransmission timeout: its lower bound applies to the deviation.
    pub fn usual_timeout(&self) -> Duration {
        let (smoothed, deviation) = self.estimate();
        smoothed + (deviation * 4).max(MIN_RTO)
    }

    /// Returns the latest at which a sender with this path probes for the end of a flight: two smoothed round trips and
    /// 200 ms for a delayed ACK (RFC 8985, section 7.2), or a second without a measurement (Linux). The sender's own
    /// measurement may be half as much again.
    pub fn latest_probe(&self) -> Duration {
        const UNMEASURED: Duration = Duration::from_secs(1);
        const DELAYED_ACK: Duration = Duration::from_millis(200);
        let (smoothed, _) = self.estimate();
        UNMEASURED.max(smoothed * 3 + DELAYED_ACK)
    }

    /// Returns the smoothed round trip and its deviation.
    fn estimate(&self) -> (Duration, Duration) {
        let Both { client, server } = &self.parts;
        (client.smoothed + server.smoothed, client.deviation + server.deviation)
    }

    /// Returns the point of capture.
    pub fn vantage_point(&self) -> VantagePoint {
        let Both { client, server } = &self.parts;
        let untouched = |part: &PathPart| part.hop_limit.is_some_and(|hops| matches!(hops, 64 | 128 | 255));
        let (Some(to_client), Some(to_server)) = (client.measured(), server.measured()) else {
            return match (untouched(client), untouched(server)) {
                (true, false) => VantagePoint::Client,
                (false, true) => VantagePoint::Server,
                (true, true) | (false, false) => VantagePoint::Unknown,
            };
        };
        // An end responds within a fraction of a millisecond; a point within a tenth of the path is on its network.
        let near = ((to_client + to_server) / 10).max(Duration::from_micros(300));
        match (to_client <= near, to_server <= near) {
            (true, false) => VantagePoint::Client,
            (false, true) => VantagePoint::Server,
            (false, false) => VantagePoint::Between,
            (true, true) => match (untouched(client), untouched(server)) {
                (true, false) => VantagePoint::Client,
                (false, true) => VantagePoint::Server,
                (true, true) | (false, false) => VantagePoint::Unknown,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(to_client: u64, to_server: u64) -> Path {
        let mut path = Path::default();
        path.answered(Side::Client, Duration::from_micros(to_client));
        path.answered(Side::Server, Duration::from_micros(to_server));
        path
    }

    #[test]
    fn place_of_the_capture_shows_in_the_response_time_of_each_end() {
        assert_eq!(path(60, 30_000).vantage_point(), VantagePoint::Client);
        assert_eq!(path(30_000, 60).vantage_point(), VantagePoint::Server);
        assert_eq!(path(15_000, 9_000).vantage_point(), VantagePoint::Between);
        assert_eq!(path(60, 50).vantage_point(), VantagePoint::Unknown);
        let mut local = path(60, 50);
        local.passed(Side::Client, 64);
        local.passed(Side::Server, 63);
        assert_eq!(local.vantage_point(), VantagePoint::Client);
    }

    #[test]
    fn another_connection_shows_the_distance_until_its_own_acknowledgements_do() {
        let mut path = Path::default();
        path.answered(Side::Client, Duration::from_micros(60));
        assert!(path.lacks_distance(Side::Server) && path.round_trip().is_none());
        path.measured_elsewhere(Side::Server, Duration::from_millis(30));
        assert!(!path.lacks_distance(Side::Server));
        assert_eq!(path.round_trip(), Some(Duration::from_micros(30_060)));
        assert_eq!(path.vantage_point(), VantagePoint::Client);
        assert!(path.usual_timeout() > Duration::from_millis(230), "{path:?}");
        path.answered(Side::Server, Duration::from_millis(40));
        assert_eq!(path.round_trip(), Some(Duration::from_micros(40_060)));
    }

    #[test]
    fn least_time_to_the_echo_of_a_timestamp_is_a_distance_until_acknowledgements_show_it() {
        let mut path = Path::default();
        for millis in [2_000, 80, 41, 60] {
            path.echoed_stamp(Side::Server, Duration::from_millis(millis));
        }
        assert_eq!(path.to(Side::Server), None, "few may have been pauses");
        path.echoed_stamp(Side::Server, Duration::from_millis(70));
        assert_eq!(path.to(Side::Server), Some(Duration::from_millis(41)));
        path.answered(Side::Server, Duration::from_millis(50));
        path.echoed_stamp(Side::Server, Duration::from_millis(30));
        assert_eq!(path.to(Side::Server), Some(Duration::from_millis(50)));
    }

    #[test]
    fn minimum_counts_and_the_parts_add_up() {
        let mut path = path(100, 50_000);
        path.answered(Side::Server, Duration::from_millis(40));
        path.answered(Side::Server, Duration::from_millis(400));
        assert_eq!(path.round_trip(), Some(Duration::from_micros(40_100)));
    }
}
