//! Key logs (RFC 9850, SSLKEYLOGFILE): the secrets of connections, as browsers, curl, Node and Go write them for analysis.
//!
//! A line has a label, the random value of the Client Hello, and a secret, in hexadecimal digits. Lines that cannot be used are
//! counted, and the first malformed one is described: a log is written by several programs at once, and may be cut.

use std::collections::BTreeMap;
use std::fmt;

/// The random value of a Client Hello, by which a key log names a connection.
pub type Random = [u8; RANDOM_BYTES];

/// Bytes of a random value.
pub const RANDOM_BYTES: usize = 32;
/// Maximum number of bytes of a key log.
pub const MAX_BYTES: usize = 1 << 26;
/// Maximum number of connections whose secrets are stored.
const MAX_CONNECTIONS: usize = 1 << 17;
/// Maximum length of a secret: an output of SHA-384, or a master secret of TLS 1.2.
const MAX_SECRET_BYTES: usize = 48;

/// A secret of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    bytes: [u8; MAX_SECRET_BYTES],
    length: u8,
}

impl Secret {
    /// Creates a secret; `None` if it has not the length of one: 32 bytes or 48.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut stored = [0; MAX_SECRET_BYTES];
        stored.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let length = u8::try_from(bytes.len()).ok().filter(|length| matches!(length, 32 | 48))?;
        Some(Self { bytes: stored, length })
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The secrets of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// TLS 1.2: the master secret (`CLIENT_RANDOM`).
    pub master: Option<Secret>,
    /// TLS 1.3: the client's early data (`CLIENT_EARLY_TRAFFIC_SECRET`).
    pub client_early: Option<Secret>,
    /// TLS 1.3: the client's part of the handshake (`CLIENT_HANDSHAKE_TRAFFIC_SECRET`).
    pub client_handshake: Option<Secret>,
    /// TLS 1.3: the server's part of the handshake (`SERVER_HANDSHAKE_TRAFFIC_SECRET`).
    pub server_handshake: Option<Secret>,
    /// TLS 1.3: the client's application data (`CLIENT_TRAFFIC_SECRET_0`).
    pub client_traffic: Option<Secret>,
    /// TLS 1.3: the server's application data (`SERVER_TRAFFIC_SECRET_0`).
    pub server_traffic: Option<Secret>,
}

impl Secrets {
    /// Returns the place of the secret with this label.
    fn labelled(&mut self, label: &[u8]) -> Option<&mut Option<Secret>> {
        match label {
            b"CLIENT_RANDOM" => Some(&mut self.master),
            b"CLIENT_EARLY_TRAFFIC_SECRET" => Some(&mut self.client_early),
            b"CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.client_handshake),
            b"SERVER_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.server_handshake),
            b"CLIENT_TRAFFIC_SECRET_0" => Some(&mut self.client_traffic),
            b"SERVER_TRAFFIC_SECRET_0" => Some(&mut self.server_traffic),
            _ => None,
        }
    }
}

/// The secrets of many connections, and counts of the lines that have none.
#[derive(Clone, Debug, Default)]
pub struct KeyLog {
    connections: BTreeMap<Random, Secrets>,
    /// Number of lines with labels that are not used: exporters, extensions.
    pub unknown: u64,
    /// Number of malformed lines, and the first of them.
    pub malformed: u64,
    first_malformed: Option<(u64, Fault)>,
    /// Number of lines of connections beyond the maximum.
    pub beyond: u64,
}

/// Fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Not three words.
    Words,
    /// A label that no key log has.
    Label,
    /// A random value that is not 64 hexadecimal digits.
    Random,
    /// A secret that is not as many hexadecimal digits as its label requires.
    Secret,
}

impl Fault {
    const fn text(self) -> &'static str {
        match self {
            Self::Words => "not a label, a random value and a secret",
            Self::Label => "its first word is no label",
            Self::Random => "its random value is not 64 hexadecimal digits",
            Self::Secret => "its secret is not 64 or 96 hexadecimal digits",
        }
    }
}

