//! Stage 4a, facts from the captured packets of one connection, as far as they show them. No judgement: `diagnose` has the
//! rules that name causes.
//!
//! Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`Mark`], [`Side`], [`Segment`] | a moment of the capture; one end of a connection; one packet, parsed |
//! | [`connections`] | the open connections, found by their sockets |
//! | [`sender`], [`flight`], [`tally`], [`mss`] | an end as a sender: what it had sent, what it knew to have arrived, what was in flight |
//! | [`window_scale`] | the shift of windows, where a SYN was cut |
//! | [`path`], [`pace`] | where the capture was taken, and the round trips; the rate of the slowest link |
//! | [`opening_window`] | the time of a message whose window opens as in slow start |
//! | [`clock`] | TCP timestamps: when a segment was generated |
//! | [`tick`], [`clock_step`] | the capture's clock, if it is coarse, or was set back |
//! | [`recent`] | packets that were captured twice |
//! | [`multipath`] | whether other subflows share the conversation |
//! | [`stream`] | ordered bytes with marks and holes; readers stack on it |
//! | [`exchange`] | requests and responses of whatever protocol, through one interface |
//! | [`http`], [`http2`], [`tls`] | the readers: messages, frames, records; with a [`KeyLog`] what is within records |
//! | [`quic`] | the opening of a QUIC connection; with a [`KeyLog`] its waits and exchanges |
//! | [`record`], [`dhttp`] | TLS records that close a connection; DHTTP's datagrams |
//! | [`turns`] | whether a client waited for its server, where messages cannot be read |
//! | [`serial`], [`warm_up`] | requests that follow one another; the first requests of a program that warms up |
//! | [`service_queue`] | concurrent requests that a server handles one at a time |
//! | [`hosts`] | hosts and ports that responded |
//! | [`plot`] | points of a time-sequence plot |
//!
//! Every reader takes the packets in the order of the capture, bounds its memory, and accepts any bytes. Where it cannot
//! parse them, it reports that, and nothing further.
//!
//! ```
//! use roundtrip_dissect::exchange::{Content, Exchanges, SegmentData};
//! use roundtrip_dissect::{Mark, Side};
//! use wire::Time;
//!
//! let (request, response) = (&b"GET /a HTTP/1.1\r\n\r\n"[..], &b"HTTP/1.1 204 No Content\r\n\r\n"[..]);
//! let segment = |side, payload: &'static [u8], frame| {
//!     let mark = Mark { at: Time::from_nanos(frame * 1_000_000), frame };
//!     SegmentData { side, start: 1, payload, length: payload.len() as u64, mark, covers_all: true }
//! };
//! let mut exchanges = Exchanges::default();
//! exchanges.sent(&segment(Side::Client, request, 4), Content::Message, &"the caller's state");
//! assert_eq!(exchanges.unanswered(), Some(1));
//! exchanges.sent(&segment(Side::Server, response, 6), Content::Message, &"a later one");
//! let exchange = exchanges.take_answered().pop().ok_or("an exchange")?;
//! assert_eq!((exchange.target.as_str(), exchange.status, exchange.context), ("/a", Some(204), "the caller's state"));
//! assert_eq!(exchange.ended.at.since(exchange.requested.at).as_millis_f64(), 2.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod clock;
pub mod clock_step;
pub mod connections;
pub mod dhttp;
pub mod exchange;
pub mod flight;
pub mod hosts;
pub mod http;
pub mod http2;
mod mark;
pub mod message_facts;
pub mod mss;
pub mod multipath;
pub mod opening_window;
pub mod pace;
pub mod path;
pub mod plot;
pub mod quic;
pub mod recent;
pub mod record;
mod segment;
pub mod sender;
pub mod serial;
pub mod service_queue;
pub mod side;
pub mod stream;
pub mod tally;
pub mod tick;
pub mod tls;
pub mod turns;
pub mod warm_up;
pub mod window_scale;

pub use ::tls::KeyLog;
pub use ::tls::decrypt::Unread;
pub use ::tls::keylog::MAX_BYTES as MAX_KEY_LOG_BYTES;
pub use mark::Mark;
pub use segment::{Options, Segment};
pub use side::{Both, Side};
