//! TLS that is read with a key log: its plaintext goes to the readers of HTTP, with the packets of its records, as if in the clear.
//!
//! A connection that cannot be read, or not any further, goes on by the sizes of its records, and has a reason ([`KeyUse`]).

use std::sync::Arc;

use ::tls::KeyLog;
use ::tls::decrypt::{Decryption, Opened, Peeked, Sender, Unread};

use super::kind::Kind;
use crate::http::{Conversation, ConversationReader};
use crate::http2::{Http2, Http2Reader};
use crate::stream::Reader;
use crate::tls::Tls;
use crate::{Both, Mark, Side};

/// Use of a key log for a connection of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// It was read to its end.
    Read,
    /// It was read up to some record.
    Partly(Unread),
    /// It was not read.
    Unread(Unread),
}

/// Plaintext of one connection.
#[derive(Debug)]
pub(super) struct OpenedTls {
    /// Until the Client Hello has named the connection.
    keys: Option<Arc<KeyLog>>,
    /// `None` once nothing more is read.
    decryption: Option<Decryption>,
    unread: Option<Unread>,
    has_read: bool,
    /// Protocol within TLS.
    pub(super) kind: Kind,
    /// Bytes of application data so far.
    pub(super) bytes: Both<u64>,
    /// The side and the plaintext of the segment that comes next.
    next: Option<(Side, Peeked)>,
}

impl OpenedTls {
    pub(super) fn new(keys: Arc<KeyLog>) -> Self {
        Self {
            keys: Some(keys),
            decryption: Some(Decryption::default()),
            unread: None,
            has_read: false,
            kind: Kind::Undetermined,
            bytes: Both::default(),
            next: None,
        }
    }

    /// Returns whether records are decrypted.
    pub(super) const fn is_reading(&self) -> bool {
        self.decryption.is_some()
    }

    /// Returns the use of the keys; `None` if there was nothing to read.
    pub(super) fn key_use(&self) -> Option<KeyUse> {
        match (self.unread, self.has_read) {
            (None, true) => Some(KeyUse::Read),
            (None, false) => None,
            (Some(reason), true) => Some(KeyUse::Partly(reason)),
            (Some(reason), false) => Some(KeyUse::Unread(reason)),
        }
    }

    /// Decrypts the next segment of `side`, without reading on.
    pub(super) fn peek(&mut self, side: Side, payload: &[u8]) {
        let peeked = self.decryption.as_ref().and_then(|decryption| decryption.peek(sender(side), payload));
        self.next = peeked.map(|peeked| (side, peeked));
    }

    /// Marks that the next segment of either side does not follow what was read.
    pub(super) fn forget_next(&mut self) {
        self.next = None;
    }

    /// Returns the plaintext of the next segment of `side`.
    pub(super) fn next(&self, side: Side) -> Option<&Peeked> {
        self.next.as_ref().filter(|(next, _)| *next == side).map(|(_, peeked)| peeked)
    }

    fn stop(&mut self, reason: Unread) {
        (self.unread, self.decryption, self.next) = (Some(reason), None, None);
        self.kind = Kind::Undetermined;
    }
}

const fn sender(side: Side) -> Sender {
    match side {
        Side::Client => Sender::Client,
        Side::Server => Sender::Server,
    }
}

/// TLS with keys as a reader of ordered bytes.
pub(super) struct OpenedReader<'a, C> {
    pub(super) opened: &'a mut OpenedTls,
    pub(super) tls: &'a mut Tls,
    pub(super) messages: MessageReaders<'a, C>,
}

/// The readers of what is within TLS.
pub(super) struct MessageReaders<'a, C> {
    pub(super) http1: &'a mut Conversation<C>,
    pub(super) http2: &'a mut Option<Box<Http2<C>>>,
    pub(super) context: &'a C,
}

