//! Ciphers of records, part by part: AES-GCM (RFC 5288) and ChaCha20-Poly1305 (RFC 7905).
//!
//! A capture has records in pieces, and some of them lack bytes. Both ciphers combine a key stream, which shows each byte by its
//! position, with a tag over the whole record: each piece is readable as it comes, and the tag is compared at the end.

use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
use aes::{Aes128Enc, Aes256Enc};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit as _, StreamCipher as _, StreamCipherSeek as _};
use ghash::GHash;
use ghash::universal_hash::UniversalHash as _;
use poly1305::Poly1305;

use crate::keylog::{Random, Secret};
use crate::schedule::{Hash, expand_label, key_block};
use crate::suite::{Suite, Version};

/// Bytes of a tag.
pub(crate) const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
const BLOCK_BYTES: usize = 16;

type Block = ghash::Block;

/// A cipher with its key length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

impl Algorithm {
    /// Returns the cipher and the hash function of a suite; `None` for ciphers that are not read: CBC, CCM, ARIA, Camellia.
    pub(crate) const fn of(suite: Suite, version: Version) -> Option<(Self, Hash)> {
        match (version, suite.0) {
            (Version::Tls13, 0x1301) => Some((Self::Aes128Gcm, Hash::Sha256)),
            (Version::Tls13, 0x1302) => Some((Self::Aes256Gcm, Hash::Sha384)),
            (Version::Tls13, 0x1303) => Some((Self::ChaCha20Poly1305, Hash::Sha256)),
            // RFC 5288, 5487 (0x009c to 0x00ad), 5289 (0xc02b to 0xc032): AES-128 has even or odd numbers.
            (Version::Tls12, number @ 0x009c..=0x00ad) if number % 2 == 0 => {
                Some((Self::Aes128Gcm, Hash::Sha256))
            }
            (Version::Tls12, 0x009c..=0x00ad) => Some((Self::Aes256Gcm, Hash::Sha384)),
            (Version::Tls12, number @ 0xc02b..=0xc032) if number % 2 == 1 => {
                Some((Self::Aes128Gcm, Hash::Sha256))
            }
            (Version::Tls12, 0xc02b..=0xc032) => Some((Self::Aes256Gcm, Hash::Sha384)),
            (Version::Tls12, 0xcca8..=0xccae) => Some((Self::ChaCha20Poly1305, Hash::Sha256)),
            (Version::Old | Version::Tls12 | Version::Tls13, _) => None,
        }
    }

    const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// Returns the bytes of the nonce that each record of TLS 1.2 carries.
    pub(crate) const fn explicit_nonce_bytes(self, version: Version) -> usize {
        match (self, version) {
            (Self::Aes128Gcm | Self::Aes256Gcm, Version::Tls12) => 8,
            (_, Version::Old | Version::Tls12 | Version::Tls13) => 0,
        }
    }
}

enum Cipher {
    Aes(Box<Aes>, GHash),
    ChaCha20([u8; 32]),
}

/// Keys of the records of one direction, from one change of keys to the next.
pub(crate) struct RecordKeys {
    cipher: Cipher,
    iv: [u8; NONCE_BYTES],
    /// Bytes of the nonce that each record carries; the IV has the others.
    explicit: usize,
}

impl std::fmt::Debug for RecordKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecordKeys(..)")
    }
}

impl RecordKeys {
    /// Computes the keys of TLS 1.3 from a traffic secret (RFC 8446, section 7.3).
    pub(crate) fn of_secret(algorithm: Algorithm, hash: Hash, secret: &Secret) -> Option<Self> {
        Self::labelled(algorithm, hash, secret, ["key", "iv"])
    }

    /// Computes the keys of a secret, by the labels of the key and of the IV.
    pub(crate) fn labelled(
        algorithm: Algorithm,
        hash: Hash,
        secret: &Secret,
        [key, iv]: [&str; 2],
    ) -> Option<Self> {
        let iv = expand_label(hash, secret.bytes(), iv)?;
        let cipher = match algorithm {
            Algorithm::Aes128Gcm => Cipher::new(algorithm, &expand_label::<16>(hash, secret.bytes(), key)?)?,
            Algorithm::Aes256Gcm | Algorithm::ChaCha20Poly1305 => {
                Cipher::new(algorithm, &expand_label::<32>(hash, secret.bytes(), key)?)?
            }
        };
        Some(Self { cipher, iv, explicit: 0 })
    }

