//! Transcripts in `fuzz/corpus/tls_decryption` are of OpenSSL 3.0: lines of its key log, then what client (C) and server (S) sent.

use super::*;
use crate::bytes::from_digits;

/// Secrets of RFC 8448, section 3.
const SIMPLE_SECRETS: [(&str, &str); 4] = [
    ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21"),
    ("SERVER_HANDSHAKE_TRAFFIC_SECRET", "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38"),
    ("CLIENT_TRAFFIC_SECRET_0", "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"),
    ("SERVER_TRAFFIC_SECRET_0", "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"),
];
const SIMPLE_RANDOM: &str = "cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7";

/// A key log, and what both sides sent in turn.
struct Transcript {
    log: KeyLog,
    sent: Vec<(Sender, Vec<u8>)>,
}

impl Transcript {
    fn new(text: &str) -> Self {
        let (mut log, mut sent) = (KeyLog::default(), Vec::new());
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("C", bytes)) => sent.push((Sender::Client, from_digits(bytes))),
                Some(("S", bytes)) => sent.push((Sender::Server, from_digits(bytes))),
                _ => log.read(line.as_bytes()),
            }
        }
        Self { log, sent }
    }

    fn read(&self) -> Read {
        self.read_in_pieces(usize::MAX)
    }

    fn read_in_pieces(&self, size: usize) -> Read {
        let (mut decryption, mut read) = (Decryption::default(), Read::default());
        for (sender, bytes) in &self.sent {
            for piece in bytes.chunks(size) {
                let peeked = decryption.peek(*sender, piece);
                let before = read.data(*sender).len();
                decryption.read(*sender, piece, &self.log, &mut |opened| read.add(*sender, &opened));
                if let Some(peeked) = peeked {
                    assert_eq!(
                        peeked.data,
                        read.data(*sender)[before..],
                        "what is peeked at is what is read"
                    );
                }
            }
        }
        read.unread = decryption.unread();
        read.has_read = decryption.has_read();
        read
    }
}

/// Everything that a decryption returned.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    client: Vec<u8>,
    server: Vec<u8>,
    messages: Vec<(bool, u8)>,
    alerts: Vec<u8>,
    missing: u64,
    protocol: Option<String>,
    unread: Option<Unread>,
    has_read: bool,
}

impl Read {
    fn data(&self, sender: Sender) -> &[u8] {
        if sender == Sender::Client { &self.client } else { &self.server }
    }

    fn add(&mut self, sender: Sender, opened: &Opened<'_>) {
        match opened {
            Opened::Data(data) if sender == Sender::Client => self.client.extend(*data),
            Opened::Data(data) => self.server.extend(*data),
            Opened::Missing(missing) => self.missing += missing,
            Opened::Message { kind, length: _ } => self.messages.push((sender == Sender::Client, kind.0)),
            Opened::Extensions(extensions) => self.protocol.clone_from(&extensions.protocol),
            Opened::Alert(alert) => self.alerts.push(alert.description),
        }
    }
}

const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";

fn transcript(name: &str) -> Transcript {
    Transcript::new(match name {
        "tls12-aes-128-gcm" => include_str!("../../../../fuzz/corpus/tls_decryption/tls12-aes-128-gcm"),
        "tls12-aes-256-gcm" => include_str!("../../../../fuzz/corpus/tls_decryption/tls12-aes-256-gcm"),
        "tls12-chacha20" => include_str!("../../../../fuzz/corpus/tls_decryption/tls12-chacha20"),
        "tls12-cbc" => include_str!("../../../../fuzz/corpus/tls_decryption/tls12-cbc"),
        "tls13-aes-256-gcm" => include_str!("../../../../fuzz/corpus/tls_decryption/tls13-aes-256-gcm"),
        "tls13-key-update" => {
            include_str!("../../../../fuzz/corpus/tls_decryption/tls13-chacha20-key-update")
        }
        _ => include_str!("../../../../fuzz/corpus/tls_decryption/tls13-early-data"),
    })
}

