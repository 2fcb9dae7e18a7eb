//! Flights of the handshake as bytes: hellos that can be read, and everything else of the right size.
//!
//! The client is Chromium, the server OpenSSL. Keys, signatures and certificates are zeros.

use super::{Handshake, SessionConfig};
use crate::record::ContentType;
use crate::suite::Version;

/// TLS_AES_128_GCM_SHA256.
pub(super) const SUITE_13: u16 = 0x1301;
/// TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.
const SUITE_12: u16 = 0xc02f;
pub(super) const X25519MLKEM768: u16 = 4_588;
pub(super) const X25519: u16 = 29;
/// Key shares of the hybrid group, client and server: draft-ietf-tls-ecdhe-mlkem, section 3.
pub(super) const HYBRID_CLIENT_BYTES: usize = 1_184 + 32;
const HYBRID_SERVER_BYTES: usize = 1_088 + 32;
/// A signature by RSA with 2,048 bits.
const SIGNATURE_BYTES: usize = 256;
/// Hash of the suites.
pub(super) const HASH_BYTES: usize = 32;
/// A ticket of OpenSSL 3 without a client's certificate: TLS 1.3 and 1.2.
pub(super) const TICKET_13_BYTES: usize = 208;
const TICKET_12_BYTES: usize = 192;
/// Finished of TLS 1.2 (RFC 5246, section 7.4.9).
const FINISHED_12_BYTES: usize = 12;
/// Payload of an Encrypted Client Hello that only looks like one: Chromium sends 144 to 240 bytes, in steps of 32.
const ECH_PAYLOAD_BYTES: usize = 176;
/// Certificates of a chain: the server's, and one that signed it.
const CERTIFICATES: usize = 2;
/// Signature algorithms that the client offers.
pub(super) const SIGNATURES: [u16; 8] = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];

/// Message types that are only written.
pub(super) const END_OF_EARLY_DATA: u8 = 5;
pub(super) const FINISHED: u8 = 20;
pub(super) const CLIENT_HELLO: u8 = 1;
pub(super) const SERVER_HELLO_DONE: u8 = 14;

/// Tag of AES-GCM.
pub(super) const TAG_BYTES: usize = 16;
/// The explicit nonce of TLS 1.2.
pub(super) const NONCE_BYTES: usize = 8;
/// Maximum plaintext of a record.
pub(super) const MAX_PLAINTEXT: usize = 16_384;

/// A list with a length of two bytes before it.
pub(super) fn vector16(content: &[u8]) -> Vec<u8> {
    [&number16(content.len())[..], content].concat()
}

pub(super) fn vector8(content: &[u8]) -> Vec<u8> {
    [&[u8::try_from(content.len()).unwrap_or(u8::MAX)][..], content].concat()
}

fn number16(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes()
}

pub(super) fn numbers(list: &[u16]) -> Vec<u8> {
    list.iter().flat_map(|number| number.to_be_bytes()).collect()
}

pub(super) fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector16(content)].concat()
}

/// A handshake message.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[kind, a, b, c][..], body].concat()
}

/// A record in the clear.
pub(super) fn clear_record(content: ContentType, body: &[u8]) -> Vec<u8> {
    let legacy = 0x0303_u16;
    [&[content.number()][..], &legacy.to_be_bytes(), &vector16(body)].concat()
}

/// Appends a record as long as an encrypted one: in TLS 1.3 content, its type and a tag; in TLS 1.2 a nonce, content, a tag.
pub(super) fn protected_record(version: Version, content: ContentType, plaintext: &[u8], into: &mut Vec<u8>) {
    let (outer, extra) = match version {
        Version::Tls13 => (ContentType::ApplicationData, 1 + TAG_BYTES),
        Version::Tls12 | Version::Old => (content, NONCE_BYTES + TAG_BYTES),
    };
    into.extend([outer.number(), 3, 3]);
    into.extend(number16(plaintext.len() + extra));
    match version {
        Version::Tls13 => {
            into.extend_from_slice(plaintext);
            into.push(content.number());
        }
        Version::Tls12 | Version::Old => {
            into.extend([0; NONCE_BYTES]);
            into.extend_from_slice(plaintext);
        }
    }
    into.extend([0; TAG_BYTES]);
}

/// Change Cipher Spec, which TLS 1.3 sends for middleboxes.
pub(super) fn change_cipher_spec() -> Vec<u8> {
    clear_record(ContentType::ChangeCipherSpec, &[1])
}

/// A key share of this group.
pub(super) fn share(group: u16, bytes: usize) -> Vec<u8> {
    [&group.to_be_bytes()[..], &vector16(&vec![1; bytes])].concat()
}

