//! Client Hello, Server Hello and Hello Retry Request (RFC 8446, section 4.1): what they offer, request and resume.

use crate::bytes::Cursor;
use crate::keylog::{RANDOM_BYTES, Random};
use crate::suite::{Suite, Version};

/// Offer of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// Its random value, by which a key log names the connection.
    pub random: Random,
    /// The server's name (SNI, RFC 6066), at most 255 bytes.
    pub server_name: Option<String>,
    /// Application protocols (ALPN, RFC 7301), in order.
    pub protocols: Vec<String>,
    /// Whether it offers TLS 1.3.
    pub offers_tls13: bool,
    /// The session to be resumed, or a dummy in TLS 1.3.
    pub session: Vec<u8>,
    /// Whether it offers a pre-shared key: a session of TLS 1.3 to be resumed.
    pub offers_psk: bool,
    /// Whether it can use session tickets of TLS 1.3: it lists its modes of pre-shared keys (section 4.2.9).
    pub takes_tickets: bool,
    /// Whether it sends a session ticket of TLS 1.2 (RFC 5077).
    pub has_ticket: bool,
    /// Whether early data follows (0-RTT).
    pub has_early_data: bool,
    /// Groups for which it sends a key share.
    pub shares: Vec<u16>,
    /// Groups that it supports.
    pub groups: Vec<u16>,
    /// Whether it offers cipher suites with DSS certificates and no encrypt-then-MAC (RFC 7366): of current libraries only Java's does
    /// by default. OpenSSL's, which Node lets offer such suites, has both.
    pub is_java: bool,
}

/// A server's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHello {
    /// Its random value.
    pub random: Random,
    /// The version.
    pub version: Version,
    /// The cipher suite.
    pub suite: Suite,
    /// Whether it is a Hello Retry Request: the client must send another Client Hello.
    pub is_retry: bool,
    /// The group of the key exchange, where it is in the clear.
    pub group: Option<u16>,
    /// The session identifier.
    pub session: Vec<u8>,
    /// Whether it resumes a session by a pre-shared key.
    pub accepts_psk: bool,
    /// The application protocol, if it is in the clear (TLS 1.2).
    pub protocol: Option<String>,
}

/// The random value of a Hello Retry Request (RFC 8446, section 4.1.3): SHA-256 of "HelloRetryRequest".
const RETRY: Random = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
const MAX_NAME_BYTES: usize = 255;
/// Maximum number of entries of a list.
const MAX_ENTRIES: usize = 64;

const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const ALPN: u16 = 16;
const ENCRYPT_THEN_MAC: u16 = 22;
const SESSION_TICKET: u16 = 35;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;
const PSK_MODES: u16 = 45;
const KEY_SHARE: u16 = 51;

impl ClientHello {
    /// Reads the body of the message; `None` if it is malformed.
    pub fn read(body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(body);
        cursor.take(2)?;
        let random = *cursor.take(RANDOM_BYTES)?.first_chunk()?;
        let session = cursor.vector8()?.to_vec();
        // TLS_DHE_DSS_WITH_AES_* with SHA-1, SHA-256 and GCM (RFC 5246, 5288).
        const DSS: [u16; 6] = [0x0032, 0x0038, 0x0040, 0x006a, 0x00a2, 0x00a3];
        let suites = cursor.vector16()?.as_chunks::<2>().0.iter();
        let is_java = suites.map(|suite| u16::from_be_bytes(*suite)).any(|suite| DSS.contains(&suite));
        cursor.vector8()?;
        let mut hello = Self { random, session, is_java, ..Self::default() };
        // Extensions are optional in TLS 1.2.
        let mut extensions = Cursor(cursor.vector16().unwrap_or_default());
        while let Some((kind, content)) = extension(&mut extensions) {
            hello.extension(kind, content);
        }
        Some(hello)
    }

