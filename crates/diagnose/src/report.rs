//! Report of a finished connection.

use core::net::SocketAddr;

use dissect::Side;
use dissect::http::Exchange;
use wire::{Bytes, Duration, Time};

use crate::account::Account;
use crate::cause::{Cause, Describe as _, Fix};
use crate::causes::syn_unanswered;
use crate::dhttp;
use crate::doubt::Doubts;
use crate::finding::{Count, Finding};
use crate::program::Program;
pub use dissect::path::VantagePoint;
use dissect::plot::Plot;

/// The diagnosis of a connection.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// Protocol spoken.
    pub protocol: Protocol,
    /// Whether a DHTTP dialogue also reports it and its time: a connection that the server opened.
    pub is_within_dialogue: bool,
    /// Address of the side that opened it.
    pub client: SocketAddr,
    /// Address of the side that accepted it.
    pub server: SocketAddr,
    /// When its first packet was captured.
    pub started: Time,
    /// That packet's number.
    pub first_packet: u64,
    /// Whether it was captured from its opening on.
    pub is_whole: bool,
    /// From the first packet to the last.
    pub elapsed: Duration,
    /// Number of packets.
    pub packets: u64,
    /// Payload bytes, both directions, retransmissions included.
    pub bytes: Bytes,
    /// Minimum round trip; `None` where one direction never responded.
    pub round_trip: Option<Duration>,
    /// Where the capture was taken.
    pub vantage_point: VantagePoint,
    /// HTTP requests, as far as they could be read.
    pub requests: u64,
    /// Findings in chronological order; for each cause the worst 64, fewer where many connections are open
    /// concurrently.
    pub findings: Vec<Finding>,
    /// Occurrences of each cause, and its total cost.
    pub counts: Vec<Count>,
    /// Where all its time went.
    pub account: Account,
    /// Reasons for its unknown time.
    pub doubts: Doubts,
    /// The longest HTTP exchanges, in chronological order.
    pub exchanges: Vec<ExchangeReport>,
    /// Oddities of its capture.
    pub oddities: Oddities,
    /// The side of which nothing was captured, although the other side's packets show that it was active.
    pub missing_direction: Option<Side>,
    /// Whether its lost packets were segments of the handshake.
    pub(crate) is_opening_lost: bool,
    /// Its packets, if requested.
    pub plot: Option<Plot>,
}

/// Protocol that carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A TCP connection, with any content.
    Tcp,
    /// A client's and a server's datagrams, and the connections that the server opened for its responses. Those are
    /// also reported as TCP connections.
    Dhttp,
    /// A QUIC connection, of which only the opening is readable.
    Quic,
}

impl Protocol {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Dhttp => "dhttp",
            Self::Quic => "quic",
        }
    }
}

impl FlowReport {
    /// Returns the fixes for a cause on this connection: datagrams have other timers than TCP, and programs have their
    /// own settings.
    pub fn fixes(&self, cause: Cause) -> &'static [Fix] {
        match (self.protocol, cause) {
            (Protocol::Dhttp, Cause::RetransmissionTimeout) => &dhttp::RESENT,
            (Protocol::Tcp, Cause::RetransmissionTimeout) if self.is_opening_lost => &syn_unanswered::LOST,
            (Protocol::Dhttp | Protocol::Quic, _) => cause.about().fixes,
            (Protocol::Tcp, _) => {
                Program::of(self.server, self.requests).fixes(cause).unwrap_or(cause.about().fixes)
            }
        }
    }

    /// Returns whether any finding is worth fixing.
    pub fn is_worth_fixing(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity.is_worth_fixing())
    }
}

/// A request and its response.
#[derive(Clone, Debug)]
pub struct ExchangeReport {
    /// The method and the target, the latter's first 200 characters.
    pub request: String,
    /// The response's status; `None` if it was not seen.
    pub status: Option<u16>,
    /// When the request was sent.
    pub at: Time,
    /// Time until the response's last byte.
    pub elapsed: Duration,
    /// The first and the last packet.
    pub packets: (u64, u64),
    /// Where the connection's time went during the exchange.
    pub account: Account,
}

impl ExchangeReport {
    pub(crate) fn new(exchange: Exchange<Account>, account: &Account) -> Self {
        let Exchange { method, target, status, requested, ended, context: before, .. } = exchange;
        Self {
            request: format!("{method} {target}"),
            status,
            at: requested.at,
            elapsed: ended.at.since(requested.at),
            packets: (requested.frame, ended.frame),
            account: account.since(&before),
        }
    }

    /// Retains the `most` longest exchanges.
    pub(crate) fn retain_longest(exchanges: &mut Vec<Self>, most: usize) {
        if exchanges.len() > most + most / 2 {
            exchanges.sort_by_key(|exchange| std::cmp::Reverse(exchange.elapsed));
            exchanges.truncate(most);
        }
    }
}

/// Oddities of a capture that are no fault of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Packets that were captured twice.
    pub captured_twice: u64,
    /// Acknowledgements of data that was not captured.
    pub not_captured: u64,
    /// Packets with a timestamp before that of the previous packet.
    pub backwards: u64,
    /// Data reordered by the network.
    pub out_of_order: u64,
    /// Retransmissions of data that had already been acknowledged.
    pub needless: u64,
}