#[test]
fn paper_simple_handshake_of_rfc_8448_is_read() {
    let mut log = KeyLog::default();
    for (label, secret) in SIMPLE_SECRETS {
        log.read(format!("{label} {SIMPLE_RANDOM} {secret}\n").as_bytes());
    }
    let record = |kind: u8, body: &[u8]| {
        [&[kind, 3, 3], &u16::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat()
    };
    let lines: Vec<Vec<u8>> =
        include_str!("../../tests/rfc8448-3.txt").split("\n\n").map(from_digits).collect();
    let [client_hello, server_hello, flight, finished, server_data, client_data, alert] = &lines[..] else {
        panic!("seven parts")
    };
    let (mut decryption, mut read) = (Decryption::default(), Read::default());
    let mut pass = |sender, bytes: &[u8]| {
        decryption.read(sender, bytes, &log, &mut |opened| read.add(sender, &opened));
    };
    pass(Sender::Client, &record(22, client_hello));
    pass(Sender::Server, &record(22, server_hello));
    pass(Sender::Server, &record(23, flight));
    pass(Sender::Client, &record(23, finished));
    // The session ticket, as if it had not been captured.
    pass(Sender::Server, &[23, 3, 3, 0, 0xde]);
    decryption.skip(Sender::Server, 0xde, &mut |opened| read.add(Sender::Server, &opened));
    let mut pass = |sender, bytes: &[u8]| {
        decryption.read(sender, bytes, &log, &mut |opened| read.add(sender, &opened));
    };
    pass(Sender::Client, &record(23, client_data));
    pass(Sender::Server, &record(23, server_data));
    pass(Sender::Client, &record(23, alert));
    let expected: Vec<u8> = (0..50).collect();
    assert_eq!((&read.client, &read.server), (&expected, &expected));
    assert_eq!(read.messages, [(false, 8), (false, 11), (false, 15), (false, 20), (true, 20)]);
    assert_eq!((read.alerts, decryption.unread(), decryption.has_read()), (vec![0], None, true));
}

#[test]
fn content_is_the_same_in_pieces_of_any_size() {
    for name in ["tls12-aes-128-gcm", "tls12-aes-256-gcm", "tls12-chacha20", "tls13-aes-256-gcm"] {
        let whole = transcript(name).read();
        assert_eq!(whole.client, b"GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n", "{name}");
        assert_eq!(whole.server, [RESPONSE, &"x".repeat(60), &"y".repeat(40)].concat().as_bytes(), "{name}");
        let are_closed = !whole.alerts.is_empty() && whole.alerts.iter().all(|alert| *alert == 0);
        assert!(whole.has_read && whole.unread.is_none() && are_closed, "{name} {whole:?}");
        for size in [1, 2, 7, 64, 1_000] {
            assert_eq!(transcript(name).read_in_pieces(size), whole, "{name} in pieces of {size}");
        }
    }
    let protocol = transcript("tls13-aes-256-gcm").read().protocol;
    assert_eq!(protocol.as_deref(), Some("http/1.1"));
}

#[test]
fn keys_change_with_key_update() {
    let transcript = transcript("tls13-key-update");
    let read = transcript.read();
    assert_eq!(
        (&read.client[..], &read.server[..]),
        (&b"first\nsecond\nthird\n"[..], &b"tsrif\ndnoces\ndriht\n"[..])
    );
    assert_eq!(read.unread, None);
    assert_eq!(read.messages.iter().filter(|(_, kind)| *kind == 24).count(), 3);
    for size in [1, 9, 100] {
        assert_eq!(transcript.read_in_pieces(size), read, "{size}");
    }
}

#[test]
fn early_data_is_read_and_without_its_secret_skipped() {
    let mut transcript = transcript("tls13-early-data");
    let read = transcript.read();
    assert_eq!((&read.client[..], read.unread), (&b"early requestlater\n"[..], None));
    let text = include_str!("../../../../fuzz/corpus/tls_decryption/tls13-early-data");
    let late: Vec<&str> = text.lines().filter(|line| !line.starts_with("CLIENT_EARLY")).collect();
    transcript.log = Transcript::new(&late.join("\n")).log;
    let read = transcript.read();
    assert_eq!((&read.client[..], read.unread), (&b"later\n"[..], None));
}

#[test]
fn hole_within_a_record_costs_only_its_bytes() {
    for name in ["tls12-aes-128-gcm", "tls13-aes-256-gcm"] {
        let transcript = transcript(name);
        let (mut decryption, mut read) = (Decryption::default(), Read::default());
        for (sender, bytes) in &transcript.sent {
            let mut rest = &bytes[..];
            if *sender == Sender::Server
                && bytes.starts_with(&[23, 3, 3, 0])
                && bytes.len() > 100
                && bytes.len() < 200
            {
                decryption
                    .read(*sender, &bytes[..60], &transcript.log, &mut |opened| read.add(*sender, &opened));
                decryption.skip(*sender, 11, &mut |opened| read.add(*sender, &opened));
                rest = &bytes[71..];
            }
            decryption.read(*sender, rest, &transcript.log, &mut |opened| read.add(*sender, &opened));
        }
        assert_eq!((decryption.unread(), read.missing, read.server.len()), (None, 11, 140 - 11), "{name}");
    }
}

#[test]
fn reasons_for_not_reading_are_told_apart() {
    let mut transcript = transcript("tls13-aes-256-gcm");
    let read = |log: &KeyLog, sent: &[(Sender, Vec<u8>)]| {
        let read = Transcript { log: log.clone(), sent: sent.to_vec() }.read();
        assert!(read.client.is_empty() || read.unread == Some(Unread::RecordsMissing));
        read.unread
    };
    let unread = |text: &str| Transcript::new(text).read().unread;
    let text = include_str!("../../../../fuzz/corpus/tls_decryption/tls13-aes-256-gcm");
    assert_eq!(read(&KeyLog::default(), &transcript.sent), Some(Unread::NotLogged));
    assert_eq!(read(&transcript.log, &transcript.sent[1..]), Some(Unread::HandshakeMissing));
    let without =
        |label: &str| text.lines().filter(|line| !line.starts_with(label)).collect::<Vec<_>>().join("\n");
    assert_eq!(unread(&without("SERVER_HANDSHAKE")), Some(Unread::SecretMissing));
    assert_eq!(
        unread(include_str!("../../../../fuzz/corpus/tls_decryption/tls12-cbc")),
        Some(Unread::Cipher(0xc023))
    );
    // A secret that is another's.
    let (label, other) = ("SERVER_TRAFFIC_SECRET_0", "CLIENT_TRAFFIC_SECRET_0");
    let swapped = text.replace(label, "@").replace(other, label).replace('@', other);
    assert_eq!(unread(&swapped), Some(Unread::WrongSecret));
    // A lost record.
    let last = transcript
        .sent
        .iter()
        .rposition(|(sender, bytes)| *sender == Sender::Server && bytes.len() > 60)
        .unwrap();
    let (_, bytes) = transcript.sent.remove(last);
    let (mut decryption, mut opened) = (Decryption::default(), Read::default());
    for (sender, bytes) in &transcript.sent[..last] {
        decryption.read(*sender, bytes, &transcript.log, &mut |part| opened.add(*sender, &part));
    }
    decryption.skip(Sender::Server, bytes.len() as u64, &mut |_| {});
    assert_eq!((decryption.unread(), decryption.has_read()), (Some(Unread::RecordsMissing), true));
}

#[test]
fn zeros_are_data_unless_they_follow_the_type() {
    // Content, type and padding; pieces of any size.
    let secret = crate::keylog::Secret::new(&[7; 32]).unwrap();
    let keys = crate::cipher::RecordKeys::of_secret(
        crate::cipher::Algorithm::ChaCha20Poly1305,
        crate::schedule::Hash::Sha256,
        &secret,
    );
    let keys = keys.unwrap();
    for (content, padding) in
        [(&b"a\0\0\0"[..], 5), (b"\0\0\0\0\0\0", 0), (b"ab\x17\0\0c", 3), (b"\x16\0\0\0", 0)]
    {
        let text = [content, &[23], &vec![0; padding]].concat();
        for size in 1..=text.len() {
            assert_eq!(half::tests::contents(&keys, &text, size), content, "{content:?} in pieces of {size}");
        }
    }
}
