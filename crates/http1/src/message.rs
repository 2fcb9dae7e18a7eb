//! HTTP/1.x messages, read strictly and written exactly (RFC 9110, RFC 9112).
//!
//! Bytes flow in and [`Event`]s flow out; in the other direction heads are encoded. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`field`] | header fields |
//! | [`head`] | start line and header section of requests and responses |
//! | [`limits`] | maximum sizes of a peer's messages |
//! | [`fault`] | faults of a peer |
//! | `scan` | the end of a head |
//! | [`framing`] | the end of a body, and whether the connection persists |
//! | `body` | the bytes of a body |
//! | [`read`] | all of these together: messages off a stream |
//! | [`range`] | parts of an object |
//! | [`view`] | borrowed heads, for messages that arrive whole |
//! | [`mod@write`] | division of a message into writes |
//! | [`validator`] | conditional requests |
//!
//! Neither connections nor exchanges: those are `fetch::transport::http1`, [`crate::client`] and [`crate::server`].

mod body;
pub mod fault;
pub mod field;
pub mod framing;
pub mod head;
pub mod limits;
pub mod range;
pub mod read;
mod scan;
pub mod validator;
pub mod view;
pub mod write;

pub use fault::PeerFault;
pub use field::{FieldError, Fields, is_token};
pub use framing::{Framing, is_host, is_target, persists};
pub use head::{Method, RequestHead, ResponseHead, Version};
pub use limits::Limits;
pub use read::{Event, RequestReader, ResponseReader};
pub use validator::Validator;
pub use view::{FieldLines, RequestView, ResponseView};
pub use write::WritePolicy;
