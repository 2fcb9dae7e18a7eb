//! Flights of the handshake as bytes: hellos that can be read, and everything else of the right size.
//!
//! The client is Chromium, the server OpenSSL. Keys, signatures and certificates are zeros.

use super::{Handshake, SessionConfig};
use crate::record::{ContentType, HEADER_BYTES};
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

/// Appends what `content` appends, with a length of two bytes before it.
pub(super) fn vector16(into: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    into.extend([0, 0]);
    content(into);
    let length = number16(into.len() - start - 2);
    into[start..start + 2].copy_from_slice(&length);
}

/// Appends bytes with their length in two bytes before them.
pub(super) fn bytes16(into: &mut Vec<u8>, content: &[u8]) {
    into.extend(number16(content.len()));
    into.extend_from_slice(content);
}

/// Appends bytes with their length in a byte before them.
pub(super) fn bytes8(into: &mut Vec<u8>, content: &[u8]) {
    into.push(u8::try_from(content.len()).unwrap_or(u8::MAX));
    into.extend_from_slice(content);
}

fn number16(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes()
}

/// Appends numbers, with their length before them.
pub(super) fn numbers16(into: &mut Vec<u8>, list: &[u16]) {
    into.extend(number16(2 * list.len()));
    into.extend(list.iter().flat_map(|number| number.to_be_bytes()));
}

/// Appends bytes of one value.
pub(super) fn fill(into: &mut Vec<u8>, byte: u8, count: usize) {
    into.resize(into.len() + count, byte);
}

/// Appends an extension with what `content` appends.
pub(super) fn extension(into: &mut Vec<u8>, kind: u16, content: impl FnOnce(&mut Vec<u8>)) {
    into.extend(kind.to_be_bytes());
    vector16(into, content);
}

/// Appends an extension with these bytes.
pub(super) fn extension_of(into: &mut Vec<u8>, kind: u16, content: &[u8]) {
    into.extend(kind.to_be_bytes());
    bytes16(into, content);
}

/// Appends a handshake message with what `body` appends.
pub(super) fn message(into: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    into.extend([kind, 0, 0, 0]);
    body(into);
    let [_, a, b, c] = u32::try_from(into.len() - start - 4).unwrap_or(u32::MAX).to_be_bytes();
    into[start + 1..start + 4].copy_from_slice(&[a, b, c]);
}

/// Appends a record in the clear with what `body` appends.
pub(super) fn clear_record(into: &mut Vec<u8>, content: ContentType, body: impl FnOnce(&mut Vec<u8>)) {
    into.extend([content.number(), 3, 3]);
    vector16(into, body);
}

