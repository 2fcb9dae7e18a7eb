//! DHTTP's settings on a network, and a sentence about the transport of responses: the same for every engine
//! that runs it.
//!
//! The state machines are in `dhttp-proto`.

mod parameters;

use std::fmt;

use dhttp_proto::address::Reach;
use dhttp_proto::{ClientConfig, Extension, ServerConfig};
use quantity::ValueError;
use quantity::names;
use wire::Bytes;

use crate::{Network, Remark};

pub use parameters::{Parameters, SERVER_PARAMETERS};

/// Settings of client and server under DHTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dhttp {
    /// The client.
    pub client: ClientConfig,
    /// The server.
    pub server: ServerConfig,
}

impl Dhttp {
    /// Settings of the paper (`papers/dhttp#section-iii`).
    pub fn paper() -> Self {
        Self { client: ClientConfig::paper(), server: ServerConfig::paper() }
    }

    /// Settings for today's Internet, except that simulated addresses count as valid.
    pub fn internet() -> Self {
        let server = ServerConfig { reach: Reach::Anywhere, ..ServerConfig::internet() };
        Self { client: ClientConfig::internet(), server }
    }

    /// Switches an extension beyond the paper on or off, at both ends.
    #[must_use]
    pub fn with(self, extension: Extension, is_on: bool) -> Self {
        let Self { client, server } = self;
        Self { client: client.with(extension, is_on), server: server.with(extension, is_on) }
    }

    /// Limits datagrams to the size that the network carries unfragmented. Returns a remark if that changes
    /// anything.
    pub fn on(mut self, network: &Network) -> (Self, Option<Remark>) {
        let max = max_datagram(network).get();
        let is_narrow = max < self.server.threshold;
        self.server.threshold = self.server.threshold.min(max);
        self.client.request_bytes = self.client.request_bytes.min(usize::try_from(max).unwrap_or(usize::MAX));
        (self, is_narrow.then_some(Remark::NarrowDatagrams(max)))
    }
}

/// DHTTP settings in their textual form: `paper`, `internet`, or either with extensions beyond the paper and
/// [`Parameters`] appended: `internet+parts`, `paper+datagram=4kB+loss=2%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpProfile {
    profile: &'static str,
    /// Enabled extensions, in the order of [`Extension::ALL`].
    extensions: [bool; Extension::ALL.len()],
    parameters: Parameters,
}

impl DhttpProfile {
    /// Parses the textual form.
    ///
    /// # Errors
    /// An unknown name, or a parameter's value.
    pub(crate) fn read(text: &str) -> Result<Self, ValueError> {
        let mut words = text.split('+').map(str::trim);
        let profile = words.next().unwrap_or_default();
        let profile = names::find("profile of DHTTP", profile, &["paper", "internet"], |name| name)?;
        let mut extensions = [false; Extension::ALL.len()];
        let mut parameters = Parameters::default();
        for word in words {
            if let Some((name, value)) = word.split_once('=') {
                parameters.set(name, value)?;
                continue;
            }
            let extension = names::find("extension", word, &Extension::ALL, Extension::name)?;
            let chosen =
                Extension::ALL.into_iter().zip(&mut extensions).filter(|(other, _)| *other == extension);
            chosen.for_each(|(_, is_on)| *is_on = true);
        }
        Ok(Self { profile, extensions, parameters })
    }

    /// Settings of both ends.
    pub fn ends(self) -> Dhttp {
        let base = if self.profile == "paper" { Dhttp::paper() } else { Dhttp::internet() };
        let extended = self.reported().fold(base, |ends, extension| ends.with(extension, true));
        self.parameters.of_ends(extended)
    }

    fn reported(self) -> impl Iterator<Item = Extension> {
        let all = Extension::ALL.into_iter().zip(self.extensions);
        all.filter(|(_, is_on)| *is_on).map(|(extension, _)| extension)
    }
}

impl fmt::Display for DhttpProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.profile)?;
        self.reported().try_for_each(|extension| write!(f, "+{extension}"))?;
        self.parameters.fmt(f)
    }
}

/// Maximum UDP payload that a network carries unfragmented.
pub fn max_datagram(network: &Network) -> Bytes {
    // IPv4's header and UDP's.
    Bytes::new(network.mtu().get().saturating_sub(20 + 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_never_larger_than_the_network_carries_whole() {
        let narrow = Network::named("modem").unwrap();
        let (dhttp, note) = Dhttp::paper().on(&narrow);
        assert_eq!(dhttp.server.threshold, narrow.mtu().get() - 28);
        assert!(note == Some(Remark::NarrowDatagrams(524)));
        let wide = Network::named("ethernet").unwrap();
        assert_eq!(Dhttp::paper().on(&wide), (Dhttp::paper(), None));
    }

    #[test]
    fn settings_round_trip_through_text() {
        for (text, ends) in [
            ("paper", Dhttp::paper()),
            ("internet", Dhttp::internet()),
            ("paper+loss-by-prefix+parts", {
                Dhttp::paper().with(Extension::Parts, true).with(Extension::LossByPrefix, true)
            }),
            ("paper+parts+datagram=4096+loss=2%", {
                let mut ends = Dhttp::paper().with(Extension::Parts, true);
                (ends.server.threshold, ends.server.loss.threshold_ppm) = (4_096, 20_000);
                ends
            }),
        ] {
            let profile = DhttpProfile::read(text).unwrap();
            assert_eq!((profile.to_string().as_str(), profile.ends()), (text, ends));
        }
        for (text, expected) in
            [("interned", "internet"), ("paper+part", "parts"), ("", "paper"), ("paper+", "parts")]
        {
            let error = DhttpProfile::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
