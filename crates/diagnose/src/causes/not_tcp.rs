//! Packets that are not diagnosed: other protocols, and opaque tunnels. Notes about the whole capture.
//!
//! **Rule** (`crates/report/src/skipped.rs`): a packet is neither TCP, nor a DHTTP datagram, nor of a QUIC connection. **Evidence**: their number, by kind. **Refuted by**:
//! nothing; tunnels that are decapsulated (`packets::tunnel`) are not counted here.

use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Packets of protocols other than TCP were skipped.",
    fixes: &[Fix {
        party: Party::ClientApplication,
        change: "to see a request over TCP instead of QUIC, switch HTTP/3 off for it (curl --http2, chrome --disable-quic)",
    }],
    is_fault: false,
    min_duration: Duration::ZERO,
};

pub(crate) const TUNNEL: CauseInfo = CauseInfo {
    description: "Packets of tunnels were skipped, because they are encrypted or of an unsupported kind.",
    fixes: &[Fix { party: Party::Network, change: "capture within the tunnel, on its own interface" }],
    is_fault: false,
    min_duration: Duration::ZERO,
};
