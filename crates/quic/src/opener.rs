//! Both directions of a connection with its secrets: datagrams in, the frames of their packets out.
//!
//! Initial packets are opened without a key log. Each direction has its own connection IDs: the length of those in short headers
//! is known from long ones and from NEW_CONNECTION_ID.

use tls::decrypt::{Sender, Unread};
use tls::keylog::{KeyLog, Secret, Secrets};
use tls::message::{Message, MessageType};
use tls::packet_keys::{PacketKeys, next_secret};
use tls::session::quic::parameters;
use tls::suite::Suite;
use tls::{ClientHello, ServerHello};

use crate::frame::{Frame, frames};
use crate::handshake::HandshakeBytes;
use crate::key::{Protection, labels, unmask};
use crate::packet::{Packet, PacketType, packets_of_connection, short_packet};
use crate::parameters::Parameters;

/// A decrypted packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedPacket {
    /// Its type.
    pub kind: PacketType,
    /// Its number.
    pub number: u64,
    /// Its frames ([`frames`]).
    pub frames: Vec<u8>,
    /// Its bytes on the wire.
    pub length: usize,
}

/// Decryption of one connection.
#[derive(Debug, Default)]
pub struct Opener {
    version: u32,
    /// Connection ID from which the keys of Initial packets follow.
    key_id: Vec<u8>,
    secrets: Option<Secrets>,
    client: Half,
    server: Half,
    offer: Option<Box<ClientHello>>,
    choice: Option<Box<ServerHello>>,
    unread: Option<Unread>,
    has_read: bool,
}

/// Keys of one sender's packets, and their numbers.
#[derive(Debug, Default)]
struct Half {
    initial: Option<Protection>,
    /// Keys of early data, whose cipher the ticket decided, and before the Server Hello, which may be lost, all keys: each that fits
    /// the secret, until one opens a packet.
    early: Vec<Protection>,
    handshake: Vec<Protection>,
    data: Vec<DataKeys>,
    /// The largest number in each space: Initial, Handshake, application data.
    largest: [Option<u64>; 3],
    /// Lengths of the connection IDs by which its peer addresses it.
    id_lengths: Vec<usize>,
    hellos: HandshakeBytes,
    extensions: HandshakeBytes,
    parameters: Option<Parameters>,
}

/// Keys of application data, which each side may update (RFC 9001, section 6).
#[derive(Debug)]
struct DataKeys {
    suite: Suite,
    version: u32,
    /// Its packet keys are those of the current phase.
    current: Protection,
    phase: bool,
    previous: Option<PacketKeys>,
    /// Secret of the next phase, and its keys.
    next: Option<(Secret, PacketKeys)>,
}

/// Maximum number of lengths of connection IDs: one is usual.
const MAX_ID_LENGTHS: usize = 4;
/// Bit of a short header that changes with the keys.
const KEY_PHASE: u8 = 0x04;

impl Opener {
    /// Reads a datagram of `sender`. Packets for which no key is known are left out. Returns whether any packet was opened.
    pub fn read(
        &mut self,
        sender: Sender,
        datagram: &[u8],
        log: Option<&KeyLog>,
        on: &mut dyn FnMut(OpenedPacket),
    ) -> bool {
        let mut has_opened = false;
        for packet in packets_of_connection(datagram) {
            self.observe_header(sender, &packet);
            let length = packet.bytes.len();
            let Some((number, frames)) = self.open(sender, &packet) else { continue };
            has_opened = true;
            self.observe_frames(sender, packet.kind, &frames, log);
            on(OpenedPacket { kind: packet.kind, number, frames, length });
        }
        has_opened
    }

    /// Returns why application data is not read; `None` while it is, or may be.
    pub fn unread(&self) -> Option<Unread> {
        self.unread
    }

    /// Returns whether application data was decrypted.
    pub const fn has_read(&self) -> bool {
        self.has_read
    }

    /// Returns the Client Hello.
    pub fn client_hello(&self) -> Option<&ClientHello> {
        self.offer.as_deref()
    }

    /// Returns the transport parameters of a sender, once they are known.
    pub const fn parameters(&self, sender: Sender) -> Option<&Parameters> {
        match sender {
            Sender::Client => self.client.parameters.as_ref(),
            Sender::Server => self.server.parameters.as_ref(),
        }
    }

    const fn half(&mut self, sender: Sender) -> &mut Half {
        match sender {
            Sender::Client => &mut self.client,
            Sender::Server => &mut self.server,
        }
    }

