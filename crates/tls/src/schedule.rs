//! Key schedules: keys and nonces of records from secrets (RFC 8446, section 7; RFC 5246, sections 5 and 6.3).

use hkdf::Hkdf;
use hkdf::hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Sha256, Sha384};

use crate::keylog::{Random, Secret};

/// Hash function of a cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
}

impl Hash {
    /// Returns the bytes of its output.
    pub const fn length(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }
}

/// HKDF-Expand-Label without a context (RFC 8446, section 7.1). `None` if the secret is too short for the hash.
pub fn expand_label<const LENGTH: usize>(hash: Hash, secret: &[u8], label: &str) -> Option<[u8; LENGTH]> {
    let mut info = vec![0, u8::try_from(LENGTH).ok()?, u8::try_from(label.len() + 6).ok()?];
    info.extend(b"tls13 ");
    info.extend(label.bytes());
    info.push(0);
    let mut output = [0; LENGTH];
    match hash {
        Hash::Sha256 => Hkdf::<Sha256>::from_prk(secret).ok()?.expand(&info, &mut output).ok()?,
        Hash::Sha384 => Hkdf::<Sha384>::from_prk(secret).ok()?.expand(&info, &mut output).ok()?,
    }
    Some(output)
}

/// Returns the secret after a KeyUpdate (RFC 8446, section 7.2).
pub(crate) fn next_secret(hash: Hash, secret: &Secret) -> Option<Secret> {
    match hash {
        Hash::Sha256 => Secret::new(&expand_label::<32>(hash, secret.bytes(), "traffic upd")?),
        Hash::Sha384 => Secret::new(&expand_label::<48>(hash, secret.bytes(), "traffic upd")?),
    }
}

/// Fills `output` with the key block of TLS 1.2: the pseudorandom function of the master secret, "key expansion" and both random
/// values (RFC 5246, section 6.3).
pub(crate) fn key_block(hash: Hash, master: &Secret, client: &Random, server: &Random, output: &mut [u8]) {
    let seed = [&b"key expansion"[..], server, client].concat();
    let mut chained = hmac(hash, master.bytes(), &seed);
    for part in output.chunks_mut(hash.length()) {
        let block = hmac(hash, master.bytes(), &[&chained[..], &seed].concat());
        part.iter_mut().zip(block).for_each(|(byte, value)| *byte = value);
        chained = hmac(hash, master.bytes(), &chained);
    }
}

fn hmac(hash: Hash, key: &[u8], message: &[u8]) -> Vec<u8> {
    // A key of any length is valid (RFC 2104).
    match hash {
        Hash::Sha256 => Hmac::<Sha256>::new_from_slice(key)
            .map(|mac| mac.chain_update(message).finalize().into_bytes().to_vec()),
        Hash::Sha384 => Hmac::<Sha384>::new_from_slice(key)
            .map(|mac| mac.chain_update(message).finalize().into_bytes().to_vec()),
    }
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::from_digits;

    /// RFC 8448, section 3: the server's handshake traffic secret, its key and its IV.
    #[test]
    fn keys_are_those_of_rfc_8448() {
        let secret = from_digits("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38");
        let key: Option<[u8; 16]> = expand_label(Hash::Sha256, &secret, "key");
        let iv: Option<[u8; 12]> = expand_label(Hash::Sha256, &secret, "iv");
        assert_eq!(key.unwrap().to_vec(), from_digits("3fce516009c21727d0f2e4e86ee403bc"));
        assert_eq!(iv.unwrap().to_vec(), from_digits("5d313eb2671276ee13000b30"));
        assert_eq!(expand_label::<16>(Hash::Sha384, &secret, "key"), None, "too short for SHA-384");
    }

    /// The pseudorandom function with SHA-256 and SHA-384, over the seed of a key block, computed by OpenSSL 3.0:
    /// `openssl kdf -keylen 40 -kdfopt digest:SHA256 -kdfopt hexsecret:... -kdfopt seed:"key expansion" -kdfopt hexseed:... TLS1-PRF`.
    #[test]
    fn key_block_is_that_of_openssl() {
        let block = |hash| {
            let mut block = [0; 56];
            key_block(hash, &Secret::new(&[0x11; 48]).unwrap(), &[0x22; 32], &[0x33; 32], &mut block);
            block.to_vec()
        };
        assert_eq!(block(Hash::Sha256), from_digits(KEY_BLOCK_SHA256));
        assert_eq!(block(Hash::Sha384), from_digits(KEY_BLOCK_SHA384));
    }

    const KEY_BLOCK_SHA256: &str = "61f73b13f5b58a38033027737db6ca04327c3c5bbe33cd90dac795272b78ded9bca930294ac57e87a48c4d9261063504d963070786308b35";
    const KEY_BLOCK_SHA384: &str = "10f2925aad1896e38f2c60055739d88eff68ca2f1428a7559d364b350303ce027d32aa23357029359098b2d27577733b1f2e9eab4e542eee";
}
