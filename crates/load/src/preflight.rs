//! A preflight request: whether the server responds by the protocol, whether it can be trusted, and with which status.
//!
//! Nothing is measured. Errors name the remedy in advance, instead of after minutes of failures.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::pin::pin;

use bytes::Bytes;
use http::Request;
use http1::client::{Event, Responses};
use http1::message::{Limits, Method};
use quinn::ConnectionError;
use rustls::{AlertDescription, CertificateError, ClientConnection, StreamOwned};
use tokio::runtime::Builder;
use tokio::time::timeout;
use workload::plan::path;

use crate::config::{Config, Protocol, Target};
use crate::http1_connection::transport::Connector;
use crate::job::{Job, PreparedRequest, Requests};
use crate::streams::connection_task::{Fetch, StreamOutcome};
use crate::streams::streams_config::{StreamsConfig, UserStreamsConfig};
use crate::streams::{http2, http3};
use crate::tls::TrustError;
use crate::traffic::Traffic;

/// Reason to refuse a server.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No response, or an incomplete one.
    #[error("does not respond: {0}")]
    NoResponse(String),
    /// Its certificate cannot be verified.
    #[error(
        "has an untrusted certificate ({0}); name its authority with --ca FILE, or give --insecure if you \
         know the server"
    )]
    Certificate(String),
    /// TLS that negotiates another protocol than the one with this name.
    #[error(
        "does not offer {0} in its handshake (ALPN); enable it there, or choose another --protocol (http11, \
         http2)"
    )]
    Another(&'static str),
    /// Its response is not in the protocol with this name.
    #[error(
        "does not speak {0} here; switch it on there (without TLS it must be {0} from the first byte: in \
         nginx `listen ... http2`), or choose another --protocol"
    )]
    WrongProtocol(&'static str),
    /// Its response is not TLS.
    #[error(
        "does not speak TLS here; give an address that begins with http://, or the port of a server that does"
    )]
    NotTls,
    /// The server ended the handshake of QUIC, for this reason.
    #[error(
        "refuses the handshake ({0}); where it has certificates for names only, give a name instead of an address"
    )]
    Handshake(String),
    /// Its response is not HTTP/1; these are its first bytes.
    #[error(
        "does not speak HTTP/1 here: its response begins with `{0}`; give the port of a server that does, or \
         choose another --protocol"
    )]
    NotHttp1(String),
    /// The given certificates are not valid.
    #[error(transparent)]
    Untrusted(TrustError),
    /// The system has no resources for the runtime.
    #[error("could not be probed: {0}")]
    System(io::Error),
}

/// Timeout of a preflight request.
const PREFLIGHT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// The response to a preflight request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightResponse {
    /// Its status.
    pub status: u16,
    /// Its redirection target, over HTTP/1.
    pub location: Option<String>,
}

impl PreflightResponse {
    /// Checks that a run of this traffic can succeed.
    ///
    /// # Errors
    /// A sentence with the remedy.
    pub fn judge(&self, traffic: &Traffic, url: &str, expects_status: bool) -> Result<(), String> {
        let Self { status, location } = self;
        match traffic {
            Traffic::Plan(_) if *status == 200 => Ok(()),
            Traffic::Plan(_) => Err(format!(
                "{url}{} responds with {status}; serve the directory that `roundtrip site surge` writes there, or leave out --surge \
             and --plan to request the URL itself",
                path(0)
            )),
            // An access log has requests of all kinds.
            Traffic::List(list) if !list.is_judged => Ok(()),
            Traffic::List(list) => {
                let url = list.first_url(url);
                let is_redirect = (300..400).contains(status) && *status != 304;
                if list.succeeds(*status) && (expects_status || !is_redirect) {
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
                let response = match location.as_ref().filter(|_| is_redirect) {
                    Some(location) => format!("redirects to {location} ({status})"),
                    None => format!("responds with {status}"),
                };
                Err(format!(
                    "{url} {response}; {remedy}, or pass --expect-status {status} if that is a success"
                ))
            }
        }
    }
}

/// Sends the first request of the job; where users speak DHTTP, over HTTP/1.
///
/// # Errors
/// The reason why there is no response, or why its sender cannot be trusted.
pub fn send(job: &Job<'_>, target: &Target, config: &Config) -> Result<PreflightResponse, Refusal> {
    match StreamsConfig::new(target, config, UNCHANGED_SINCE, &job.requests).map_err(Refusal::Untrusted)? {
        Some(streams) => by_streams(&streams, config.protocol),
        None => by_http1(job, target, config),
    }
}

fn by_streams(streams: &StreamsConfig, protocol: Protocol) -> Result<PreflightResponse, Refusal> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Refusal::System)?;
    let request = streams.first();
    let response = runtime.block_on(async {
        let seen = async {
            match streams.own() {
                UserStreamsConfig::Http2(address, tls) => {
                    let (sender, driver) = http2::open(address, tls).await.map_err(of_http2)?;
                    Ok(once(sender, driver, request).await)
                }
                UserStreamsConfig::Http3(mut quic) => {
                    let endpoint = quic.endpoint().map_err(Refusal::System)?;
                    let opened = http3::open(endpoint, quic.config, quic.address, &quic.name).await;
                    let (sender, driver) = opened.map_err(of_http3)?;
                    Ok(once(sender, driver, request).await)
                }
            }
        };
        let late = || Refusal::NoResponse(silence(protocol));
        timeout(PREFLIGHT_TIMEOUT, seen).await.unwrap_or_else(|_| Err(late()))
    })?;
    match response {
        StreamOutcome::Response(status, ..) => Ok(PreflightResponse { status, location: None }),
        StreamOutcome::Broken(_) | StreamOutcome::Unseen | StreamOutcome::Failed(_) => {
            Err(Refusal::WrongProtocol(protocol.display_name()))
        }
    }
}

