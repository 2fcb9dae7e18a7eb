//! URL of a server: `http` or `https`, and an address that accepts connections.
//!
//! Requests of a list have targets of their own ([`crate::requests`]).

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use dhttp::{Url, UrlError};

use crate::config::Protocol;

/// A URL, and whether connections to its server are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// The URL, with the scheme `http`.
    pub url: Url,
    /// Whether the scheme is `https`.
    pub is_secure: bool,
}

/// A host without an address.
#[derive(Debug, thiserror::Error)]
#[error(
    "{host}: unknown host: {}",
    .error.as_ref().map_or_else(|| "it has no address".to_owned(), io::Error::to_string)
)]
pub struct UnknownHost {
    /// The host.
    pub host: String,
    /// The resolver's error; `None` if the name has no address.
    pub error: Option<io::Error>,
}

const HTTPS: &str = "https://";

/// Whether a URL has the scheme `https`.
pub fn is_secure(text: &str) -> bool {
    text.get(..HTTPS.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(HTTPS))
}

impl FromStr for ServerUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let Some(rest) = text.get(HTTPS.len()..).filter(|_| is_secure(text)) else {
            return Ok(Self { url: text.parse()?, is_secure: false });
        };
        let mut url: Url = format!("http://{rest}").parse()?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if url.port == 80 && !authority.ends_with(":80") {
            url.port = 443;
        }
        Ok(Self { url, is_secure: true })
    }
}

impl ServerUrl {
    /// Whether both URLs have the same server.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let server = |it: &Self| (it.url.host.to_ascii_lowercase(), it.url.port, it.is_secure);
        server(self) == server(other)
    }

    /// Resolves the host. Of several loopback addresses, as `localhost` may have, returns the first that accepts
    /// connections; otherwise the first address.
    ///
    /// # Errors
    /// [`UnknownHost`] without an address.
    pub fn resolve(&self, protocol: Protocol) -> Result<SocketAddr, UnknownHost> {
        let unknown = |error| UnknownHost { host: self.url.host.clone(), error };
        let addresses = (self.url.host.as_str(), self.url.port).to_socket_addrs();
        let addresses: Vec<SocketAddr> = addresses.map_err(|error| unknown(Some(error)))?.collect();
        listening(&addresses, protocol).ok_or_else(|| unknown(None))
    }
}

/// The first of these addresses that accepts connections; the first address if that is unknown.
fn listening(addresses: &[SocketAddr], protocol: Protocol) -> Option<SocketAddr> {
    const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
    let first = addresses.first().copied();
    if addresses.len() < 2 || protocol == Protocol::Http3 {
        return first;
    }
    // Only loopback addresses are tried: others may take long to respond.
    let is_loopback = |address: &&SocketAddr| address.ip().to_canonical().is_loopback();
    let listens = |address: &&SocketAddr| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok();
    addresses.iter().filter(is_loopback).find(listens).copied().or(first)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn server(text: &str) -> Option<ServerUrl> {
        text.parse().ok()
    }

    #[test]
    fn https_has_its_own_default_port() {
        let port = |text| server(text).map(|server| (server.url.port, server.is_secure));
        assert_eq!(port("http://h/"), Some((80, false)));
        assert_eq!(port("https://h/a:80"), Some((443, true)));
        assert_eq!(port("HTTPS://h:80/"), Some((80, true)));
        assert_eq!(port("https://[::1]:8443"), Some((8443, true)));
        assert_eq!(port("https://"), None);
    }

    #[test]
    fn a_server_is_a_host_a_port_and_a_scheme() {
        let is_same = |one, other| server(one).unwrap().is_same_server(&server(other).unwrap());
        assert!(is_same("http://Host/a", "http://host:80/b"));
        assert!(!is_same("http://host/", "http://host:8080/"));
        assert!(!is_same("http://host:443/", "https://host/"));
    }

    #[test]
    fn the_loopback_address_that_listens_is_chosen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let silent = SocketAddr::from(([127, 0, 0, 2], address.port()));
        assert_eq!(listening(&[silent, address], Protocol::KeepAlive), Some(address));
        assert_eq!(listening(&[silent], Protocol::KeepAlive), Some(silent));
        assert_eq!(listening(&[], Protocol::KeepAlive), None);
    }
}
