//! Target server of a load, resolved from URL and flags, and checked with a preflight request.

use std::net::SocketAddr;

use dhttp::UrlError;
use load::preflight::{self, Refusal};
use load::tls::{Security, Trust};
use load::traffic::Traffic;
use load::url::ServerUrl;
use load::{Config, Protocol, Target};

use crate::cli::load::TargetFlags;
use crate::failure::Failure;

/// Resolves a URL to its server and its path.
///
/// # Errors
/// If the address does not exist, or the server cannot speak the protocol.
pub fn resolve(text: &str, flags: &TargetFlags, protocol: Protocol) -> Result<(Target, String), Failure> {
    let TargetFlags { target: _, network: _, ca, insecure, i_own_this } = flags;
    let server = server_url(text)?;
    let ServerUrl { url, is_secure } = &server;
    let is_secure = *is_secure;
    let refused = |reason: &str| Err(Failure::Value(format!("{text}: {reason}")));
    match (protocol, is_secure) {
        (Protocol::Dhttp, true) => {
            return refused("DHTTP is not encrypted; choose another --protocol or an http:// URL");
        }
        (Protocol::Http3, false) => return refused("HTTP/3 is always encrypted; give an https:// URL"),
        (_, false) if ca.is_some() || *insecure => {
            return refused("--ca and --insecure are for https:// URLs");
        }
        (
            Protocol::Http10
            | Protocol::KeepAlive
            | Protocol::Pipelined
            | Protocol::Http2
            | Protocol::Http3
            | Protocol::Dhttp,
            _,
        ) => {}
    }
    let trust = match ca {
        _ if *insecure => Trust::Unverified,
        Some(path) => Trust::file(path).map_err(Failure::of_flag("ca"))?,
        None => Trust::System,
    };
    let address = server.resolve(protocol).map_err(|unknown| Failure::Network(unknown.to_string()))?;
    let directory = if url.target.ends_with('/') { url.target.clone() } else { format!("{}/", url.target) };
    let security = is_secure.then(|| Security { name: url.host.clone(), trust });
    let target = Target { address, host: url.authority(), directory, security };
    if target.is_multicast_or_broadcast() {
        return refused("a multicast or broadcast address; name one server");
    }
    if let SocketAddr::V6(address) = address
        && address.ip().is_unicast_link_local()
        && address.scope_id() == 0
    {
        return refused("a link-local address without a link; name it, as in [fe80::1%eth0]");
    }
    if !target.is_local_or_private() && !i_own_this {
        return Err(Failure::Value(format!(
            "{} is neither this host nor in a private network; if you may load this server, pass --i-own-this",
            target.address.ip()
        )));
    }
    Ok((target, server.url.target))
}

/// Parses a URL.
pub fn server_url(text: &str) -> Result<ServerUrl, Failure> {
    text.parse().map_err(|error| match error {
        UrlError::Scheme(text) => {
            let remedy = "give an address that begins with http:// or https://";
            Failure::Value(format!("{text:?} cannot be loaded; {remedy}"))
        }
        error => Failure::Value(error.to_string()),
    })
}

/// Sends a preflight request, so that errors show before minutes of failures.
///
/// # Errors
/// The error, with the remedy.
pub fn probe(
    traffic: &Traffic,
    target: &Target,
    config: &Config,
    url: &str,
    expects_status: bool,
) -> Result<(), Failure> {
    let address = target.address;
    let response = preflight::send(&traffic.job(), target, config).map_err(|refusal| match refusal {
        // An untrusted certificate is an error of the flags.
        Refusal::Untrusted(error) => Failure::Value(error.to_string()),
        refusal => Failure::Network(format!("{address} {refusal}")),
    })?;
    response.judge(traffic, url, expects_status).map_err(Failure::Network)
}
