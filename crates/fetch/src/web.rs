//! Origins of a page on today's web: TLS, the offer of HTTP/2, and origins that share connections.

use http2::Profile;
use page::{Host, OfferedProtocols};
use tls::session::{RecordSizes, SessionConfig};

pub use tls::session::Handshake;
use wire::Seed;

use crate::plan::Discovery;
use crate::serving::ServerProtocols;
use crate::transport::id::Endpoint;

/// Protocols of a page's origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebConfig {
    /// Each origin, in the plan's order.
    pub origins: Vec<OriginConfig>,
    /// Behaviour of the client over HTTP/2.
    pub profile: Profile,
    /// Behaviour of the servers over HTTP/2.
    pub server_profile: Profile,
    /// HTTP/3, if it is used.
    pub http3: Option<Http3Config>,
}

/// Settings of HTTP/3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http3Config {
    /// Source of the client's knowledge of it.
    pub discovery: Discovery,
    /// Behaviour of the client.
    pub client: http3::Profile,
    /// Behaviour of the servers.
    pub server: http3::Profile,
    /// Kind of the handshake; of TLS 1.3.
    pub handshake: Handshake,
    /// Maximum bytes of a datagram on the path.
    pub max_datagram: u16,
    /// Seed of connection ids.
    pub seed: Seed,
}

/// Protocols of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginConfig {
    /// Whether requests to it use HTTP/2.
    pub http2: bool,
    /// The origin whose connections serve it over HTTP/2: itself, or one with the same address and certificate (RFC 9113,
    /// section 9.1.1).
    pub endpoint: Endpoint,
    /// TLS of its connections; `None`: without.
    pub tls: Option<Handshake>,
    /// The origin whose connections serve it over HTTP/3, as for HTTP/2; `None`: it is not offered.
    pub http3: Option<Endpoint>,
}

impl WebConfig {
    /// Protocols of these hosts. A host speaks HTTP/2 and TLS where they are requested and it offers them
    /// ([`Host::carries_http2`]); over HTTP/2, hosts of an address group share the connection of its first.
    pub fn of(hosts: &[Host], http2: bool, tls: Option<Handshake>) -> Self {
        let speaks_http2 =
            |host: &Host| http2 && host.carries_http2(hosts) && (tls.is_none() || host.protocols.tls);
        let origin = |(index, host): (usize, &Host)| {
            let OfferedProtocols { tls: offers_tls, http2: _, http3: _ } = host.protocols;
            let shares = |other: &Host| other.address_group == host.address_group && speaks_http2(other);
            let group = host.address_group.filter(|_| speaks_http2(host));
            let endpoint = group.and_then(|_| hosts.iter().position(shares)).unwrap_or(index);
            OriginConfig { http2: speaks_http2(host), endpoint, tls: tls.filter(|_| offers_tls), http3: None }
        };
        let origins = hosts.iter().enumerate().map(origin).collect();
        let (profile, server_profile) = (Profile::CHROMIUM, Profile::NGINX);
        Self { origins, profile, server_profile, http3: None }
    }

    /// Adds HTTP/3 for the hosts that offer it ([`Host::carries_http3`]); those of an address group share the connection of its first.
    #[must_use]
    pub fn with_http3(mut self, hosts: &[Host], http3: Http3Config) -> Self {
        let offers = |host: &Host| host.carries_http3(hosts);
        let shares = |host: &Host, other: &Host| {
            host.address_group.is_some() && other.address_group == host.address_group && offers(other)
        };
        for (index, (host, origin)) in hosts.iter().zip(&mut self.origins).enumerate() {
            let first = || hosts.iter().position(|other| shares(host, other)).unwrap_or(index);
            origin.http3 = offers(host).then(first);
        }
        self.http3 = Some(http3);
        self
    }

    /// Whether no origin has TLS or HTTP/2.
    pub fn is_plain(&self) -> bool {
        self.origins.iter().all(|origin| !origin.http2 && origin.tls.is_none())
    }

    /// Protocols of the server of one of the origins, a page's host.
    pub fn server(&self, origin: Endpoint, host: &Host) -> ServerProtocols {
        let Some(OriginConfig { http2, endpoint: _, tls, http3 }) = self.origins.get(origin).copied() else {
            return ServerProtocols::default();
        };
        let chain = host.certificate_chain.and_then(|chain| usize::try_from(chain.get()).ok());
        let certificate_chain = chain.unwrap_or(SessionConfig::CERTIFICATE_CHAIN);
        let tls = tls.map(|handshake| SessionConfig {
            protocol: if http2 { "h2" } else { "http/1.1" },
            certificate_chain,
            records: if http2 { self.server_profile.records } else { RecordSizes::Full },
            ..SessionConfig::new(handshake)
        });
        let http3 = self.http3.filter(|_| http3.is_some()).map(|http3| http3::ServerConfig {
            profile: http3.server,
            handshake: http3.handshake,
            certificate_chain,
            max_datagram: http3.max_datagram,
            seed: Seed::new(http3.seed.stream("quic-server", origin as u64).next_u64()),
        });
        ServerProtocols { tls, http2: http2.then_some(self.server_profile), http3 }
    }

    pub(crate) fn has_http2(&self, origin: Endpoint) -> bool {
        self.origins.get(origin).is_some_and(|origin| origin.http2)
    }

    /// The origin whose connections serve this one over HTTP/3.
    pub(crate) fn http3_endpoint(&self, origin: Endpoint) -> Option<Endpoint> {
        self.origins.get(origin)?.http3
    }

    pub(crate) fn endpoint(&self, origin: Endpoint) -> Endpoint {
        self.origins.get(origin).map_or(origin, |origin| origin.endpoint)
    }

    pub(crate) fn tls(&self, origin: Endpoint) -> Option<Handshake> {
        self.origins.get(origin)?.tls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_group_share_a_connection_and_hosts_without_an_offer_speak_http1() {
        let grouped = |name: &str| Host { address_group: Some(7), ..Host::new(name) };
        let old = Host { protocols: OfferedProtocols::HTTP1, ..grouped("old") };
        let clear = Host { protocols: OfferedProtocols::PLAINTEXT, ..Host::new("clear") };
        let hosts = [Host::new("www"), grouped("a"), old, grouped("b"), clear];
        let WebConfig { origins, .. } = WebConfig::of(&hosts, true, Some(Handshake::Full));
        let endpoints: Vec<Endpoint> = origins.iter().map(|origin| origin.endpoint).collect();
        assert_eq!(endpoints, [0, 1, 2, 1, 4]);
        assert_eq!(origins.map_each(|origin| origin.http2), [true, true, false, true, false]);
        assert_eq!(origins.map_each(|origin| origin.tls.is_some()), [true, true, true, true, false]);
    }

    trait MapEach<T> {
        fn map_each<U>(&self, of: impl Fn(&T) -> U) -> Vec<U>;
    }

    impl<T> MapEach<T> for Vec<T> {
        fn map_each<U>(&self, of: impl Fn(&T) -> U) -> Vec<U> {
            self.iter().map(of).collect()
        }
    }
}
