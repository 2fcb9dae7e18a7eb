//! TLS 1.3 of QUIC that only has sizes: messages of `tls::session`, tags of zeros, headers in the clear.
//!
//! It protects nothing. A packet key adds and removes [`TAG_BYTES`]; every packet is authentic, because no link alters one.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use tls::session::quic::{self as messages, ENCRYPTED_EXTENSIONS, END, HELLO, SERVER_HELLO};
use tls::session::{Handshake, SessionConfig};

use crate::varint;

/// Tag of AES-GCM.
const TAG_BYTES: usize = 16;
/// Signature of a reset or token key.
const SIGNATURE_BYTES: usize = 32;

/// Settings of the sessions of one end.
#[derive(Clone, Debug)]
pub(crate) struct NullTls {
    pub(crate) config: SessionConfig,
    /// Transport parameters of servers that a client remembers from earlier connections.
    pub(crate) remembered: Vec<u8>,
}

/// Keys without ciphers. `KEEPS_LENGTH`: the length of a payload is read, as a server counts its client's first packet, without the
/// tag, against its limit before validation.
struct Null<const KEEPS_LENGTH: bool>;

const NULL: Null<false> = Null;

impl HeaderKey for Null<false> {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    /// As of AES and ChaCha20 (RFC 9001, section 5.4).
    fn sample_size(&self) -> usize {
        16
    }
}

impl<const KEEPS_LENGTH: bool> PacketKey for Null<KEEPS_LENGTH> {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        payload.truncate(payload.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?);
        let length = without_padding(payload);
        if KEEPS_LENGTH {
            lengthen_padding(&mut payload[length..]);
        } else {
            payload.truncate(length);
        }
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Length of a packet's frames without PADDING at the end, which the library would read byte by byte: that of Initial packets, and
/// of probes for larger datagrams. Padding behind other frames than theirs stays (RFC 9000, section 19).
fn without_padding(frames: &[u8]) -> usize {
    let mut rest = frames;
    while let Some((kind, after)) = rest.split_first()
        && frames.ends_with(&[PADDING])
    {
        let next = match *kind {
            PADDING => match end_of_padding(rest) {
                Some(end) => rest.get(end..),
                // A packet has at least one frame.
                None => return (frames.len() - rest.len()).max(1),
            },
            PING | IMMEDIATE_ACK => Some(after),
            ACK => skip_acknowledgement(after),
            CRYPTO => skip_crypto(after),
            _ => None,
        };
        match next {
            Some(after) => rest = after,
            None => break,
        }
    }
    frames.len()
}

/// Place of the first byte that is not PADDING.
fn end_of_padding(frames: &[u8]) -> Option<usize> {
    // Many bytes at a time: there are a thousand.
    let (chunks, _) = frames.as_chunks::<64>();
    let start = 64 * chunks.iter().take_while(|chunk| **chunk == [PADDING; 64]).count();
    frames[start..].iter().position(|byte| *byte != PADDING).map(|place| start + place)
}

/// Replaces bytes of PADDING by as few frames as take their place: a type may fill eight bytes (section 16).
fn lengthen_padding(padding: &mut [u8]) {
    const LONGEST: [u8; 8] = [0xc0, 0, 0, 0, 0, 0, 0, 0];
    padding.as_chunks_mut().0.fill(LONGEST);
}

const PADDING: u8 = 0;
const PING: u8 = 1;
const ACK: u8 = 2;
const CRYPTO: u8 = 6;
/// Of a probe for larger datagrams (draft-ietf-quic-ack-frequency, section 5).
const IMMEDIATE_ACK: u8 = 0x1f;

fn skip_acknowledgement(frame: &[u8]) -> Option<&[u8]> {
    let mut rest = frame;
    let [_largest, _delay, ranges, _first] = [(); 4].map(|()| varint::take(&mut rest));
    for _ in 0..ranges?.checked_mul(2)? {
        varint::take(&mut rest)?;
    }
    Some(rest)
}

fn skip_crypto(frame: &[u8]) -> Option<&[u8]> {
    let mut rest = frame;
    let _offset = varint::take(&mut rest)?;
    let length = usize::try_from(varint::take(&mut rest)?).ok()?;
    rest.get(length..)
}

fn keys() -> Keys {
    Keys { header: KeyPair { local: Box::new(NULL), remote: Box::new(NULL) }, packet: packet_keys() }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(NULL), remote: Box::new(NULL) }
}

