//! Invariants for any datagram that a DHTTP server receives: the stream reader parses the same request and nothing more, the
//! response stays within its budget, and a rejected datagram changes no state.
//! Not a generator: the bytes are one datagram.

use core::net::SocketAddr;

use dhttp_proto::address::FIRST_CLIENT_PORT;
use dhttp_proto::message::{Request, write_request};
use dhttp_proto::parts::DivisibleResponse;
use dhttp_proto::server::{Channel, Output, Secrets, Verdict};
use dhttp_proto::token::TOKEN_FIELD;
use dhttp_proto::{Extension, Id, Key, Server, ServerConfig};
use http1::message::{Event, Limits, RequestReader};
use wire::Time;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let limits = Limits { blank_lines: 0, ..Limits::default() };
    if let Ok(request) = Request::read(data, &limits) {
        let head = request.head.to_head();
        let mut again = Vec::new();
        write_request(request.header, &head, &mut again);
        let read =
            Request::read(&again, &Limits { head_bytes: again.len(), ..limits }).expect("it was read before");
        assert_eq!((read.header, read.head.to_head()), (request.header, head.clone()));
        let mut stream = &data[11..];
        let mut reader = RequestReader::new(limits);
        let first = reader.read(&mut stream);
        assert!(matches!(&first, Ok(Some(Event::Head(same, _))) if *same == head), "{first:?}");
        assert_eq!(reader.read(&mut stream), Ok(Some(Event::End)));
        assert!(stream.is_empty(), "there was more than one request");
    }
    connect(data);
    for size in [8, 100, 1_232, 1_460, 100_000] {
        let more = |config: ServerConfig| {
            Extension::ALL.into_iter().fold(config, |config, extension| config.with(extension, true))
        };
        serve(ServerConfig::paper(), data, size);
        serve(more(ServerConfig::paper()), data, size);
        let sent = serve(more(ServerConfig::internet()), data, size);
        assert!(sent <= 3 * data.len() as u64, "{sent} bytes for {}", data.len());
    }
}

/// With a token that is valid for its port, a connection opens only for a marked id, and only to a client's port.
fn connect(data: &[u8]) {
    let secrets = Secrets { token: Key { generation: 0, secret: [0; 16] }, tables: [0; 16] };
    let mut server = Server::new(ServerConfig::internet(), secrets);
    let from = SocketAddr::from(([8, 8, 4, 4], 50_000));
    let Ok(request) = Request::read(data, &Limits::default()) else { return };
    let Verdict::Serve(ticket, head) = server.receive(Time::ZERO, from, data) else { return };
    let (token, mut head) = (server.token(Time::ZERO, &ticket, || 60), head.to_head());
    server.abandon(ticket);
    let Some(token) = token else { return };
    head.fields.push_checked(TOKEN_FIELD.as_bytes(), token.as_str().as_bytes());
    let mut shown = Vec::new();
    write_request(request.header, &head, &mut shown);
    if let Verdict::Serve(ticket, _) = server.receive(Time::ZERO, from, &shown)
        && let Channel::Open { client, .. } = server.channel(Time::ZERO, ticket, 100_000)
    {
        let [first, rest @ ..] = request.header.id.to_bytes();
        assert!(first == Id::MARK && !rest.iter().any(u8::is_ascii_control), "{:?}", request.header.id);
        assert!(client.port() >= FIRST_CLIENT_PORT && client.port() == request.header.port, "{client}");
    }
}

/// The bytes that go back for a datagram whose answer would have `size`.
fn serve(config: ServerConfig, data: &[u8], size: u64) -> u64 {
    let secrets = Secrets { token: Key { generation: 0, secret: [0; 16] }, tables: [0; 16] };
    let mut server = Server::new(config, secrets);
    let from = SocketAddr::from(([8, 8, 4, 4], 50_000));
    let sent = match server.receive(Time::ZERO, from, data) {
        Verdict::Serve(ticket, _) => match server.channel_in_parts(Time::ZERO, ticket, size, || {
            DivisibleResponse::of(200, [(&b"ETag"[..], &b"\"t\""[..])].into_iter(), size)
        }) {
            Channel::Datagram => size,
            Channel::Parts(division) => {
                assert_eq!(division.map(|part| part.length).sum::<u64>(), size);
                division.bytes()
            }
            Channel::Refer(message) => message.as_bytes().len() as u64,
            Channel::Open { .. } => return 120,
            Channel::Connection(_) => panic!("no connection is open"),
        },
        Verdict::Refer(message) => {
            assert_eq!(data[..8], message.as_bytes()[..8]);
            message.as_bytes().len() as u64
        }
        Verdict::Ignore(_) => 0,
    };
    assert_eq!((server.connections(), server.poll(Time::ZERO)), (0, Output::Timeout(None)));
    sent
}
