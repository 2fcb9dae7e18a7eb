//! What DHTTP is on a network, and what is worth saying of how answers came: the same for every engine that runs it.
//!
//! Not the machines: those are `dhttp-proto`'s.

use std::fmt;

use dhttp_proto::address::Reach;
use dhttp_proto::{ClientConfig, Extension, ServerConfig};
use pageload::visitor::Counts;
use quantity::ValueError;
use quantity::names;
use wire::Bytes;

use crate::Network;

/// How client and server behave under DHTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dhttp {
    /// The client.
    pub client: ClientConfig,
    /// The server.
    pub server: ServerConfig,
}

impl Dhttp {
    /// As in the paper (`papers/dhttp#section-iii`).
    pub fn paper() -> Self {
        Self { client: ClientConfig::paper(), server: ServerConfig::paper() }
    }

    /// As on the Internet of today, but that simulated addresses count as addresses.
    pub fn internet() -> Self {
        let server = ServerConfig { reach: Reach::Anywhere, ..ServerConfig::internet() };
        Self { client: ClientConfig::internet(), server }
    }

    /// The same with, or without, something that goes beyond the paper, at both ends.
    #[must_use]
    pub fn with(self, extension: Extension, is_on: bool) -> Self {
        let Self { client, server } = self;
        Self { client: client.with(extension, is_on), server: server.with(extension, is_on) }
    }

    /// The same on a network, which carries no larger datagrams whole, and a note if that changes anything.
    pub fn on(mut self, network: &Network) -> (Self, Option<String>) {
        let most = datagram_most(network).get();
        let is_narrow = most < self.server.threshold;
        self.server.threshold = self.server.threshold.min(most);
        self.client.request_bytes =
            self.client.request_bytes.min(usize::try_from(most).unwrap_or(usize::MAX));
        let note = || format!("datagrams of at most {most} bytes: the network carries no larger ones whole");
        (self, is_narrow.then(note))
    }
}

/// How client and server behave under DHTTP, as it is said: `paper`, `internet`, or either with what goes beyond the paper
/// behind it: `internet+parts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpWays {
    profile: &'static str,
    /// In the order of [`Extension::ALL`].
    beyond: [bool; Extension::ALL.len()],
}

impl DhttpWays {
    /// What a text says.
    ///
    /// # Errors
    /// A name that is none.
    pub(crate) fn read(text: &str) -> Result<Self, ValueError> {
        let mut words = text.split('+').map(str::trim);
        let profile = words.next().unwrap_or_default();
        let profile = names::find("profile of DHTTP", profile, &["paper", "internet"], |name| name)?;
        let mut beyond = [false; Extension::ALL.len()];
        for word in words {
            let extension = names::find("extension", word, &Extension::ALL, Extension::name)?;
            let said = Extension::ALL.into_iter().zip(&mut beyond).filter(|(one, _)| *one == extension);
            said.for_each(|(_, is_on)| *is_on = true);
        }
        Ok(Self { profile, beyond })
    }

    /// The ends that behave so.
    pub fn ends(self) -> Dhttp {
        let begun = if self.profile == "paper" { Dhttp::paper() } else { Dhttp::internet() };
        self.said().fold(begun, |ends, extension| ends.with(extension, true))
    }

    fn said(self) -> impl Iterator<Item = Extension> {
        let all = Extension::ALL.into_iter().zip(self.beyond);
        all.filter(|(_, is_on)| *is_on).map(|(extension, _)| extension)
    }
}

impl fmt::Display for DhttpWays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.profile)?;
        self.said().try_for_each(|extension| write!(f, "+{extension}"))
    }
}

/// The largest UDP payload that a network carries whole.
pub fn datagram_most(network: &Network) -> Bytes {
    // IPv4's header and UDP's.
    Bytes::new(network.mtu().get().saturating_sub(20 + 8))
}

/// How the answers came, in the mean of runs.
pub fn said(runs: &[Counts]) -> Option<String> {
    let mean = |part: fn(&Counts) -> u64| {
        let sum: u64 = runs.iter().map(part).sum();
        sum as f64 / runs.len().max(1) as f64
    };
    let named = [
        (mean(|counts| counts.by_datagram), "in a datagram"),
        (mean(|counts| counts.by_connection), "on a connection of the server's"),
        (mean(|counts| counts.by_plain_http), "over plain HTTP"),
    ];
    let ways =
        named.iter().filter(|(mean, _)| *mean > 0.0).map(|(mean, way)| format!("{} {way}", figure(*mean)));
    let mut said = Vec::from_iter(ways).join(", ");
    let resends = mean(|counts| counts.resends);
    if resends > 0.0 {
        said += &format!("; {} requests sent again", figure(resends));
    }
    (!said.is_empty()).then(|| format!("answers: {said}"))
}

/// Whole numbers as such, others to a tenth.
fn figure(mean: f64) -> String {
    if mean.fract() == 0.0 { format!("{mean:.0}") } else { format!("{mean:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_never_larger_than_the_network_carries_whole() {
        let narrow = Network::named("modem").unwrap();
        let (dhttp, note) = Dhttp::paper().on(&narrow);
        assert_eq!(dhttp.server.threshold, narrow.mtu().get() - 28);
        assert!(note.is_some_and(|note| note.contains("524 bytes")));
        let wide = Network::named("ethernet").unwrap();
        assert_eq!(Dhttp::paper().on(&wide), (Dhttp::paper(), None));
    }

    #[test]
    fn ways_are_read_as_they_are_said() {
        for (text, ends) in [
            ("paper", Dhttp::paper()),
            ("internet", Dhttp::internet()),
            ("paper+loss-by-prefix+parts", {
                Dhttp::paper().with(Extension::Parts, true).with(Extension::LossByPrefix, true)
            }),
        ] {
            let ways = DhttpWays::read(text).unwrap();
            assert_eq!((ways.to_string().as_str(), ways.ends()), (text, ends));
        }
        for (text, known) in
            [("interned", "internet"), ("paper+part", "parts"), ("", "paper"), ("paper+", "parts")]
        {
            let error = DhttpWays::read(text).unwrap_err().to_string();
            assert!(error.contains(known), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_said_of_answers_is_a_mean() {
        let counts = |by_datagram, resends| Counts { by_datagram, resends, ..Counts::default() };
        assert_eq!(said(&[counts(3, 0), counts(3, 0)]).unwrap(), "answers: 3 in a datagram");
        let sometimes = said(&[counts(3, 1), counts(2, 0)]).unwrap();
        assert_eq!(sometimes, "answers: 2.5 in a datagram; 0.5 requests sent again");
        assert_eq!(said(&[]), None);
    }
}
