//! TLS without keys (RFC 8446, RFC 5246): what its records show to anyone on the path.
//!
//! Bytes of one direction flow in, in order; events flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`direction`] | one direction of a connection: bytes and holes in, events out |
//! | [`record`] | the record layer: headers, bodies, and resynchronisation after a hole |
//! | [`message`] | handshake messages, reassembled from records |
//! | [`hello`] | Client Hello, Server Hello and Hello Retry Request |
//! | [`suite`] | versions and cipher suites, and the bytes that encryption adds to each record |
//! | [`alert`] | names of alerts |
//! | [`session`] | one end as a state machine without cryptography: flights and records of real sizes |
//!
//! It knows no socket, no clock and no key: whatever is encrypted is a type, a length and nothing else.
//!
//! ```
//! use roundtrip_tls::{Direction, Event, ContentType};
//!
//! let mut records = Vec::new();
//! let mut direction = Direction::default();
//! direction.read(&[23, 3, 3, 0, 26, 1, 2, 3], &mut |event| records.push(event));
//! direction.skip(23, &mut |event| records.push(event));
//! assert_eq!(records, [
//!     Event::Begins { content: ContentType::ApplicationData, length: 26 },
//!     Event::Ends { content: ContentType::ApplicationData, length: 26 },
//! ]);
//! ```

pub mod alert;
pub mod direction;
pub mod hello;
pub mod message;
pub mod record;
pub mod session;
pub mod suite;

mod bytes;

pub use alert::Alert;
pub use direction::{Direction, Event};
pub use hello::{ClientHello, ServerHello};
pub use record::ContentType;
pub use suite::{Suite, Version};
