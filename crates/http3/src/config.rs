//! Settings of an end, and the reason why there may be none.

use tls::session::Handshake;
use wire::Seed;

use crate::profile::Profile;

/// Least bytes of a datagram that a path must carry (RFC 9000, section 14).
pub const MIN_DATAGRAM: u16 = 1_200;

/// Maximum early data of a ticket: QUIC's only limits are the windows of the remembered transport parameters (RFC 9001,
/// section 4.6.1).
pub const MAX_EARLY_DATA: u32 = u32::MAX;

/// Settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Its behaviour.
    pub profile: Profile,
    /// Behaviour of the servers, whose transport parameters it remembers if it resumes.
    pub server: Profile,
    /// Kind of the handshake; of TLS 1.3.
    pub handshake: Handshake,
    /// Maximum bytes of a datagram on the path.
    pub max_datagram: u16,
    /// Seed of connection ids and of whatever else is random.
    pub seed: Seed,
}

/// Settings of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its behaviour.
    pub profile: Profile,
    /// Kind of the handshake; of TLS 1.3.
    pub handshake: Handshake,
    /// Bytes of its certificates.
    pub certificate_chain: usize,
    /// Maximum bytes of a datagram on the path.
    pub max_datagram: u16,
    /// Seed of connection ids and of whatever else is random.
    pub seed: Seed,
}

/// Why there is no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// QUIC's state machine does not build for WebAssembly.
    #[error("HTTP/3 in WebAssembly, for which QUIC does not build")]
    WebAssembly,
    /// The path carries no datagrams of 1,200 bytes, but of this size.
    #[error("HTTP/3 over datagrams of at most {0} bytes; QUIC needs 1200")]
    Datagram(u16),
    /// TLS 1.2, which QUIC does not have.
    #[error("HTTP/3 with TLS 1.2; QUIC has TLS 1.3")]
    Tls12,
}

impl Unavailable {
    /// Returns the first reason why a path or a handshake does not suit QUIC.
    pub(crate) fn check(max_datagram: u16, handshake: Handshake) -> Result<(), Self> {
        match handshake {
            Handshake::Tls12 => Err(Self::Tls12),
            Handshake::Full | Handshake::Resumed | Handshake::EarlyData if max_datagram < MIN_DATAGRAM => {
                Err(Self::Datagram(max_datagram))
            }
            Handshake::Full | Handshake::Resumed | Handshake::EarlyData => Ok(()),
        }
    }
}
