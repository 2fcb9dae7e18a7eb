//! One direction of a connection: its phase, its keys, and the record in progress.

use std::sync::Arc;

use super::{Opened, Peeked, Sender, Unread};
use crate::alert::Alert;
use crate::cipher::{Algorithm, OpenRecord, RecordKeys, TAG_BYTES};
use crate::hello::{ClientHello, EncryptedExtensions, ServerHello};
use crate::keylog::{KeyLog, Random, Secret, Secrets};
use crate::message::{Message, MessageReader, MessageType};
use crate::record::{ContentType, HEADER_BYTES, Header, Part, RecordReader};
use crate::schedule::{Hash, next_secret};
use crate::suite::Version;

/// Which keys apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Clear,
    Early,
    Handshake,
    Application,
}

/// The Client Hello, and the secrets of the connection.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    random: Random,
    has_early_data: bool,
    secrets: Secrets,
}

/// Everything that keys are computed from.
#[derive(Debug)]
pub(super) struct KeyMaterial {
    secrets: Secrets,
    version: Version,
    algorithm: Algorithm,
    hash: Hash,
    client: Random,
    server: Random,
}

/// One direction. Its copies share the keys.
#[derive(Clone, Debug)]
pub(super) struct Half {
    sender: Sender,
    records: RecordReader,
    /// Handshake messages in the clear, and encrypted ones.
    hellos: MessageReader,
    messages: MessageReader,
    pub(super) offer: Option<Arc<Offer>>,
    pub(super) keys_of: Option<Arc<KeyMaterial>>,
    phase: Phase,
    keys: Option<Arc<RecordKeys>>,
    /// The traffic secret of the application phase: that of the next Key Update follows from it.
    secret: Option<Secret>,
    sequence: u64,
    record: Option<RecordInProgress>,
    /// The phase that follows the record in progress.
    next: Option<Phase>,
    pub(super) is_early_rejected: bool,
    has_tags: bool,
    pub(super) has_read: bool,
    pub(super) unread: Option<Unread>,
}

/// Type of a record's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Message,
    Alert,
}

/// An encrypted record, as far as it has come.
#[derive(Clone, Debug)]
struct RecordInProgress {
    header: Header,
    /// Bytes of its body so far.
    at: usize,
    /// The part of the nonce that it carries.
    explicit: Vec<u8>,
    open: Option<OpenRecord>,
    tag: Vec<u8>,
    kind: Option<Kind>,
    /// Content that may be its type and padding (TLS 1.3).
    held: Vec<u8>,
    alert: Vec<u8>,
}

/// The bytes of a body: part of the nonce, text, tag.
struct Layout {
    explicit: usize,
    text: usize,
}