    /// Computes the client's and the server's keys of TLS 1.2 from the master secret (RFC 5246, section 6.3).
    pub(crate) fn of_master(
        algorithm: Algorithm,
        hash: Hash,
        master: &Secret,
        client: &Random,
        server: &Random,
    ) -> Option<[Self; 2]> {
        let explicit = algorithm.explicit_nonce_bytes(Version::Tls12);
        let (key, salt) = (algorithm.key_bytes(), NONCE_BYTES - explicit);
        let mut block = vec![0; 2 * (key + salt)];
        key_block(hash, master, client, server, &mut block);
        let (keys, ivs) = block.split_at(2 * key);
        let of = |number: usize| {
            let mut iv = [0; NONCE_BYTES];
            iv.get_mut(..salt)?.copy_from_slice(ivs.get(number * salt..(number + 1) * salt)?);
            let cipher = Cipher::new(algorithm, keys.get(number * key..(number + 1) * key)?)?;
            Some(Self { cipher, iv, explicit })
        };
        Some([of(0)?, of(1)?])
    }

    /// Returns the nonce of a record: the IV with the sequence number, or with the part that the record carries.
    fn nonce(&self, sequence: u64, explicit: &[u8]) -> [u8; NONCE_BYTES] {
        let mut nonce = self.iv;
        if self.explicit > 0 {
            nonce
                .iter_mut()
                .skip(NONCE_BYTES - self.explicit)
                .zip(explicit)
                .for_each(|(byte, own)| *byte = *own);
        } else {
            let number = sequence.to_be_bytes();
            nonce.iter_mut().rev().zip(number.iter().rev()).for_each(|(byte, number)| *byte ^= number);
        }
        nonce
    }
}

impl Cipher {
    fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        match algorithm {
            Algorithm::Aes128Gcm | Algorithm::Aes256Gcm => {
                let (aes, hash) = Aes::new(key)?;
                Some(Self::Aes(Box::new(aes), hash))
            }
            Algorithm::ChaCha20Poly1305 => Some(Self::ChaCha20(*key.first_chunk()?)),
        }
    }

    /// Combines `bytes` with the key stream from `position` on.
    fn apply(&self, nonce: &[u8; NONCE_BYTES], position: usize, bytes: &mut [u8]) {
        match self {
            Self::Aes(aes, _) => aes.apply(nonce, position, bytes),
            Self::ChaCha20(key) => {
                // The first block is the key of the tag (RFC 8439, section 2.8).
                const FIRST: usize = 64;
                let mut stream = ChaCha20::new(key.into(), nonce.into());
                // A record is far shorter than the stream.
                if stream.try_seek((FIRST + position) as u64).is_ok() {
                    stream.apply_keystream(bytes);
                }
            }
        }
    }

    /// Returns the hash function of the tag, before any byte.
    fn tag_hash(&self, nonce: &[u8; NONCE_BYTES]) -> TagHash {
        match self {
            Self::Aes(_, hash) => TagHash::Galois(hash.clone()),
            Self::ChaCha20(key) => {
                let mut first = [0; 32];
                ChaCha20::new(key.into(), nonce.into()).apply_keystream(&mut first);
                TagHash::Poly1305(Box::new(Poly1305::new(&first.into())))
            }
        }
    }

    /// Returns what the hash is combined with.
    fn tag_mask(&self, nonce: &[u8; NONCE_BYTES]) -> [u8; TAG_BYTES] {
        match self {
            Self::Aes(aes, _) => aes.encrypt(counter(nonce, 1)).into(),
            Self::ChaCha20(_) => [0; TAG_BYTES],
        }
    }
}

fn counter(nonce: &[u8; NONCE_BYTES], number: u32) -> Block {
    let mut block = Block::default();
    let bytes = nonce.iter().copied().chain(number.to_be_bytes());
    block.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    block
}

/// The block cipher of AES-GCM.
pub(crate) enum Aes {
    Short(Aes128Enc),
    Long(Aes256Enc),
}

impl Aes {
    /// Creates the cipher and the hash function of its tags; `None` if the key has another length.
    pub(crate) fn new(key: &[u8]) -> Option<(Self, GHash)> {
        let aes = match key.len() {
            16 => Self::Short(Aes128Enc::new_from_slice(key).ok()?),
            _ => Self::Long(Aes256Enc::new_from_slice(key).ok()?),
        };
        let hash = GHash::new(&aes.encrypt(Block::default()));
        Some((aes, hash))
    }

    fn encrypt_all(&self, blocks: &mut [Block]) {
        match self {
            Self::Short(aes) => aes.encrypt_blocks(blocks),
            Self::Long(aes) => aes.encrypt_blocks(blocks),
        }
    }

    pub(crate) fn encrypt(&self, block: Block) -> Block {
        let mut blocks = [block];
        self.encrypt_all(&mut blocks);
        let [block] = blocks;
        block
    }

