//! QUIC as its long headers show it: a handshake, a server that may not send more, packets without a response.
//!
//! **Rules**: `quic-handshake` lasts from the client's first Initial packet to its first packet with a short header (or 0-RTT
//! data), and is a note. `quic-amplification-limit`: the server had sent nearly three times what it had received (RFC 9000,
//! section 8.1), and went on after the client's next datagram. `quic-unanswered`: the client repeated its Initial
//! packets and got nothing. **Refuted by**: any datagram of the server; a capture of one direction.

use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};

pub(crate) const HANDSHAKE: CauseInfo = CauseInfo {
    description: "The QUIC handshake took its round trips before the first request could leave.",
    fixes: &[
        Fix { party: Party::ClientApplication, change: "keep connections open, and resume sessions (0-RTT)" },
        Fix {
            party: Party::ServerApplication,
            change: "validate addresses by tokens of NEW_TOKEN instead of Retry; support the client's version",
        },
    ],
    is_fault: false,
    min_duration: Duration::from_millis(5),
};

pub(crate) const AMPLIFICATION: CauseInfo = CauseInfo {
    description: "The server had sent three times what it had received, and waited for the client's address to be validated.",
    fixes: &[Fix {
        party: Party::ServerApplication,
        change: "a smaller chain of certificates (no root, an ECDSA key, certificate compression of RFC 8879), so that it fits \
                 three client datagrams; larger or more client datagrams also raise the limit",
    }],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) const UNANSWERED: CauseInfo = CauseInfo {
    description: "The client's QUIC packets had no response.",
    fixes: &[
        Fix {
            party: Party::Network,
            change: "permit UDP to the server's port in firewalls, or reject it (ICMP), so that clients use TCP immediately",
        },
        Fix {
            party: Party::ServerApplication,
            change: "listen on UDP (nginx listen 443 quic reuseport), or do not advertise HTTP/3 (Alt-Svc, HTTPS records)",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};