impl Half {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            sender,
            records: RecordReader::default(),
            hellos: MessageReader::default(),
            messages: MessageReader::default(),
            offer: None,
            keys_of: None,
            phase: Phase::Clear,
            keys: None,
            secret: None,
            sequence: 0,
            record: None,
            next: None,
            is_early_rejected: false,
            has_tags: true,
            has_read: false,
            unread: None,
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8], log: &KeyLog, on: &mut dyn FnMut(Opened<'_>)) {
        let mut records = self.records;
        records.read(bytes, &mut |part| self.part(part, log, on));
        self.records = records;
        if records.is_lost() {
            self.stop(Unread::RecordsMissing);
        }
    }

    pub(super) fn skip(&mut self, missing: u64, on: &mut dyn FnMut(Opened<'_>)) {
        let mut records = self.records;
        records.skip(missing, &mut |part| self.part(part, &KeyLog::default(), on));
        self.records = records;
        if records.is_lost() {
            self.stop(Unread::RecordsMissing);
        }
    }

    pub(super) fn peek(&self, bytes: &[u8]) -> Option<Peeked> {
        self.keys_of.as_ref().or(None)?;
        let mut copy = Self { has_tags: false, ..self.clone() };
        let mut peeked = Peeked::default();
        copy.read(bytes, &KeyLog::default(), &mut |opened| match opened {
            Opened::Data(data) => peeked.data.extend(data),
            Opened::Message { .. } | Opened::Extensions(_) => peeked.has_messages = true,
            Opened::Alert(_) => peeked.has_alert = true,
            Opened::Missing(_) => {}
        });
        peeked.is_within = copy.records.is_within();
        copy.unread.is_none().then_some(peeked)
    }

    /// Stops reading, for the first reason.
    fn stop(&mut self, reason: Unread) {
        self.unread.get_or_insert(reason);
        self.record = None;
    }

    fn version(&self) -> Option<Version> {
        self.keys_of.as_ref().map(|of| of.version)
    }

    fn part(&mut self, part: Part<'_>, log: &KeyLog, on: &mut dyn FnMut(Opened<'_>)) {
        if self.unread.is_some() {
            return;
        }
        match part {
            Part::Begins(header) => self.begins(header),
            Part::Body(header, body) if self.record.is_none() => self.clear(header, body, log),
            Part::Body(_, body) => self.body(body, on),
            Part::Missing(header, _) if self.record.is_none() => {
                if header.content == ContentType::Handshake {
                    self.hellos.lose();
                }
            }
            Part::Missing(_, missing) => self.missing(missing.into(), on),
            Part::Ends(header) => self.ends(header, on),
        }
    }

    /// Begins a record, encrypted or not.
    fn begins(&mut self, header: Header) {
        let is_encrypted = match self.version() {
            Some(Version::Tls12 | Version::Old) => {
                self.phase == Phase::Application && header.content != ContentType::ChangeCipherSpec
            }
            Some(Version::Tls13) | None => header.content == ContentType::ApplicationData,
        };
        if !is_encrypted {
            return;
        }
        self.choose_phase();
        let Some(layout) = self.layout(header.length) else { return self.stop(Unread::WrongSecret) };
        let kind = self.presumed_kind(header, &layout);
        self.record = self.unread.is_none().then(|| RecordInProgress {
            header,
            at: 0,
            explicit: Vec::new(),
            open: None,
            tag: Vec::new(),
            kind,
            held: Vec::new(),
            alert: Vec::new(),
        });
    }

    /// Enters the phase of TLS 1.3 to which an encrypted record belongs, if no message has ended the last one.
    fn choose_phase(&mut self) {
        let has_early_data = self.offer.as_ref().is_some_and(|offer| offer.has_early_data);
        match (self.phase, self.keys_of.is_some()) {
            (Phase::Clear, true) => self.enter(Phase::Handshake),
            (Phase::Clear, false) if has_early_data && self.sender == Sender::Client => {
                self.enter(Phase::Early);
            }
            (Phase::Clear, false) => self.stop(Unread::HandshakeMissing),
            (Phase::Early, true) if self.is_early_rejected => self.enter(Phase::Handshake),
            (Phase::Early | Phase::Handshake | Phase::Application, _) => {}
        }
    }

    /// Changes the keys.
    fn enter(&mut self, phase: Phase) {
        (self.phase, self.sequence, self.messages) = (phase, 0, MessageReader::default());
        self.keys = None;
        if phase == Phase::Early {
            return self.enter_early();
        }
        let Some(of) = self.keys_of.clone() else { return self.stop(Unread::HandshakeMissing) };
        let Secrets {
            master,
            client_early: _,
            client_handshake,
            server_handshake,
            client_traffic,
            server_traffic,
        } = of.secrets;
        let secret = match (phase, self.sender) {
            _ if of.version == Version::Tls12 => master,
            (Phase::Handshake, Sender::Client) => client_handshake,
            (Phase::Handshake, Sender::Server) => server_handshake,
            (_, Sender::Client) => client_traffic,
            (_, Sender::Server) => server_traffic,
        };
        let Some(secret) = secret else { return self.stop(Unread::SecretMissing) };
        self.secret = Some(secret);
        let keys = if of.version == Version::Tls12 {
            let both = RecordKeys::of_master(of.algorithm, of.hash, &secret, &of.client, &of.server);
            both.map(|[client, server]| if self.sender == Sender::Client { client } else { server })
        } else {
            RecordKeys::of_secret(of.algorithm, of.hash, &secret)
        };
        match keys {
            Some(keys) => self.keys = Some(Arc::new(keys)),
            None => self.stop(Unread::WrongSecret),
        }
    }

    /// The suite of early data is that of the session, which shows later, if at all: its hash fits the secret, and of two ciphers the
    /// usual one is tried first.
    fn enter_early(&mut self) {
        let secret = self.offer.as_ref().and_then(|offer| offer.secrets.client_early);
        let keys = secret.and_then(|secret| match secret.bytes().len() {
            32 => RecordKeys::of_secret(Algorithm::Aes128Gcm, Hash::Sha256, &secret),
            _ => RecordKeys::of_secret(Algorithm::Aes256Gcm, Hash::Sha384, &secret),
        });
        self.keys = keys.map(Arc::new);
    }

    /// Changes to the other cipher of early data, if its first record, which came whole, is not of this one.
    fn try_early_cipher(&mut self, record: &RecordInProgress, sealed: &[u8], tag: &[u8]) {
        let secret = self.offer.as_ref().and_then(|offer| offer.secrets.client_early);
        let is_first = self.phase == Phase::Early && self.sequence == 0;
        let Some((keys, secret)) = self.keys.clone().zip(secret).filter(|_| is_first) else { return };
        let mut open = self.open(&mut record.clone(), &keys, sealed.len()).clone();
        open.read(&keys, sealed);
        let is_other = tag.first_chunk().and_then(|tag| open.finish(&keys, tag)) == Some(false);
        if is_other && secret.bytes().len() == Hash::Sha256.length() {
            let keys = RecordKeys::of_secret(Algorithm::ChaCha20Poly1305, Hash::Sha256, &secret);
            self.keys = keys.map(Arc::new);
        }
    }

    fn layout(&self, length: u16) -> Option<Layout> {
        let version = self.version().unwrap_or(Version::Tls13);
        let explicit = self.keys_of.as_ref().map_or(0, |of| of.algorithm.explicit_nonce_bytes(version));
        let text = usize::from(length).checked_sub(explicit + TAG_BYTES)?;
        (text > 0 || version == Version::Tls12).then_some(Layout { explicit, text })
    }

    /// Returns the type of a record's content, where it is known before the end.
    fn presumed_kind(&self, header: Header, layout: &Layout) -> Option<Kind> {
        const ALERT: usize = 3;
        match (self.version(), self.phase) {
            (Some(Version::Tls12), _) => match header.content {
                ContentType::Handshake => Some(Kind::Message),
                ContentType::Alert => Some(Kind::Alert),
                ContentType::ApplicationData | ContentType::ChangeCipherSpec | ContentType::Heartbeat => {
                    Some(Kind::Data)
                }
            },
            (_, Phase::Handshake) if layout.text == ALERT => Some(Kind::Alert),
            (_, Phase::Handshake) => Some(Kind::Message),
            (_, Phase::Clear | Phase::Early | Phase::Application) => None,
        }
    }

    /// Reads a record that is not encrypted: hellos.
    fn clear(&mut self, header: Header, body: &[u8], log: &KeyLog) {
        if header.content != ContentType::Handshake {
            return;
        }
        let mut hellos = std::mem::take(&mut self.hellos);
        hellos.read(body, &mut |message| self.hello(message, log));
        self.hellos = hellos;
    }

    fn hello(&mut self, message: Message<'_>, log: &KeyLog) {
        let Message { kind, length: _, body } = message;
        match (kind, self.sender) {
            (MessageType::CLIENT_HELLO, Sender::Client) => {
                let Some(hello) = ClientHello::read(body) else { return };
                if let Some(offer) = &self.offer {
                    // After a Hello Retry Request there is no early data.
                    self.is_early_rejected |= offer.random == hello.random;
                    return;
                }
                match log.secrets(&hello.random) {
                    Some(secrets) => {
                        let ClientHello { random, has_early_data, .. } = hello;
                        self.offer = Some(Arc::new(Offer { random, has_early_data, secrets: *secrets }));
                    }
                    None => self.stop(Unread::NotLogged),
                }
            }
            (MessageType::SERVER_HELLO, Sender::Server) => {
                if let Some(hello) = ServerHello::read(body).filter(|hello| !hello.is_retry) {
                    self.server_hello(&hello);
                }
            }
            _ => {}
        }
    }

    fn server_hello(&mut self, hello: &ServerHello) {
        let Some(offer) = self.offer.clone() else { return self.stop(Unread::HandshakeMissing) };
        let Some((algorithm, hash)) = Algorithm::of(hello.suite, hello.version) else {
            return self.stop(hello.suite.unread());
        };
        self.keys_of = Some(Arc::new(KeyMaterial {
            secrets: offer.secrets,
            version: hello.version,
            algorithm,
            hash,
            client: offer.random,
            server: hello.random,
        }));
    }

    /// Reads bytes of an encrypted record.
    fn body(&mut self, body: &[u8], on: &mut dyn FnMut(Opened<'_>)) {
        let Some(mut record) = self.record.take() else { return };
        let Some(Layout { explicit, text }) = self.layout(record.header.length) else { return };
        let is_whole = record.at == 0 && body.len() == usize::from(record.header.length);
        let mut rest = body;
        let mut part = |end: usize, at: &mut usize| {
            let (part, more) = rest.split_at(end.saturating_sub(*at).min(rest.len()));
            rest = more;
            *at += part.len();
            part
        };
        let nonce = part(explicit, &mut record.at);
        record.explicit.extend(nonce);
        let sealed = part(explicit + text, &mut record.at);
        let is_last = record.at == explicit + text;
        let tag = part(explicit + text + TAG_BYTES, &mut record.at);
        record.tag.extend(tag);
        if is_whole {
            self.try_early_cipher(&record, sealed, tag);
        }
        let is_nonce_known = record.explicit.len() == explicit;
        if let Some(keys) = self.keys.clone().filter(|_| is_nonce_known && !sealed.is_empty()) {
            let plain = self.open(&mut record, &keys, text).read(&keys, sealed);
            self.text(&mut record, plain, is_last, is_whole, on);
        } else if text == 0 && is_nonce_known {
            let _ = self.keys.clone().map(|keys| self.open(&mut record, &keys, text).read(&keys, &[]));
        }
        self.record = self.unread.is_none().then_some(record);
    }

    fn open<'a>(
        &self,
        record: &'a mut RecordInProgress,
        keys: &RecordKeys,
        text: usize,
    ) -> &'a mut OpenRecord {
        let RecordInProgress { header, explicit, open, .. } = record;
        open.get_or_insert_with(|| {
            let content = header.content.number();
            let [high, low] = header.length.to_be_bytes();
            let associated = if self.version() == Some(Version::Tls12) {
                let [high, low] = u16::try_from(text).unwrap_or_default().to_be_bytes();
                [&self.sequence.to_be_bytes()[..], &[content, 3, 3, high, low]].concat()
            } else {
                let associated: [u8; HEADER_BYTES] = [content, 3, 3, high, low];
                associated.to_vec()
            };
            OpenRecord::new(keys, self.sequence, explicit, &associated, self.has_tags)
        })
    }

    /// Handles plaintext; `is_last` if no more of the record follows, `is_whole` if this is all of it.
    fn text(
        &mut self,
        record: &mut RecordInProgress,
        plain: Vec<u8>,
        is_last: bool,
        is_whole: bool,
        on: &mut dyn FnMut(Opened<'_>),
    ) {
        if self.version() == Some(Version::Tls12) {
            return self.content(record, &plain, on);
        }
        let mut text = std::mem::take(&mut record.held);
        text.extend(plain);
        let end = text.iter().rposition(|byte| *byte != 0);
        let end = end.and_then(|end| Some((end, ContentType::of(*text.get(end)?))));
        if is_last {
            // The type follows the content, and zeros may follow the type (RFC 8446, section 5.2).
            let Some((end, Some(content))) = end else { return self.stop(Unread::WrongSecret) };
            let kind = match content {
                ContentType::Handshake => Kind::Message,
                ContentType::Alert => Kind::Alert,
                ContentType::ApplicationData => Kind::Data,
                ContentType::ChangeCipherSpec | ContentType::Heartbeat => {
                    return self.stop(Unread::WrongSecret);
                }
            };
            if record.kind.is_some_and(|presumed| presumed != kind) && !is_whole {
                return self.stop(Unread::WrongSecret);
            }
            record.kind = Some(kind);
            text.truncate(end);
        } else if let Some((end, Some(_))) = end {
            record.held = text.split_off(end);
        }
        if record.kind.is_none() && !text.is_empty() {
            record.kind = begun_kind(&text, record.header.length);
        }
        if record.kind.is_none() && !is_last {
            text.append(&mut record.held);
            record.held = text;
            return;
        }
        self.content(record, &text, on);
    }

    fn content(&mut self, record: &mut RecordInProgress, text: &[u8], on: &mut dyn FnMut(Opened<'_>)) {
        match record.kind {
            Some(Kind::Message) => {
                let mut messages = std::mem::take(&mut self.messages);
                messages.read(text, &mut |message| self.message(message, on));
                self.messages = messages;
            }
            Some(Kind::Alert) => record.alert.extend(text.iter().take(3)),
            Some(Kind::Data) | None if text.is_empty() => {}
            Some(Kind::Data) | None => on(Opened::Data(text)),
        }
    }

    fn message(&mut self, message: Message<'_>, on: &mut dyn FnMut(Opened<'_>)) {
        let Message { kind, length, body } = message;
        match kind {
            MessageType::ENCRYPTED_EXTENSIONS if self.phase == Phase::Handshake => {
                let extensions = EncryptedExtensions::read(body);
                self.is_early_rejected |= !extensions.accepts_early_data;
                on(Opened::Extensions(extensions));
            }
            MessageType::FINISHED if self.phase == Phase::Handshake => self.next = Some(Phase::Application),
            MessageType::END_OF_EARLY_DATA if self.phase == Phase::Early => {
                self.next = Some(Phase::Handshake)
            }
            MessageType::KEY_UPDATE if self.version() == Some(Version::Tls13) => {
                self.next = Some(Phase::Application);
            }
            _ => {}
        }
        on(Opened::Message { kind, length });
    }

    /// Skips bytes of an encrypted record.
    fn missing(&mut self, missing: usize, on: &mut dyn FnMut(Opened<'_>)) {
        let Some(mut record) = self.record.take() else { return };
        let Some(Layout { explicit, text }) = self.layout(record.header.length) else { return };
        let (begin, end) = (record.at, record.at + missing);
        record.at = end;
        if let Some(keys) = self.keys.clone().filter(|_| begin >= explicit) {
            self.open(&mut record, &keys, text);
        }
        // The type of the content, its last byte, is no data.
        let has_type = self.version() != Some(Version::Tls12);
        let data_end = explicit + text - usize::from(has_type && text > 0);
        let lost = end.min(data_end).saturating_sub(begin.max(explicit));
        if let Some(open) = &mut record.open {
            open.skip(end.min(explicit + text).saturating_sub(begin));
        }
        let held = std::mem::take(&mut record.held);
        let kind = *record.kind.get_or_insert(Kind::Data);
        self.content(&mut record, &held, on);
        match kind {
            Kind::Data if lost > 0 => on(Opened::Missing(lost as u64)),
            Kind::Message if lost > 0 => {
                self.messages.miss(u32::try_from(lost).unwrap_or(u32::MAX));
                if self.messages.is_lost() && self.phase == Phase::Handshake {
                    self.stop(Unread::RecordsMissing);
                }
            }
            Kind::Data | Kind::Message | Kind::Alert => {}
        }
        self.record = self.unread.is_none().then_some(record);
    }

    /// Ends a record: compares its tag, and changes the keys if its messages do.
    fn ends(&mut self, header: Header, on: &mut dyn FnMut(Opened<'_>)) {
        let Some(record) = self.record.take() else {
            let changes =
                header.content == ContentType::ChangeCipherSpec && self.version() == Some(Version::Tls12);
            return match self.phase {
                Phase::Application if changes => self.stop(Unread::Renegotiated),
                _ if changes => self.enter(Phase::Application),
                _ => {}
            };
        };
        let RecordInProgress { open, tag, alert, .. } = record;
        let tag = tag.first_chunk::<TAG_BYTES>();
        if let (Some(keys), Some(open), Some(tag)) = (&self.keys, open, tag) {
            match open.finish(keys, tag) {
                Some(false) => return self.stop(Unread::WrongSecret),
                Some(true) => self.has_read = true,
                None => {}
            }
        }
        if self.phase == Phase::Handshake && self.messages.is_lost() {
            return self.stop(Unread::WrongSecret);
        }
        if self.messages.is_lost() {
            self.messages = MessageReader::default();
        }
        Alert::read(&alert).into_iter().for_each(|alert| on(Opened::Alert(alert)));
        self.sequence += 1;
        /// End Of Early Data, its type and its tag: its record shows by its size where its key is unknown.
        const END_OF_EARLY_DATA: u16 = 4 + 1 + 16;
        if self.phase == Phase::Early && self.keys.is_none() && header.length == END_OF_EARLY_DATA {
            self.next = Some(Phase::Handshake);
        }
        match self.next.take() {
            Some(Phase::Application) if self.phase == Phase::Application => self.update_keys(),
            Some(phase) => self.enter(phase),
            None => {}
        }
    }

    /// Changes to the keys of the next secret (RFC 8446, section 7.2).
    fn update_keys(&mut self) {
        let next = self.keys_of.clone().zip(self.secret).and_then(|(of, secret)| {
            let next = next_secret(of.hash, &secret)?;
            Some((next, RecordKeys::of_secret(of.algorithm, of.hash, &next)?))
        });
        let Some((secret, keys)) = next else { return self.stop(Unread::WrongSecret) };
        (self.secret, self.keys, self.sequence) = (Some(secret), Some(Arc::new(keys)), 0);
    }
}

/// Returns the type of a record's content by its first bytes, before its last byte shows it: session tickets, Key Update and alerts
/// have lengths that fit the record. `None` if more bytes are needed.
fn begun_kind(text: &[u8], length: u16) -> Option<Kind> {
    const HEADER: usize = 4;
    const ALERT: usize = 2;
    let content = usize::from(length).saturating_sub(TAG_BYTES + 1);
    let fits = |high: u8, low: u8| HEADER + usize::from(u16::from_be_bytes([high, low])) <= content;
    match text {
        &[4, 0, high, low, ..] if fits(high, low) => Some(Kind::Message),
        [5, 0, 0, 0, ..] if content == HEADER => Some(Kind::Message),
        [24, 0, 0, 1, ..] if content == HEADER + 1 => Some(Kind::Message),
        [1 | 2, ..] if content == ALERT => Some(Kind::Alert),
        [4 | 5 | 24] | [4 | 5 | 24, 0] | [4 | 5 | 24, 0, _] => None,
        _ => Some(Kind::Data),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the application data of a record with this text, sealed and opened in pieces of `size` bytes.
    pub(in super::super) fn contents(keys: &RecordKeys, text: &[u8], size: usize) -> Vec<u8> {
        // The key stream of encryption is that of decryption.
        let sealed = OpenRecord::new(keys, 0, &[], &[], false).read(keys, text);
        let mut half = Half { has_tags: false, phase: Phase::Application, ..Half::new(Sender::Server) };
        let header = Header {
            content: ContentType::ApplicationData,
            length: u16::try_from(text.len() + TAG_BYTES).unwrap(),
        };
        let mut record = RecordInProgress {
            header,
            at: 0,
            explicit: Vec::new(),
            open: Some(OpenRecord::new(keys, 0, &[], &[], false)),
            tag: Vec::new(),
            kind: None,
            held: Vec::new(),
            alert: Vec::new(),
        };
        let mut data = Vec::new();
        let mut at = 0;
        for piece in sealed.chunks(size) {
            at += piece.len();
            let plain = record.open.as_mut().unwrap().read(keys, piece);
            half.text(&mut record, plain, at == text.len(), size >= text.len(), &mut |opened| match opened {
                Opened::Data(part) => data.extend(part),
                other => panic!("{other:?}"),
            });
        }
        data
    }
}
