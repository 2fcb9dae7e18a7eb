//! Keys of packets, and their headers' protection (RFC 9001, section 5): of Initial packets they follow from the client's first
//! destination connection ID and a salt that is public, so anyone on the path can compute them; of others from a key log.

use hkdf::Hkdf;
use sha2::Sha256;
use tls::decrypt::Sender;
use tls::keylog::Secret;
use tls::packet_keys::{HeaderKey, Labels, PacketKeys, SAMPLE_BYTES};
use tls::schedule::{Hash, expand_label};
use tls::suite::Suite;

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
/// Cipher suite of Initial packets: TLS_AES_128_GCM_SHA256.
const INITIAL_SUITE: Suite = Suite(0x1301);
/// Distance of the sample, from which the mask of a header is computed, from the packet number.
const SAMPLE_AFTER: usize = 4;
const LONG: u8 = 0x80;
/// Bits of the first byte that are protected: of long headers and of short ones.
const PROTECTED: [u8; 2] = [0x0f, 0x1f];

/// Returns the labels of a version.
pub(crate) const fn labels(version: u32) -> Labels {
    match version {
        VERSION_2 => Labels::QuicV2,
        _ => Labels::Quic,
    }
}

/// Keys of one direction and one encryption level.
#[derive(Debug)]
pub(crate) struct Protection {
    pub(crate) header: HeaderKey,
    pub(crate) packet: PacketKeys,
}

/// A packet whose header is readable.
#[derive(Debug)]
pub(crate) struct Unmasked<'a> {
    /// Header with the packet number.
    pub(crate) header: Vec<u8>,
    /// The packet number, as far as it was sent, and its bytes.
    number: u64,
    number_bytes: usize,
    /// The payload and its tag.
    pub(crate) sealed: &'a [u8],
}

impl<'a> Unmasked<'a> {
    /// Reads a packet whose header is not protected.
    pub(crate) fn readable(packet: &'a [u8], number_at: usize) -> Option<Self> {
        let number_bytes = usize::from(*packet.first()? & 3) + 1;
        let (header, sealed) = packet.split_at_checked(number_at + number_bytes)?;
        let number = header.get(number_at..)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Some(Self { header: header.to_vec(), number, number_bytes, sealed })
    }

    /// Returns the packet number, given the largest one so far (RFC 9000, appendix A.3).
    pub(crate) fn number(&self, largest: Option<u64>) -> u64 {
        let expected = largest.map_or(0, |largest| largest + 1);
        let window = 1_u64 << (8 * self.number_bytes);
        let candidate = (expected & !(window - 1)) | self.number;
        if candidate + window / 2 <= expected && candidate < (1 << 62) - window {
            candidate + window
        } else if candidate > expected + window / 2 && candidate >= window {
            candidate - window
        } else {
            candidate
        }
    }
}

impl Protection {
    pub(crate) fn new(suite: Suite, secret: &Secret, version: u32) -> Option<Self> {
        let labels = labels(version);
        let header = HeaderKey::new(suite, secret, labels)?;
        Some(Self { header, packet: PacketKeys::new(suite, secret, labels)? })
    }

    /// Computes the keys of a sender's Initial packets, for the client's first destination connection ID (RFC 9001, section 5.2;
    /// RFC 9369, section 3.3.1).
    pub(crate) fn initial(version: u32, destination: &[u8], sender: Sender) -> Option<Self> {
        let salt = if version == VERSION_2 { SALT_2 } else { SALT_1 };
        let side = match sender {
            Sender::Client => "client in",
            Sender::Server => "server in",
        };
        let (initial, _) = Hkdf::<Sha256>::extract(Some(&salt), destination);
        let secret: [u8; 32] = expand_label(Hash::Sha256, &initial, side)?;
        Self::new(INITIAL_SUITE, &Secret::new(&secret)?, version)
    }

    /// Removes the protection of a packet's header; `None` if the packet is cut.
    pub(crate) fn unmask<'a>(&self, packet: &Packet<'a>) -> Option<Unmasked<'a>> {
        unmask(&self.header, packet)
    }

    /// Returns the number and the frames of a packet; `None` if it is cut, or these are not its keys.
    pub(crate) fn open(&self, packet: &Packet<'_>, largest: Option<u64>) -> Option<(u64, Vec<u8>)> {
        let unmasked = self.unmask(packet)?;
        let number = unmasked.number(largest);
        Some((number, self.packet.open(number, &unmasked.header, unmasked.sealed)?))
    }
}

