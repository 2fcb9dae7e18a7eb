//! Target server of a load, resolved from URL and flags, and checked with a preflight request.

use std::net::SocketAddr;

use load::preflight::{self, PreflightResponse, Refusal};
use load::tls::{Security, Trust};
use load::traffic::Traffic;
use load::url::ServerUrl;
use load::{Config, Protocol, Target};
use workload::plan::path;

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
        Some(path) => Trust::file(path).map_err(|error| Failure::Value(format!("--ca: {error}")))?,
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
    text.parse().map_err(|error: dhttp::UrlError| Failure::Value(error.to_string()))
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
    let PreflightResponse { status, location } =
        preflight::send(&traffic.job(), target, config).map_err(|refusal| match refusal {
            // An untrusted certificate is an error of the flags.
            Refusal::Untrusted(error) => Failure::Value(error.to_string()),
            refusal => Failure::Network(format!("{address} {refusal}")),
        })?;
    let refused = |reason: String| Err(Failure::Network(reason));
    match traffic {
        Traffic::Plan(_) if status == 200 => Ok(()),
        Traffic::Plan(_) => refused(format!(
            "{url}{} responds with {status}; serve the directory that `roundtrip site surge` writes there, or leave out --surge \
             and --plan to request the URL itself",
            path(0)
        )),
        // An access log has requests of all kinds.
        Traffic::List(list) if !list.is_judged => Ok(()),
        Traffic::List(list) => {
            let url = list.first_url(url);
            let is_redirect = (300..400).contains(&status) && status != 304;
            if list.succeeds(status) && (expects_status || !is_redirect) {
                return Ok(());
            }
            let remedy = match status {
                401 | 407 => "give credentials, such as --header 'Authorization: Bearer TOKEN'",
                403 => "give the fields that the server requires, such as --header 'Cookie: NAME=VALUE'",
                404 | 410 => "check the path",
                405 => "choose another --method",
                400 | 415 | 422 => "check --body and its --header 'Content-Type: TYPE'",
                429 => "the server limits its clients: raise that limit for the run",
                300..400 => "give the URL that it redirects to",
                500.. => "check the server's log",
                _ => "check the request",
            };
            let response = match location.filter(|_| is_redirect) {
                Some(location) => format!("redirects to {location} ({status})"),
                None => format!("responds with {status}"),
            };
            refused(format!(
                "{url} {response}; {remedy}, or pass --expect-status {status} if that is a success"
            ))
        }
    }
}
