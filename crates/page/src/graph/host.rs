//! A host of a page: its distance, its server's time, and the protocols that it offers.

use http1::message::is_host;
use wire::{Bytes, Duration};

use super::Dependency;

/// A host of a page, which is one origin: a name, a scheme, a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name, for references and for the `Host` field; with a port, unless it is the scheme's.
    pub name: String,
    /// Hosts of the same group have one address and one certificate, so a connection of HTTP/2 or HTTP/3 serves all of
    /// them (RFC 9113, section 9.1.1). `None`: an address of its own.
    pub address_group: Option<u32>,
    /// Round trip beyond that of the network.
    pub extra_rtt: Duration,
    /// Time in which its name is looked up, before the first request to it.
    pub lookup: Duration,
    /// Time of the server for each response, beyond that of the scenario.
    pub processing: Duration,
    /// Protocols that it offers.
    pub protocols: OfferedProtocols,
    /// Size of its certificate chain; `None`: the scenario's.
    pub certificate_chain: Option<Bytes>,
    /// Program of its server, where known.
    pub software: Option<String>,
    /// Moments at which a browser prepares for it, before the first request.
    pub hints: Hints,
}

/// Resource hints for a host (the HTML standard, "link types"; RFC 8288 for the field `Link`): moments at which they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `preconnect`: a connection is opened.
    pub preconnect: Option<Dependency>,
    /// `dns-prefetch`: the name is looked up.
    pub dns_prefetch: Option<Dependency>,
}

impl Hints {
    /// No hints.
    pub const NONE: Self = Self { preconnect: None, dns_prefetch: None };

    /// Each hint, and whether it opens a connection.
    pub fn all(&self) -> impl Iterator<Item = (Dependency, bool)> {
        let Self { preconnect, dns_prefetch } = *self;
        let preconnect = preconnect.map(|after| (after, true));
        preconnect.into_iter().chain(dns_prefetch.map(|after| (after, false)))
    }
}

/// Protocols that a host offers. HTTP/1.1 is always offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedProtocols {
    /// Whether TLS is offered: the scheme is https.
    pub tls: bool,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
    /// Whether HTTP/3 is offered.
    pub http3: bool,
}

impl OfferedProtocols {
    /// Every protocol: the scenario's is used.
    pub const ALL: Self = Self { tls: true, http2: true, http3: true };
    /// HTTP/1.1 over TLS.
    pub const HTTP1: Self = Self { tls: true, http2: false, http3: false };
    /// HTTP/1.1 without TLS: the scheme is http.
    pub const PLAINTEXT: Self = Self { tls: false, http2: false, http3: false };
}

impl Host {
    /// The host of a page of which no host is known.
    pub const UNNAMED: &str = "server";

    /// A host as near as the network, with an address of its own and every protocol, without processing time.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            address_group: None,
            extra_rtt: Duration::ZERO,
            lookup: Duration::ZERO,
            processing: Duration::ZERO,
            protocols: OfferedProtocols::ALL,
            certificate_chain: None,
            software: None,
            hints: Hints::NONE,
        }
    }

    /// Whether HTTP/2 carries requests to it, one of these hosts, where the scenario's protocol is that: it offers HTTP/2, or none
    /// of those with TLS does, and the scenario supposes that they all do.
    pub fn carries_http2(&self, hosts: &[Self]) -> bool {
        let offers = |host: &Self| host.protocols.http2;
        offers(self) || self.protocols.tls && !hosts.iter().any(offers)
    }

    /// The same for HTTP/3, which needs TLS.
    pub fn carries_http3(&self, hosts: &[Self]) -> bool {
        let offers = |host: &Self| host.protocols.tls && host.protocols.http3;
        self.protocols.tls && (offers(self) || !hosts.iter().any(offers))
    }

    /// Returns the value of the field `Host`. A name that no request can carry, as a recording may have one (in Unicode, or with a
    /// port above 65,535), has `x` in place of all but letters, digits, dots and hyphens.
    pub fn authority(&self) -> String {
        if is_host(self.name.as_bytes()) {
            return self.name.clone();
        }
        self.name.replace(|letter: char| !letter.is_ascii_alphanumeric() && !".-".contains(letter), "x")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_request_can_carry_become_valid_ones() {
        let authority = |name| Host::new(name).authority();
        assert_eq!(authority("www.example.org:8080"), "www.example.org:8080");
        assert_eq!(authority("[::1]:8443"), "[::1]:8443");
        for name in ["b\u{fc}cher.example", "a.example:99999", "a b\r\nX: y", "[::1", "\u{202e}"] {
            assert!(is_host(authority(name).as_bytes()), "{name:?} is {:?}", authority(name));
        }
    }
}
