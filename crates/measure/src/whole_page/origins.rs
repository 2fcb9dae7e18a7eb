//! The page's hosts as servers: addresses, names, and certificates of an authority of the laboratory's own.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use page::{Host, Page};
use scenario::{Protocol, Tls};
use tls::session::SessionConfig;

use super::authority::{Authority, Identity, PemFiles};
use super::{alpn, has_tls};
use crate::Error;
use crate::laboratory::server_address;
use crate::peers::TrustedAuthority;

/// A host's name and port, and the server's address with its certificates.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) name: String,
    pub(super) port: u16,
    pub(super) address: IpAddr,
    pub(super) tls: Option<OriginTls>,
}

impl Origin {
    pub(super) fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

/// TLS of a server, for our own and as files for others.
#[derive(Clone, Debug)]
pub(super) struct OriginTls {
    pub(super) server: Arc<rustls::ServerConfig>,
    pub(super) files: Arc<PemFiles>,
}

/// The servers of a page.
#[derive(Debug)]
pub(super) struct Origins {
    /// In the order of the page's hosts.
    pub(super) all: Vec<Origin>,
    /// The authority, if any host has TLS.
    pub(super) trusted: Option<TrustedAuthority>,
}

/// The servers of the page's hosts. Hosts of a name, and those of an address group, have one address; a group has one
/// certificate for all of its names.
pub(super) fn origins(page: &Page, tls: Tls, protocol: Protocol) -> Result<Origins, Error> {
    let failed = |error: rcgen::Error| Error::io("make a certificate")(std::io::Error::other(error));
    let authority = Authority::new().map_err(failed)?;
    let mut addresses: BTreeMap<String, IpAddr> = BTreeMap::new();
    let mut groups: BTreeMap<u32, (IpAddr, Vec<String>)> = BTreeMap::new();
    let mut names = Vec::new();
    for (index, host) in page.hosts.iter().enumerate() {
        let (name, port) = name_and_port(host, has_tls(host, tls))?;
        let own = server_address(index, true).ip();
        let group = host.address_group.map(|group| groups.entry(group).or_insert_with(|| (own, Vec::new())));
        let address = *addresses.entry(name.clone()).or_insert(group.as_ref().map_or(own, |group| group.0));
        if let Some((_, members)) = group
            && !members.contains(&name)
        {
            members.push(name.clone());
        }
        names.push((name, port, address));
    }
    let mut identities: BTreeMap<IpAddr, OriginTls> = BTreeMap::new();
    let mut all = Vec::new();
    for (host, (name, port, address)) in page.hosts.iter().zip(names) {
        let mut of_host = None;
        if has_tls(host, tls) {
            let tls = match identities.get(&address) {
                Some(tls) => tls.clone(),
                None => {
                    let members = groups.values().find(|(group, _)| *group == address);
                    let members = members.map_or_else(|| vec![name.clone()], |(_, names)| names.clone());
                    let chain = host.certificate_chain.and_then(|bytes| usize::try_from(bytes.get()).ok());
                    let chain = chain.unwrap_or(SessionConfig::CERTIFICATE_CHAIN);
                    let identity = authority.identity(&members, chain).map_err(failed)?;
                    let files = Arc::new(identity.pem());
                    let server = Arc::new(server_config(identity, tls, protocol)?);
                    let tls = OriginTls { server, files };
                    identities.insert(address, tls.clone());
                    tls
                }
            };
            of_host = Some(tls);
        }
        all.push(Origin { name, port, address, tls: of_host });
    }
    let trusted = TrustedAuthority { pem: authority.pem(), fingerprint: authority.fingerprint() };
    Ok(Origins { all, trusted: (!identities.is_empty()).then_some(trusted) })
}

/// Name and port of a host.
fn name_and_port(host: &Host, has_tls: bool) -> Result<(String, u16), Error> {
    let default = if has_tls { 443 } else { 80 };
    let (name, port) = match host.name.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()),
        None => (host.name.as_str(), Some(default)),
    };
    let is_name = |name: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        !name.is_empty()
            && name.len() <= 253
            && name.bytes().all(is_letter)
            && name.parse::<IpAddr>().is_err()
    };
    match port.filter(|_| is_name(name)) {
        Some(port) => Ok((name.to_owned(), port)),
        None => Err(Error::unsuited(
            &format!("a host called {:?} as a name of DNS", host.name),
            "rename it, such as a.example",
        )),
    }
}

/// TLS of a server: one version, one protocol.
fn server_config(identity: Identity, tls: Tls, protocol: Protocol) -> Result<rustls::ServerConfig, Error> {
    let failed = |error: rustls::Error| Error::io("set TLS up")(std::io::Error::other(error));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let version = if tls == Tls::V12 { &rustls::version::TLS12 } else { &rustls::version::TLS13 };
    let builder = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .map_err(failed)?
        .with_no_client_auth();
    let mut config = builder.with_single_cert(identity.chain, identity.key).map_err(failed)?;
    config.alpn_protocols = vec![alpn(protocol).as_bytes().to_vec()];
    Ok(config)
}

/// A server's TLS for `a.example`, and its authority.
#[cfg(test)]
pub(crate) fn test_identity(
    is_12: bool,
    protocol: Protocol,
) -> (Arc<rustls::ServerConfig>, rustls::pki_types::CertificateDer<'static>) {
    let authority = Authority::new().unwrap();
    let identity = authority.identity(&["a.example".to_owned()], SessionConfig::CERTIFICATE_CHAIN).unwrap();
    let tls = if is_12 { Tls::V12 } else { Tls::V13 };
    (Arc::new(server_config(identity, tls, protocol).unwrap()), authority.certificate())
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::Object;
    use wire::Bytes;

    #[test]
    fn names_are_those_of_dns_with_ports() {
        let of = |name: &str| name_and_port(&Host::new(name), true).map_err(|error| error.to_string());
        assert_eq!(of("a.example"), Ok(("a.example".to_owned(), 443)));
        assert_eq!(of("a.example:8443"), Ok(("a.example".to_owned(), 8_443)));
        for name in ["", "a b", "a,MAP * 1.2.3.4", "a:x", "10.0.0.9", "[::1]"] {
            assert!(of(name).unwrap_err().contains("a name of DNS"), "{name}");
        }
    }

    #[test]
    fn hosts_of_a_group_have_one_address_and_one_certificate() {
        let mut page = Page::of("page", vec![Object::sized(Bytes::new(9_000))]);
        let host = |name: &str, group| Host { address_group: group, ..Host::new(name) };
        page.hosts = vec![host("a.x", Some(1)), host("b.x", None), host("c.x", Some(1)), host("b.x", None)];
        let Origins { all, trusted } = origins(&page, Tls::V13, Protocol::Http2).unwrap();
        let address = |index: usize| all[index].address;
        assert_eq!(address(0), address(2));
        assert_eq!(address(1), address(3), "one name, one server");
        assert_ne!(address(0), address(1));
        assert!(trusted.is_some());
        let same = [(0, 2), (1, 3)].map(|(one, other)| {
            let of = |index: usize| all[index].tls.clone().unwrap().server;
            Arc::ptr_eq(&of(one), &of(other))
        });
        assert_eq!(same, [true, true]);
    }
}