/// Appends a record as long as an encrypted one: in TLS 1.3 content, its type and a tag; in TLS 1.2 a nonce, content, a tag.
pub(super) fn protected_record(version: Version, content: ContentType, plaintext: &[u8], into: &mut Vec<u8>) {
    let outer = match version {
        Version::Tls13 => ContentType::ApplicationData,
        Version::Tls12 | Version::Old => content,
    };
    let extra = protection_bytes(version);
    into.reserve(HEADER_BYTES + plaintext.len() + extra);
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

/// Bytes by which a protected record's body is longer than its plaintext.
pub(super) const fn protection_bytes(version: Version) -> usize {
    match version {
        Version::Tls13 => 1 + TAG_BYTES,
        Version::Tls12 | Version::Old => NONCE_BYTES + TAG_BYTES,
    }
}

/// Appends Change Cipher Spec, which TLS 1.3 sends for middleboxes.
pub(super) fn change_cipher_spec(into: &mut Vec<u8>) {
    clear_record(into, ContentType::ChangeCipherSpec, |body| body.push(1));
}

/// Appends a key share of this group.
pub(super) fn share(into: &mut Vec<u8>, group: u16, bytes: usize) {
    into.extend(group.to_be_bytes());
    vector16(into, |key| fill(key, 1, bytes));
}

/// Appends the extension that only looks like an Encrypted Client Hello.
pub(super) fn encrypted_client_hello(into: &mut Vec<u8>) {
    extension(into, 0xfe0d, |content| {
        content.extend([0, 0, 1, 0, 1, 7]);
        vector16(content, |key| fill(key, 1, 32));
        vector16(content, |payload| fill(payload, 1, ECH_PAYLOAD_BYTES));
    });
}

/// Appends the extension with the server's name.
pub(super) fn server_name(into: &mut Vec<u8>, name: &str) {
    extension(into, 0, |content| {
        vector16(content, |list| {
            list.push(0);
            bytes16(list, name.as_bytes());
        });
    });
}

/// Appends the extension with the application protocols.
pub(super) fn protocols(into: &mut Vec<u8>, names: &[&str]) {
    extension(into, 16, |content| {
        vector16(content, |list| names.iter().for_each(|name| bytes8(list, name.as_bytes())));
    });
}

/// Appends the extensions of a client that resumes, which come last.
pub(super) fn ticket_extensions(into: &mut Vec<u8>, handshake: Handshake) {
    if handshake == Handshake::EarlyData {
        extension_of(into, 42, &[]);
    }
    if handshake.is_resumed() {
        extension(into, 41, |content| {
            vector16(content, |identities| {
                vector16(identities, |ticket| fill(ticket, 1, TICKET_13_BYTES));
                identities.extend([0; 4]);
            });
            vector16(content, |binders| bytes8(binders, &[1; HASH_BYTES]));
        });
    }
}

/// Appends the Client Hello of Chromium (net/socket, third_party/boringssl): GREASE, a hybrid key share, an Encrypted Client Hello
/// that only looks like one.
pub(super) fn client_hello(into: &mut Vec<u8>, config: &SessionConfig) {
    message(into, CLIENT_HELLO, |body| {
        body.extend([3, 3]);
        fill(body, 1, 32);
        bytes8(body, &[1; 32]);
        numbers16(body, &CHROMIUM_SUITES);
        body.extend([1, 0]);
        vector16(body, |extensions| {
            chromium_extensions(extensions, config);
            ticket_extensions(extensions, config.handshake);
        });
    });
}

const GREASE: u16 = 0x0a0a;
const CHROMIUM_SUITES: [u16; 16] = [
    GREASE, SUITE_13, 0x1302, 0x1303, 0xc02b, SUITE_12, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014,
    0x009c, 0x009d, 0x002f, 0x0035,
];

fn chromium_extensions(into: &mut Vec<u8>, config: &SessionConfig) {
    extension_of(into, GREASE, &[]);
    server_name(into, &config.server_name);
    extension_of(into, 23, &[]);
    extension_of(into, 0xff01, &[0]);
    extension(into, 10, |groups| numbers16(groups, &[GREASE, X25519MLKEM768, X25519, 23, 24]));
    extension_of(into, 11, &[1, 0]);
    extension_of(into, 35, &[]);
    match config.protocol {
        "h2" => protocols(into, &["h2", "http/1.1"]),
        protocol => protocols(into, &[protocol]),
    }
    extension_of(into, 5, &[1, 0, 0, 0, 0]);
    extension(into, 13, |algorithms| numbers16(algorithms, &SIGNATURES));
    extension_of(into, 18, &[]);
    extension(into, 51, |content| {
        vector16(content, |shares| {
            share(shares, GREASE, 1);
            share(shares, X25519MLKEM768, HYBRID_CLIENT_BYTES);
            share(shares, X25519, 32);
        });
    });
    extension_of(into, 45, &[1, 1]);
    extension(into, 43, |versions| {
        versions.push(6);
        versions.extend([GREASE, 0x0304, 0x0303].iter().flat_map(|version| version.to_be_bytes()));
    });
    extension_of(into, 27, &[2, 0, 2]);
    extension(into, 17_613, |content| vector16(content, |list| bytes8(list, b"h2")));
    encrypted_client_hello(into);
    extension_of(into, GREASE + 0x1010, &[0]);
}

/// Appends the Server Hello, which repeats the client's legacy session.
pub(super) fn server_hello(into: &mut Vec<u8>, config: &SessionConfig, session: &[u8]) {
    let is_12 = config.handshake == Handshake::Tls12;
    message(into, 2, |body| {
        body.extend([3, 3]);
        fill(body, 1, 32);
        bytes8(body, session);
        body.extend(if is_12 { SUITE_12 } else { SUITE_13 }.to_be_bytes());
        body.push(0);
        vector16(body, |extensions| match is_12 {
            true => {
                extension_of(extensions, 0xff01, &[0]);
                [23, 35].into_iter().for_each(|kind| extension_of(extensions, kind, &[]));
                protocols(extensions, &[config.protocol]);
            }
            false => {
                extension_of(extensions, 43, &[3, 4]);
                extension(extensions, 51, |content| share(content, X25519MLKEM768, HYBRID_SERVER_BYTES));
                if config.handshake.is_resumed() {
                    extension_of(extensions, 41, &[0, 0]);
                }
            }
        });
    });
}

fn certificates(into: &mut Vec<u8>, config: &SessionConfig) {
    let is_13 = config.handshake != Handshake::Tls12;
    let bytes = |index: usize| (config.certificate_chain + index) / CERTIFICATES;
    // Each has its length before it, and in TLS 1.3 its extensions after it.
    let list = (0..CERTIFICATES).map(|index| 3 + bytes(index) + if is_13 { 2 } else { 0 }).sum();
    let length24 = |into: &mut Vec<u8>, length: usize| {
        into.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()[1..]);
    };
    message(into, 11, |body| {
        body.reserve(list + 4);
        body.extend(is_13.then_some(0));
        length24(body, list);
        for index in 0..CERTIFICATES {
            length24(body, bytes(index));
            fill(body, 1, bytes(index));
            body.extend(if is_13 { &[0, 0][..] } else { &[] });
        }
    });
}