impl KeyLog {
    /// Adds the lines of a key log; the first secret of a label and connection is retained.
    pub fn read(&mut self, text: &[u8]) {
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            if let Err(fault) = self.line(line) {
                self.malformed += 1;
                self.first_malformed.get_or_insert((number, fault));
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let (Some(label), Some(random), Some(secret), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Fault::Words);
        };
        if Secrets::default().labelled(label).is_none() {
            let is_label = label.iter().all(is_of_label);
            self.unknown += u64::from(is_label);
            return if is_label { Ok(()) } else { Err(Fault::Label) };
        }
        let random: Random = digits(random)
            .and_then(|(random, length)| {
                let whole = random.first_chunk().copied();
                whole.filter(|_| length == RANDOM_BYTES)
            })
            .ok_or(Fault::Random)?;
        let secret = digits(secret).and_then(|(secret, length)| Secret::new(secret.get(..length)?));
        let is_master = label == b"CLIENT_RANDOM";
        let secret = secret.filter(|secret| !is_master || secret.length == 48).ok_or(Fault::Secret)?;
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&random) {
            self.beyond += 1;
            return Ok(());
        }
        let place = self.connections.entry(random).or_default().labelled(label);
        place.into_iter().for_each(|place| *place = place.or(Some(secret)));
        Ok(())
    }

    /// Returns whether it has no secret.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns the number of connections with secrets.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns the secrets of a connection.
    pub fn secrets(&self, random: &Random) -> Option<&Secrets> {
        self.connections.get(random)
    }

    /// Returns a sentence on the lines that were left out; `None` if there were none. Unknown labels are usual.
    pub fn left_out(&self) -> Option<String> {
        let first = self.first_malformed.map(|(number, fault)| {
            format!("malformed lines left out: {} (line {number}: {})", self.malformed, fault.text())
        });
        let beyond = (self.beyond > 0).then(|| {
            format!("secrets of more than {MAX_CONNECTIONS} connections left out: {} lines", self.beyond)
        });
        let sentences: Vec<String> = first.into_iter().chain(beyond).collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }
}

const fn is_of_label(byte: &u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_'
}

/// Returns the bytes that hexadecimal digits denote, and their number; `None` if they denote none or too many.
fn digits(text: &[u8]) -> Option<([u8; MAX_SECRET_BYTES], usize)> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let mut bytes = [0; MAX_SECRET_BYTES];
    for (byte, [high, low]) in bytes.get_mut(..pairs.len())?.iter_mut().zip(pairs) {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some((bytes, pairs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, random: u8, secret: u8, length: usize) -> String {
        let digits = |byte: u8, length: usize| format!("{byte:02x}").repeat(length);
        format!("{label} {} {}\n", digits(random, 32), digits(secret, length))
    }

    fn read(text: &str) -> KeyLog {
        let mut log = KeyLog::default();
        log.read(text.as_bytes());
        log
    }

    #[test]
    fn secrets_are_found_by_the_random_value_of_the_client() {
        let text = [
            "# a comment\r\n\r\n",
            &line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 1, 2, 32),
            &line("SERVER_HANDSHAKE_TRAFFIC_SECRET", 1, 3, 32),
            &line("CLIENT_TRAFFIC_SECRET_0", 1, 4, 48).replace('\n', "\r\n"),
            &line("CLIENT_RANDOM", 9, 5, 48),
            &line("EXPORTER_SECRET", 1, 6, 32),
        ]
        .concat();
        let log = read(&text);
        let secrets = log.secrets(&[1; 32]).unwrap();
        assert_eq!(secrets.client_handshake, Secret::new(&[2; 32]));
        assert_eq!(secrets.server_handshake, Secret::new(&[3; 32]));
        assert_eq!(secrets.client_traffic, Secret::new(&[4; 48]));
        assert_eq!(secrets.server_traffic, None);
        assert_eq!(log.secrets(&[9; 32]).unwrap().master, Secret::new(&[5; 48]));
        assert_eq!((log.len(), log.unknown, log.malformed, log.left_out()), (2, 1, 0, None));
    }

    #[test]
    fn malformed_lines_are_counted_and_the_first_is_described() {
        let text = [
            &line("CLIENT_TRAFFIC_SECRET_0", 1, 4, 32),
            &line("CLIENT_RANDOM", 1, 4, 32),
            "CLIENT_RANDOM 12\n",
            "<!doctype html> a b\n",
            &line("CLIENT_TRAFFIC_SECRET_0", 2, 4, 32).replace("02", "0g"),
            &line("CLIENT_TRAFFIC_SECRET_0", 3, 4, 64),
        ]
        .concat();
        let log = read(&text);
        assert_eq!((log.len(), log.malformed), (1, 5));
        let expected = "malformed lines left out: 5 (line 2: its secret is not 64 or 96 hexadecimal digits)";
        assert_eq!(log.left_out().as_deref(), Some(expected));
    }

    #[test]
    fn first_secret_of_a_connection_is_retained() {
        let log = read(&(line("CLIENT_RANDOM", 1, 2, 48) + &line("CLIENT_RANDOM", 1, 3, 48)));
        assert_eq!(log.secrets(&[1; 32]).unwrap().master, Secret::new(&[2; 48]));
    }

    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(format!("{:?}", Secret::new(&[7; 32])), "Some(Secret(..))");
    }
}
