//! Keys of a file, which are the flags without their dashes, and a setter for each from a text.
//!
//! The texts are parsed by `quantity`.

use std::fmt;

use quantity::names::{self, UnknownName};
use quantity::{ValueError, path};
use tcp::stack::Acks;
use tcp::stack::packets::Sharing;

use crate::network::changes::{Changes, DirectionChanges};
use crate::programs::ProgramKey;
use crate::{Connection, Engine, Network, Protocol, Requests, Spec, Stack, Visit};

/// A key of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Networks by name, or `all` for the papers' ten.
    Network,
    /// Pages by name or sizes, or `all` for the papers' six.
    Page,
    /// Protocols by name, or `all`.
    Protocol,
    /// Stack profiles by name, or `all`.
    Stack,
    /// Engines by name, or `all`.
    Engine,
    /// First or revalidate.
    Visit,
    /// Independent, after the document, or dependent.
    Requests,
    /// Size of each request.
    RequestSize,
    /// Maximum number of concurrent connections.
    Parallel,
    /// Cold or warm.
    Connection,
    /// The server's time per request.
    Processing,
    /// State that connections share.
    Sharing,
    /// The receiver's acknowledgement policy.
    Acks,
    /// Number of runs.
    Runs,
    /// Random seed.
    Seed,
    /// A setting of the programs at both ends.
    Program(ProgramKey),
    /// A setting of every network.
    Path(PathKey),
}

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
    /// Loss.
    Loss,
    /// Jitter.
    Jitter,
    /// Reordering.
    Reordering,
    /// Duplication.
    Duplication,
}

/// Number of keys of a file's first level.
const KEYS: usize = 15 + ProgramKey::ALL.len() + PathKey::ALL.len();

