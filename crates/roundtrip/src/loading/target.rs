//! Which server is to be loaded, and a look whether it is there.
//!
//! Not the load. What HTTP/2 and HTTP/3 need to be looked at for is in `load::look`.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use dhttp::Url;
use load::look::{Refusal, look};
use load::secure::{Security, Trust};
use load::{Config, Protocol, Target};
use scenario::surge::plan::path;

use crate::cli::load::Whom;
use crate::failure::Failure;

/// The server that the flags name.
///
/// # Errors
/// If there is no such address, or the protocol cannot be spoken there.
pub fn found(flags: &Whom, protocol: Protocol) -> Result<Target, Failure> {
    let Whom { target, network: _, ca, insecure, i_own_this } = flags;
    let text = target.as_deref().unwrap_or_default();
    let (url, is_secure) = address(text)?;
    let refused = |why: &str| Err(Failure::Value(format!("{text}: {why}")));
    match (protocol, is_secure) {
        (Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined | Protocol::Dhttp, true) => {
            return refused(
                "only HTTP/2 and HTTP/3 are encrypted here; say --protocol http2 or http3, or give an http:// address",
            );
        }
        (Protocol::Http2, false) if ca.is_some() || *insecure => {
            return refused("--ca and --insecure are for https:// addresses");
        }
        (Protocol::Http3, false) => return refused("HTTP/3 is always encrypted; give an https:// address"),
        (Protocol::Http2 | Protocol::Http3, true)
        | (Protocol::Http2, false)
        | (Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined | Protocol::Dhttp, false) => {}
    }
    let trust = match ca {
        _ if *insecure => Trust::Anybody,
        Some(path) => Trust::file(path).map_err(|error| Failure::Value(format!("--ca: {error}")))?,
        None => Trust::System,
    };
    let unknown =
        |why: &dyn fmt::Display| Failure::Network(format!("{} is not to be found: {why}", url.host));
    let mut addresses = (url.host.as_str(), url.port).to_socket_addrs().map_err(|error| unknown(&error))?;
    let address = addresses.next().ok_or_else(|| unknown(&"it has no address"))?;
    let folder = if url.target.ends_with('/') { url.target.clone() } else { format!("{}/", url.target) };
    let security = is_secure.then(|| Security { name: url.host.clone(), trust });
    let target = Target { address, host: url.authority(), folder, security };
    if target.is_many() {
        return refused("this address is many machines at once (multicast or broadcast); name one server");
    }
    if let SocketAddr::V6(address) = address
        && address.ip().is_unicast_link_local()
        && address.scope_id() == 0
    {
        return refused("this address is there on every link; say on which, as in [fe80::1%eth0]");
    }
    if !target.is_near() && !i_own_this {
        return Err(Failure::Value(format!(
            "{} is neither this machine nor in a private network; if the server is yours to load, say --i-own-this",
            target.address.ip()
        )));
    }
    Ok(target)
}

/// An address, and whether connections to it are encrypted.
fn address(text: &str) -> Result<(Url, bool), Failure> {
    let refused = |error: dhttp::UrlError| Failure::Value(format!("{error}"));
    let secure = text.get(..HTTPS.len()).filter(|scheme| scheme.eq_ignore_ascii_case(HTTPS));
    let Some(rest) = secure.and_then(|_| text.get(HTTPS.len()..)) else {
        return Ok((text.parse().map_err(refused)?, false));
    };
    let mut url: Url = format!("http://{rest}").parse().map_err(refused)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if url.port == 80 && !authority.ends_with(":80") {
        url.port = 443;
    }
    Ok((url, true))
}

const HTTPS: &str = "https://";

/// Whether there is a server with the plan's files: to be known before minutes of failures.
///
/// # Errors
/// What is wrong with it.
pub fn probe(target: &Target, config: &Config) -> Result<(), Failure> {
    let address = target.address;
    match config.protocol {
        Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined | Protocol::Dhttp => plain(target),
        Protocol::Http2 | Protocol::Http3 => look(target, config).map_err(|refusal| match refusal {
            // Not the server's fault.
            Refusal::Mistrust(mistrust) => Failure::Value(mistrust.to_string()),
            refusal => Failure::Network(format!("{address} {refusal}")),
        }),
    }
}

fn plain(target: &Target) -> Result<(), Failure> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let Target { address, host, folder, security: _ } = target;
    let first = format!("{folder}{}", path(0));
    let ask = |address: &SocketAddr| {
        let mut stream = TcpStream::connect_timeout(address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("GET {first} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes())?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        std::io::Result::Ok(head)
    };
    let head =
        ask(address).map_err(|error| Failure::Network(format!("{address} does not answer: {error}")))?;
    match head.split_at_checked(9) {
        Some((version, _)) if !version.starts_with(b"HTTP/1.") => Err(Failure::Network(format!(
            "{address} does not speak HTTP/1 here: its answer begins with `{}`; give the port of a server that does, or ask by \
             another --protocol",
            plainly(&head)
        ))),
        Some((_, b"200")) => Ok(()),
        status => Err(Failure::Network(format!(
            "{address} answers {first} with {}; let it serve the folder that `roundtrip site surge` writes for this plan",
            plainly(status.map_or(&[], |(_, status)| status))
        ))),
    }
}

/// What a server says is not for terminals.
fn plainly(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_address_has_its_own_port() {
        let port = |text| address(text).map(|(url, is_secure)| (url.port, is_secure)).ok();
        assert_eq!(port("http://h/"), Some((80, false)));
        assert_eq!(port("https://h/a:80"), Some((443, true)));
        assert_eq!(port("HTTPS://h:80/"), Some((80, true)));
        assert_eq!(port("https://[::1]:8443"), Some((8443, true)));
        assert_eq!(port("https://"), None);
    }
}
