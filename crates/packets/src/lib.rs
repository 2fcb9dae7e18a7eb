//! Capture files: packets in and out, and what precedes the IP header in them.
//!
//! Input: the bytes of a capture. Output: [`Frame`]s, with the IP packet that is diagnosed. All input is untrusted:
//! lengths are checked against limits before anything is stored. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`reader`] | pcap and pcapng, one packet at a time |
//! | [`batch`] | many packets at a time |
//! | [`link`] | the link-layer headers before the IP header |
//! | [`tunnel`] | the packet within tunnels |
//! | [`peek`] | the hosts and flags of a plain TCP packet |
//! | [`clock`] | packets with an implausible time |
//! | [`writer`] | captures as pcapng, for Wireshark and similar tools |
//!
//! It opens no file, and knows no connection: those are `dissect`'s and `diagnose`'s.
//!
//! ```
//! use roundtrip_packets::Reader;
//! use roundtrip_packets::writer::{Packet, Writer};
//! use wire::Duration;
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::new(&mut file, "example 1.0", None)?;
//! let interface = writer.interface("link")?;
//! let bytes = &[0x45, 0, 0, 20];
//! writer.packet(&Packet { interface, at: Duration::ZERO, bytes, original_length: 20, comment: None })?;
//! let mut reader = Reader::new(file.as_slice())?;
//! let frame = reader.read()?.ok_or("a packet")?;
//! assert_eq!((frame.number, frame.bytes), (1, &bytes[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod batch;
pub mod clock;
pub mod frame;
pub mod link;
pub mod peek;
pub mod reader;
pub mod tunnel;
pub mod writer;

pub use frame::Frame;
pub use link::LinkType;
pub use reader::{Reader, Unreadable};
