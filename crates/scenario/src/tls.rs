//! Security of connections: TLS by version, and how much of its handshake a client saves.
//!
//! Flights and records are the engines'.

use quantity::names::{self, UnknownName};

use crate::{Network, Page, Protocol};

/// TLS of every connection of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tls {
    /// None: HTTP in the clear.
    #[default]
    None,
    /// TLS 1.2 with a full handshake: two round trips (RFC 5246).
    V12,
    /// TLS 1.3 with a full handshake: one round trip (RFC 8446).
    V13,
    /// TLS 1.3 with a session ticket: one round trip, without certificates (RFC 8446, section 2.2).
    V13Resumed,
    /// TLS 1.3 with a session ticket and early data: no round trip (RFC 8446, section 2.3).
    V13EarlyData,
}

impl Tls {
    /// Every value.
    pub const ALL: [Self; 5] = [Self::None, Self::V12, Self::V13, Self::V13Resumed, Self::V13EarlyData];

    /// The name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::V12 => "1.2",
            Self::V13 => "1.3",
            Self::V13Resumed => "1.3-resumed",
            Self::V13EarlyData => "1.3-0rtt",
        }
    }

    /// The value of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("TLS version", name, &Self::ALL, Self::name)
    }

    /// Round trips of the handshake before the first request may leave, beyond those of TCP.
    pub const fn round_trips(self) -> u32 {
        match self {
            Self::None | Self::V13EarlyData => 0,
            Self::V13 | Self::V13Resumed => 1,
            Self::V12 => 2,
        }
    }

    /// Default: none on the papers' networks, and for pages of one host that HTTP/1 fetches and that have no
    /// dependencies of their own; TLS 1.3 for others, and for HTTP/3 always.
    pub fn usual(network: &Network, page: &Page, protocol: Protocol) -> Self {
        let is_of_today = protocol.is_of_today() || !page.is_plain();
        let has_choice = protocol.can_be_secured() && !network.is_of_the_papers();
        match protocol.is_http3() || is_of_today && has_choice {
            true => Self::V13,
            false => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_the_default_of_todays_pages_on_todays_networks() {
        let page = Page::named("small-cluster").unwrap();
        let usual = |network: &str, protocol| Tls::usual(&Network::named(network).unwrap(), &page, protocol);
        assert_eq!(usual("4g", Protocol::Http2), Tls::V13);
        assert_eq!(usual("4g", Protocol::Http11Parallel), Tls::None);
        assert_eq!(usual("modem", Protocol::Http2), Tls::None);
        assert_eq!(usual("modem", Protocol::Http3), Tls::V13);
    }
}
