//! Content of a connection's encrypted records, with the secrets of a key log (RFC 8446, section 5; RFC 5246, section 6).
//!
//! Bytes of both directions and holes flow in, in order; plaintext and handshake messages flow out, as soon as their bytes are there.
//! A tag is compared at the end of its record, if none of its bytes is missing. What cannot be read any further has a reason, and
//! the caller goes on without content.
//!
//! | phase | keys | ends with |
//! | --- | --- | --- |
//! | clear | none | Server Hello (1.3), Change Cipher Spec (1.2) |
//! | early | client's early traffic secret | End Of Early Data, or rejection |
//! | handshake | handshake traffic secret | Finished |
//! | application | traffic secret, of 1.2 the master secret | Key Update, to the next secret |

mod half;

use crate::alert::Alert;
use crate::hello::EncryptedExtensions;
use crate::keylog::KeyLog;
use crate::message::MessageType;
use crate::suite::Suite;

use half::Half;

/// Side that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// Content of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened<'a> {
    /// Bytes of application data.
    Data(&'a [u8]),
    /// A number of bytes of application data that were not captured.
    Missing(u64),
    /// An encrypted handshake message.
    Message {
        /// Its type.
        kind: MessageType,
        /// Its length.
        length: u32,
    },
    /// Encrypted Extensions.
    Extensions(EncryptedExtensions),
    /// An encrypted alert.
    Alert(Alert),
}

/// Reason why a connection is not read, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// The key log does not have the connection.
    NotLogged,
    /// The key log has the connection, but not every secret that is needed.
    SecretMissing,
    /// The handshake was not captured in both directions.
    HandshakeMissing,
    /// A cipher that is not read.
    Cipher(u16),
    /// Records that the secrets do not decrypt.
    WrongSecret,
    /// Records are missing: which ones, the next do not show.
    RecordsMissing,
    /// The connection has negotiated other keys (TLS 1.2).
    Renegotiated,
}

impl Unread {
    /// Returns the reason as a clause.
    pub fn text(self) -> String {
        match self {
            Self::NotLogged => "not in the key log".to_owned(),
            Self::SecretMissing => "not all of its secrets are in the key log".to_owned(),
            Self::HandshakeMissing => "its handshake was not captured".to_owned(),
            Self::Cipher(number) => format!("cipher suite 0x{number:04x} is not read"),
            Self::WrongSecret => "its secrets do not fit its records".to_owned(),
            Self::RecordsMissing => "records were not captured".to_owned(),
            Self::Renegotiated => "it was renegotiated".to_owned(),
        }
    }
}

/// Plaintext of the next bytes of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peeked {
    /// Application data.
    pub data: Vec<u8>,
    /// Whether handshake messages are among them: session tickets, Key Update.
    pub has_messages: bool,
    /// Whether an alert is among them.
    pub has_alert: bool,
    /// Whether they end within a record.
    pub is_within: bool,
}

/// Decryption of one connection.
#[derive(Debug)]
pub struct Decryption {
    client: Half,
    server: Half,
}

impl Default for Decryption {
    fn default() -> Self {
        Self { client: Half::new(Sender::Client), server: Half::new(Sender::Server) }
    }
}

impl Decryption {
    /// Returns why nothing more is read; `None` while all is well.
    pub fn unread(&self) -> Option<Unread> {
        self.client.unread.or(self.server.unread)
    }

    /// Returns whether the secrets of the connection are known: the key log is not needed any more.
    pub const fn is_named(&self) -> bool {
        self.client.offer.is_some()
    }

    /// Returns whether records have been read whose tags are right.
    pub const fn has_read(&self) -> bool {
        self.client.has_read || self.server.has_read
    }

    /// Reads the next bytes of a direction.
    pub fn read(&mut self, sender: Sender, bytes: &[u8], log: &KeyLog, on: &mut dyn FnMut(Opened<'_>)) {
        if self.unread().is_none() {
            self.half(sender).read(bytes, log, on);
            self.agree(sender);
        }
    }

    /// Skips bytes that were not captured.
    pub fn skip(&mut self, sender: Sender, missing: u64, on: &mut dyn FnMut(Opened<'_>)) {
        if self.unread().is_none() {
            self.half(sender).skip(missing, on);
        }
    }

    /// Returns the plaintext of the next bytes of a direction, without reading on. `None` where no keys apply to them.
    pub fn peek(&self, sender: Sender, bytes: &[u8]) -> Option<Peeked> {
        let half = match sender {
            Sender::Client => &self.client,
            Sender::Server => &self.server,
        };
        half.peek(bytes).filter(|_| self.unread().is_none())
    }

    const fn half(&mut self, sender: Sender) -> &mut Half {
        match sender {
            Sender::Client => &mut self.client,
            Sender::Server => &mut self.server,
        }
    }

    /// Passes what one direction has shown to the other: the hellos, and whether early data is accepted.
    fn agree(&mut self, sender: Sender) {
        match sender {
            Sender::Client if self.server.offer.is_none() => self.server.offer.clone_from(&self.client.offer),
            Sender::Client => {}
            Sender::Server => {
                if self.client.keys_of.is_none() {
                    self.client.keys_of.clone_from(&self.server.keys_of);
                }
                self.client.is_early_rejected |= self.server.is_early_rejected;
            }
        }
    }
}

impl Suite {
    /// Returns the reason for not reading it.
    const fn unread(self) -> Unread {
        Unread::Cipher(self.0)
    }
}

#[cfg(test)]
mod tests;
