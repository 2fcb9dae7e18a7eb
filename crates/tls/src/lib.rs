//! TLS as the path sees it (RFC 8446, RFC 5246): what its records show to anyone, and with a key log their content.
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
//! | [`keylog`] | secrets of connections, as clients and servers log them |
//! | [`schedule`], [`cipher`] | keys from secrets; plaintext from records, part by part |
//! | [`packet_keys`] | keys of QUIC packets from the same secrets |
//! | [`decrypt`] | both directions of a connection with its secrets: plaintext out |
//! | [`session`] | one end as a state machine without cryptography: flights and records of real sizes |
//!
//! It knows no socket and no clock. Without a key log whatever is encrypted is a type, a length and nothing else.
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
pub mod cipher;
pub mod decrypt;
pub mod direction;
pub mod hello;
pub mod keylog;
pub mod message;
pub mod packet_keys;
pub mod record;
pub mod schedule;
pub mod session;
pub mod suite;

mod bytes;

pub use alert::Alert;
pub use decrypt::Decryption;
pub use direction::{Direction, Event};
pub use hello::{ClientHello, ServerHello};
pub use keylog::KeyLog;
pub use record::ContentType;
pub use suite::{Suite, Version};