fn by_http1(job: &Job<'_>, target: &Target, config: &Config) -> Result<PreflightResponse, Refusal> {
    let mut bytes = Vec::new();
    let method = match &job.requests {
        Requests::List(list, _) => {
            let first = list.first().ok_or_else(|| Refusal::NoResponse("no request found".to_owned()))?;
            PreparedRequest::new(first, target, config).encode(&mut bytes);
            first.method.clone()
        }
        Requests::Site(_) => {
            let Target { address: _, host, directory, security: _ } = target;
            let line = format!("GET {directory}{} HTTP/1.0\r\nHost: {host}\r\n\r\n", path(0));
            bytes.extend_from_slice(line.as_bytes());
            Method::Get
        }
    };
    let no_response = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Refusal::NoResponse(silence(config.protocol)),
        io::ErrorKind::UnexpectedEof => {
            Refusal::NoResponse("it closed the connection without a response".to_owned())
        }
        _ => Refusal::NoResponse(error.to_string()),
    };
    let socket = TcpStream::connect_timeout(&target.address, PREFLIGHT_TIMEOUT).map_err(no_response)?;
    socket.set_read_timeout(Some(PREFLIGHT_TIMEOUT)).map_err(no_response)?;
    let mut stream = secured(socket, target)?;
    stream
        .write_all(&bytes)
        .map_err(|error| of_tls(&error, "HTTP/1.1").unwrap_or_else(|| no_response(error)))?;
    let mut responses = Responses::new(Limits::default());
    let (mut buffer, mut first) = ([0; 4_096], Vec::new());
    loop {
        let length = stream.read(&mut buffer).map_err(no_response)?;
        let Some(mut bytes) = buffer.get(..length).filter(|bytes| !bytes.is_empty()) else {
            // It sent an incomplete header section.
            return Err(match first.as_slice() {
                [] => no_response(io::ErrorKind::UnexpectedEof.into()),
                first => Refusal::NotHttp1(plainly(first)),
            });
        };
        first.extend(bytes.iter().take(SHOWN.saturating_sub(first.len())));
        loop {
            match responses.read(&mut bytes, &method) {
                Ok(None) => break,
                Ok(Some(Event::Head(head, _))) => {
                    let location = head.fields.get("Location").map(plainly);
                    return Ok(PreflightResponse { status: head.status, location });
                }
                Ok(Some(Event::Interim(_) | Event::Body(_) | Event::End { .. })) => {}
                Err(_) => return Err(Refusal::NotHttp1(plainly(&first))),
            }
        }
    }
}

/// The connection, with TLS where configured.
fn secured(socket: TcpStream, target: &Target) -> Result<Box<dyn Stream>, Refusal> {
    let Connector { tls, .. } = Connector::new(target, false).map_err(Refusal::Untrusted)?;
    let Some((config, name)) = tls else { return Ok(Box::new(socket)) };
    let session = ClientConnection::new(config, name);
    let session = session.map_err(|error| Refusal::System(io::Error::other(error)))?;
    Ok(Box::new(StreamOwned::new(session, socket)))
}

