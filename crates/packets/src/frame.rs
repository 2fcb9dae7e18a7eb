//! A captured packet.

use wire::Time;

use crate::LinkType;

/// One captured packet, with its link-layer headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Number in the capture, from 1, as in Wireshark.
    pub number: u64,
    /// Timestamp, since 1 January 1970, UTC. A packet without one has that of the previous packet.
    pub at: Time,
    /// Index of the interface in its section; 0 in formats with one interface only.
    pub interface: u32,
    /// Link-layer type.
    pub link: LinkType,
    /// The packet, as far as it was captured.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the IP packet in it; `None` for another protocol.
    pub fn ip(&self) -> Option<&'a [u8]> {
        self.link.ip(self.bytes)
    }
}
