//! Keys of QUIC packets from a secret (RFC 9001, sections 5 and 6): AEAD with the packet number as nonce, and the mask of the
//! header.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit as _, StreamCipher as _, StreamCipherSeek as _};

use crate::cipher::{Aes, Algorithm, OpenRecord, RecordKeys, TAG_BYTES};
use crate::keylog::Secret;
use crate::schedule::{Hash, expand_label};
use crate::suite::{Suite, Version};

/// Bytes of a packet from which the mask of its header is computed (RFC 9001, section 5.4.2).
pub const SAMPLE_BYTES: usize = 16;
/// Bytes of that mask.
pub const MASK_BYTES: usize = 5;

/// Labels of a version of QUIC (RFC 9001, section 5.1; RFC 9369, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Version 1.
    Quic,
    /// Version 2.
    QuicV2,
}

impl Labels {
    const fn key(self) -> &'static str {
        match self {
            Self::Quic => "quic key",
            Self::QuicV2 => "quicv2 key",
        }
    }

    const fn iv(self) -> &'static str {
        match self {
            Self::Quic => "quic iv",
            Self::QuicV2 => "quicv2 iv",
        }
    }

    const fn header(self) -> &'static str {
        match self {
            Self::Quic => "quic hp",
            Self::QuicV2 => "quicv2 hp",
        }
    }

    const fn update(self) -> &'static str {
        match self {
            Self::Quic => "quic ku",
            Self::QuicV2 => "quicv2 ku",
        }
    }
}

/// Keys of the packets of one direction, until the next update.
#[derive(Debug)]
pub struct PacketKeys(RecordKeys);

impl PacketKeys {
    /// Computes the keys of a secret; `None` for a cipher that is not read, or a secret that is too short.
    pub fn new(suite: Suite, secret: &Secret, labels: Labels) -> Option<Self> {
        let (algorithm, hash) = Algorithm::of(suite, Version::Tls13)?;
        RecordKeys::labelled(algorithm, hash, secret, [labels.key(), labels.iv()]).map(Self)
    }

    /// Decrypts a packet's payload with its tag; `header` is the header without its protection. `None` if the tag is wrong.
    pub fn open(&self, number: u64, header: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (text, tag) = sealed.split_last_chunk::<TAG_BYTES>()?;
        let mut record = OpenRecord::new(&self.0, number, &[], header, true);
        let plain = record.read(&self.0, text);
        (record.finish(&self.0, tag) == Some(true)).then_some(plain)
    }

    /// Encrypts a packet's payload in place, and replaces the tag behind it. `payload` is payload and tag.
    pub fn seal(&self, number: u64, header: &[u8], payload: &mut [u8]) {
        if let Some((text, tag)) = payload.split_last_chunk_mut::<TAG_BYTES>() {
            *tag = OpenRecord::seal(&self.0, number, header, text);
        }
    }
}

/// Key of the headers' protection, which updates do not change.
pub struct HeaderKey(HeaderCipher);

enum HeaderCipher {
    Aes(Box<Aes>),
    ChaCha20([u8; 32]),
}

impl std::fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeaderKey(..)")
    }
}

impl HeaderKey {
    /// Computes the key of a secret.
    pub fn new(suite: Suite, secret: &Secret, labels: Labels) -> Option<Self> {
        let (algorithm, hash) = Algorithm::of(suite, Version::Tls13)?;
        let (secret, label) = (secret.bytes(), labels.header());
        Some(Self(match algorithm {
            Algorithm::Aes128Gcm => {
                HeaderCipher::Aes(Box::new(Aes::new(&expand_label::<16>(hash, secret, label)?)?.0))
            }
            Algorithm::Aes256Gcm => {
                HeaderCipher::Aes(Box::new(Aes::new(&expand_label::<32>(hash, secret, label)?)?.0))
            }
            Algorithm::ChaCha20Poly1305 => HeaderCipher::ChaCha20(expand_label(hash, secret, label)?),
        }))
    }