/// Key of stateless resets and of tokens: a sum instead of a signature.
pub(crate) struct NullKey;

impl HmacKey for NullKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        signature.fill(0);
        for (index, byte) in data.iter().enumerate() {
            let place = index % signature.len().max(1);
            signature[place] = signature[place].wrapping_mul(31).wrapping_add(*byte);
        }
    }

    fn signature_len(&self) -> usize {
        SIGNATURE_BYTES
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        if expected == signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for NullKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NullKey {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.extend([0; TAG_BYTES]);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}

impl ClientConfig for NullTls {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let config = SessionConfig { server_name: server_name.to_owned(), ..self.config.clone() };
        let mut session = NullSession::new(config, Side::Client, parameters);
        if session.config.handshake == Handshake::EarlyData {
            session.peer = TransportParameters::read(Side::Client, &mut &self.remembered[..]).ok();
        }
        Ok(Box::new(session))
    }
}

impl ServerConfig for NullTls {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        let mut keys = keys();
        keys.packet.remote = Box::new(Null::<true>);
        Ok(keys)
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; TAG_BYTES]
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullSession::new(self.config.clone(), Side::Server, parameters))
    }
}

/// Next messages of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A client's hello.
    Hello,
    /// Keys of the handshake; before them the server's hello.
    HandshakeKeys,
    /// Keys of data; before them the server's flight, or the client's Finished.
    DataKeys,
    /// The server's tickets.
    Tickets,
}

/// TLS of a connection.
struct NullSession {
    config: SessionConfig,
    side: Side,
    /// Own transport parameters.
    parameters: Vec<u8>,
    /// The peer's; before the handshake, those that a client remembers.
    peer: Option<TransportParameters>,
    /// Bytes of messages that have not arrived completely.
    begun: Vec<u8>,
    next: Option<Step>,
    is_handshaking: bool,
}

impl NullSession {
    fn new(config: SessionConfig, side: Side, parameters: &TransportParameters) -> Self {
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        let next = match side {
            Side::Client => Some(Step::Hello),
            Side::Server => None,
        };
        Self { config, side, parameters: encoded, peer: None, begun: Vec::new(), next, is_handshaking: true }
    }

    /// Handles a message; returns whether it is the one with the peer's parameters.
    fn message(&mut self, kind: u8, body: &[u8]) -> Result<bool, TransportError> {
        match (self.side, kind) {
            (Side::Server, HELLO) => {
                self.take_parameters(kind, body)?;
                self.next = Some(Step::HandshakeKeys);
                return Ok(true);
            }
            (Side::Server, END) => {
                self.is_handshaking = false;
                self.next = Some(Step::Tickets);
            }
            (Side::Client, SERVER_HELLO) => self.next = Some(Step::HandshakeKeys),
            (Side::Client, ENCRYPTED_EXTENSIONS) => {
                self.take_parameters(kind, body)?;
                return Ok(true);
            }
            (Side::Client, END) => {
                self.is_handshaking = false;
                self.next = Some(Step::DataKeys);
            }
            _ => {}
        }
        Ok(false)
    }

    fn take_parameters(&mut self, kind: u8, body: &[u8]) -> Result<(), TransportError> {
        let mut parameters = messages::parameters(kind, body).ok_or_else(|| missing("missing"))?;
        let read = TransportParameters::read(self.side, &mut parameters);
        self.peer = Some(read.map_err(|_| missing("invalid"))?);
        Ok(())
    }

