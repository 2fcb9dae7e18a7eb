//! Payloads of request smuggling against the server, each with its expected reaction (`smuggling.txt`), split at every
//! position. A request hidden in another never gets a response.
//!
//! Not a differential test: other servers' behaviour is not tested here.

use roundtrip_http1::server::{Input, Output, Response, ServerConfig, ServerConnection};
use wire::Time;

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn every_payload_meets_its_reaction_at_every_cut() {
    let mut count = 0;
    for line in include_str!("../smuggling.txt").lines().filter(|line| !line.starts_with('#')) {
        let (expected, payload) = line.split_once(' ').unwrap();
        let payload = [unescaped(payload), SMUGGLED.as_bytes().to_vec()].concat();
        for cut in [payload.len(), 1, 2, 3, 7, 11] {
            assert_eq!(reaction(&payload, cut), expected, "{line}, cut {cut}");
        }
        count += 1;
    }
    assert!(count >= 90, "only {count} payloads are left");
}

/// Returns `ok2` if two requests were read and none was refused, else the status of the refusal. Panics if a smuggled request
/// gets a response after a refusal, or as a part of one.
fn reaction(payload: &[u8], cut: usize) -> String {
    let mut server = ServerConnection::new(Time::ZERO, ServerConfig::default());
    let (mut sent, mut targets, mut faults) = (Vec::new(), Vec::new(), 0);
    for piece in payload.chunks(cut) {
        server.handle(Time::ZERO, Input::Received(piece));
        loop {
            match server.poll(Time::ZERO) {
                Output::Request(_, head) => targets.push(head.target),
                Output::RequestEnd(id) => server.respond(Time::ZERO, id, Response::empty(204)).unwrap(),
                Output::Send(bytes) => sent.extend_from_slice(&bytes),
                Output::Fault(_) => faults += 1,
                Output::Timeout(_) => break,
                Output::RequestBody(..)
                | Output::RequestAborted(_)
                | Output::HalfClose
                | Output::Close
                | Output::Abort => {}
            }
        }
    }
    let text = String::from_utf8(sent).unwrap();
    let last = text.rsplit("HTTP/1.1 ").next().unwrap_or_default();
    let status = last.split(' ').next().unwrap_or_default().to_owned();
    assert!(!targets.iter().any(|target| target == "/hidden"));
    if faults == 0 {
        return format!("ok{}", targets.len());
    }
    assert!(!targets.iter().any(|target| target == "/smuggled"), "a smuggled request got a response");
    status
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut characters = text.bytes();
    while let Some(byte) = characters.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match characters.next() {
            Some(b'r') => out.push(b'\r'),
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'0') => out.push(0),
            Some(b'x') => {
                let digits = [characters.next().unwrap(), characters.next().unwrap()];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            other => panic!("invalid escape: {other:?}"),
        }
    }
    out
}
