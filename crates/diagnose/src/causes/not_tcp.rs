//! Packets that are not diagnosed: other protocols, and tunnels that cannot be read. Notes about the whole capture.
//!
//! **Rule**: what was read is neither TCP nor a datagram of DHTTP. **Evidence**: how many, by kind. **Refuted by**: nothing; tunnels that
//! are read (`trace::capture::tunnel`) are not counted here.

use wire::Duration;

use crate::cause::{About, Fix, Who};

pub(crate) const ABOUT: About = About {
    what: "Packets of other protocols than TCP were passed over.",
    fixes: &[Fix {
        who: Who::ClientApplication,
        change: "to see a request over TCP instead of QUIC, switch HTTP/3 off for it (curl --http2, chrome --disable-quic)",
    }],
    is_fault: false,
    least: Duration::ZERO,
};

pub(crate) const TUNNEL: About = About {
    what: "Packets of tunnels were passed over, because they are encrypted or of a kind that is not read.",
    fixes: &[Fix { who: Who::Network, change: "capture within the tunnel, on its own interface" }],
    is_fault: false,
    least: Duration::ZERO,
};