    fn has_early_data(&self) -> bool {
        self.config.handshake == Handshake::EarlyData && self.peer.is_some()
    }
}

/// Alert 109, missing extension (RFC 9001, section 8.2).
fn missing(what: &str) -> TransportError {
    let code = TransportErrorCode::crypto(109);
    TransportError { code, frame: None, reason: format!("transport parameters are {what}") }
}

impl Session for NullSession {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.has_early_data()
            .then(|| (Box::new(NULL) as Box<dyn HeaderKey>, Box::new(NULL) as Box<dyn PacketKey>))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(self.has_early_data())
    }

    fn is_handshaking(&self) -> bool {
        self.is_handshaking
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.begun.extend_from_slice(bytes);
        let (begun, mut has_parameters) = (std::mem::take(&mut self.begun), false);
        let mut rest = &begun[..];
        while let Some((kind, body, after)) = messages::split_message(rest) {
            has_parameters |= self.message(kind, body)?;
            rest = after;
        }
        self.begun = rest.to_vec();
        Ok(has_parameters)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, into: &mut Vec<u8>) -> Option<Keys> {
        let Self { config, parameters, .. } = self;
        let (next, has_keys) = match (self.side, self.next?) {
            (_, Step::Hello) => {
                into.extend(messages::client_hello(config, parameters));
                (None, false)
            }
            (Side::Server, Step::HandshakeKeys) => {
                into.extend(messages::server_hello(config));
                (Some(Step::DataKeys), true)
            }
            (Side::Client, Step::HandshakeKeys) => (None, true),
            (Side::Server, Step::DataKeys) => {
                into.extend(messages::server_flight(config, parameters));
                (None, true)
            }
            (Side::Client, Step::DataKeys) => {
                into.extend(messages::finished());
                (None, true)
            }
            (_, Step::Tickets) => {
                into.extend(messages::tickets(config));
                (None, false)
            }
        };
        self.next = next;
        has_keys.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_at_the_end_is_removed_and_zeros_of_frames_are_not() {
        let padded = |frames: &[u8]| without_padding(&[frames, &[0; 900]].concat());
        assert_eq!(padded(&[]), 1);
        assert_eq!((padded(&[PING]), padded(&[PING, IMMEDIATE_ACK])), (1, 2));
        // One range beyond the first; data that ends with zeros.
        let (acknowledgement, crypto) = ([ACK, 9, 0, 1, 2, 3, 1], [CRYPTO, 0, 3, 7, 0, 0]);
        assert_eq!(padded(&acknowledgement), 7);
        assert_eq!(padded(&[&acknowledgement[..], &crypto].concat()), 13);
        assert_eq!(padded(&[0, 0, PING]), 3);
        // STREAM to the end of the packet, and a frame that is cut.
        assert_eq!(padded(&[8, 4]), 902);
        assert_eq!(without_padding(&[CRYPTO, 0, 9, 0, 0]), 5);
        assert_eq!(without_padding(&[PING, 8, 0, 0]), 4);
    }

    #[test]
    fn padding_of_a_first_packet_keeps_its_length_in_fewer_frames() {
        let mut payload = BytesMut::from(&[&[PING][..], &[0; 21], &[7; TAG_BYTES]].concat()[..]);
        PacketKey::decrypt(&Null::<true>, 0, &[], &mut payload).unwrap();
        assert_eq!(payload.len(), 22);
        let (mut rest, mut frames) = (&payload[1..], 0);
        while let Some(kind) = varint::take(&mut rest) {
            assert_eq!(kind, u64::from(PADDING));
            frames += 1;
        }
        assert_eq!((frames, rest.len()), (2 + 5, 0));
        let mut payload = BytesMut::from(&[&[PING][..], &[0; 21], &[7; TAG_BYTES]].concat()[..]);
        PacketKey::decrypt(&NULL, 0, &[], &mut payload).unwrap();
        assert_eq!(payload[..], [PING]);
    }
}