    /// Combines bytes with the key stream of counter mode, whose first counter is 2 (RFC 5288; NIST SP 800-38D).
    fn apply(&self, nonce: &[u8; NONCE_BYTES], position: usize, bytes: &mut [u8]) {
        const AT_ONCE: usize = 16;
        let mut number = u32::try_from(position / BLOCK_BYTES).unwrap_or(u32::MAX).saturating_add(2);
        let mut skipped = position % BLOCK_BYTES;
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut blocks = [Block::default(); AT_ONCE];
            let count = (skipped + rest.len()).div_ceil(BLOCK_BYTES).min(AT_ONCE);
            let used = blocks.get_mut(..count).unwrap_or_default();
            for block in used.iter_mut() {
                *block = counter(nonce, number);
                number = number.wrapping_add(1);
            }
            self.encrypt_all(used);
            let length = (count * BLOCK_BYTES - skipped).min(rest.len());
            let (here, more) = rest.split_at_mut(length);
            let stream = used.iter().flatten().skip(skipped);
            here.iter_mut().zip(stream).for_each(|(byte, mask)| *byte ^= mask);
            (rest, skipped) = (more, 0);
        }
    }
}

#[derive(Clone)]
enum TagHash {
    Galois(GHash),
    Poly1305(Box<Poly1305>),
}

impl TagHash {
    fn update(&mut self, blocks: &[Block]) {
        match self {
            Self::Galois(hash) => hash.update(blocks),
            Self::Poly1305(hash) => hash.update(blocks),
        }
    }

    fn finish(self, associated: u64, length: u64) -> [u8; TAG_BYTES] {
        let mut last = Block::default();
        let lengths = match &self {
            Self::Galois(_) => [(associated * 8).to_be_bytes(), (length * 8).to_be_bytes()],
            Self::Poly1305(_) => [associated.to_le_bytes(), length.to_le_bytes()],
        };
        last.iter_mut().zip(lengths.iter().flatten()).for_each(|(place, byte)| *place = *byte);
        match self {
            Self::Galois(mut hash) => {
                hash.update(&[last]);
                hash.finalize().into()
            }
            Self::Poly1305(mut hash) => {
                hash.update(&[last]);
                hash.finalize().into()
            }
        }
    }
}

/// One record, while its bytes come.
#[derive(Clone)]
pub(crate) struct OpenRecord {
    nonce: [u8; NONCE_BYTES],
    position: usize,
    /// The tag so far; `None` if bytes are missing, or no tag is wanted.
    tag: Option<TagState>,
}

#[derive(Clone)]
struct TagState {
    hash: TagHash,
    associated: usize,
    /// The beginning of a block.
    begun: [u8; BLOCK_BYTES],
    length: usize,
}

impl std::fmt::Debug for OpenRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenRecord").field("position", &self.position).finish_non_exhaustive()
    }
}

impl OpenRecord {
    /// Begins a record. `associated` are the bytes that the tag covers beside the record's own.
    pub(crate) fn new(
        keys: &RecordKeys,
        sequence: u64,
        explicit: &[u8],
        associated: &[u8],
        has_tag: bool,
    ) -> Self {
        let nonce = keys.nonce(sequence, explicit);
        let tag = has_tag.then(|| {
            let mut tag = TagState {
                hash: keys.cipher.tag_hash(&nonce),
                associated: associated.len(),
                begun: [0; BLOCK_BYTES],
                length: 0,
            };
            tag.update(associated);
            tag.pad();
            tag
        });
        Self { nonce, position: 0, tag }
    }

    /// Decrypts the next bytes.
    pub(crate) fn read(&mut self, keys: &RecordKeys, bytes: &[u8]) -> Vec<u8> {
        if let Some(tag) = &mut self.tag {
            tag.update(bytes);
        }
        let mut plain = bytes.to_vec();
        keys.cipher.apply(&self.nonce, self.position, &mut plain);
        self.position += bytes.len();
        plain
    }

    /// Encrypts a whole record in place; returns its tag.
    pub(crate) fn seal(
        keys: &RecordKeys,
        sequence: u64,
        associated: &[u8],
        text: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let Self { nonce, position: _, tag } = Self::new(keys, sequence, &[], associated, true);
        keys.cipher.apply(&nonce, 0, text);
        let Some(mut state) = tag else { return [0; TAG_BYTES] };
        state.update(text);
        state.pad();
        let (mut tag, mask) =
            (state.hash.finish(associated.len() as u64, text.len() as u64), keys.cipher.tag_mask(&nonce));
        tag.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        tag
    }

    /// Skips bytes that were not captured: the tag can no longer be compared.
    pub(crate) fn skip(&mut self, missing: usize) {
        self.position += missing;
        self.tag = None;
    }

