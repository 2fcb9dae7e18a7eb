//! Assumptions of the formulas that a scenario breaks, each as a sentence with its figures.
//!
//! The prediction is still valid; a note names what it does not count. The scenario is compared in `checks`.

mod checks;

use std::fmt;

use scenario::{Protocol, Remark};
use wire::{Bytes, Duration, Rate};

pub(crate) use checks::{notes, of_graph};

/// Assumption of the formulas that the scenario breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The requests are independent, but this client has one in flight at a time.
    OneRequestAtATime {
        /// Objects after the first.
        waits: u64,
    },
    /// Parallel connections are the paper's approximation.
    ParallelApproximated {
        /// Concurrent connections.
        connections: u64,
    },
    /// Responses of several connections are assumed to cross the link one after another.
    InTurn {
        /// Connections.
        connections: u64,
    },
    /// Requests after an upgrade are counted on the first connection.
    UpgradeAsHttp2,
    /// Hosts of the page do not offer the protocol.
    WithoutOffer(String),
    /// Parallel connections change nothing here.
    ParallelUnused {
        /// The protocol, or the client, that uses one.
        protocol: Protocol,
    },
    /// The protocol caches nothing from an earlier page.
    NothingCached {
        /// The protocol.
        protocol: Protocol,
    },
    /// A warm connection's window is assumed to be open, but this stack reduces it after idle.
    WindowRestarts,
    /// The window is not open after the first exchange, as the caching formulas assume.
    WindowNotOpen {
        /// Segments it has grown to.
        window: u64,
        /// Segments that fill the path: `muws`.
        to_fill: u64,
        /// Whether a later response needs more than that.
        matters: bool,
    },
    /// The receive window is smaller than the path's capacity, which the formulas ignore.
    WindowLimited {
        /// Maximum window.
        window: Bytes,
        /// Segments that fill the path: `muws`.
        to_fill: u64,
    },
    /// Slow start ends before the path is full; the cost of congestion avoidance after it is not counted.
    BeyondThreshold {
        /// Slow start threshold.
        ssthresh: Bytes,
    },
    /// Packets are lost; the formulas lose none.
    Loss,
    /// Queue management, jitter, reordering, duplication or a rate that changes.
    NotModelled {
        /// The impairment.
        impairment: &'static str,
    },
    /// CPU times, writes and closing of the programs at both ends; socket options too.
    Programs {
        /// The settings.
        sentence: String,
    },
    /// A modem compresses the data on the link.
    Modem,
    /// The queue is too short for the window that fills the path, so that packets would be dropped.
    ShortQueue {
        /// Segments that fill the path: `muws`.
        to_fill: u64,
    },
    /// The rate towards the server differs; requests are counted at it, but not acknowledgements.
    Asymmetric {
        /// Towards the server.
        up: Rate,
        /// Towards the client.
        down: Rate,
    },
    /// A request exceeds one segment; its slow start is not counted.
    LargeRequest {
        /// Its size.
        request: Bytes,
        /// A segment's.
        mss: Bytes,
    },
    /// A datagram of a response is larger than a segment of this path.
    Fragmented {
        /// The datagram's limit.
        limit: Bytes,
        /// A segment's payload.
        mss: Bytes,
    },
    /// A 304 has no body: its header section is assumed to have this size.
    RevalidationHead {
        /// Size of the header section.
        head: Bytes,
        /// Objects that have changed, which are transferred.
        changed: usize,
    },
    /// The event `load` races with rendering: its time if the race ends otherwise.
    OtherLoad(Duration),
}

const UPGRADE_AS_HTTP2: &str =
    "requests after an upgrade to HTTP/3 are counted as HTTP/2's, whose round trips they have";

fn nothing_cached(protocol: Protocol) -> String {
    let name = protocol.name();
    format!("`{name}` caches nothing from an earlier page, so a warm start changes nothing")
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneRequestAtATime { waits } => write!(
                f,
                "every request is assumed to be sent without waiting; a client with one request in flight at a time \
                 needs {} more (`--requests dependent`)",
                with_noun(*waits, "round trip")
            ),
            Self::ParallelApproximated { connections } => write!(
                f,
                "{connections} concurrent connections are approximated, as the paper proposes, by dividing the round \
                 trip by {connections}"
            ),
            Self::InTurn { connections } => f.write_str(&in_turn(*connections)),
            Self::UpgradeAsHttp2 => f.write_str(UPGRADE_AS_HTTP2),
            Self::WithoutOffer(sentence) => f.write_str(sentence),
            Self::ParallelUnused { protocol } => write!(
                f,
                "`{}` has one connection at a time under dependent requests, so more change nothing",
                protocol.name()
            ),
            Self::NothingCached { protocol } => f.write_str(&nothing_cached(*protocol)),
            Self::WindowRestarts => f.write_str(
                "a warm connection's window is assumed open, but this stack restarts it after idle",
            ),
            Self::WindowNotOpen { window, to_fill, matters } => {
                let consequence = if *matters {
                    "later responses are slower than predicted"
                } else {
                    "no later response here needs more"
                };
                write!(
                    f,
                    "after the first exchange the window is {} of the {to_fill} that fill the path, where \
                     connection caching assumes it open: {consequence}",
                    with_noun(*window, "segment")
                )
            }
            Self::WindowLimited { window, to_fill } => write!(
                f,
                "the receive window of {window} is smaller than the {} that fill the path; large responses are \
                 slower than predicted",
                with_noun(*to_fill, "segment")
            ),
            Self::BeyondThreshold { ssthresh } => write!(
                f,
                "slow start ends at {ssthresh}, before the path is full; the slower growth after it is not \
                 counted"
            ),
            Self::Loss => f.write_str("packets are lost here; the formulas lose none and are too low"),
            Self::NotModelled { impairment } => write!(f, "the formulas do not model {impairment}"),
            Self::Programs { sentence } => {
                write!(f, "the formulas do not model programs and their sockets; not counted: {sentence}")
            }
            Self::Modem => f.write_str(
                "the modem compresses data; the formulas count every byte of payload at the rate of the line",
            ),
            Self::ShortQueue { to_fill } => write!(
                f,
                "the queue is short for a window of {}, which fills the path; what it drops is not counted",
                with_noun(*to_fill, "segment")
            ),
            Self::Asymmetric { up, down } => write!(
                f,
                "requests are counted at {up}/s and responses at {down}/s; acknowledgements take no time here, but \
                 would on the slower link up"
            ),
            Self::LargeRequest { request, mss } => write!(
                f,
                "a request of {request} needs more than one segment of {mss}; slow start is counted for responses \
                 only"
            ),
            Self::Fragmented { limit, mss } => write!(
                f,
                "datagrams of up to {limit} are larger than a segment of this path ({mss}) and would be \
                 fragmented"
            ),
            Self::RevalidationHead { head, changed: 0 } => {
                write!(f, "every response is assumed to be a 304 of {head}, headers included")
            }
            Self::RevalidationHead { head, changed } => write!(
                f,
                "{} changed; every other response is assumed to be a 304 of {head}, headers included",
                with_noun(*changed as u64, "object")
            ),
            Self::OtherLoad(time) => Remark::OtherLoad(time.as_millis_f64()).fmt(f),
        }
    }
}

fn in_turn(connections: u64) -> String {
    format!(
        "responses over {connections} connections are assumed to cross the link one after another, in the order of \
         their first bytes; the simulator divides it"
    )
}

fn with_noun(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
