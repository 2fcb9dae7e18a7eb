//! Invariants for any bytes that a server receives: its behaviour is the same at every cut, a parsed request that is
//! serialized parses to the same request, and a strict client can read the responses. Not a generator: the bytes are the
//! client's output.

use std::num::NonZeroUsize;

use http1::message::{Event, Limits, Method, RequestHead, RequestReader, ResponseReader, WritePolicy};
use http1::server::{Input, Output, RequestId, ServerConfig, ServerConnection};
use http1::site::Site;
use wire::{Bytes, Seed, Time};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let site = Site::new(&[Bytes::new(10), Bytes::new(0)], Seed::default()).expect("ten bytes fit");
    let site = site.with_validators(Seed::default());
    let config = ServerConfig { limits: limits(), ..ServerConfig::default() };
    let whole = serve(&site, data, data.len().max(1), config);
    let gather = WritePolicy { gather: NonZeroUsize::new(100), ..WritePolicy::default() };
    for cut in [1, 2, 7, 64] {
        assert_eq!(serve(&site, data, cut, config), whole, "cut {cut}");
        let gathered = serve(&site, data, cut, ServerConfig { writes: gather, ..config });
        assert_eq!(gathered, whole, "cut {cut}, answers gathered");
    }
    for head in &whole.heads {
        assert_eq!(read_again(head), *head);
    }
    read_responses(&whole);
}

/// Outcome of a connection.
#[derive(Debug, Default, PartialEq, Eq)]
struct ServerOutcome {
    heads: Vec<RequestHead>,
    bodies: Vec<u8>,
    sent: Vec<u8>,
    /// Everything else, in order.
    reported: Vec<String>,
}

fn serve(site: &Site, data: &[u8], cut: usize, config: ServerConfig) -> ServerOutcome {
    let now = Time::ZERO;
    let mut server = ServerConnection::new(now, config);
    let mut served = ServerOutcome::default();
    for piece in data.chunks(cut) {
        server.handle(now, Input::Received(piece));
        drain(site, &mut server, now, &mut served);
    }
    server.handle(now, Input::EndOfStream);
    drain(site, &mut server, now, &mut served);
    assert!(!server.is_reading(), "the stream has ended");
    assert_eq!(
        server.poll(now),
        Output::Timeout(None),
        "an application that answers leaves nothing to wait for"
    );
    served
}

/// Does what the connection says, and answers each request as soon as it is complete.
fn drain(site: &Site, server: &mut ServerConnection, now: Time, served: &mut ServerOutcome) {
    loop {
        let reported = match server.poll(now) {
            Output::Request(RequestId(id), head) => {
                assert_eq!(id, served.heads.len() as u64, "requests count up");
                served.heads.push(head);
                format!("request {id}")
            }
            Output::RequestBody(_, part) => {
                assert!(!part.is_empty());
                served.bodies.extend(part);
                continue;
            }
            Output::RequestEnd(id) => {
                let head = served.heads.last().expect("its head came before");
                server.respond(now, id, site.respond(head)).expect("it waits for this answer");
                format!("end {id:?}, {} bytes of bodies", served.bodies.len())
            }
            Output::Send(write) => {
                assert!(!write.is_empty());
                served.sent.extend(write);
                continue;
            }
            other @ (Output::RequestAborted(_)
            | Output::HalfClose
            | Output::Close
            | Output::Abort
            | Output::Fault(_)) => format!("{other:?}"),
            Output::Timeout(_) => return,
        };
        assert_ne!(
            served.reported.last().map(String::as_str),
            Some("Close"),
            "{reported} after it was closed"
        );
        served.reported.push(reported);
    }
}

/// A head after it was written and read again.
fn read_again(head: &RequestHead) -> RequestHead {
    let mut bytes = Vec::new();
    head.encode(&mut bytes);
    let limits = Limits { head_bytes: bytes.len(), ..limits() };
    match RequestReader::new(limits).read(&mut &bytes[..]) {
        Ok(Some(Event::Head(again, _))) => again,
        other => panic!("{head:?} was read again as {other:?}"),
    }
}

/// One answer for each request, and perhaps one more for what was no request.
fn read_responses(served: &ServerOutcome) {
    let mut reader = ResponseReader::new(Limits::default());
    let mut input = &served.sent[..];
    let mut methods = served.heads.iter().map(|head| &head.method);
    while !input.is_empty() {
        let method = methods.next().unwrap_or(&Method::Get);
        loop {
            match reader.read(&mut input, method) {
                Ok(Some(Event::End)) => break,
                Ok(Some(Event::Head(..) | Event::Body(_))) => {}
                other => panic!("an answer that cannot be read: {other:?}"),
            }
        }
    }
    assert!(reader.is_between_messages());
}

/// Small, so that short inputs reach them.
fn limits() -> Limits {
    Limits {
        head_bytes: 512,
        fields: 8,
        target_bytes: 64,
        body_bytes: 1_024,
        extension_bytes: 16,
        trailer_bytes: 64,
        ..Limits::default()
    }
}