/// Bytes in both directions.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// Number of bytes of a foreign protocol in an error.
const SHOWN: usize = 12;

/// A server's text without control characters.
fn plainly(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(char::is_control, "?")
}

/// A conditional request is not used for a preflight.
const UNCHANGED_SINCE: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

async fn once<F: Fetch>(
    fetch: F,
    driver: impl Future<Output = ()>,
    request: Request<Bytes>,
) -> StreamOutcome {
    let (mut driver, mut response) = (pin!(driver), pin!(fetch.fetch(request)));
    let mut is_over = false;
    std::future::poll_fn(|context| {
        // Errors in the last bytes are handled after them.
        is_over = is_over || driver.as_mut().poll(context).is_ready();
        response.as_mut().poll(context)
    })
    .await
}

fn silence(protocol: Protocol) -> String {
    let silence = format!("no reply within {} s", PREFLIGHT_TIMEOUT.as_secs());
    match protocol {
        Protocol::Http3 => {
            format!("{silence} over UDP; enable HTTP/3 there, and allow UDP to this port")
        }
        Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined | Protocol::Http2 | Protocol::Dhttp => {
            silence
        }
    }
}

fn of_http2(failed: http2::ConnectError) -> Refusal {
    match failed {
        http2::ConnectError::Io(error) => {
            of_tls(&error, "HTTP/2").unwrap_or_else(|| Refusal::NoResponse(error.to_string()))
        }
        http2::ConnectError::Protocol => Refusal::Another("HTTP/2"),
    }
}

/// TLS alerts in QUIC error codes begin here (RFC 9001, section 4.8), and the one of ALPN in TLS (RFC 7301, section 3.2).
const ALERTS: u64 = 0x100;
const NO_APPLICATION_PROTOCOL: u64 = ALERTS + 120;

fn of_http3(failed: http3::ConnectError) -> Refusal {
    match failed {
        http3::ConnectError::Io(error) => Refusal::System(error),
        http3::ConnectError::Protocol => Refusal::WrongProtocol("HTTP/3"),
        http3::ConnectError::Quic(ConnectionError::TransportError(error))
            if u64::from(error.code) == NO_APPLICATION_PROTOCOL =>
        {
            Refusal::Another("HTTP/3")
        }
        http3::ConnectError::Quic(ConnectionError::ConnectionClosed(close))
            if u64::from(close.error_code) == NO_APPLICATION_PROTOCOL =>
        {
            Refusal::Another("HTTP/3")
        }
        // rustls describes the errors of our certificate verification.
        http3::ConnectError::Quic(ConnectionError::TransportError(error))
            if error.reason.starts_with("invalid peer certificate") =>
        {
            let why = error.reason.trim_start_matches("invalid peer certificate: ");
            Refusal::Certificate(match why {
                "UnknownIssuer" => UNKNOWN_ISSUER.to_owned(),
                why if why.contains(CA_CERTIFICATE.0) => CA_CERTIFICATE.1.to_owned(),
                why => why.to_owned(),
            })
        }
        http3::ConnectError::Quic(ConnectionError::ConnectionClosed(close))
            if (ALERTS..ALERTS << 1).contains(&u64::from(close.error_code)) =>
        {
            Refusal::Handshake(close.error_code.to_string())
        }
        http3::ConnectError::Quic(error) => Refusal::NoResponse(error.to_string()),
    }
}

const UNKNOWN_ISSUER: &str = "unknown issuer";
/// webpki's error, which has no text of its own, and what it says.
const CA_CERTIFICATE: (&str, &str) = ("CaUsedAsEndEntity", "it is a CA certificate, not a server's");

/// TLS's reason, if it is TLS that failed; `protocol` was offered to the server.
fn of_tls(error: &io::Error, protocol: &'static str) -> Option<Refusal> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)
        | rustls::Error::NoApplicationProtocol => Some(Refusal::Another(protocol)),
        rustls::Error::InvalidCertificate(why) => Some(Refusal::Certificate(of_certificate(why))),
        rustls::Error::InvalidMessage(_) => Some(Refusal::NotTls),
        _ => None,
    }
}

fn of_certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => UNKNOWN_ISSUER.to_owned(),
        other if format!("{other:?}").contains(CA_CERTIFICATE.0) => CA_CERTIFICATE.1.to_owned(),
        other => other.to_string(),
    }
}