impl<C: Clone + Default> OpenedReader<'_, C> {
    /// Passes bytes, or a hole, to the decryption, and what comes out to the readers.
    fn pass(
        &mut self,
        side: Side,
        mark: Mark,
        decrypt: impl FnOnce(&mut Decryption, &KeyLog, &mut dyn FnMut(Opened<'_>)),
    ) {
        let Self { opened, tls, messages } = self;
        let Some(mut decryption) = opened.decryption.take() else { return };
        let (mut kind, mut count) = (opened.kind, 0);
        let Both { client, server } = opened.bytes;
        // A later alert does not end the handshake.
        let is_of_handshake = server == 0 && (side == Side::Server || client == 0);
        let none = KeyLog::default();
        let keys = opened.keys.as_deref().unwrap_or(&none);
        decrypt(&mut decryption, keys, &mut |content| match content {
            Opened::Data(data) => {
                count += data.len() as u64;
                messages.bytes(&mut kind, side, data, mark);
            }
            Opened::Missing(missing) => {
                count += missing;
                messages.hole(&mut kind, side, missing, mark);
            }
            Opened::Message { kind, length } => tls.message(side, kind, length),
            Opened::Extensions(extensions) => tls.choose(extensions.protocol.as_deref()),
            Opened::Alert(alert) if is_of_handshake && count == 0 => tls.encrypted_alert(side, alert, mark),
            Opened::Alert(_) => {}
        });
        opened.kind = kind;
        if decryption.is_named() {
            opened.keys = None;
        }
        *opened.bytes.of_mut(side) += count;
        opened.has_read |= decryption.has_read();
        match decryption.unread() {
            None => opened.decryption = Some(decryption),
            Some(reason) => {
                opened.stop(reason);
                tls.has_keys = false;
                messages.clear();
            }
        }
    }
}

impl<C: Clone + Default> Reader for OpenedReader<'_, C> {
    fn bytes(&mut self, side: Side, data: &[u8], mark: Mark) {
        self.tls.has_keys = self.opened.is_reading();
        self.tls.bytes(side, data, mark);
        self.pass(side, mark, |decryption, keys, on| decryption.read(sender(side), data, keys, on));
    }

    fn hole(&mut self, side: Side, length: u64, mark: Mark) {
        self.tls.hole(side, length, mark);
        self.pass(side, mark, |decryption, _, on| decryption.skip(sender(side), length, on));
    }
}

impl<C: Clone + Default> MessageReaders<'_, C> {
    fn bytes(&mut self, kind: &mut Kind, side: Side, data: &[u8], mark: Mark) {
        if *kind == Kind::Undetermined {
            let (first, is_preface) = Kind::of(side, data);
            // TLS within TLS is not read.
            *kind = if first == Kind::Tls { Kind::Other } else { first };
            // What came before TLS has set it up.
            *self.http1 = Conversation::default();
            *self.http2 = (first == Kind::Http2).then(|| Box::new(Http2::new(is_preface)));
        }
        self.read(kind, |reader| reader.bytes(side, data, mark));
    }

    fn hole(&mut self, kind: &mut Kind, side: Side, length: u64, mark: Mark) {
        self.read(kind, |reader| reader.hole(side, length, mark));
    }

    fn read(&mut self, kind: &mut Kind, read: impl FnOnce(&mut dyn Reader)) {
        let Self { http1, http2, context } = self;
        match (&kind, http2) {
            (Kind::Http1, _) => {
                read(&mut ConversationReader { conversation: http1, context });
                if http1.is_lost() {
                    *kind = Kind::Other;
                }
            }
            (Kind::Http2, Some(http2)) => {
                read(&mut Http2Reader { connection: http2, context });
                if http2.is_lost() {
                    *kind = Kind::Other;
                }
            }
            _ => {}
        }
    }

    /// Forgets messages of which nothing more is read; those so far count.
    fn clear(&mut self) {
        self.http1.lose();
        self.http1.requests += self.http2.take().map_or(0, |http2| http2.requests);
    }
}