    /// Handles what a header shows: the keys of Initial packets, and the lengths of connection IDs.
    fn observe_header(&mut self, sender: Sender, packet: &Packet<'_>) {
        match packet.kind {
            PacketType::Retry => self.rekey(packet.source),
            PacketType::VersionNegotiation => self.rekey(&[]),
            PacketType::Initial | PacketType::ZeroRtt | PacketType::Handshake => {
                let length = packet.source.len();
                self.half(sender).note_id(length);
                let is_first = sender == Sender::Client && packet.kind == PacketType::Initial;
                if is_first && (self.key_id.is_empty() || self.version != packet.version) {
                    self.version = packet.version;
                    let id = if self.key_id.is_empty() {
                        packet.destination.to_vec()
                    } else {
                        std::mem::take(&mut self.key_id)
                    };
                    self.rekey(&id);
                }
            }
            PacketType::OneRtt => {}
        }
    }

    fn rekey(&mut self, id: &[u8]) {
        self.key_id = id.to_vec();
        let initial = |sender| Protection::initial(self.version, id, sender).filter(|_| !id.is_empty());
        (self.client.initial, self.server.initial) = (initial(Sender::Client), initial(Sender::Server));
    }

    fn open(&mut self, sender: Sender, packet: &Packet<'_>) -> Option<(u64, Vec<u8>)> {
        let (half, lengths) = match sender {
            Sender::Client => (&mut self.client, &self.server.id_lengths),
            Sender::Server => (&mut self.server, &self.client.id_lengths),
        };
        let space = match packet.kind {
            PacketType::Initial => 0,
            PacketType::Handshake => 1,
            PacketType::ZeroRtt | PacketType::OneRtt => 2,
            PacketType::Retry | PacketType::VersionNegotiation => return None,
        };
        let largest = half.largest[space];
        let (number, frames) = match packet.kind {
            PacketType::Initial => half.initial.as_ref()?.open(packet, largest)?,
            PacketType::Handshake => open_with(&mut half.handshake, |keys| keys.open(packet, largest))?,
            PacketType::ZeroRtt => open_with(&mut half.early, |keys| keys.open(packet, largest))?,
            _ => lengths.iter().find_map(|length| {
                let packet = short_packet(packet.bytes, *length)?;
                open_with(&mut half.data, |keys| keys.open(&packet, largest))
            })?,
        };
        half.largest[space] = Some(largest.map_or(number, |largest| largest.max(number)));
        self.has_read |= space == 2;
        Some((number, frames))
    }

    /// Handles the frames of a packet that concern decryption.
    fn observe_frames(&mut self, sender: Sender, kind: PacketType, packet: &[u8], log: Option<&KeyLog>) {
        for frame in frames(packet) {
            match frame {
                Frame::NewConnectionId(new) => {
                    let length = new.id.len();
                    self.half(sender).note_id(length);
                }
                Frame::Crypto(offset, bytes) => self.handshake_bytes(sender, kind, offset, bytes, log),
                _ => {}
            }
        }
    }

    fn handshake_bytes(
        &mut self,
        sender: Sender,
        kind: PacketType,
        offset: u64,
        bytes: &[u8],
        log: Option<&KeyLog>,
    ) {
        let half = self.half(sender);
        match kind {
            PacketType::Initial if half.hellos.add(offset, bytes) => {
                let mut read = None;
                half.hellos.messages(&mut |message| read = Hello::read(&message).or(read.take()));
                match read {
                    Some(Hello::Client(hello, parameters)) => self.is_offered(hello, parameters, log),
                    Some(Hello::Server(hello)) => self.is_chosen(hello),
                    None => {}
                }
            }
            PacketType::Handshake if half.parameters.is_none() && half.extensions.add(offset, bytes) => {
                let mut read = None;
                half.extensions.messages(&mut |Message { kind, length: _, body }| {
                    if kind == MessageType::ENCRYPTED_EXTENSIONS {
                        read = parameters(kind.0, body).map(Parameters::read);
                    }
                });
                half.parameters = read;
            }
            _ => {}
        }
    }

    fn is_offered(&mut self, hello: Box<ClientHello>, parameters: Option<Parameters>, log: Option<&KeyLog>) {
        self.client.parameters = parameters;
        self.secrets = log.and_then(|log| log.secrets(&hello.random).copied());
        self.unread = match (log, &self.secrets) {
            (Some(_), None) => Some(Unread::NotLogged),
            _ => None,
        };
        let suites = [0x1301, 0x1302, 0x1303].map(Suite);
        let secrets = self.secrets.unwrap_or_default();
        self.client.early = keys(&suites, secrets.client_early, self.version);
        self.set_keys(&suites, &secrets);
        self.offer = Some(hello);
    }