/// Removes the protection of a packet's header (RFC 9001, section 5.4).
pub(crate) fn unmask<'a>(key: &HeaderKey, packet: &Packet<'a>) -> Option<Unmasked<'a>> {
    let at = packet.number_at;
    let sample: [u8; SAMPLE_BYTES] = *packet.bytes.get(at + SAMPLE_AFTER..)?.first_chunk()?;
    let [first_mask, rest @ ..] = key.mask(sample);
    let mut header = packet.bytes.get(..at + SAMPLE_AFTER)?.to_vec();
    let first = header.first_mut()?;
    *first ^= first_mask & PROTECTED[usize::from(*first & LONG == 0)];
    let number_bytes = usize::from(*first & 3) + 1;
    header.truncate(at + number_bytes);
    let number = header.get_mut(at..)?;
    number.iter_mut().zip(rest).for_each(|(byte, mask)| *byte ^= mask);
    let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let sealed = packet.bytes.get(at + number_bytes..)?;
    Some(Unmasked { header, number, number_bytes, sealed })
}

/// Protects a packet that has its sizes already, in place: a readable header, frames, and room for the tag. `number` is its whole
/// packet number.
pub(crate) fn protect(keys: &Protection, number_at: usize, number: u64, packet: &mut [u8]) -> Option<()> {
    let first = *packet.first()?;
    let number_bytes = usize::from(first & 3) + 1;
    let (header, payload) = packet.split_at_mut_checked(number_at + number_bytes)?;
    keys.packet.seal(number, header, payload);
    let sample: [u8; SAMPLE_BYTES] = *packet.get(number_at + SAMPLE_AFTER..)?.first_chunk()?;
    let [first_mask, rest @ ..] = keys.header.mask(sample);
    *packet.first_mut()? ^= first_mask & PROTECTED[usize::from(first & LONG == 0)];
    let number = packet.get_mut(number_at..number_at + number_bytes)?;
    number.iter_mut().zip(rest).for_each(|(byte, mask)| *byte ^= mask);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000, appendix A.3, and the ends of the range.
    #[test]
    fn packet_numbers_are_decoded_by_the_largest_so_far() {
        let decoded = |number, number_bytes, largest| {
            Unmasked { header: Vec::new(), number, number_bytes, sealed: &[] }.number(largest)
        };
        assert_eq!(decoded(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
        assert_eq!(
            [decoded(0, 1, None), decoded(255, 1, Some(256)), decoded(1, 1, Some(254))],
            [0, 255, 257]
        );
    }

    fn bytes(digits: &str) -> Vec<u8> {
        let of = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.as_bytes().chunks(2).map(of).collect()
    }

    const ID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    /// RFC 9001, appendix A.3: an ACK frame and a Server Hello; and the same packet, protected again.
    #[test]
    fn server_initial_of_rfc_9001_is_opened_and_sealed() {
        let sealed = bytes(SERVER_INITIAL);
        let keys = Protection::initial(1, &ID, Sender::Server).unwrap();
        let packet = crate::packet::packets(&sealed).next().unwrap();
        let (number, frames) = keys.open(&packet, None).unwrap();
        assert_eq!((number, &frames[..9]), (1, &[2, 0, 0, 0, 0, 6, 0, 0x40, 0x5a][..]));
        assert_eq!(Protection::initial(1, &ID, Sender::Client).unwrap().open(&packet, None), None);
        let header = keys.unmask(&packet).unwrap().header;
        assert_eq!(header, bytes("c1000000010008f067a5502a4262b50040750001"));
        let mut again = [&header[..], &frames, &[0; 16]].concat();
        protect(&keys, packet.number_at, number, &mut again).unwrap();
        assert_eq!(again, sealed);
    }

    const SERVER_INITIAL: &str = "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5\
a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f5889\
1850abbdca3d20398c276456cbc42158407dd074ee";

    /// RFC 9369, appendix A.2: the mask of a client's first packet.
    #[test]
    fn header_mask_of_version_2_is_that_of_rfc_9369() {
        let keys = Protection::initial(VERSION_2, &ID, Sender::Client).unwrap();
        let sample = *bytes("ffe67b6abcdb4298b485dd04de806071").first_chunk().unwrap();
        assert_eq!(keys.header.mask(sample).to_vec(), bytes("94a0c95e80"));
    }
}
