//! The path between client and server.
//!
//! An engine builds the emulated link from [`Network::links`]. Rates count payload, as the papers measured
//! them (`papers/heidemann-model#table-2`: "our segment sizes already account for link-level headers").
//!
//! | module | contents |
//! | --- | --- |
//! | `catalogue` | networks by name, and the papers' thirteen |
//! | `modern` | today's |
//! | [`trace_file`] | recorded delivery opportunities in place of the rates |
//! | [`path_key`] | keys of the settings of a path |
//! | [`changes`] | a user's changes to a path: a custom network, or a named one with some values changed |

mod catalogue;
pub mod changes;
mod modern;
pub mod path_key;
pub mod trace_file;

use std::sync::Arc;

use wire::link::{
    Config, ConfigError, DeliverySchedule, Jitter, Loss, QueueDiscipline, QueueLimit, Reordering,
};
use wire::{Bytes, Duration, Probability, Rate, modem};

pub use changes::Changes;
pub use trace_file::{TraceFile, Traces};

/// A path: the model's input, and the basis of the emulated link.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Lower-case letters, digits and hyphens; `custom` for one given by flags. The name of a changed network
    /// lists the changes: `fast-internet+rtt=133ms`.
    pub name: String,
    /// The named network that it is, or was derived from.
    pub like: Option<&'static str>,
    /// Round trip time without transmission time; at most [`Network::MAX_RTT`].
    pub rtt: Duration,
    /// Payload bits per second towards the client, and towards the server unless `rate_up` is set; from 1
    /// bit/s to 1 Tbit/s.
    pub rate: Rate,
    /// Payload bits per second towards the server, where that differs.
    pub rate_up: Option<Rate>,
    /// Recorded delivery opportunities in place of the rates, which are then their means.
    pub traces: Option<Traces>,
    /// One-way delay towards the server, a part of `rtt`; `None`: half of it.
    pub delay_up: Option<Duration>,
    /// Maximum payload of a segment; from 1 byte to [`Network::MAX_MSS`].
    pub mss: Bytes,
    /// Maximum packet size, where full segments do not fill it.
    pub mtu: Option<Bytes>,
    /// A modem at both ends; the rate is then that of the phone line, headers included.
    pub modem: Option<modem::Config>,
    /// Impairments of packets from the client to the server.
    pub up: Direction,
    /// Impairments of packets from the server to the client.
    pub down: Direction,
}

/// Impairments in one direction, beyond rate and delay. The default is none: no loss, and an unlimited queue,
/// since the papers' model has neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Direction {
    /// Queue limit of the link.
    pub queue: QueueLimit,
    /// Queue discipline of the link.
    pub discipline: QueueDiscipline,
    /// Packet loss.
    pub loss: Loss,
    /// Jitter.
    pub jitter: Option<Jitter>,
    /// Reordering.
    pub reordering: Option<Reordering>,
    /// Probability that a packet is duplicated.
    pub duplication: Probability,
}

/// Both directions of a network's emulated link.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// From the client to the server.
    pub up: Config,
    /// From the server to the client.
    pub down: Config,
}

/// IPv4's header and TCP's without options, 20 bytes each (RFC 791, RFC 9293).
const HEADERS: u16 = 40;
/// Maximum IPv4 packet (RFC 791).
const MAX_PACKET_BYTES: Bytes = Bytes::new(65_535);

impl Network {
    /// Maximum round trip time: one hour.
    pub const MAX_RTT: Duration = Duration::from_secs(3_600);
    /// Maximum payload of an IPv4 packet of 65,535 bytes without its headers.
    pub const MAX_MSS: Bytes = Bytes::new(65_495);
    /// Payload of segments that fill Ethernet's packets of 1,500 bytes (RFC 894; RFC 9293, section 3.7.1).
    pub const MSS_DEFAULT: Bytes = Bytes::new(1_460);

    /// A path with these values: the same rate both ways, no loss, an unlimited queue.
    pub fn new(name: String, rtt: Duration, rate: Rate, mss: Bytes) -> Self {
        let (up, down) = (Direction::default(), Direction::default());
        let (rate_up, traces, delay_up, mtu, modem) = (None, None, None, None, None);
        Self { name, like: None, rtt, rate, rate_up, traces, delay_up, mss, mtu, modem, up, down }
    }

