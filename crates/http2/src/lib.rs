//! HTTP/2 without sockets (RFC 9113): frames, settings, streams and flow-control windows.
//!
//! Bytes of one direction flow in, in order; frames flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`frame`] | frame headers, and a reader that tolerates holes in DATA |
//! | [`settings`] | SETTINGS, and error codes of RST_STREAM and GOAWAY |
//! | [`window`] | flow control of one sender: the windows of the connection and of its streams |
//! | [`field`] | the first field of a field block: a request or a response |
//! | [`hpack`] | field blocks, encoded and decoded |
//! | [`mod@write`] | writers of frames |
//! | [`profile`] | clients and servers as data: settings, windows, scheduling |
//! | [`endpoint`] | one end of a connection as a state machine |
//!
//! The readers are passive: they judge no peer, and compare only the first, static field of a block. [`endpoint`] is one
//! end: bytes of its peer in, events out; requests and responses in, bytes out.
//!
//! ```
//! use roundtrip_http2::frame::{FrameReader, FrameType, Part};
//!
//! let mut reader = FrameReader::default();
//! let mut kinds = Vec::new();
//! let bytes = [0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0];
//! reader.read(&bytes, &mut |part| {
//!     if let Part::Frame(frame) = part {
//!         kinds.push(frame.header.kind);
//!     }
//! });
//! assert_eq!(kinds, [FrameType::Settings, FrameType::WindowUpdate]);
//! ```

pub mod endpoint;
pub mod field;
pub mod frame;
pub mod hpack;
pub mod profile;
pub mod settings;
pub mod window;
pub mod write;

pub use endpoint::{Endpoint, Event, Priority};
pub use profile::Profile;

/// The client's first bytes (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Default of the connection's window and of each stream's (RFC 9113, section 6.9.2).
pub const DEFAULT_WINDOW: u32 = 65_535;
