//! qlog: events of one end of QUIC as JSON (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events), written and read.
//!
//! Datagrams flow into a [`TraceWriter`](write::TraceWriter), a file comes out. A file of any end flows into
//! [`read()`](read::read), and what comes out is a capture: the datagrams that this end sent and received, with packets of the
//! logged types, numbers, sizes and frames, and the key log that opens them. A reader of captures with keys needs no other rules
//! for qlog. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`write`](mod@write) | datagrams of an end as events of [`SCHEMA`] |
//! | [`read`](mod@read) | files: contained JSON, and JSON text sequences (RFC 7464) |
//! | [`trace`] | events of one connection at one end, in the dialects of several implementations and drafts |
//! | [`frame`] | frames: from JSON, to bytes |
//! | [`replay`] | traces as a capture |
//! | `json` | values as they are, or as texts |
//!
//! Contents of streams are not logged: zeros take their place, and requests have no names.
//!
//! ```
//! let file = br#"{"qlog_version": "0.3", "traces": [{"vantage_point": {"type": "client"}, "events": [
//!     {"time": 0, "name": "transport:packet_sent", "data": {"header": {"packet_type": "initial", "packet_number": 0},
//!         "raw": {"length": 1200}, "frames": [{"frame_type": "crypto", "offset": 0, "length": 280}]}}]}]}"#;
//! let log = roundtrip_qlog::read(file)?;
//! assert_eq!((log.traces.len(), log.traces[0].events.len()), (1, 1));
//! # Ok::<(), roundtrip_qlog::Fault>(())
//! ```

pub mod frame;
mod json;
pub mod read;
pub mod replay;
pub mod trace;
pub mod write;

pub use read::{Fault, Log, is_json, read};
pub use replay::Replay;
pub use tls::decrypt::Sender;

/// Schema of the events that are written: draft 12 of draft-ietf-quic-qlog-quic-events. That of the file is of draft 13 of
/// draft-ietf-quic-qlog-main-schema.
pub const SCHEMA: &str = "urn:ietf:params:qlog:events:quic-12";
/// Maximum bytes of a file that is read.
pub const MAX_BYTES: usize = 1 << 28;