    /// Returns whether the tag is right; `None` if bytes are missing.
    pub(crate) fn finish(self, keys: &RecordKeys, tag: &[u8; TAG_BYTES]) -> Option<bool> {
        let mut state = self.tag?;
        state.pad();
        let hash = state.hash.finish(state.associated as u64, self.position as u64);
        let mask = keys.cipher.tag_mask(&self.nonce);
        Some(hash.iter().zip(mask).map(|(hash, mask)| hash ^ mask).eq(tag.iter().copied()))
    }
}

impl TagState {
    fn update(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.length > 0 {
            let here = (BLOCK_BYTES - self.length).min(rest.len());
            let (head, more) = rest.split_at(here);
            self.begin(head);
            rest = more;
            if self.length == BLOCK_BYTES {
                self.pad();
            }
        }
        let (blocks, tail) = Block::slice_as_chunks(rest);
        self.hash.update(blocks);
        self.begin(tail);
    }

    fn begin(&mut self, bytes: &[u8]) {
        self.begun.iter_mut().skip(self.length).zip(bytes).for_each(|(place, byte)| *place = *byte);
        self.length += bytes.len();
    }

    /// Ends a block with zeros.
    fn pad(&mut self) {
        if self.length > 0 {
            self.begun.iter_mut().skip(self.length).for_each(|byte| *byte = 0);
            self.hash.update(&[self.begun.into()]);
            self.length = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::from_digits;

    /// Decrypts in pieces of `size` bytes; returns the plaintext and whether the tag is right.
    fn open(keys: &RecordKeys, sequence: u64, sealed: &[u8], size: usize) -> (Vec<u8>, Option<bool>) {
        let (header, body) = sealed.split_at(5);
        let (text, tag) = body.split_at(body.len() - TAG_BYTES);
        let mut record = OpenRecord::new(keys, sequence, &[], header, true);
        let plain = text.chunks(size).flat_map(|part| record.read(keys, part)).collect();
        (plain, record.finish(keys, tag.first_chunk().unwrap()))
    }

    /// RFC 8448, section 3: the client's application data, 50 bytes from 0 on, with the type of the content.
    #[test]
    fn record_of_rfc_8448_is_decrypted_at_every_cut() {
        let secret = "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
        let secret = Secret::new(&from_digits(secret)).unwrap();
        let keys = RecordKeys::of_secret(Algorithm::Aes128Gcm, Hash::Sha256, &secret).unwrap();
        let mut sealed = from_digits(
            "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f5a6292a297
             7014bd1e3deae63aeebb21694915e4",
        );
        let expected: Vec<u8> = (0..50).chain([23]).collect();
        for size in [1, 7, 15, 16, 17, 33, 51] {
            assert_eq!(open(&keys, 0, &sealed, size), (expected.clone(), Some(true)), "{size}");
        }
        *sealed.last_mut().unwrap() ^= 1;
        assert_eq!(open(&keys, 0, &sealed, 51).1, Some(false));
    }

    /// A hole costs its bytes and the comparison of the tag.
    #[test]
    fn bytes_after_a_hole_are_decrypted() {
        let keys = |algorithm| RecordKeys {
            cipher: Cipher::new(algorithm, &[9; 32]).unwrap(),
            iv: [3; 12],
            explicit: 0,
        };
        for algorithm in [Algorithm::Aes256Gcm, Algorithm::ChaCha20Poly1305] {
            let keys = keys(algorithm);
            let bytes = [7; 300];
            let whole = OpenRecord::new(&keys, 5, &[], &[], true).read(&keys, &bytes);
            let mut record = OpenRecord::new(&keys, 5, &[], &[], true);
            let head = record.read(&keys, &bytes[..40]);
            record.skip(133);
            let tail = record.read(&keys, &bytes[173..]);
            assert_eq!((&head[..], &tail[..]), (&whole[..40], &whole[173..]));
            assert_eq!(record.finish(&keys, &[0; 16]), None);
        }
    }

    /// RFC 8439, section 2.8.2.
    #[test]
    fn chacha20_poly1305_is_that_of_rfc_8439() {
        let key: Vec<u8> = (0x80..0xa0).collect();
        let iv = *from_digits("070000004041424344454647").first_chunk().unwrap();
        let keys =
            RecordKeys { cipher: Cipher::new(Algorithm::ChaCha20Poly1305, &key).unwrap(), iv, explicit: 0 };
        let sealed = from_digits(
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b29
             05d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b
             6116",
        );
        let mut record = OpenRecord::new(&keys, 0, &[], &from_digits("50515253c0c1c2c3c4c5c6c7"), true);
        let plain = record.read(&keys, &sealed);
        assert!(plain.starts_with(b"Ladies and Gentlemen of the class of '99"));
        let tag = from_digits("1ae10b594f09e26a7e902ecbd0600691");
        assert_eq!(record.finish(&keys, tag.first_chunk().unwrap()), Some(true));
    }
}
