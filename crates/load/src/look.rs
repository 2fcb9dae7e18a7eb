//! A look at a server that speaks HTTP/2 or HTTP/3 before it is loaded: whether it does, whether it is to be believed, and
//! whether it has the plan's files.
//!
//! Not a measurement. What is wrong is said with its remedy, before minutes of failures.

use std::fmt;
use std::io;
use std::pin::pin;

use http::Request;
use quinn::ConnectionError;
use rustls::{AlertDescription, CertificateError};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::config::{Config, Protocol, Target};
use crate::secure::Mistrust;
use crate::streams::desk::{Came, Fetch};
use crate::streams::means::{Means, Own};
use crate::streams::{http2, http3};

/// Why a server is not one to be loaded so.
#[derive(Debug)]
pub enum Refusal {
    /// Nobody answers, or no more.
    NoAnswer(String),
    /// Whom it says it is cannot be believed.
    Certificate(String),
    /// It speaks TLS, and another protocol in it than the one with this name.
    Another(&'static str),
    /// What it answers is not the protocol with this name.
    NotThis(&'static str),
    /// It has not got the file: this status.
    Status(u16),
    /// What was given to believe it by is of no use.
    Mistrust(Mistrust),
    /// This system has no runtime for it.
    System(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(why) => write!(f, "does not answer: {why}"),
            Self::Certificate(why) => write!(
                f,
                "has a certificate that is not to be believed ({why}); name its authority with --ca FILE, or say --insecure if \
                 you know the server"
            ),
            Self::Another(name) => write!(
                f,
                "does not offer {name} in its handshake (ALPN); switch it on there, or ask by another --protocol"
            ),
            Self::NotThis(name) => write!(
                f,
                "does not speak {name} here; switch it on there (without TLS it must be spoken from the first byte: in nginx \
                 `listen ... http2`), or ask by another --protocol"
            ),
            Self::Status(status) => write!(
                f,
                "answers with {status}; let it serve the folder that `roundtrip site surge` writes for this plan"
            ),
            Self::Mistrust(mistrust) => mistrust.fmt(f),
            Self::System(error) => write!(f, "could not be looked at: {error}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// How long a look may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Asks once for the plan's first file; protocols without streams are not looked at.
///
/// # Errors
/// What is wrong with the server, or with what it was to be believed by.
pub fn look(target: &Target, config: &Config) -> Result<(), Refusal> {
    let Some(means) = Means::new(target, config, UNCHANGED_SINCE).map_err(Refusal::Mistrust)? else {
        return Ok(());
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Refusal::System)?;
    let request = means.first();
    let came = runtime.block_on(async {
        let seen = async {
            match means.own() {
                Own::Http2(address, tls) => {
                    let (sender, driver) = http2::open(address, tls).await.map_err(of_http2)?;
                    Ok(once(sender, driver, request).await)
                }
                Own::Http3(mut quic) => {
                    let endpoint = quic.endpoint().map_err(Refusal::System)?;
                    let opened = http3::open(endpoint, quic.config, quic.address, &quic.name).await;
                    let (sender, driver) = opened.map_err(of_http3)?;
                    Ok(once(sender, driver, request).await)
                }
            }
        };
        let late = || Refusal::NoAnswer(silence(config.protocol));
        timeout(PATIENCE, seen).await.unwrap_or_else(|_| Err(late()))
    })?;
    match came {
        Came::Answer(200, ..) => Ok(()),
        Came::Answer(status, ..) => Err(Refusal::Status(status)),
        Came::Broken(_) | Came::Unseen | Came::Trouble(_) => Err(Refusal::NotThis(config.protocol.spoken())),
    }
}

/// No request of a look has it.
const UNCHANGED_SINCE: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

async fn once<F: Fetch>(fetch: F, driver: impl Future<Output = ()>, request: Request<()>) -> Came {
    let (mut driver, mut came) = (pin!(driver), pin!(fetch.fetch(request)));
    let mut is_over = false;
    std::future::poll_fn(|context| {
        // What was in the last bytes is heard after them.
        is_over = is_over || driver.as_mut().poll(context).is_ready();
        came.as_mut().poll(context)
    })
    .await
}

fn silence(protocol: Protocol) -> String {
    let silence = format!("nothing came within {} s", PATIENCE.as_secs());
    match protocol {
        Protocol::Http3 => {
            format!("{silence} over UDP; switch HTTP/3 on there, and let UDP pass at this port")
        }
        Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined | Protocol::Http2 | Protocol::Dhttp => {
            silence
        }
    }
}

fn of_http2(failed: http2::Failed) -> Refusal {
    match failed {
        http2::Failed::Io(error) => of_tls(&error).unwrap_or_else(|| Refusal::NoAnswer(error.to_string())),
        http2::Failed::Protocol => Refusal::Another("HTTP/2"),
    }
}

/// What TLS says in QUIC begins here (RFC 9001, section 4.8), and of this one in TLS (RFC 7301, section 3.2).
const ALERTS: u64 = 0x100;
const NO_APPLICATION_PROTOCOL: u64 = ALERTS + 120;

fn of_http3(failed: http3::Failed) -> Refusal {
    match failed {
        http3::Failed::Io(error) => Refusal::System(error),
        http3::Failed::Protocol => Refusal::NotThis("HTTP/3"),
        http3::Failed::Quic(ConnectionError::TransportError(error))
            if u64::from(error.code) == NO_APPLICATION_PROTOCOL =>
        {
            Refusal::Another("HTTP/3")
        }
        http3::Failed::Quic(ConnectionError::ConnectionClosed(close))
            if u64::from(close.error_code) == NO_APPLICATION_PROTOCOL =>
        {
            Refusal::Another("HTTP/3")
        }
        // What we have against its certificate has rustls' words.
        http3::Failed::Quic(ConnectionError::TransportError(error))
            if error.reason.starts_with("invalid peer certificate") =>
        {
            let why = error.reason.trim_start_matches("invalid peer certificate: ");
            Refusal::Certificate(if why == "UnknownIssuer" { NOBODY.to_owned() } else { why.to_owned() })
        }
        http3::Failed::Quic(error) => Refusal::NoAnswer(error.to_string()),
    }
}

const NOBODY: &str = "nobody known has signed it";

/// What TLS has against it, if it is TLS that has.
fn of_tls(error: &io::Error) -> Option<Refusal> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)
        | rustls::Error::NoApplicationProtocol => Some(Refusal::Another("HTTP/2")),
        rustls::Error::InvalidCertificate(why) => Some(Refusal::Certificate(of_certificate(why))),
        rustls::Error::InvalidMessage(_) => Some(Refusal::NotThis("TLS")),
        _ => None,
    }
}

fn of_certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => NOBODY.to_owned(),
        // webpki's own reason has no words: a certificate that may sign others is no server's.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "it is an authority's own, made to sign those of servers".to_owned()
        }
        other => other.to_string(),
    }
}
