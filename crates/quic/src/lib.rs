//! QUIC (RFC 9000, RFC 9001, RFC 9369) as the path sees it: what its long headers show to anyone, and with a key log its frames.
//!
//! A datagram flows in; its packets, or their frames, flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`packet`] | packets of a datagram: types, versions, connection IDs, lengths |
//! | [`initial`] | content of Initial packets, whose keys follow from a public salt: the Client Hello |
//! | [`opener`] | both directions of a connection with its secrets: packets decrypted, through key updates |
//! | [`frame`] | frames of a decrypted packet |
//! | [`parameters`] | transport parameters: windows, and the unit of acknowledgements' delays |
//! | [`sealer`] | the opposite: packets that only have sizes, encrypted with secrets of a key log |
//! | `key`, `handshake` | keys and headers' protection; bytes of the handshake in order |
//!
//! Without secrets, packets with short headers are encrypted, their headers included: they are counted, not read.
//!
//! ```
//! use roundtrip_quic::packet::{PacketType, packets};
//!
//! // A Version Negotiation packet: form bit, version 0, two connection IDs, one version.
//! let datagram = [0x80, 0, 0, 0, 0, 1, 7, 1, 9, 0, 0, 0, 1];
//! let packet = packets(&datagram).next().ok_or("a packet")?;
//! assert_eq!((packet.kind, packet.destination, packet.source), (PacketType::VersionNegotiation, &[7][..], &[9][..]));
//! # Ok::<(), &str>(())
//! ```

pub mod frame;
mod handshake;
pub mod initial;
mod key;
pub mod opener;
pub mod packet;
pub mod parameters;
pub mod sealer;

/// Version 1 (RFC 9000).
pub const VERSION_1: u32 = 1;
/// Version 2 (RFC 9369).
pub const VERSION_2: u32 = 0x6b33_43cf;
/// Minimum size of a datagram with a client's Initial packet (RFC 9000, section 14.1).
pub const MIN_INITIAL_BYTES: usize = 1_200;
/// Multiple of the received bytes that a server may send before it has validated the client's address (RFC 9000, section 8.1).
pub const AMPLIFICATION_LIMIT: u64 = 3;
