//! Names of the protocols that fetch a page, and their descriptions.
//!
//! The state machines are in `fetch` and `dhttp-proto`, the formulas in `model`.

use quantity::names::{self, Listing, UnknownName};

/// A protocol that fetches a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Lower bound of all protocols: one round trip and the time to send the data.
    Minimum,
    /// A TCP connection for every object.
    Http10,
    /// One TCP connection, one request at a time, requested with `Connection: Keep-Alive`.
    Http10KeepAlive,
    /// One TCP connection, one request at a time, persistent by default.
    Http11,
    /// Several TCP connections, each as in [`Protocol::Http11`].
    Http11Parallel,
    /// One TCP connection, requests sent without waiting for responses.
    Http11Pipelined,
    /// [`Protocol::Http11Pipelined`], with bodies that shrink under deflate sent deflated.
    Http11PipelinedDeflate,
    /// Transaction TCP: cached handshakes (RFC 1644).
    Ttcp,
    /// The Asynchronous Reliable Delivery Protocol: request and response over UDP, with slow start.
    Ardp,
    /// Small responses in one datagram, large ones over TCP that the server opens.
    Dhttp,
    /// HTTP/2: one connection for each group of hosts that share an address and a certificate.
    Http2,
    /// HTTP/3: the same over QUIC, which the client knows beforehand that the servers offer.
    Http3,
    /// HTTP/3 for all but the first requests to a host, which HTTP/2 carries until its response has named the alternative.
    Http3Upgrade,
}

impl Protocol {
    /// Every protocol, in the order of tables.
    pub const ALL: [Self; 13] = [
        Self::Minimum,
        Self::Http10,
        Self::Http10KeepAlive,
        Self::Http11,
        Self::Http11Parallel,
        Self::Http11Pipelined,
        Self::Http11PipelinedDeflate,
        Self::Ttcp,
        Self::Ardp,
        Self::Dhttp,
        Self::Http2,
        Self::Http3,
        Self::Http3Upgrade,
    ];

    /// Protocols of the papers and of their models: all that came before HTTP/2.
    pub const OF_THE_PAPERS: [Self; 10] = {
        let [papers @ .., Self::Http2, Self::Http3, Self::Http3Upgrade] = Self::ALL else {
            panic!("HTTP/2 and HTTP/3 come last")
        };
        papers
    };

    /// The protocol of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name, with the nearest and all the others.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("protocol", name, &Self::ALL, Self::name)
    }

    /// The name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        self.listing().name
    }

    /// Maximum number of concurrent connections, unless `parallel` is set.
    pub const fn connections(self) -> u16 {
        match self {
            // Chromium, net/socket/client_socket_pool_manager.cc: 6 sockets for a host. Firefox, modules/libpref:
            // network.http.max-persistent-connections-per-server is 6.
            Self::Http11Parallel => 6,
            Self::Minimum
            | Self::Http10
            | Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Pipelined
            | Self::Http11PipelinedDeflate
            | Self::Ttcp
            | Self::Ardp
            | Self::Dhttp
            | Self::Http2
            | Self::Http3
            | Self::Http3Upgrade => 1,
        }
    }

    /// Whether it can have several connections (for ARDP, exchanges) open concurrently. The minimum holds for
    /// any number.
    pub const fn is_parallel(self) -> bool {
        match self {
            Self::Minimum | Self::Http10 | Self::Http11Parallel | Self::Ttcp | Self::Ardp => true,
            Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Pipelined
            | Self::Http11PipelinedDeflate
            | Self::Dhttp
            | Self::Http2
            | Self::Http3
            | Self::Http3Upgrade => false,
        }
    }

    /// Whether its connections can carry TLS: those of plain TCP that the client opens, and QUIC's, which always do.
    pub const fn can_be_secured(self) -> bool {
        match self {
            Self::Http10
            | Self::Http10KeepAlive
            | Self::Http11
            | Self::Http11Parallel
            | Self::Http11Pipelined
            | Self::Http11PipelinedDeflate
            | Self::Http2
            | Self::Http3
            | Self::Http3Upgrade => true,
            Self::Minimum | Self::Ttcp | Self::Ardp | Self::Dhttp => false,
        }
    }

    /// Whether it is HTTP/3, at least for some of its requests.
    pub const fn is_http3(self) -> bool {
        matches!(self, Self::Http3 | Self::Http3Upgrade)
    }

    /// Whether it came after the papers: its formulas and defaults are those of graphs.
    pub const fn is_of_today(self) -> bool {
        self.is_http3() || matches!(self, Self::Http2)
    }

    /// Descriptions of the names, in the order of [`Protocol::ALL`].
    pub fn listings() -> impl Iterator<Item = Listing> {
        Self::ALL.into_iter().map(Self::listing)
    }

    /// Description of the name, and its specification.
    pub const fn listing(self) -> Listing {
        let (name, description, source) = match self {
            Self::Minimum => (
                "minimum",
                "lower bound: one round trip and the time to send the data",
                "papers/heidemann-model#section-iv-a",
            ),
            Self::Http10 => ("http10", "a TCP connection for every object", "RFC 1945"),
            Self::Http10KeepAlive => (
                "http10-keepalive",
                "one TCP connection, one request at a time, with Connection: Keep-Alive",
                "papers/p-http, RFC 2068 section 19.7.1",
            ),
            Self::Http11 => {
                ("http11", "one TCP connection, one request at a time, persistent by default", "RFC 9112")
            }
            Self::Http11Parallel => (
                "http11-parallel",
                "six TCP connections, one request at a time on each, as browsers do",
                "RFC 9112 section 9.4; Chromium, net/socket/client_socket_pool_manager.cc",
            ),
            Self::Http11Pipelined => (
                "http11-pipelined",
                "one TCP connection, requests sent without waiting for responses",
                "papers/w3c, RFC 9112 section 9.3.2",
            ),
            Self::Http11PipelinedDeflate => (
                "http11-pipelined-deflate",
                "the same, with bodies that shrink under deflate sent deflated",
                "papers/w3c, RFC 9110 section 8.4.1.2",
            ),
            Self::Ttcp => (
                "ttcp",
                "Transaction TCP: cached handshakes",
                "papers/heidemann-model#section-iv-d, RFC 1644",
            ),
            Self::Ardp => (
                "ardp",
                "request and response over UDP, with TCP's slow start",
                "papers/heidemann-model#section-iv-f",
            ),
            Self::Dhttp => (
                "dhttp",
                "small responses in one datagram, large ones over TCP that the server opens",
                "papers/dhttp",
            ),
            Self::Http2 => (
                "http2",
                "HTTP/2: one connection for each group of hosts, requests and responses multiplexed",
                "RFC 9113",
            ),
            Self::Http3 => {
                ("http3", "HTTP/3: one QUIC connection for each group of hosts, known beforehand", "RFC 9114")
            }
            Self::Http3Upgrade => (
                "http3-upgrade",
                "HTTP/2 until a host's first response has named HTTP/3, then that",
                "RFC 9114 section 3.1.1, RFC 7838",
            ),
        };
        Listing { name, description, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_found_by_name_and_a_misspelt_one_suggests_the_nearest() {
        assert!(Protocol::ALL.into_iter().all(|protocol| Protocol::named(protocol.name()) == Ok(protocol)));
        assert_eq!(Protocol::named("http1.1").unwrap_err().nearest(), Some("http11"));
    }
}