    /// Returns the mask of a header: the first byte's, and the packet number's (RFC 9001, sections 5.4.3 and 5.4.4).
    pub fn mask(&self, sample: [u8; SAMPLE_BYTES]) -> [u8; MASK_BYTES] {
        let mut mask = [0; MASK_BYTES];
        match &self.0 {
            HeaderCipher::Aes(aes) => {
                let block = aes.encrypt(sample.into());
                mask.iter_mut().zip(block).for_each(|(place, byte)| *place = byte);
            }
            HeaderCipher::ChaCha20(key) => {
                const BLOCK_BYTES: u64 = 64;
                let [a, b, c, d, nonce @ ..] = sample;
                let mut stream = ChaCha20::new(key.into(), &nonce.into());
                let counter = u32::from_le_bytes([a, b, c, d]);
                // The last block of a counter of 32 bits may be out of the stream's reach.
                if stream.try_seek(u64::from(counter) * BLOCK_BYTES).is_ok() {
                    stream.apply_keystream(&mut mask);
                }
            }
        }
        mask
    }
}

/// Returns the secret after a key update (RFC 9001, section 6.1).
pub fn next_secret(suite: Suite, secret: &Secret, labels: Labels) -> Option<Secret> {
    let (_, hash) = Algorithm::of(suite, Version::Tls13)?;
    match hash {
        Hash::Sha256 => Secret::new(&expand_label::<32>(hash, secret.bytes(), labels.update())?),
        Hash::Sha384 => Secret::new(&expand_label::<48>(hash, secret.bytes(), labels.update())?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::from_digits;

    /// RFC 9001, appendix A.5: a short header's packet with ChaCha20-Poly1305, and the secret of the next phase.
    #[test]
    fn short_packet_of_rfc_9001_is_opened_sealed_and_its_keys_are_updated() {
        const CHACHA20: Suite = Suite(0x1303);
        let secret = "9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b";
        let secret = Secret::new(&from_digits(secret)).unwrap();
        let next = next_secret(CHACHA20, &secret, Labels::Quic).unwrap();
        let updated = "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9";
        assert_eq!(next.bytes(), from_digits(updated));
        let sample = *from_digits("5e5cd55c41f69080575d7999c25a5bfb").first_chunk().unwrap();
        let header = HeaderKey::new(CHACHA20, &secret, Labels::Quic).unwrap();
        assert_eq!(header.mask(sample).to_vec(), from_digits("aefefe7d03"));
        let keys = PacketKeys::new(CHACHA20, &secret, Labels::Quic).unwrap();
        let (number, header) = (654_360_564, from_digits("4200bff4"));
        let sealed = from_digits("655e5cd55c41f69080575d7999c25a5bfb");
        assert_eq!(keys.open(number, &header, &sealed), Some(vec![1]));
        assert_eq!(keys.open(number + 1, &header, &sealed), None);
        let mut payload = vec![0; 17];
        payload[0] = 1;
        keys.seal(number, &header, &mut payload);
        assert_eq!(payload, sealed);
    }

    #[test]
    fn every_suite_opens_what_it_sealed() {
        for (suite, length) in [(0x1301, 32), (0x1302, 48), (0x1303, 32)] {
            let secret = Secret::new(&vec![7; length]).unwrap();
            for labels in [Labels::Quic, Labels::QuicV2] {
                let keys = PacketKeys::new(Suite(suite), &secret, labels).unwrap();
                let mut payload = [&[5; 40][..], &[0; 16]].concat();
                keys.seal(9, b"header", &mut payload);
                assert_eq!(keys.open(9, b"header", &payload), Some(vec![5; 40]), "{suite:x}");
                assert_eq!(keys.open(9, b"Header", &payload), None);
            }
        }
        assert!(PacketKeys::new(Suite(0x1304), &Secret::new(&[7; 32]).unwrap(), Labels::Quic).is_none());
    }
}
