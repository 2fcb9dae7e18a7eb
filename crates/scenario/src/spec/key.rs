//! Keys of a file, which are the flags without their dashes, and a setter for each from a text.
//!
//! The texts are parsed by `quantity`.

use std::fmt;

use quantity::ValueError;
use quantity::names::{self, UnknownName};
use tcp::stack::Acks;
use tcp::stack::packets::Sharing;

use super::key_info::KeyInfo;
pub use crate::network::path_key::{DirectionKey, PathDirection, PathKey};
use crate::programs::ProgramKey;
use crate::{Connection, Engine, Network, Protocol, Requests, Spec, Stack, Tls, Visit};

/// A key of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Networks by name, or `all` for the papers' ten.
    Network,
    /// Pages by name or sizes, or `all` for the papers' six.
    Page,
    /// Protocols by name, or `all`.
    Protocol,
    /// TLS by version.
    Tls,
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

/// Number of keys of a file's first level.
const KEYS: usize = 16 + ProgramKey::ALL.len() + PathKey::ALL.len();

impl Key {
    /// Every key of a file's first level, in the order of lists.
    pub const ALL: [Self; KEYS] = {
        let mut all = [Self::Network; KEYS];
        let own = [
            Self::Network,
            Self::Page,
            Self::Protocol,
            Self::Tls,
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

    /// Everything about a key but its parser: a flag, and a key of a file.
    const fn info(self) -> KeyInfo {
        match self {
            Self::Network => KeyInfo::value(
                "network",
                "NAME",
                "\"fast-internet\"",
                "A network by name, or all; repeat it for more (see `roundtrip list networks`)",
            ),
            Self::Page => KeyInfo::value(
                "page",
                "PAGE",
                "\"small-cluster\"",
                "A page by name, or all, or sizes such as 6651+3883+1866 (43008/11264 adds the \
                 deflated size), a directory, a browser's FILE.har, Chromium's trace FILE.json, or a FILE.toml of `roundtrip page`; repeat it for more",
            ),
            Self::Protocol => KeyInfo::value(
                "protocol",
                "NAME",
                "[\"http10\", \"http11\"]",
                "A protocol by name, or all; repeat it for more (see `roundtrip list protocols`)",
            ),
            Self::Tls => TLS,
            Self::Stack => KeyInfo::value(
                "stack",
                "NAME",
                "\"period\"",
                "TCP stack of both ends; repeat it for more (see `roundtrip list stacks`; default: \
                 period on the papers' networks, linux on others)",
            ),
            Self::Engine => KeyInfo::value(
                "engine",
                "NAME",
                "[\"model\", \"measure\"]",
                "An engine; repeat it for more: model, simulate, measure",
            ),
            Self::Visit => VISIT,
            Self::Requests => KeyInfo::value(
                "requests",
                "ORDER",
                "\"dependent\"",
                "Order of requests: independent; after-document, all when the first object is \
                 complete; or dependent, each after the object before it (default: independent to \
                 predict or with --parallel, else dependent)",
            ),
            Self::RequestSize => KeyInfo::value(
                "request-size",
                "SIZE",
                "256",
                "Size of each request with its header section [default: 256]",
            ),
            Self::Parallel => KeyInfo::value(
                "parallel",
                "N",
                "4",
                "Parallel connections, for http10 (default: 1) and http11-parallel (default: 6); \
                 others refuse it",
            ),
            Self::Connection => KeyInfo::value(
                "connection",
                "STATE",
                "\"cold\"",
                "State of the connection at the first request: cold (none) or warm (open, with an \
                 open window) [default: cold]",
            ),
            Self::Processing => KeyInfo::value(
                "processing",
                "TIME",
                "\"3.7ms\"",
                "Processing time of the server, from a request's arrival to the first byte of its \
                 response: 3.7ms [default: 0]",
            ),
            Self::Sharing => KeyInfo::value(
                "sharing",
                "SHARING",
                "\"ensemble\"",
                "State that connections share: none, temporal (a new one begins with the values of \
                 the last) or ensemble (concurrent ones share one window; RFC 2140)",
            ),
            Self::Acks => KeyInfo::value(
                "acks",
                "POLICY",
                "\"every-segment\"",
                "Acknowledgements of the receiver: every-segment, delayed (the odd one after twice a \
                 segment's time) or no-delayed (default: as the named stack; every-segment for \
                 predict without one)",
            ),
            Self::Runs => KeyInfo::value("runs", "N", "20", "Number of runs"),
            Self::Seed => KeyInfo::value("seed", "N", "1", "Random seed"),
            Self::Program(key) => KeyInfo::value(key.name(), key.value_name(), key.example(), key.help()),
            Self::Path(key) => key.info(),
        }
    }

    /// Name in a file; after two dashes, as a flag.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Placeholder of the flag's value.
    pub const fn value_name(self) -> &'static str {
        self.info().value_name
    }

    /// Help text of the flag.
    pub const fn help(self) -> &'static str {
        self.info().help
    }

    /// Example of a line that sets it.
    pub fn example(self) -> String {
        self.info().line()
    }
}

/// Description of [`Key::Visit`].
const VISIT: KeyInfo = KeyInfo::value(
    "visit",
    "VISIT",
    "\"first\"",
    "Visit: first, or revalidate for a page in the client's cache",
);

/// Description of [`Key::Tls`].
const TLS: KeyInfo = KeyInfo::value(
    "tls",
    "VERSION",
    "\"1.3\"",
    "TLS of every connection: none, 1.2, 1.3, 1.3-resumed (with a session ticket) or 1.3-0rtt (early data too); \
     repeat it for more (default: none on the papers' networks and for HTTP/1 pages of one host, else 1.3)",
);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Spec {
    /// Sets a value: a list grows (without repetition), anything else is replaced; [`Spec::add`] makes a list of it.
    ///
    /// # Errors
    /// An invalid text for this key; nothing is changed then.
    pub fn set(&mut self, key: Key, text: &str) -> Result<(), ValueError> {
        match key {
            Key::Network if text == ALL => extend(&mut self.networks, Network::ten()),
            Key::Network => extend(&mut self.networks, [Network::named(text)?]),
            Key::Page if text == ALL => extend(&mut self.pages, crate::Page::six()),
            Key::Page => extend(&mut self.pages, [page::text::page(text)?]),
            Key::Protocol if text == ALL => extend(&mut self.protocols, Protocol::ALL),
            Key::Protocol => extend(&mut self.protocols, [Protocol::named(text)?]),
            Key::Tls if text == ALL => extend(&mut self.tls, Tls::ALL),
            Key::Tls => extend(&mut self.tls, [Tls::named(text)?]),
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
        self.axes.retain(|axis| axis.key != key);
        Ok(())
    }
}

/// Value for all ten networks, all six pages, or every protocol, stack or engine.
const ALL: &str = "all";

fn extend<T: PartialEq>(list: &mut Vec<T>, values: impl IntoIterator<Item = T>) {
    for value in values {
        if !list.contains(&value) {
            list.push(value);
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
