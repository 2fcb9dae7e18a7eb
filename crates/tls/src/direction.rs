//! One direction of a connection: bytes in order and holes in, records, messages and alerts out.
//!
//! Handshake messages are in the clear until Change Cipher Spec, or in TLS 1.3 until the first record of application data.
//! After a Hello Retry Request a hello follows Change Cipher Spec: a whole hello is in the clear wherever it is.

use crate::alert::Alert;
use crate::hello::{ClientHello, ServerHello};
use crate::message::{Message, MessageReader, MessageType};
use crate::record::{ContentType, Header, Part, RecordReader};

/// An event of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A record begins; its header is complete.
    Begins {
        /// Type of its content.
        content: ContentType,
        /// Bytes of its body.
        length: u16,
    },
    /// A record is complete.
    Ends {
        /// Type of its content.
        content: ContentType,
        /// Bytes of its body.
        length: u16,
    },
    /// A Client Hello.
    ClientHello(Box<ClientHello>),
    /// A Server Hello, or a Hello Retry Request.
    ServerHello(Box<ServerHello>),
    /// Another handshake message in the clear.
    Message {
        /// Its type.
        kind: MessageType,
        /// Its length.
        length: u32,
    },
    /// An alert in the clear.
    Alert(Alert),
}

/// Reader of one direction.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    records: RecordReader,
    messages: MessageReader,
    /// Whether the keys have changed: what follows is encrypted.
    is_encrypted: bool,
    /// The first bytes of an alert.
    alert: Vec<u8>,
}

/// Bytes of a handshake message's header.
const MESSAGE_HEADER: u16 = 4;

impl Direction {
    /// Returns whether the position of the next record is unknown.
    pub const fn is_lost(&self) -> bool {
        self.records.is_lost()
    }

    /// Returns whether a record is incomplete.
    pub const fn is_within(&self) -> bool {
        self.records.is_within()
    }

    /// Reads bytes within a record of application data, which are no event; returns whether they are.
    pub fn continues(&mut self, bytes: &[u8]) -> bool {
        self.records.continues(bytes)
    }

    /// Reads bytes in order.
    pub fn read(&mut self, bytes: &[u8], on: &mut impl FnMut(Event)) {
        let mut records = self.records;
        records.read(bytes, &mut |part| self.part(part, on));
        self.records = records;
    }

    /// Skips bytes that were not captured.
    pub fn skip(&mut self, missing: u64, on: &mut impl FnMut(Event)) {
        let mut records = self.records;
        records.skip(missing, &mut |part| self.part(part, on));
        if records.is_lost() {
            self.messages.lose();
        }
        self.records = records;
    }

    /// Passes the parts of records in the next bytes to `on`, without reading on.
    pub fn peek(&self, bytes: &[u8], on: &mut impl FnMut(Part<'_>)) {
        let mut records = self.records;
        records.read(bytes, on);
    }

    fn part(&mut self, part: Part<'_>, on: &mut impl FnMut(Event)) {
        match part {
            Part::Begins(Header { content, length }) => {
                self.alert.clear();
                on(Event::Begins { content, length });
            }
            Part::Body(header, body) => self.body(header, body, on),
            Part::Missing(Header { content: ContentType::Handshake, length: _ }, _) => self.messages.lose(),
            Part::Missing(..) => {}
            Part::Ends(Header { content, length }) => {
                self.ends(content, length, on);
                on(Event::Ends { content, length });
            }
        }
    }

    fn body(&mut self, header: Header, body: &[u8], on: &mut impl FnMut(Event)) {
        match header.content {
            ContentType::Handshake => {
                if self.is_encrypted && begins_hello(header, body) {
                    (self.is_encrypted, self.messages) = (false, MessageReader::default());
                }
                if !self.is_encrypted {
                    self.messages.read(body, &mut |message| on(event_of(message)));
                }
            }
            ContentType::Alert if !self.is_encrypted && self.alert.len() < 3 => {
                self.alert.extend(body.iter().take(3));
            }
            ContentType::Alert
            | ContentType::ChangeCipherSpec
            | ContentType::ApplicationData
            | ContentType::Heartbeat => {}
        }
    }

    fn ends(&mut self, content: ContentType, length: u16, on: &mut impl FnMut(Event)) {
        match content {
            ContentType::ChangeCipherSpec | ContentType::ApplicationData => self.is_encrypted = true,
            ContentType::Alert if length == 2 => {
                Alert::read(&self.alert).into_iter().for_each(|alert| on(Event::Alert(alert)));
            }
            ContentType::Alert | ContentType::Handshake | ContentType::Heartbeat => {}
        }
    }
}

/// Returns whether a record is a whole hello, as after a Hello Retry Request.
fn begins_hello(header: Header, body: &[u8]) -> bool {
    let &[1 | 2, 0, high, low, 3, 3, ..] = body else { return false };
    u16::from_be_bytes([high, low]).checked_add(MESSAGE_HEADER) == Some(header.length)
}

fn event_of(message: Message<'_>) -> Event {
    let Message { kind, length, body } = message;
    let other = Event::Message { kind, length };
    match kind {
        MessageType::CLIENT_HELLO => {
            ClientHello::read(body).map_or(other, |hello| Event::ClientHello(Box::new(hello)))
        }
        MessageType::SERVER_HELLO => {
            ServerHello::read(body).map_or(other, |hello| Event::ServerHello(Box::new(hello)))
        }
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        Direction::default().read(bytes, &mut |event| events.push(event));
        events
    }

    #[test]
    fn messages_after_the_change_of_keys_are_encrypted() {
        let bytes = [22, 3, 3, 0, 4, 14, 0, 0, 0, 20, 3, 3, 0, 1, 1, 22, 3, 3, 0, 4, 14, 0, 0, 0];
        let done = Event::Message { kind: MessageType::SERVER_HELLO_DONE, length: 0 };
        assert_eq!(events(&bytes).iter().filter(|event| **event == done).count(), 1);
    }

    #[test]
    fn alerts_in_the_clear_are_read_and_encrypted_ones_are_not() {
        let fatal = Event::Alert(Alert { is_fatal: true, description: 40 });
        assert!(events(&[21, 3, 3, 0, 2, 2, 40]).contains(&fatal));
        let encrypted = events(&[21, 3, 3, 0, 3, 2, 40, 0]);
        assert!(!encrypted.iter().any(|event| matches!(event, Event::Alert(_))));
    }

    #[test]
    fn second_hello_follows_the_change_of_keys() {
        let mut hello = vec![3, 3];
        hello.extend([7; 32]);
        hello.extend([0, 0x13, 1, 0]);
        let length = u8::try_from(hello.len()).unwrap();
        let mut bytes = vec![20, 3, 3, 0, 1, 1, 22, 3, 3, 0, length + 4, 2, 0, 0, length];
        bytes.extend(&hello);
        assert!(events(&bytes).iter().any(|event| matches!(event, Event::ServerHello(_))));
    }
}