/// The extension that only looks like an Encrypted Client Hello.
pub(super) fn encrypted_client_hello() -> Vec<u8> {
    let content = [&[0, 0, 1, 0, 1, 7][..], &vector16(&[1; 32]), &vector16(&[1; ECH_PAYLOAD_BYTES])];
    extension(0xfe0d, &content.concat())
}

/// Extensions of a client that resumes, which come last.
pub(super) fn ticket_extensions(handshake: Handshake) -> Vec<u8> {
    let mut extensions = Vec::new();
    if handshake == Handshake::EarlyData {
        extensions.extend(extension(42, &[]));
    }
    if handshake.is_resumed() {
        let identity = [&vector16(&[1; TICKET_13_BYTES])[..], &[0; 4]].concat();
        let binders = vector16(&vector8(&[1; HASH_BYTES]));
        extensions.extend(extension(41, &[vector16(&identity), binders].concat()));
    }
    extensions
}

/// The Client Hello of Chromium (net/socket, third_party/boringssl): GREASE, a hybrid key share, an Encrypted Client Hello
/// that only looks like one.
pub(super) fn client_hello(config: &SessionConfig) -> Vec<u8> {
    const GREASE: u16 = 0x0a0a;
    const SUITES: [u16; 16] = [
        GREASE, SUITE_13, 0x1302, 0x1303, 0xc02b, SUITE_12, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014,
        0x009c, 0x009d, 0x002f, 0x0035,
    ];
    let shares = [share(GREASE, 1), share(X25519MLKEM768, HYBRID_CLIENT_BYTES), share(X25519, 32)].concat();
    let protocols: Vec<u8> = match config.protocol {
        "h2" => [vector8(b"h2"), vector8(b"http/1.1")].concat(),
        protocol => vector8(protocol.as_bytes()),
    };
    let server_name = vector16(&[&[0][..], &vector16(config.server_name.as_bytes())].concat());
    let mut extensions = [
        extension(GREASE, &[]),
        extension(0, &server_name),
        extension(23, &[]),
        extension(0xff01, &[0]),
        extension(10, &vector16(&numbers(&[GREASE, X25519MLKEM768, X25519, 23, 24]))),
        extension(11, &[1, 0]),
        extension(35, &[]),
        extension(16, &vector16(&protocols)),
        extension(5, &[1, 0, 0, 0, 0]),
        extension(13, &vector16(&numbers(&SIGNATURES))),
        extension(18, &[]),
        extension(51, &vector16(&shares)),
        extension(45, &[1, 1]),
        extension(43, &vector8(&numbers(&[GREASE, 0x0304, 0x0303]))),
        extension(27, &[2, 0, 2]),
        extension(17_613, &vector16(&vector8(b"h2"))),
        encrypted_client_hello(),
        extension(GREASE + 0x1010, &[0]),
    ]
    .concat();
    extensions.extend(ticket_extensions(config.handshake));
    let body = [
        &[3, 3][..],
        &[1; 32],
        &vector8(&[1; 32]),
        &vector16(&numbers(&SUITES)),
        &[1, 0],
        &vector16(&extensions),
    ];
    message(CLIENT_HELLO, &body.concat())
}

/// The Server Hello, which repeats the client's legacy session.
pub(super) fn server_hello(config: &SessionConfig, session: &[u8]) -> Vec<u8> {
    let (suite, extensions) = match config.handshake {
        Handshake::Tls12 => {
            let protocol = extension(16, &vector16(&vector8(config.protocol.as_bytes())));
            let empty = [0xff01, 23, 35].map(|kind| extension(kind, if kind == 0xff01 { &[0] } else { &[] }));
            (SUITE_12, [empty.concat(), protocol].concat())
        }
        Handshake::Full | Handshake::Resumed | Handshake::EarlyData => {
            let share = [&X25519MLKEM768.to_be_bytes()[..], &vector16(&[1; HYBRID_SERVER_BYTES])].concat();
            let accepted = if config.handshake.is_resumed() { extension(41, &[0, 0]) } else { Vec::new() };
            (SUITE_13, [extension(43, &[3, 4]), extension(51, &share), accepted].concat())
        }
    };
    let body = [&[3, 3][..], &[1; 32], &vector8(session), &suite.to_be_bytes(), &[0], &vector16(&extensions)];
    message(2, &body.concat())
}

fn certificates(config: &SessionConfig) -> Vec<u8> {
    let is_13 = config.handshake != Handshake::Tls12;
    let length24 = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let mut list = Vec::new();
    for index in 0..CERTIFICATES {
        let bytes = (config.certificate_chain + index) / CERTIFICATES;
        list.extend_from_slice(&length24(bytes)[1..]);
        list.extend(std::iter::repeat_n(1, bytes));
        list.extend(if is_13 { &[0, 0][..] } else { &[] });
    }
    let context: &[u8] = if is_13 { &[0] } else { &[] };
    message(11, &[context, &length24(list.len())[1..], &list].concat())
}

