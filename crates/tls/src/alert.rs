//! Alerts (RFC 8446, section 6), where they are in the clear.

/// An alert in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Whether it ends the connection.
    pub is_fatal: bool,
    /// Its description.
    pub description: u8,
}

const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
const USER_CANCELED: u8 = 90;

impl Alert {
    /// Reads the body of a record; `None` if it is encrypted.
    pub const fn read(body: &[u8]) -> Option<Self> {
        match body {
            &[level @ 1..=2, description] => Some(Self { is_fatal: level == FATAL, description }),
            _ => None,
        }
    }

    /// Returns whether it closes the connection in order: `close_notify` or `user_canceled`.
    pub const fn is_orderly(self) -> bool {
        matches!(self.description, CLOSE_NOTIFY | USER_CANCELED)
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self.description {
            0 => "close_notify",
            10 => "unexpected_message",
            20 => "bad_record_mac",
            21 => "decryption_failed",
            22 => "record_overflow",
            30 => "decompression_failure",
            40 => "handshake_failure",
            41 => "no_certificate",
            42 => "bad_certificate",
            43 => "unsupported_certificate",
            44 => "certificate_revoked",
            45 => "certificate_expired",
            46 => "certificate_unknown",
            47 => "illegal_parameter",
            48 => "unknown_ca",
            49 => "access_denied",
            50 => "decode_error",
            51 => "decrypt_error",
            60 => "export_restriction",
            70 => "protocol_version",
            71 => "insufficient_security",
            80 => "internal_error",
            86 => "inappropriate_fallback",
            90 => "user_canceled",
            100 => "no_renegotiation",
            109 => "missing_extension",
            110 => "unsupported_extension",
            111 => "certificate_unobtainable",
            112 => "unrecognized_name",
            113 => "bad_certificate_status_response",
            114 => "bad_certificate_hash_value",
            115 => "unknown_psk_identity",
            116 => "certificate_required",
            120 => "no_application_protocol",
            121 => "ech_required",
            _ => "unknown alert",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_alerts_have_no_name() {
        assert_eq!(Alert::read(&[2, 40]).map(Alert::name), Some("handshake_failure"));
        assert!(Alert::read(&[1, 0]).is_some_and(Alert::is_orderly));
        assert_eq!(Alert::read(&[0; 18]), None);
        assert_eq!(Alert::read(&[9, 40]), None);
    }
}
