//! Transports: requests in, bytes out; and the interfaces on both sides of them.
//!
//! A policy passes [`ToTransport`] and gets [`FromTransport`]; a driver passes [`FromWire`] and gets [`Wire`]. A
//! transport retries requests that no server has processed, so a policy sees each request end once.
//!
//! | module | contents |
//! | --- | --- |
//! | [`http1`] | HTTP/1 over connections of the client's own, by the plan's connection policy |
//! | `http2` | HTTP/2 over a connection for each group of origins, with HTTP/1.1 for origins that lack it |
//! | `http3` | HTTP/3 over QUIC in datagrams, with HTTP/2 for origins that lack it, or before they name it |
//! | [`dhttp`] | DHTTP over datagrams and connections that servers open, with plain HTTP as its fallback |
//!
//! To the interfaces of the contract four things were added. `Sent` and `Fault` are reports that no response carries.
//! `Bytes` has the contents of a document whose references are discovered while it arrives. `CloseIdle` and `Abort` end
//! connections, which a policy does not know one by one.

mod backup;
mod connections;
pub mod dhttp;
pub mod http1;
pub(crate) mod http2;
mod http3;
pub(crate) mod id;
mod pending;
pub(crate) use http3::Http3;

use ::http1::message::{PeerFault, RequestHead, ResponseHead};
use page::Priority;
use wire::Time;

use crate::report::{Break, Failure};
use dhttp::Dhttp;
use http1::Http1;
use http2::Http2;
pub use id::{ConnectionId, Endpoint, RequestId};

/// A request as a policy passes it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub id: RequestId,
    /// Its server.
    pub origin: Endpoint,
    /// Method, target and fields, in the version of the plan's connection policy.
    pub head: RequestHead,
    /// Requests of a higher priority leave first; on others depends so much that [`Priority::Highest`] never waits in a
    /// write buffer.
    pub priority: Priority,
    /// Whether the response's contents are wanted, and not only their length.
    pub wants_content: bool,
    /// Whether the response is useful in parts (RFC 9218, section 4.2).
    pub is_incremental: bool,
    /// Bytes of its body.
    pub body: u64,
}

/// Input of a transport from the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToTransport {
    /// Send this request.
    Send(Request),
    /// Open a connection to this server, if there is none, without a request.
    Preconnect(Endpoint),
    /// Send it no more, and report nothing about it any more.
    Cancel(RequestId),
    /// Close the connections that no request uses.
    CloseIdle,
    /// Abort all connections: no request is left.
    Abort,
}

/// Output of a transport to the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromTransport {
    /// The request has been passed to a connection, perhaps once more after a retry.
    Sent(RequestId, ConnectionId),
    /// The response's header section has arrived.
    Head(RequestId, ResponseHead),
    /// Bytes of its body have arrived: their number, and the bytes themselves if the request wants them.
    Bytes(RequestId, u64, Vec<u8>),
    /// The response is complete.
    Done(RequestId),
    /// There is no response, or no more of it.
    Failed(RequestId, Failure),
    /// A server's protocol error that affects no request.
    Fault(ConnectionId, PeerFault),
}

/// Output of a transport to the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Open a connection to this server.
    Open(ConnectionId, Endpoint),
    /// Send this in one write.
    Send(ConnectionId, Vec<u8>),
    /// Send this datagram.
    Datagram(Endpoint, Vec<u8>),
    /// Close the connection; it is not used again.
    Close(ConnectionId, Ending),
}

/// Way in which a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With an end of the stream.
    Fin,
    /// With a reset.
    Reset,
}

/// Input of a transport from the network. Events of a connection that the transport has closed are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromWire<'a> {
    /// A connection that was requested is open.
    Connected(ConnectionId),
    /// A server has opened a connection.
    Accepted(ConnectionId, Endpoint),
    /// Bytes received.
    Received(ConnectionId, &'a [u8]),
    /// The server will send no more.
    EndOfStream(ConnectionId),
    /// The connection is broken, or could not be opened.
    Broken(ConnectionId, Break),
    /// A datagram of a server.
    Datagram(Endpoint, &'a [u8]),
    /// The network reports that a server receives no datagrams.
    Unreachable(Endpoint),
}

/// Queued output of a transport, in order of time.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// For the policy.
    Event(FromTransport),
    /// For the driver.
    Wire(Wire),
}

/// Progress of a transport that has been polled.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It did something: its outputs are queued.
    Some,
    /// Nothing before the next input, or this time.
    Timeout(Option<Time>),
}

/// A transport of requests.
#[derive(Debug)]
pub(crate) enum Transport {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
    Http3(Box<Http3>),
    Dhttp(Box<Dhttp>),
}

impl Transport {
    pub(crate) fn request(&mut self, now: Time, input: ToTransport) {
        match self {
            Self::Http1(http1) => http1.request(input),
            Self::Http2(http2) => http2.request(input),
            Self::Http3(http3) => http3.request(input),
            Self::Dhttp(dhttp) => dhttp.request(now, input),
        }
    }

    pub(crate) fn handle(&mut self, now: Time, input: FromWire<'_>) {
        match self {
            Self::Http1(http1) => http1.handle(now, input),
            Self::Http2(http2) => http2.handle(now, input),
            Self::Http3(http3) => http3.handle(now, input),
            Self::Dhttp(dhttp) => dhttp.handle(now, input),
        }
    }

    /// Next queued output.
    pub(crate) fn take(&mut self) -> Option<Outcome> {
        match self {
            Self::Http1(http1) => http1.take(),
            Self::Http2(http2) => http2.take(),
            Self::Http3(http3) => http3.take(),
            Self::Dhttp(dhttp) => dhttp.take(),
        }
    }

    /// Sends what can be sent after one input and the policy's response to it: a transport whose requests share writes
    /// must not wait for the driver's next poll.
    pub(crate) fn settle(&mut self, now: Time) {
        match self {
            Self::Http1(http1) => http1.settle(now),
            Self::Http2(http2) => http2.settle(now),
            Self::Http3(http3) => http3.settle(now),
            // It sends datagrams one by one, when polled.
            Self::Dhttp(_) => {}
        }
    }

    pub(crate) fn poll(&mut self, now: Time) -> Progress {
        match self {
            Self::Http1(http1) => http1.poll(),
            Self::Http2(http2) => http2.poll(),
            Self::Http3(http3) => http3.poll(now),
            Self::Dhttp(dhttp) => dhttp.poll(now),
        }
    }

    /// Whether no request and no connection is left.
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Self::Http1(http1) => http1.is_idle(),
            Self::Http2(http2) => http2.is_idle(),
            Self::Http3(http3) => http3.is_idle(),
            Self::Dhttp(dhttp) => dhttp.is_idle(),
        }
    }
}