    fn is_chosen(&mut self, hello: Box<ServerHello>) {
        if hello.is_retry || self.choice.is_some() {
            return;
        }
        let suite = hello.suite;
        self.choice = Some(hello);
        let Some(secrets) = self.secrets else { return };
        self.set_keys(&[suite], &secrets);
        if self.client.data.is_empty() || self.server.data.is_empty() {
            let is_known = secrets.client_traffic.is_some() && secrets.server_traffic.is_some();
            self.unread = Some(if is_known { Unread::Cipher(suite.0) } else { Unread::SecretMissing });
        }
    }

    /// Sets the keys of the handshake and of application data for each of these suites.
    fn set_keys(&mut self, suites: &[Suite], secrets: &Secrets) {
        let version = self.version;
        let data = |secret: Option<Secret>| {
            suites.iter().filter_map(|suite| DataKeys::new(*suite, version, &secret?)).collect()
        };
        self.client.handshake = keys(suites, secrets.client_handshake, version);
        self.server.handshake = keys(suites, secrets.server_handshake, version);
        (self.client.data, self.server.data) = (data(secrets.client_traffic), data(secrets.server_traffic));
    }
}

/// Returns the keys of each suite that fits a secret.
fn keys(suites: &[Suite], secret: Option<Secret>, version: u32) -> Vec<Protection> {
    suites.iter().filter_map(|suite| Protection::new(*suite, &secret?, version)).collect()
}

/// Opens a packet with the first keys that fit; the others are none of its sender.
fn open_with<K, T>(keys: &mut Vec<K>, open: impl FnMut(&mut K) -> Option<T>) -> Option<T> {
    let (index, opened) =
        keys.iter_mut().map(open).enumerate().find_map(|(index, opened)| Some((index, opened?)))?;
    keys.swap(0, index);
    keys.truncate(1);
    Some(opened)
}

/// A hello of either side; with that of a client, its transport parameters.
enum Hello {
    Client(Box<ClientHello>, Option<Parameters>),
    Server(Box<ServerHello>),
}

impl Hello {
    fn read(message: &Message<'_>) -> Option<Self> {
        let Message { kind, length: _, body } = *message;
        match kind {
            MessageType::CLIENT_HELLO => {
                let parameters = parameters(kind.0, body).map(Parameters::read);
                Some(Self::Client(Box::new(ClientHello::read(body)?), parameters))
            }
            MessageType::SERVER_HELLO => Some(Self::Server(Box::new(ServerHello::read(body)?))),
            _ => None,
        }
    }
}

impl Half {
    fn note_id(&mut self, length: usize) {
        if !self.id_lengths.contains(&length) && self.id_lengths.len() < MAX_ID_LENGTHS {
            self.id_lengths.push(length);
        }
    }
}

impl DataKeys {
    fn new(suite: Suite, version: u32, secret: &Secret) -> Option<Self> {
        let current = Protection::new(suite, secret, version)?;
        let next = Self::after(suite, version, secret);
        Some(Self { suite, version, current, phase: false, previous: None, next })
    }

    fn after(suite: Suite, version: u32, secret: &Secret) -> Option<(Secret, PacketKeys)> {
        let next = next_secret(suite, secret, labels(version))?;
        Some((next, PacketKeys::new(suite, &next, labels(version))?))
    }

    /// Opens a packet of the current phase, of the one before, or of the next, which begins then.
    fn open(&mut self, packet: &Packet<'_>, largest: Option<u64>) -> Option<(u64, Vec<u8>)> {
        let unmasked = unmask(&self.current.header, packet)?;
        let number = unmasked.number(largest);
        let is_current = (unmasked.header.first()? & KEY_PHASE != 0) == self.phase;
        let opens = |keys: &PacketKeys| keys.open(number, &unmasked.header, unmasked.sealed);
        if is_current {
            return Some((number, opens(&self.current.packet)?));
        }
        if let Some(frames) = self.previous.as_ref().and_then(opens) {
            return Some((number, frames));
        }
        let (secret, keys) = self.next.as_ref()?;
        let (frames, after) = (opens(keys)?, Self::after(self.suite, self.version, secret));
        let (_, keys) = std::mem::replace(&mut self.next, after)?;
        self.previous = Some(std::mem::replace(&mut self.current.packet, keys));
        self.phase = !self.phase;
        Some((number, frames))
    }
}