    /// Maximum packet size: the given one, or a full segment with its headers.
    pub fn mtu(&self) -> Bytes {
        self.mtu.unwrap_or(self.mss + Bytes::new(u64::from(HEADERS)))
    }

    /// Transmission time of one full segment (`stt` in `papers/heidemann-model#table-2`), seconds.
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

    /// Both directions of the emulated link: headers take no time on it, since rates count payload.
    ///
    /// The 12 bytes of a stack's timestamps do: they are sent instead of payload, as they would be on the path
    /// that was measured.
    pub fn links(&self) -> Links {
        let delay_up = self.delay_up.unwrap_or(self.rtt / 2);
        let capacity = |rate, direction: fn(&Traces) -> &TraceFile| match &self.traces {
            Some(traces) => Capacity::Schedule(direction(traces).schedule.clone()),
            None => Capacity::Rate(rate),
        };
        let up = capacity(self.rate_up.unwrap_or(self.rate), |traces| &traces.up);
        let down = capacity(self.rate, |traces| &traces.down);
        Links {
            up: self.up.link(up, self.modem, delay_up),
            down: self.down.link(down, self.modem, self.rtt - delay_up),
        }
    }

    /// Validates the path.
    ///
    /// # Errors
    /// The first invalid value, and its remedy.
    pub fn check(&self) -> Result<(), NetworkError> {
        let Self { name, rtt, rate, rate_up, traces, delay_up, mss, mtu, .. } = self;
        let Self { like: _, modem: _, up: _, down: _, .. } = self;
        if name.is_empty() || name.len() > MAX_NAME_CHARS {
            return Err(NetworkError::Name(name.clone()));
        }
        if *rtt > Self::MAX_RTT {
            return Err(NetworkError::Rtt(*rtt));
        }
        if let Some(invalid_rate) =
            [Some(*rate), *rate_up].into_iter().flatten().find(|rate| !is_usable(*rate))
        {
            return Err(NetworkError::Rate(invalid_rate));
        }
        if let Some(delay_up) = delay_up.filter(|delay_up| delay_up > rtt) {
            return Err(NetworkError::DelayUp { delay_up, rtt: *rtt });
        }
        if *mss == Bytes::ZERO || *mss > Self::MAX_MSS {
            return Err(NetworkError::Mss(*mss));
        }
        if let Some(mtu) =
            mtu.filter(|mtu| *mtu > MAX_PACKET_BYTES || *mtu < *mss + Bytes::new(u64::from(HEADERS)))
        {
            return Err(NetworkError::Mtu { mss: *mss, mtu });
        }
        if let Some(file) = traces.as_ref().and_then(Traces::unread) {
            return Err(NetworkError::TraceUnread(file.to_owned()));
        }
        let Links { up, down } = self.links();
        up.check().and(down.check()).map_err(NetworkError::Link)
    }
}

impl Direction {
    fn link(&self, capacity: Capacity, modem: Option<modem::Config>, delay: Duration) -> Config {
        let Self { queue, discipline, loss, jitter, reordering, duplication } = self;
        let (rate, schedule) = match capacity {
            Capacity::Rate(rate) => (Some(rate), None),
            Capacity::Schedule(schedule) => (None, schedule),
        };
        // Delivery opportunities carry whole packets.
        let framing = if modem.is_some() || schedule.is_some() { 0 } else { -i32::from(HEADERS) };
        Config {
            rate,
            schedule,
            framing,
            modem,
            queue: *queue,
            discipline: *discipline,
            delay,
            jitter: *jitter,
            loss: loss.clone(),
            reordering: *reordering,
            duplication: *duplication,
        }
    }
}

/// Capacity of one direction.
enum Capacity {
    Rate(Rate),
    Schedule(Option<Arc<DeliverySchedule>>),
}

/// Maximum length of a name; enough for a name that lists every change.
const MAX_NAME_CHARS: usize = 1_000;