impl Key {
    /// Every key of a file's first level, in the order of lists.
    pub const ALL: [Self; KEYS] = {
        let mut all = [Self::Network; KEYS];
        let own = [
            Self::Network,
            Self::Page,
            Self::Protocol,
            Self::Stack,
            Self::Engine,
            Self::Visit,
            Self::Requests,
            Self::RequestSize,
            Self::Parallel,
            Self::Connection,
            Self::Processing,
            Self::Sharing,
            Self::Acks,
            Self::Runs,
            Self::Seed,
        ];
        let programs = ProgramKey::ALL;
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < own.len() {
                own[at]
            } else if at < own.len() + programs.len() {
                Self::Program(programs[at - own.len()])
            } else {
                Self::Path(PathKey::ALL[at - own.len() - programs.len()])
            };
            at += 1;
        }
        all
    };

    /// The key of that name, without dashes.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name, with the nearest and all the others.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("key", name, &Self::ALL, Self::name)
    }

    /// Name in a file; after two dashes, as a flag.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Page => "page",
            Self::Protocol => "protocol",
            Self::Stack => "stack",
            Self::Engine => "engine",
            Self::Visit => "visit",
            Self::Requests => "requests",
            Self::RequestSize => "request-size",
            Self::Parallel => "parallel",
            Self::Connection => "connection",
            Self::Processing => "processing",
            Self::Sharing => "sharing",
            Self::Acks => "acks",
            Self::Runs => "runs",
            Self::Seed => "seed",
            Self::Program(key) => key.name(),
            Self::Path(key) => key.name(),
        }
    }

    /// Example of a line that sets it.
    pub fn example(self) -> String {
        let value = match self {
            Self::Network => "\"fast-internet\"",
            Self::Page => "\"small-cluster\"",
            Self::Protocol => "[\"http10\", \"http11\"]",
            Self::Stack => "\"period\"",
            Self::Engine => "[\"model\", \"measure\"]",
            Self::Visit => "\"first\"",
            Self::Requests => "\"dependent\"",
            Self::RequestSize => "256",
            Self::Parallel => "4",
            Self::Connection => "\"cold\"",
            Self::Processing => "\"3.7ms\"",
            Self::Sharing => "\"ensemble\"",
            Self::Acks => "\"every-segment\"",
            Self::Runs => "20",
            Self::Seed => "1",
            Self::Program(key) => key.example(),
            Self::Path(key) => return key.example(),
        };
        format!("{} = {value}", self.name())
    }

    /// Whether it takes several values.
    pub const fn is_list(self) -> bool {
        match self {
            Self::Network
            | Self::Page
            | Self::Protocol
            | Self::Stack
            | Self::Engine
            | Self::Path(PathKey::Rtt | PathKey::Rate) => true,
            Self::Visit
            | Self::Requests
            | Self::RequestSize
            | Self::Parallel
            | Self::Connection
            | Self::Processing
            | Self::Sharing
            | Self::Acks
            | Self::Runs
            | Self::Seed
            | Self::Program(_)
            | Self::Path(_) => false,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PathKey {
    /// Every key.
    pub const ALL: [Self; 22] = {
        let mut all = [Self::Rtt; 22];
        let own = [Self::Rtt, Self::Rate, Self::RateUp, Self::DelayUp, Self::Mss, Self::Mtu, Self::Modem];
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

    /// Name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rtt => "rtt",
            Self::Rate => "rate",
            Self::RateUp => "rate-up",
            Self::DelayUp => "delay-up",
            Self::Mss => "mss",
            Self::Mtu => "mtu",
            Self::Modem => "modem",
            Self::Packets(way, key) => key.name(way),
        }
    }

    /// Example of a line that sets it.
    pub fn example(self) -> String {
        let value = match self {
            Self::Rtt => "\"89ms\"",
            Self::Rate => "\"1.02Mibit\"",
            Self::RateUp => "\"28800bit\"",
            Self::DelayUp => "\"40ms\"",
            Self::Mss => "512",
            Self::Mtu => "1500",
            Self::Modem => "\"v42bis/57.6kbit\"",
            Self::Packets(_, DirectionKey::Queue) => "\"20p\"",
            Self::Packets(_, DirectionKey::Loss | DirectionKey::Duplication) => "\"0.1%\"",
            Self::Packets(_, DirectionKey::Jitter) => "\"5ms\"",
            Self::Packets(_, DirectionKey::Reordering) => "\"1%/5ms\"",
        };
        format!("{} = {value}", self.name())
    }
}

impl DirectionKey {
    /// Every key.
    pub const ALL: [Self; 5] = [Self::Queue, Self::Loss, Self::Jitter, Self::Reordering, Self::Duplication];

    /// Name in a file.
    pub const fn name(self, way: PathDirection) -> &'static str {
        let [both, up, down] = match self {
            Self::Queue => ["queue", "queue-up", "queue-down"],
            Self::Loss => ["loss", "loss-up", "loss-down"],
            Self::Jitter => ["jitter", "jitter-up", "jitter-down"],
            Self::Reordering => ["reordering", "reordering-up", "reordering-down"],
            Self::Duplication => ["duplication", "duplication-up", "duplication-down"],
        };
        match way {
            PathDirection::Both => both,
            PathDirection::Up => up,
            PathDirection::Down => down,
        }
    }
}

