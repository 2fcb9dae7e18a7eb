//! Versions and cipher suites, as far as they decide the bytes that encryption adds to a record.

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.1 or older, SSL 3 included.
    Old,
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    /// Returns the version with this number on the wire.
    pub const fn of(number: u16) -> Option<Self> {
        match number {
            0x0300..=0x0302 => Some(Self::Old),
            0x0303 => Some(Self::Tls12),
            0x0304 => Some(Self::Tls13),
            _ => None,
        }
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Old => "TLS 1.1 or older",
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        }
    }
}

/// A cipher suite, by its number in IANA's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suite(pub u16);

/// The tag of GCM, CCM and Poly1305.
const TAG: u16 = 16;
const SHORT_TAG: u16 = 8;
/// The explicit part of the nonce in TLS 1.2 (RFC 5288, section 3).
const EXPLICIT_NONCE: u16 = 8;
/// The inner content type of TLS 1.3 (RFC 8446, section 5.2).
const INNER_TYPE: u16 = 1;

impl Suite {
    /// Returns the bytes that encryption adds to each record. `None` where that varies (CBC) or is unknown. Padding of TLS 1.3
    /// counts as content.
    pub const fn overhead(self, version: Version) -> Option<u16> {
        match (version, self.0) {
            (Version::Tls13, 0x1301..=0x1304) => Some(TAG + INNER_TYPE),
            (Version::Tls13, 0x1305) => Some(SHORT_TAG + INNER_TYPE),
            // AES-GCM and ARIA, Camellia likewise (RFC 5288, 5289, 5487, 6209, 6367).
            (Version::Tls12, 0x009c..=0x00ad | 0xc02b..=0xc032 | 0xc050..=0xc063 | 0xc07a..=0xc093) => {
                Some(EXPLICIT_NONCE + TAG)
            }
            // ChaCha20-Poly1305 has no explicit nonce (RFC 7905).
            (Version::Tls12, 0xcca8..=0xccae) => Some(TAG),
            // AES-CCM (RFC 6655, RFC 7251).
            (Version::Tls12, 0xc09c..=0xc09f | 0xc0a4..=0xc0a7 | 0xc0ac..=0xc0ad) => {
                Some(EXPLICIT_NONCE + TAG)
            }
            (Version::Tls12, 0xc0a0..=0xc0a3 | 0xc0a8..=0xc0ab | 0xc0ae..=0xc0af) => {
                Some(EXPLICIT_NONCE + SHORT_TAG)
            }
            (Version::Old | Version::Tls12 | Version::Tls13, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_follows_the_suite_and_the_version() {
        let of = |suite, version| Suite(suite).overhead(version);
        assert_eq!(of(0x1302, Version::Tls13), Some(17));
        assert_eq!(of(0xc02f, Version::Tls12), Some(24), "ECDHE-RSA-AES128-GCM-SHA256");
        assert_eq!(of(0xcca8, Version::Tls12), Some(16), "ECDHE-RSA-CHACHA20-POLY1305");
        assert_eq!(of(0xc014, Version::Tls12), None, "CBC pads");
    }
}
