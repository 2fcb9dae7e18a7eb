//! A new connection for each request: each costs a round trip, and a new initial window.
//!
//! **Rule**: a client opens a connection to a server soon after one with a single request, of whatever protocol, had closed,
//! or while that one was closing, or while it was open and idle; or after one with a few (those of a transaction), if that had
//! followed another in the same way. **Evidence**: the previous connection. **Refuted by**: a previous connection that was the first
//! with several requests (it closed for another reason), or is used again, or one that is still in use (concurrent connections are
//! deliberate); another name of the server (TLS), or another target of a tunnel.
//!
//! **Saved** are the set-up with the handshake of TLS and of a session (PostgreSQL, Redis), the waits that the previous connection's open window would have spared, and the wait for
//! its close, if the client opened this one immediately after that.

use dissect::tls::Tls;
use dissect::{Mark, Side};
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::gap::Wait;
use crate::text::counted;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The client opened a new connection though it had just had one to the same server for a single request, or a few.",
    fixes: &[
        Fix {
            party: Party::ClientApplication,
            change: "use one session or pool for all requests (Python requests.Session, Go one http.Client with the \
                     body read to its end, Node an agent with keepAlive: true, Java one HttpClient, curl one handle; a \
                     client of a database or of gRPC: one pool or channel for all calls)",
        },
        Fix {
            party: Party::ServerApplication,
            change: "respond with HTTP/1.1 and without Connection: close (nginx keepalive_timeout 75s and, towards \
                     upstreams, keepalive 32 with proxy_http_version 1.1; Apache KeepAlive On; Python \
                     protocol_version = \"HTTP/1.1\")",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Maximum time before the previous connection began to close; a connection opened earlier than that was concurrent.
pub(crate) const RIGHT_BEFORE: Duration = Duration::from_millis(5);

/// Maximum time since the previous connection; one opened later was opened for another reason.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// Maximum time after that close within which a client that waited for it opens the next connection.
pub(crate) const IMMEDIATE: Duration = Duration::from_millis(20);

/// A connection right before this one that carried few requests.
#[derive(Clone, Debug)]
pub(crate) struct PreviousConnection {
    /// Its first packet.
    pub(crate) packet: u64,
    pub(crate) requests: u64,
    /// Size of the server's window at its end, in bytes.
    pub(crate) window: u64,
    /// Time for which the client waited for its close, although the response was complete.
    pub(crate) closing: Duration,
    /// Its server's name and tunnel: requests to another cannot share a connection.
    pub(crate) authority: Option<String>,
    /// Whether it was left open.
    pub(crate) is_open: bool,
    /// Whether it had followed another one in the same way.
    pub(crate) is_habit: bool,
}

/// Returns the finding of a connection that was opened after `previous`.
pub(crate) fn finding(
    previous: &PreviousConnection,
    opened: Mark,
    tls: Option<&Tls>,
    lost: Duration,
    saving: Duration,
) -> Finding {
    let PreviousConnection { packet, requests, is_open, .. } = previous;
    let state = if *is_open { ", which was left open" } else { "" };
    let handshake = tls.map_or_else(String::new, |tls| {
        let kind = if tls.is_resumed { "resumed" } else { "full" };
        format!(
            "; its set-up includes a {kind} TLS handshake of {}",
            counted(tls.round_trips().into(), "round trip")
        )
    });
    let evidence = format!(
        "the client opened this connection (packet {}) right after one to the same server that had carried {} (from packet \
         {packet} on{state}){handshake}",
        opened.frame,
        if *requests == 1 { "a single request".to_owned() } else { counted(*requests, "request") }
    );
    let wait = Wait { from: opened, to: opened, side: Side::Client };
    let (saving, packets) = (Some(saving), vec![*packet, opened.frame]);
    Finding { lost, saving, packets, ..wait.finding(Cause::ConnectionPerRequest, evidence) }
}