    fn extension(&mut self, kind: u16, content: &[u8]) {
        let mut cursor = Cursor(content);
        match kind {
            SERVER_NAME => self.server_name = server_name(content),
            ENCRYPT_THEN_MAC => self.is_java = false,
            SUPPORTED_GROUPS => self.groups = numbers(cursor.vector16().unwrap_or_default()),
            ALPN => self.protocols = protocols(content),
            SESSION_TICKET => self.has_ticket = !content.is_empty(),
            PRE_SHARED_KEY => self.offers_psk = true,
            PSK_MODES => self.takes_tickets = true,
            EARLY_DATA => self.has_early_data = true,
            SUPPORTED_VERSIONS => {
                let versions = numbers(cursor.vector8().unwrap_or_default());
                self.offers_tls13 = versions.contains(&0x0304);
            }
            KEY_SHARE => {
                let mut entries = Cursor(cursor.vector16().unwrap_or_default());
                while let (Some(group), Some(_)) = (entries.u16(), entries.vector16()) {
                    if self.shares.len() < MAX_ENTRIES {
                        self.shares.push(group);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns whether it offers an application protocol.
    pub fn offers(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|offered| offered == protocol)
    }
}

impl ServerHello {
    /// Reads the body of the message; `None` if it is malformed.
    pub fn read(body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(body);
        let legacy = cursor.u16()?;
        let random = *cursor.take(RANDOM_BYTES)?.first_chunk()?;
        let is_retry = random == RETRY;
        let session = cursor.vector8()?.to_vec();
        let suite = Suite(cursor.u16()?);
        cursor.u8()?;
        let version = Version::of(legacy)?;
        let (group, accepts_psk, protocol) = (None, false, None);
        let mut hello = Self { random, version, suite, is_retry, group, session, accepts_psk, protocol };
        let mut extensions = Cursor(cursor.vector16().unwrap_or_default());
        while let Some((kind, content)) = extension(&mut extensions) {
            let mut cursor = Cursor(content);
            match kind {
                SUPPORTED_VERSIONS => {
                    hello.version = cursor.u16().and_then(Version::of).unwrap_or(version);
                }
                KEY_SHARE => hello.group = cursor.u16(),
                PRE_SHARED_KEY => hello.accepts_psk = true,
                ALPN => hello.protocol = protocols(content).into_iter().next(),
                _ => {}
            }
        }
        Some(hello)
    }
}

/// The server's extensions that TLS 1.3 encrypts (RFC 8446, section 4.3.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptedExtensions {
    /// The application protocol.
    pub protocol: Option<String>,
    /// Whether it accepts early data.
    pub accepts_early_data: bool,
}

impl EncryptedExtensions {
    /// Reads the body of the message; what is malformed is left out.
    pub fn read(body: &[u8]) -> Self {
        let mut read = Self::default();
        let mut extensions = Cursor(Cursor(body).vector16().unwrap_or_default());
        while let Some((kind, content)) = extension(&mut extensions) {
            match kind {
                ALPN => read.protocol = protocols(content).into_iter().next(),
                EARLY_DATA => read.accepts_early_data = true,
                _ => {}
            }
        }
        read
    }
}

/// Returns the name of a group of the key exchange, as OpenSSL and Go spell it.
pub const fn group_name(group: u16) -> Option<&'static str> {
    match group {
        23 => Some("P-256"),
        24 => Some("P-384"),
        25 => Some("P-521"),
        29 => Some("X25519"),
        30 => Some("X448"),
        256 => Some("ffdhe2048"),
        4_587 => Some("SecP256r1MLKEM768"),
        4_588 => Some("X25519MLKEM768"),
        4_589 => Some("SecP384r1MLKEM1024"),
        _ => None,
    }
}

fn extension<'a>(cursor: &mut Cursor<'a>) -> Option<(u16, &'a [u8])> {
    Some((cursor.u16()?, cursor.vector16()?))
}

fn server_name(content: &[u8]) -> Option<String> {
    const HOST_NAME: u8 = 0;
    let mut names = Cursor(Cursor(content).vector16()?);
    let kind = names.u8()?;
    let name = names.vector16().filter(|name| kind == HOST_NAME && name.len() <= MAX_NAME_BYTES)?;
    let is_name = name.iter().all(|byte| byte.is_ascii_graphic());
    std::str::from_utf8(name).ok().filter(|_| is_name).map(str::to_owned)
}

fn protocols(content: &[u8]) -> Vec<String> {
    let mut names = Cursor(Cursor(content).vector16().unwrap_or_default());
    std::iter::from_fn(|| names.vector8())
        .take(MAX_ENTRIES)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

fn numbers(list: &[u8]) -> Vec<u16> {
    let pairs = list.as_chunks::<2>().0.iter();
    pairs.take(MAX_ENTRIES).map(|pair| u16::from_be_bytes(*pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::from_digits as bytes;

    #[test]
    fn suites_with_dss_are_those_of_java_without_encrypt_then_mac() {
        let is_java = |suites: &str, extensions: &str| {
            let length = format!("{:04x}", suites.len() / 2);
            let body = format!("0303{}00{length}{suites}0100{extensions}", "07".repeat(32));
            ClientHello::read(&bytes(&body)).map(|hello| hello.is_java)
        };
        let openssl = "000400160000";
        assert_eq!(
            (is_java("1301c02b00a3", ""), is_java("1301c02b00a3", openssl)),
            (Some(true), Some(false))
        );
        assert_eq!(is_java("1301c02b009f", ""), Some(false));
    }

    /// RFC 8448, section 3: the Client Hello of the simple handshake, without its header.
    const CLIENT: &str = "0303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7000006130113031302010000
        910000000b0009000006736572766572ff01000100000a00140012001d0017001800190100010101020103010400230000003300260024
        001d002099381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c002b0003020304000d0020001e040305030603
        020308040805080604010501060102010402050206020202002d00020101001c00024001";
    /// RFC 8448, section 3: its Server Hello.
    const SERVER: &str =
        "0303a6af06a4121860dc5e6e60249cd34c95930c8ac5cb1434dac155772ed3e26928001301000 02e00330024001d0
        020c9828876112095fe66762bdbf7c672e156d6cc253b833df1dd69b1b04e751f0f002b00020304";
    /// RFC 8448, section 5: its Hello Retry Request, without the cookie.
    const RETRY_REQUEST: &str =
        "0303cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c00130100000c003300
        020017002b00020304";

    #[test]
    fn hellos_of_rfc_8448_are_read() {
        let client = ClientHello::read(&bytes(CLIENT)).unwrap();
        assert_eq!(client.server_name.as_deref(), Some("server"));
        assert!(client.offers_tls13 && client.takes_tickets);
        assert!(!client.offers_psk && !client.has_ticket && !client.has_early_data);
        assert_eq!((client.shares.as_slice(), client.groups.first()), (&[29][..], Some(&29)));
        let server = ServerHello::read(&bytes(SERVER)).unwrap();
        assert_eq!((server.version, server.suite, server.group), (Version::Tls13, Suite(0x1301), Some(29)));
        assert!(!server.is_retry && !server.accepts_psk);
    }

    #[test]
    fn hello_retry_request_is_known_by_its_random() {
        let retry = ServerHello::read(&bytes(RETRY_REQUEST)).unwrap();
        assert_eq!((retry.is_retry, retry.group.and_then(group_name)), (true, Some("P-256")));
    }

    #[test]
    fn hellos_cut_anywhere_are_refused_or_shorter() {
        for whole in [bytes(CLIENT), bytes(SERVER)] {
            for cut in 0..whole.len() {
                let _ = (ClientHello::read(&whole[..cut]), ServerHello::read(&whole[..cut]));
            }
        }
        assert_eq!(ServerHello::read(&bytes(SERVER)[..36]), None);
    }
}