/// The server's flight: the write that answers a Client Hello.
pub(super) fn server_flight(config: &SessionConfig) -> Vec<u8> {
    let mut flight = clear_record(ContentType::Handshake, &server_hello(config, &[1; 32]));
    if config.handshake == Handshake::Tls12 {
        let signature = [&[8, 4][..], &vector16(&[1; SIGNATURE_BYTES])].concat();
        // A named curve, X25519's public key, and the signature.
        let exchange = message(12, &[&[3, 0, 29][..], &vector8(&[1; 32]), &signature].concat());
        for part in [certificates(config), exchange, message(SERVER_HELLO_DONE, &[])] {
            flight.extend(clear_record(ContentType::Handshake, &part));
        }
        return flight;
    }
    flight.extend(change_cipher_spec());
    for part in protected_messages(config, &[]) {
        protected_records(Version::Tls13, ContentType::Handshake, &part, &mut flight);
    }
    flight
}

/// The server's messages of TLS 1.3 after its hello. `extra` are further Encrypted Extensions.
pub(super) fn protected_messages(config: &SessionConfig, extra: &[u8]) -> Vec<Vec<u8>> {
    let mut extensions = extension(16, &vector16(&vector8(config.protocol.as_bytes())));
    if config.handshake == Handshake::EarlyData {
        extensions.extend(extension(42, &[]));
    }
    extensions.extend_from_slice(extra);
    let mut parts = vec![message(8, &vector16(&extensions))];
    if !config.handshake.is_resumed() {
        let signature = [&[8, 4][..], &vector16(&[1; SIGNATURE_BYTES])].concat();
        parts.extend([certificates(config), message(15, &signature)]);
    }
    parts.push(message(FINISHED, &[1; HASH_BYTES]));
    parts
}

/// The client's last flight. In TLS 1.2 the server's Finished follows it.
pub(super) fn client_finished(config: &SessionConfig) -> Vec<u8> {
    let mut flight = Vec::new();
    match config.handshake {
        Handshake::Tls12 => {
            flight.extend(clear_record(ContentType::Handshake, &message(16, &vector8(&[1; 32]))));
            flight.extend(change_cipher_spec());
            let finished = message(FINISHED, &[1; FINISHED_12_BYTES]);
            protected_record(Version::Tls12, ContentType::Handshake, &finished, &mut flight);
        }
        Handshake::Full | Handshake::Resumed | Handshake::EarlyData => {
            if config.handshake == Handshake::EarlyData {
                let end = message(END_OF_EARLY_DATA, &[]);
                protected_record(Version::Tls13, ContentType::Handshake, &end, &mut flight);
            } else {
                flight.extend(change_cipher_spec());
            }
            let finished = message(FINISHED, &[1; HASH_BYTES]);
            protected_record(Version::Tls13, ContentType::Handshake, &finished, &mut flight);
        }
    }
    flight
}

/// The server's last write: in TLS 1.3 two tickets, or one after a resumption; in TLS 1.2 a ticket and Finished.
pub(super) fn server_finished(config: &SessionConfig) -> Vec<u8> {
    let mut flight = Vec::new();
    if config.handshake == Handshake::Tls12 {
        let ticket = message(4, &[&[0; 4][..], &vector16(&[1; TICKET_12_BYTES])].concat());
        flight.extend(clear_record(ContentType::Handshake, &ticket));
        flight.extend(change_cipher_spec());
        let finished = message(FINISHED, &[1; FINISHED_12_BYTES]);
        protected_record(Version::Tls12, ContentType::Handshake, &finished, &mut flight);
        return flight;
    }
    // Lifetime and age, a nonce, the ticket, no extensions.
    let ticket = [&[0; 8][..], &vector8(&[0; 8]), &vector16(&[1; TICKET_13_BYTES]), &[0, 0]].concat();
    for _ in 0..if config.handshake.is_resumed() { 1 } else { 2 } {
        protected_record(Version::Tls13, ContentType::Handshake, &message(4, &ticket), &mut flight);
    }
    flight
}

/// Appends plaintext of any length as protected records.
pub(super) fn protected_records(
    version: Version,
    content: ContentType,
    plaintext: &[u8],
    into: &mut Vec<u8>,
) {
    for part in plaintext.chunks(MAX_PLAINTEXT) {
        protected_record(version, content, part, into);
    }
}