/// The server's flight: the write that answers a Client Hello.
pub(super) fn server_flight(config: &SessionConfig) -> Vec<u8> {
    let mut flight = Vec::with_capacity(config.certificate_chain + 2_048);
    let handshake = ContentType::Handshake;
    clear_record(&mut flight, handshake, |body| server_hello(body, config, &[1; 32]));
    if config.handshake == Handshake::Tls12 {
        clear_record(&mut flight, handshake, |body| certificates(body, config));
        clear_record(&mut flight, handshake, |body| {
            // A named curve, X25519's public key, and the signature.
            message(body, 12, |exchange| {
                exchange.extend([3, 0, 29]);
                bytes8(exchange, &[1; 32]);
                signature(exchange);
            });
        });
        clear_record(&mut flight, handshake, |body| message(body, SERVER_HELLO_DONE, |_| {}));
        return flight;
    }
    change_cipher_spec(&mut flight);
    protected_messages(config, &[], |message| {
        protected_records(Version::Tls13, handshake, message, &mut flight);
    });
    flight
}

/// Appends an algorithm and a signature by it.
fn signature(into: &mut Vec<u8>) {
    into.extend([8, 4]);
    vector16(into, |bytes| fill(bytes, 1, SIGNATURE_BYTES));
}

/// Passes on the server's messages of TLS 1.3 after its hello. `extra` are further Encrypted Extensions.
pub(super) fn protected_messages(config: &SessionConfig, extra: &[u8], mut on: impl FnMut(&[u8])) {
    let mut buffer = Vec::with_capacity(config.certificate_chain + 64);
    let mut pass = |write: &dyn Fn(&mut Vec<u8>)| {
        buffer.clear();
        write(&mut buffer);
        on(&buffer);
    };
    pass(&|into| {
        message(into, 8, |body| {
            vector16(body, |extensions| {
                protocols(extensions, &[config.protocol]);
                if config.handshake == Handshake::EarlyData {
                    extension_of(extensions, 42, &[]);
                }
                extensions.extend_from_slice(extra);
            });
        });
    });
    if !config.handshake.is_resumed() {
        pass(&|into| certificates(into, config));
        pass(&|into| message(into, 15, signature));
    }
    pass(&|into| message(into, FINISHED, |body| fill(body, 1, HASH_BYTES)));
}

/// A message of this many bytes as a protected record.
fn protected_message(into: &mut Vec<u8>, version: Version, kind: u8, body: &[u8]) {
    let mut plaintext = Vec::with_capacity(body.len() + 4);
    message(&mut plaintext, kind, |into| into.extend_from_slice(body));
    protected_record(version, ContentType::Handshake, &plaintext, into);
}

/// The client's last flight. In TLS 1.2 the server's Finished follows it.
pub(super) fn client_finished(config: &SessionConfig) -> Vec<u8> {
    let mut flight = Vec::with_capacity(128);
    match config.handshake {
        Handshake::Tls12 => {
            clear_record(&mut flight, ContentType::Handshake, |body| {
                message(body, 16, |exchange| bytes8(exchange, &[1; 32]));
            });
            change_cipher_spec(&mut flight);
            protected_message(&mut flight, Version::Tls12, FINISHED, &[1; FINISHED_12_BYTES]);
        }
        Handshake::Full | Handshake::Resumed | Handshake::EarlyData => {
            if config.handshake == Handshake::EarlyData {
                protected_message(&mut flight, Version::Tls13, END_OF_EARLY_DATA, &[]);
            } else {
                change_cipher_spec(&mut flight);
            }
            protected_message(&mut flight, Version::Tls13, FINISHED, &[1; HASH_BYTES]);
        }
    }
    flight
}

/// The server's last write: in TLS 1.3 two tickets, or one after a resumption; in TLS 1.2 a ticket and Finished.
pub(super) fn server_finished(config: &SessionConfig) -> Vec<u8> {
    let mut flight = Vec::with_capacity(512);
    if config.handshake == Handshake::Tls12 {
        clear_record(&mut flight, ContentType::Handshake, |body| {
            message(body, 4, |ticket| {
                ticket.extend([0; 4]);
                bytes16(ticket, &[1; TICKET_12_BYTES]);
            });
        });
        change_cipher_spec(&mut flight);
        protected_message(&mut flight, Version::Tls12, FINISHED, &[1; FINISHED_12_BYTES]);
        return flight;
    }
    let mut ticket = Vec::with_capacity(256);
    // Lifetime and age, a nonce, the ticket, no extensions.
    ticket.extend([0; 8]);
    bytes8(&mut ticket, &[0; 8]);
    bytes16(&mut ticket, &[1; TICKET_13_BYTES]);
    ticket.extend([0, 0]);
    for _ in 0..if config.handshake.is_resumed() { 1 } else { 2 } {
        protected_message(&mut flight, Version::Tls13, 4, &ticket);
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