impl Spec {
    /// Sets a value: a list grows (without repetition), anything else is replaced.
    ///
    /// # Errors
    /// An invalid text for this key; nothing is changed then.
    pub fn set(&mut self, key: Key, text: &str) -> Result<(), ValueError> {
        match key {
            Key::Network if text == ALL => extend(&mut self.networks, Network::ten()),
            Key::Network => extend(&mut self.networks, [Network::named(text)?]),
            Key::Page if text == ALL => extend(&mut self.pages, crate::Page::six()),
            Key::Page => extend(&mut self.pages, [crate::page::text::page(text)?]),
            Key::Protocol if text == ALL => extend(&mut self.protocols, Protocol::ALL),
            Key::Protocol => extend(&mut self.protocols, [Protocol::named(text)?]),
            Key::Stack if text == ALL => extend(&mut self.stacks, Stack::ALL),
            Key::Stack => extend(&mut self.stacks, [Stack::named(text)?]),
            Key::Engine if text == ALL => extend(&mut self.engines, Engine::ALL),
            Key::Engine => extend(&mut self.engines, [Engine::named(text)?]),
            Key::Visit => self.visit = Some(Visit::named(text)?),
            Key::Requests => self.requests = Some(Requests::named(text)?),
            Key::RequestSize => self.request = Some(quantity::request_size(text)?),
            Key::Parallel => self.parallel = Some(quantity::parallel(text)?),
            Key::Connection => self.connection = Some(Connection::named(text)?),
            Key::Processing => self.processing = Some(quantity::duration(text)?),
            Key::Sharing => self.sharing = Some(Sharing::named(text)?),
            Key::Acks => self.acks = Some(Acks::assumed(text)?),
            Key::Runs => self.runs = Some(quantity::runs(text)?),
            Key::Seed => self.seed = Some(quantity::seed(text)?),
            Key::Program(key) => self.programs.set(key, text)?,
            Key::Path(PathKey::Rtt) => extend(&mut self.rtts, [quantity::duration(text)?]),
            Key::Path(PathKey::Rate) => extend(&mut self.rates, [quantity::rate(text)?]),
            Key::Path(key) => self.path.set(key, text)?,
        }
        Ok(())
    }
}

impl Changes {
    /// Sets a value of a path.
    ///
    /// # Errors
    /// An invalid text for this key; nothing is changed then.
    pub fn set(&mut self, key: PathKey, text: &str) -> Result<(), ValueError> {
        match key {
            PathKey::Rtt => self.rtt = Some(quantity::duration(text)?),
            PathKey::Rate => self.rate = Some(quantity::rate(text)?),
            PathKey::RateUp => self.rate_up = Some(quantity::rate(text)?),
            PathKey::DelayUp => self.delay_up = Some(quantity::duration(text)?),
            PathKey::Mss => self.mss = Some(quantity::mss(text)?),
            PathKey::Mtu => self.mtu = Some(quantity::mtu(text)?),
            PathKey::Modem => self.modem = Some(path::modem(text)?),
            PathKey::Packets(PathDirection::Both, key) => self.both.set(key, text)?,
            PathKey::Packets(PathDirection::Up, key) => self.up.set(key, text)?,
            PathKey::Packets(PathDirection::Down, key) => self.down.set(key, text)?,
        }
        Ok(())
    }
}

impl DirectionChanges {
    /// Sets a value of a direction.
    ///
    /// # Errors
    /// An invalid text for this key; nothing is changed then.
    pub fn set(&mut self, key: DirectionKey, text: &str) -> Result<(), ValueError> {
        match key {
            DirectionKey::Queue => self.queue = Some(path::queue(text)?),
            DirectionKey::Loss => self.loss = Some(path::loss(text)?),
            DirectionKey::Jitter => self.jitter = Some(path::jitter(text)?),
            DirectionKey::Reordering => self.reordering = Some(path::reordering(text)?),
            DirectionKey::Duplication => self.duplication = Some(quantity::probability(text)?),
        }
        Ok(())
    }
}

/// Value for all ten networks, all six pages, or every protocol, stack or engine.
const ALL: &str = "all";

fn extend<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_name_and_a_misspelt_one_suggests_the_nearest() {
        assert!(Key::ALL.into_iter().all(|key| Key::named(key.name()) == Ok(key)));
        assert_eq!(Key::named("protcol").unwrap_err().nearest(), Some("protocol"));
    }

    #[test]
    fn list_grows_without_repetition() {
        let mut spec = Spec::default();
        for network in ["modem", "all", "modem", "n-modem"] {
            spec.set(Key::Network, network).unwrap();
        }
        assert_eq!(spec.networks.len(), 11);
        assert_eq!(spec.networks[0].name, "modem");
    }

    #[test]
    fn a_wrong_value_changes_nothing() {
        let mut spec = Spec { runs: Some(3), ..Spec::default() };
        assert!(spec.set(Key::Runs, "0").is_err());
        assert_eq!(spec, Spec { runs: Some(3), ..Spec::default() });
    }
}
