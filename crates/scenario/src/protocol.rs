//! How a page is fetched: the names users give, and nothing else about them.
//!
//! Not an implementation: the machines are in `proto`, the formulas in `model`.

/// A way to fetch a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// What no protocol can beat: one round trip and the time to send the data.
    Minimum,
    /// A TCP connection for every object.
    Http10,
    /// One TCP connection, one request at a time, asked for with `Connection: Keep-Alive`.
    Http10KeepAlive,
    /// One TCP connection, one request at a time, persistent by default.
    Http11,
    /// One TCP connection, requests sent without waiting for answers.
    Http11Pipelined,
    /// The same, with bodies that shrink under deflate sent deflated.
    Http11PipelinedDeflate,
    /// Transaction TCP: cached handshakes (RFC 1644).
    Ttcp,
    /// The Asynchronous Reliable Delivery Protocol: request and response over UDP, with slow start.
    Ardp,
    /// Small answers in one datagram, large ones over TCP that the server opens.
    Dhttp,
}

impl Protocol {
    /// Every one, in the order tables list them.
    pub const ALL: [Self; 9] = [
        Self::Minimum,
        Self::Http10,
        Self::Http10KeepAlive,
        Self::Http11,
        Self::Http11Pipelined,
        Self::Http11PipelinedDeflate,
        Self::Ttcp,
        Self::Ardp,
        Self::Dhttp,
    ];

    /// The name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minimum => "minimum",
            Self::Http10 => "http10",
            Self::Http10KeepAlive => "http10-keepalive",
            Self::Http11 => "http11",
            Self::Http11Pipelined => "http11-pipelined",
            Self::Http11PipelinedDeflate => "http11-pipelined-deflate",
            Self::Ttcp => "ttcp",
            Self::Ardp => "ardp",
            Self::Dhttp => "dhttp",
        }
    }
}
