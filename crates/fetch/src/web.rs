//! Origins of a page on today's web: TLS, the offer of HTTP/2, and origins that share connections; a browser's limits.

use http2::Profile;
use page::{Host, OfferedProtocols};
use tls::session::SessionConfig;

pub use tls::session::Handshake;

use crate::serving::ServerProtocols;
use crate::transport::Endpoint;

/// Maximum number of connections to all origins: Chromium, net/socket/client_socket_pool_manager.cc
/// (`g_max_sockets_per_pool`); six of them to one (`g_max_sockets_per_group`).
pub const MAX_CONNECTIONS: usize = 256;

/// Maximum number of delayable requests in flight, of those whose server has no priorities: Chromium,
/// services/network/resource_scheduler (`kMaxNumDelayableRequestsPerClient`).
pub const MAX_DELAYABLE: usize = 10;

/// Number of requests in flight at which delayable ones are held back before the document's body:
/// Chromium, third_party/blink/renderer/platform/loader/fetch/resource_load_scheduler.cc (the tight limit).
pub const MAX_BEFORE_BODY: usize = 2;

/// Protocols of a page's origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebConfig {
    /// Each origin, in the plan's order.
    pub origins: Vec<OriginConfig>,
    /// Behaviour of the client over HTTP/2.
    pub profile: Profile,
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
}

impl WebConfig {
    /// Protocols of these hosts. A host speaks HTTP/2 and TLS where they are requested and it offers them; over HTTP/2, hosts of
    /// an address group share the connection of its first.
    pub fn of(hosts: &[Host], http2: bool, tls: Option<Handshake>) -> Self {
        let speaks_http2 =
            |host: &Host| http2 && host.protocols.http2 && (tls.is_none() || host.protocols.tls);
        let origin = |(index, host): (usize, &Host)| {
            let OfferedProtocols { tls: offers_tls, http2: _, http3: _ } = host.protocols;
            let shares = |other: &Host| other.address_group == host.address_group && speaks_http2(other);
            let group = host.address_group.filter(|_| speaks_http2(host));
            let endpoint = group.and_then(|_| hosts.iter().position(shares)).unwrap_or(index);
            OriginConfig { http2: speaks_http2(host), endpoint, tls: tls.filter(|_| offers_tls) }
        };
        let origins = hosts.iter().enumerate().map(origin).collect();
        Self { origins, profile: crate::transport::http2::DEFAULT_PROFILE }
    }

    /// Whether no origin has TLS or HTTP/2.
    pub fn is_plain(&self) -> bool {
        self.origins.iter().all(|origin| !origin.http2 && origin.tls.is_none())
    }

    /// Protocols of the server of one of the origins, a page's host.
    pub fn server(&self, origin: Endpoint, host: &Host) -> ServerProtocols {
        let Some(OriginConfig { http2, endpoint: _, tls }) = self.origins.get(origin).copied() else {
            return ServerProtocols::default();
        };
        let chain = host.certificate_chain.and_then(|chain| usize::try_from(chain.get()).ok());
        let tls = tls.map(|handshake| SessionConfig {
            protocol: if http2 { "h2" } else { "http/1.1" },
            certificate_chain: chain.unwrap_or(SessionConfig::CERTIFICATE_CHAIN),
            ..SessionConfig::new(handshake)
        });
        ServerProtocols { tls, http2: http2.then_some(Profile::NGINX) }
    }

    pub(crate) fn has_http2(&self, origin: Endpoint) -> bool {
        self.origins.get(origin).is_some_and(|origin| origin.http2)
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
