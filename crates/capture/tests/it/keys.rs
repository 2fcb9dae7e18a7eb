//! Key logs: in a file, or in the capture itself; what they do not decrypt is judged by the sizes of records.

use std::path::{Path, PathBuf};

use diagnose::{KeyUse, Unread};
use packets::Reader;
use report::Capture;
use report::filter::Filter;
use report::keys::KeyReport;
use roundtrip_capture::{read, read_all, read_with_threads};

const STORED: [(&str, [&str; 2]); 2] = [
    ("tls13-secrets", ["GET /a", "GET /slow"]),
    ("tls13-http2-secrets", ["HTTP/2 stream 1", "HTTP/2 stream 3"]),
];
/// Type of a Decryption Secrets Block, as its bytes.
const SECRETS: [u8; 4] = [10, 0, 0, 0];

fn stored(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/capture")).join(name)
}

/// Writes a file that belongs to one test.
fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("roundtrip-keys-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The capture without its secrets, and the secrets.
fn apart(name: &str) -> (Vec<u8>, Vec<u8>) {
    let bytes = std::fs::read(stored(name)).unwrap();
    let (mut keys, mut rest, mut bare) = (Vec::new(), &bytes[..], Vec::new());
    let mut reader = Reader::new(&bytes[..]).unwrap();
    while reader.read_with(&mut |text| keys.extend(text)).unwrap().is_some() {}
    while !rest.is_empty() {
        let length = u32::from_le_bytes(*rest[4..].first_chunk().unwrap()) as usize;
        let (block, more) = rest.split_at(length);
        if !block.starts_with(&SECRETS) {
            bare.extend(block);
        }
        rest = more;
    }
    (bare, keys)
}

fn requests(capture: &Capture) -> Vec<(String, Option<u16>)> {
    let exchanges = capture.flows.iter().flat_map(|flow| &flow.exchanges);
    exchanges.map(|exchange| (exchange.request.clone(), exchange.status)).collect()
}

#[test]
fn capture_with_secrets_is_read_without_a_flag() {
    for (name, expected) in STORED {
        let capture = read(&stored(name), &Filter::default(), false).unwrap();
        assert_eq!(requests(&capture), expected.map(|request| (request.to_owned(), Some(200))), "{name}");
        assert_eq!(capture.keys, Some(KeyReport { read: 1, ..KeyReport::default() }));
    }
}

#[test]
fn key_log_in_a_file_shows_the_same_as_one_in_the_capture() {
    for (name, _) in STORED {
        let (bare, keys) = apart(name);
        let (capture, log) = (written(&format!("{name}.pcapng"), &bare), written(name, &keys));
        let own = read(&stored(name), &Filter::default(), false).unwrap();
        let read = read_all(std::slice::from_ref(&capture), &Filter::default(), false, Some(&log)).unwrap();
        let [with_file] = &read[..] else { panic!("one capture") };
        assert_eq!((requests(with_file), &with_file.keys), (requests(&own), &own.keys));
        let without = roundtrip_capture::read(&capture, &Filter::default(), false).unwrap();
        assert_eq!((requests(&without), without.keys), (Vec::new(), None));
        [capture, log].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}

#[test]
fn key_log_of_other_connections_is_reported() {
    let (bare, _) = apart("tls13-secrets");
    let (_, other) = apart("tls13-http2-secrets");
    let (capture, log) = (written("other.pcapng", &bare), written("other", &other));
    let read = read_all(std::slice::from_ref(&capture), &Filter::default(), false, Some(&log)).unwrap();
    assert_eq!(read[0].flows[0].keys, Some(KeyUse::Unread(Unread::NotLogged)));
    let sentence = read[0].keys.as_ref().unwrap().sentence();
    assert!(sentence.starts_with("read with the key log: 0 of 1 connection;"), "{sentence}");
    [capture, log].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn file_without_secrets_is_refused_with_a_sentence() {
    let capture = stored("nagle");
    let error = |log: &Path| {
        let read = read_all(std::slice::from_ref(&capture), &Filter::default(), false, Some(log));
        read.unwrap_err().to_string()
    };
    let log = written("empty", b"# nothing\n");
    assert!(
        error(&log)
            .contains("it is not a key log with secrets of TLS; give the file that SSLKEYLOGFILE names")
    );
    std::fs::write(&log, "CLIENT_RANDOM 12\n").unwrap();
    assert!(
        error(&log)
            .contains("malformed lines left out: 1 (line 1: not a label, a random value and a secret)")
    );
    std::fs::remove_file(&log).unwrap();
    assert!(error(&log).contains("cannot read"));
}

/// Secrets in the middle of a large capture, whose packets several threads handle.
#[test]
fn threads_have_the_secrets_before_the_packets_that_follow_them() {
    let mut bytes =
        std::fs::read(stored("nagle.pcapng")).or_else(|_| std::fs::read(stored("tls13-secrets"))).unwrap();
    // Blocks that are skipped, between captures of their own, until several batches are full.
    let filler = {
        let length = 1_u32 << 19;
        let mut block = [0x0bad_u32.to_le_bytes(), length.to_le_bytes()].concat();
        block.resize(length as usize - 4, 0);
        block.extend(length.to_le_bytes());
        block
    };
    let section = std::fs::read(stored("tls13-http2-secrets")).unwrap();
    let own = std::fs::read(stored("tls13-secrets")).unwrap();
    for _ in 0..6 {
        (0..2).for_each(|_| bytes.extend(&filler));
        bytes.extend(&section);
    }
    bytes.extend(&own);
    assert!(bytes.len() > 6 << 20);
    let path = written("large.pcapng", &bytes);
    let read = |threads| {
        let capture = read_with_threads(&path, &Filter::default(), false, threads).unwrap();
        (requests(&capture), capture.keys)
    };
    let one = read(1);
    assert!(one.0.len() >= 4 && one.1.as_ref().is_some_and(|keys| keys.read >= 2), "{one:?}");
    assert_eq!(read(4), one);
    std::fs::remove_file(&path).unwrap();
}
