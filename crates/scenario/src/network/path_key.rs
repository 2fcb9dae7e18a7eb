//! Keys of a path's settings: names, examples and help; [`super::Changes`] sets their values.

use crate::spec::key_info::KeyInfo;

/// A setting of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathKey {
    /// Round trip; each of several values makes a network.
    Rtt,
    /// Rate towards the client, and both ways unless `rate-up` is given; each of several values makes
    /// a network.
    Rate,
    /// Rate towards the server.
    RateUp,
    /// Recorded delivery opportunities in place of the rates.
    NetworkTrace,
    /// One-way delay towards the server.
    DelayUp,
    /// Maximum segment size.
    Mss,
    /// Maximum packet size.
    Mtu,
    /// A modem that compresses.
    Modem,
    /// Impairment of packets.
    Packets(PathDirection, DirectionKey),
}

/// Direction of packets: both, towards the server, towards the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathDirection {
    /// Both directions.
    Both,
    /// Towards the server; overrides both.
    Up,
    /// Towards the client; overrides both.
    Down,
}

/// A setting of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectionKey {
    /// Queue limit.
    Queue,
    /// Queue discipline.
    QueueDiscipline,
    /// Loss.
    Loss,
    /// Jitter.
    Jitter,
    /// Reordering.
    Reordering,
    /// Duplication.
    Duplication,
}

/// Description of [`PathKey::NetworkTrace`].
const NETWORK_TRACE: KeyInfo = KeyInfo::value(
    "network-trace",
    "UP,DOWN",
    "\"up.trace,down.trace\"",
    "Files with recorded delivery opportunities in place of the rates, as mahimahi's: one per line in \
                 milliseconds, of 1500 bytes each, repeated; one file serves both directions",
);

/// Names, placeholder, example and help of [`DirectionKey::QueueDiscipline`].
const QUEUE_DISCIPLINE: ([&str; 3], &str, &str, &str) = (
    ["queue-discipline", "queue-discipline-up", "queue-discipline-down"],
    "NAME",
    "\"codel\"",
    "Queue discipline: drop-tail, codel (RFC 8289) or fq-codel (RFC 8290); codel:10ms/200ms sets target \
                 and interval [default: drop-tail]",
);

impl PathKey {
    /// Every key.
    pub const ALL: [Self; 26] = {
        let mut all = [Self::Rtt; 26];
        let own = [
            Self::Rtt,
            Self::Rate,
            Self::RateUp,
            Self::NetworkTrace,
            Self::DelayUp,
            Self::Mss,
            Self::Mtu,
            Self::Modem,
        ];
        let kinds = DirectionKey::ALL;
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < own.len() {
                own[at]
            } else {
                let at = at - own.len();
                Self::Packets(
                    [PathDirection::Both, PathDirection::Up, PathDirection::Down][at / kinds.len()],
                    kinds[at % kinds.len()],
                )
            };
            at += 1;
        }
        all
    };

    /// Description for files, flags and help.
    pub(crate) const fn info(self) -> KeyInfo {
        match self {
            Self::Rtt => KeyInfo::value(
                "rtt",
                "TIME",
                "\"89ms\"",
                "Round-trip time, without transmission times: 89ms; repeat it for more networks",
            ),
            Self::Rate => KeyInfo::value(
                "rate",
                "RATE",
                "\"1.02Mibit\"",
                "Payload bits per second: 10Mbit (or 10Mbit/s, 10Mbps); 1.25MB/s are bytes; repeat \
                 it for more networks",
            ),
            Self::RateUp => {
                KeyInfo::value("rate-up", "RATE", "\"28800bit\"", "Rate towards the server, where it differs")
            }
            Self::NetworkTrace => NETWORK_TRACE,
            Self::DelayUp => KeyInfo::value(
                "delay-up",
                "TIME",
                "\"40ms\"",
                "One-way delay towards the server, where it is not half of the round-trip time",
            ),
            Self::Mss => KeyInfo::value("mss", "SIZE", "512", "Maximum segment size (default: 1460)"),
            Self::Mtu => KeyInfo::value("mtu", "SIZE", "1500", "MTU: maximum packet size with headers: 552"),
            Self::Modem => KeyInfo::value(
                "modem",
                "MODEM",
                "\"v42bis/57.6kbit\"",
                "Modems at both ends: v42bis compresses (v42bis:512x6: codewords, longest string), \
                 v42bis/57.6kbit behind a serial port of this rate, v42 only corrects errors, v42+vj \
                 also compresses TCP/IP headers (RFC 1144); --rate is then the line's, headers \
                 included",
            ),
            Self::Packets(direction, key) => key.info(direction),
        }
    }

    /// Name in a file.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Example of a line that sets it.
    pub fn example(self) -> String {
        self.info().line()
    }
}

impl DirectionKey {
    /// Every key.
    pub const ALL: [Self; 6] =
        [Self::Queue, Self::QueueDiscipline, Self::Loss, Self::Jitter, Self::Reordering, Self::Duplication];

    const fn info(self, direction: PathDirection) -> KeyInfo {
        let ([both, up, down], value_name, example, help) = match self {
            Self::Queue => (
                ["queue", "queue-up", "queue-down"],
                "LIMIT",
                "\"20p\"",
                "Queue limit: 20p packets, or 64kib [default: unlimited]",
            ),
            Self::QueueDiscipline => QUEUE_DISCIPLINE,
            Self::Loss => (
                ["loss", "loss-up", "loss-down"],
                "SHARE",
                "\"0.1%\"",
                "Packets lost: 0.1% independently; burst:0.5%/33%, into and out of bursts \
                 (Gilbert-Elliott); packets:3+17, exactly these",
            ),
            Self::Jitter => (
                ["jitter", "jitter-up", "jitter-down"],
                "TIME",
                "\"5ms\"",
                "Maximum random delay: 5ms; 5ms/free allows reordering",
            ),
            Self::Reordering => (
                ["reordering", "reordering-up", "reordering-down"],
                "SHARE",
                "\"1%/5ms\"",
                "Packets reordered, and their delay: 1%/5ms",
            ),
            Self::Duplication => (
                ["duplication", "duplication-up", "duplication-down"],
                "SHARE",
                "\"0.1%\"",
                "Packets duplicated: 0.1%",
            ),
        };
        let name = match direction {
            PathDirection::Both => both,
            PathDirection::Up => up,
            PathDirection::Down => down,
        };
        KeyInfo::value(name, value_name, example, help)
    }
}
