//! Facts from the messages of a connection, whatever the protocol.

use http2::window::WindowLimit;

use crate::Mark;
use wire::Duration;

/// Certainty of where messages begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// By the turns of two sides: each side's data up to the other's.
    #[default]
    Turns,
    /// By encrypted records (TLS): turns without control traffic.
    Records,
    /// By frames in the clear (HTTP/2).
    Framed,
    /// Messages are parsed (HTTP/1).
    Parsed,
}

/// Facts from the messages of the connection before a side sends, as far as they can be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageFacts {
    /// Their certainty.
    pub certainty: Certainty,
    /// Whether the sender was within a message; `None` if unknown.
    pub is_within: Option<bool>,
    /// Whether the next data of a server belongs to a stream of HTTP/2 whose request has not ended, as those of gRPC in both
    /// directions: it responds to none of the client's in particular.
    pub is_duplex: bool,
    /// Whether it was within the header section of a message of HTTP/1: no event of a stream, nor any of its content, can be due there.
    pub is_within_head: bool,
    /// Whether only the close of the connection will end that message.
    pub is_until_close: bool,
    /// Whether the server sends without requests.
    pub is_pushed: bool,
    /// Number of requests without a complete response; `None` if unknown.
    pub unanswered: Option<usize>,
    /// Whether the last request expects `100 Continue` before its body.
    pub expects_continue: bool,
    /// When it sent that request, if the interim response has arrived and its body has not begun.
    pub permitted: Option<Mark>,
    /// The last packet of a request, if nothing of its response has passed.
    pub pending: Option<Mark>,
    /// Whether it has set up TLS instead, and waits for the server's first message.
    pub is_greeting: bool,
    /// Whether the protocol is one in which each request gets a response: HTTP, also over TLS.
    pub is_of_requests: bool,
    /// Whether the server sends nothing but responses, in the order of the requests: HTTP/1.1 over TLS.
    pub is_sequential: bool,
    /// A window of HTTP/2 that the sender had used up.
    pub blocked: Option<BlockedSender>,
    /// The last record of its peer that had reached it and that only updates of HTTP/2's windows can be, over TLS.
    pub updated: Option<Mark>,
    /// Whether all that the sender has sent so far are whole records of TLS.
    pub is_record_whole: bool,
    /// Evidence that `payload` ends a poll in which nothing happened.
    pub poll: Option<PollEnd>,
}

/// Evidence that a server has held a GET until an event, and none came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollEnd {
    /// 204 (No Content).
    NoContent,
    /// An empty body: a wait of a timer's round length is no work.
    Empty,
    /// A successful response; the request named this wait.
    Named(Duration),
}

/// A sender whose window is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedSender {
    /// The window.
    pub limit: WindowLimit,
    /// Its size when it is not used: the initial one of streams, or the widest of the connection.
    pub size: u64,
    /// The packet whose DATA used it up.
    pub since: Mark,
    /// The packet that opened it again.
    pub updated: Option<Mark>,
}