/// Whether a rate is from 1 bit/s to 1 Tbit/s.
fn is_usable(rate: Rate) -> bool {
    (1_000..=1_000_000_000_000_000).contains(&rate.millibits_per_second())
}

/// Reason why a path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// An empty name, or a very long one.
    #[error("a network's name has 1 to {MAX_NAME_CHARS} letters, not {}; shorten it", .0.len())]
    Name(String),
    /// Above an hour.
    #[error("a round trip of {0} is too long; give 0ms to 1h")]
    Rtt(Duration),
    /// Below 1 bit/s or above 1 Tbit/s.
    #[error("a rate of {0} is out of range; give 1bit to 1tbit")]
    Rate(Rate),
    /// More one-way delay than round trip.
    #[error(
        "a delay of {delay_up} towards the server is more than the whole round trip of {rtt}; give at most \
         that"
    )]
    DelayUp {
        /// One-way delay towards the server.
        delay_up: Duration,
        /// Round trip.
        rtt: Duration,
    },
    /// Zero, or more than an IPv4 packet holds.
    #[error("a segment of {0} is out of range; give 1 to 65495 bytes")]
    Mss(Bytes),
    /// A packet smaller than a full segment, or larger than IPv4 allows.
    #[error(
        "a packet of {mtu} cannot carry a segment of {mss} and {HEADERS} B of headers; give a smaller mss, \
         or an mtu of {} to 65535",
        .mss.get() + u64::from(HEADERS)
    )]
    Mtu {
        /// The segment's payload.
        mss: Bytes,
        /// The packet.
        mtu: Bytes,
    },
    /// A rate and a network trace.
    #[error("a rate and a network trace both set the capacity; give one of them")]
    RateAndTrace,
    /// A network trace without its contents: the name of the file.
    #[error("the network trace {0} has not been read; only the command line reads files")]
    TraceUnread(String),
    /// A value that the emulated link refuses.
    #[error(transparent)]
    Link(ConfigError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modem() -> Network {
        Network::named("modem").unwrap()
    }

    #[test]
    fn link_takes_half_the_round_trip_each_way_by_default_and_headers_take_no_time() {
        let odd = Network { rtt: Duration::from_nanos(7), ..modem() };
        let Links { up, down } = odd.links();
        assert_eq!((up.delay, down.delay), (Duration::from_nanos(3), Duration::from_nanos(4)));
        assert_eq!((up.framing, down.framing), (-40, -40));
        assert_eq!((up.rate, down.rate), (Some(odd.rate), Some(odd.rate)));

        let satellite = Network {
            rate_up: Rate::from_bits_per_second(28_800),
            delay_up: Some(Duration::from_millis(100)),
            ..Network::named("direcpc").unwrap()
        };
        let Links { up, down } = satellite.links();
        assert_eq!((up.delay, down.delay), (Duration::from_millis(100), Duration::from_millis(400)));
        assert_eq!((up.rate, down.rate), (satellite.rate_up, Some(satellite.rate)));
    }

    #[test]
    fn rejects_invalid_networks() {
        let invalid = [
            Network { name: String::new(), ..modem() },
            Network { rtt: Duration::from_secs(3_601), ..modem() },
            Network { rate_up: Rate::from_millibits_per_second(999), ..modem() },
            Network { delay_up: Some(Duration::from_millis(251)), ..modem() },
            Network { mss: Bytes::ZERO, ..modem() },
            Network { mss: Bytes::new(65_496), ..modem() },
            Network { mtu: Some(Bytes::new(551)), ..modem() },
            Network { up: Direction { loss: Loss::Exactly([0].into()), ..Direction::default() }, ..modem() },
        ];
        assert!(invalid.iter().all(|network| network.check().is_err()));
        assert!(Network::all().iter().all(|network| network.check().is_ok()));
        assert_eq!(Network { mtu: Some(Bytes::new(552)), ..modem() }.check(), Ok(()));
    }

    #[test]
    fn default_mtu_is_a_full_segment_with_its_headers() {
        assert_eq!(modem().mtu(), Bytes::new(552));
        assert_eq!(Network { mtu: Some(Bytes::new(1500)), ..modem() }.mtu(), Bytes::new(1500));
    }
}
