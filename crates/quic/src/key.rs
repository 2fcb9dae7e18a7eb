//! Keys of Initial packets (RFC 9001, section 5.2; RFC 9369, section 3.3): they follow from the client's first destination
//! connection ID and a salt that is public, so anyone on the path can compute them.

use hkdf::Hkdf;
use sha2::Sha256;
use tls::cipher::{encrypt_aes_128, open_aes_128_gcm};
use tls::schedule::{Hash, expand_label};

use crate::VERSION_2;
use crate::packet::Packet;

const SALT_1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];
const SALT_2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9,
    0xbd, 0x2e, 0xd9,
];
/// Bytes of the sample from which the mask of a header is computed, and their distance from the packet number.
const SAMPLE_BYTES: usize = 16;
const SAMPLE_AFTER: usize = 4;

/// Keys of one direction.
pub(crate) struct InitialKeys {
    key: [u8; 16],
    iv: [u8; 12],
    header: [u8; 16],
}

/// Side that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    #[cfg(test)]
    Server,
}

impl InitialKeys {
    /// Computes the keys of a sender, for the client's first destination connection ID.
    pub(crate) fn new(version: u32, destination: &[u8], sender: Sender) -> Option<Self> {
        let (salt, prefix) = match version {
            VERSION_2 => (SALT_2, "quicv2 "),
            _ => (SALT_1, "quic "),
        };
        let side = match sender {
            Sender::Client => "client in",
            #[cfg(test)]
            Sender::Server => "server in",
        };
        let (initial, _) = Hkdf::<Sha256>::extract(Some(&salt), destination);
        let secret: [u8; 32] = expand_label(Hash::Sha256, &initial, side)?;
        Some(Self {
            key: expand_label(Hash::Sha256, &secret, &format!("{prefix}key"))?,
            iv: expand_label(Hash::Sha256, &secret, &format!("{prefix}iv"))?,
            header: expand_label(Hash::Sha256, &secret, &format!("{prefix}hp"))?,
        })
    }

    /// Returns the frames of a packet; `None` if it is cut, or these are not its keys.
    pub(crate) fn open(&self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let at = packet.number_at;
        let sample: [u8; SAMPLE_BYTES] = *packet.bytes.get(at + SAMPLE_AFTER..)?.first_chunk()?;
        let [first_mask, rest @ ..] = encrypt_aes_128(&self.header, sample);
        let mut head = packet.bytes.get(..at + SAMPLE_AFTER)?.to_vec();
        *head.first_mut()? ^= first_mask & 0x0f;
        let number_length = usize::from(head.first()? & 3) + 1;
        let number = head.get_mut(at..at + number_length)?;
        number.iter_mut().zip(rest).for_each(|(byte, mask)| *byte ^= mask);
        let mut nonce = self.iv;
        nonce.iter_mut().rev().zip(number.iter().rev()).for_each(|(byte, number)| *byte ^= number);
        let associated = head.get(..at + number_length)?;
        open_aes_128_gcm(&self.key, nonce, associated, packet.bytes.get(at + number_length..)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, appendix A.1: the client's and the server's IV.
    #[test]
    fn keys_are_those_of_rfc_9001() {
        let id = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let iv = |version, sender| InitialKeys::new(version, &id, sender).unwrap().iv;
        let client = [0xfa, 0x04, 0x4b, 0x2f, 0x42, 0xa3, 0xfd, 0x3b, 0x46, 0xfb, 0x25, 0x5c];
        let server = [0x0a, 0xc1, 0x49, 0x3c, 0xa1, 0x90, 0x58, 0x53, 0xb0, 0xbb, 0xa0, 0x3e];
        assert_eq!((iv(1, Sender::Client), iv(1, Sender::Server)), (client, server));
        // RFC 9369, appendix A.1.
        let second = [0x91, 0xf7, 0x3e, 0x23, 0x51, 0xd8, 0xfa, 0x91, 0x66, 0x0e, 0x90, 0x9f];
        assert_eq!(iv(VERSION_2, Sender::Client), second);
    }
}
