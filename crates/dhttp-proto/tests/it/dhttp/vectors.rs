//! The test vectors of the specification, `docs/dhttp/vectors.txt`, read as by an independent implementation.
//!
//! Not generated from the code: they were written by hand, and the code must agree.

use http1::message::{Limits, Method};
use roundtrip_dhttp_proto::client::{ConnectionId, Input, Output, Reason};
use roundtrip_dhttp_proto::message::Request;
use roundtrip_dhttp_proto::server::{Channel, Verdict};
use roundtrip_dhttp_proto::{ClientConfig, Extension, Id, ServerConfig};

use super::setting::{at, client, client_at, drain, get, head, server, server_at, ticket};

const VECTORS: &str = include_str!("../../../../../docs/dhttp/vectors.txt");

#[test]
fn every_vector_of_the_specification_holds() {
    let blocks: Vec<&str> = VECTORS.split("\n\n").filter(|block| !block.starts_with('#')).collect();
    assert!(blocks.len() >= 30, "only {} vectors", blocks.len());
    for block in blocks {
        let lines: Vec<(&str, &str)> =
            block.lines().map(|line| line.split_once(": ").expect("`key: value`")).collect();
        let [("name", name), (kind, given), ("expect", expected)] = lines[..] else { panic!("{block}") };
        let found = match kind {
            "request" => request(&bytes(given)),
            "answer" => respond(Method::Get, &bytes(given)),
            "answer-to-head" => respond(Method::Head, &bytes(given)),
            "answer-to-first" => respond_to_first(&bytes(given)),
            "referred" => referred(&bytes(given)),
            "connects" => connects(&bytes(given)),
            "parts" => parts(given),
            "stream" => stream(&bytes(given)),
            "choices" => choices(given),
            other => panic!("{name}: what is a {other}?"),
        };
        assert_eq!(found, expected, "{name}");
    }
}

fn request(datagram: &[u8]) -> String {
    let mut server = server(ServerConfig::paper());
    match server.receive(at(0), client_at(50_000), datagram) {
        Verdict::Ignore(_) => "ignored".to_owned(),
        Verdict::Refer(_) => "refer".to_owned(),
        Verdict::Serve(ticket, head) => {
            server.abandon(ticket);
            let header =
                roundtrip_dhttp_proto::message::Request::read(datagram, &http1::message::Limits::default());
            let header = header.expect("it was served").header;
            let resend = if header.is_resend { "yes" } else { "no" };
            format!("{:016x} {} {resend} {} {}", header.id.0, header.port, head.method, head.target)
        }
    }
}

fn respond(method: Method, datagram: &[u8]) -> String {
    let mut client = client(ClientConfig::paper());
    client.request(at(0), Id(0x0102_0304_0506_0708), server_at(), &head(method, "/", &[])).unwrap();
    drain(&mut client, at(0));
    client.handle(at(1), Input::Datagram(server_at(), datagram));
    match drain(&mut client, at(1)).0.as_slice() {
        [Output::Discarded(..)] => "ignored".to_owned(),
        [Output::Fallback(_, Reason::Referred)] => "refer".to_owned(),
        [Output::Head(_, _, head), Output::End(_)] => format!("{} 0", head.status),
        [Output::Head(_, _, head), Output::Body(_, body), Output::End(_)] => {
            format!("{} {}", head.status, body.len())
        }
        other => panic!("{other:?}"),
    }
}

fn respond_to_first(datagram: &[u8]) -> String {
    let mut client = client(ClientConfig::internet());
    client.request(at(0), Id(0x0102_0304_0506_0708), server_at(), &head(Method::Get, "/", &[])).unwrap();
    drain(&mut client, at(0));
    client.handle(at(1), Input::Datagram(server_at(), datagram));
    match drain(&mut client, at(1)).0.as_slice() {
        [Output::Discarded(..)] => "ignored".to_owned(),
        [Output::Fallback(_, Reason::Referred)] => {
            let token =
                client.tokens().next().map(|(_, token, _)| String::from_utf8_lossy(token).into_owned());
            format!("refer {}", token.as_deref().unwrap_or("-"))
        }
        other => panic!("{other:?}"),
    }
}

fn referred(datagram: &[u8]) -> String {
    let mut server = server(ServerConfig::internet());
    let ticket = ticket(server.receive(at(0), client_at(50_000), datagram));
    let id = ticket.id;
    match server.channel(at(0), ticket, 9_000) {
        Channel::Refer(message) if message.as_bytes().starts_with(&id.to_bytes()) => {
            message.as_bytes().len().to_string()
        }
        other => panic!("{other:?}"),
    }
}

fn connects(datagram: &[u8]) -> String {
    let mut server = server(ServerConfig::internet());
    let from = client_at(50_000);
    let first = ticket(server.receive(at(0), from, datagram));
    let token = server.token(at(0), &first, || 60).expect("it showed none");
    server.abandon(first);
    let line = format!("DHTTP-Token: {}\r\n\r\n", token.as_str());
    let shown = [&datagram[..datagram.len() - 2], line.as_bytes()].concat();
    let ticket = ticket(server.receive(at(0), from, &shown));
    match server.channel(at(0), ticket, 9_000) {
        Channel::Open { client, connection: _ } => client.port().to_string(),
        Channel::Refer(_) => "refer".to_owned(),
        other => panic!("{other:?}"),
    }
}

fn parts(given: &str) -> String {
    let mut client = client(ClientConfig::paper().with(Extension::Parts, true));
    client.request(at(0), Id(0x0102_0304_0506_0708), server_at(), &head(Method::Get, "/", &[])).unwrap();
    drain(&mut client, at(0));
    for datagram in given.split('|') {
        client.handle(at(1), Input::Datagram(server_at(), &bytes(datagram)));
    }
    let (outputs, wake) = drain(&mut client, at(1));
    let reported = outputs.iter().filter(|output| !matches!(output, Output::Discarded(..)));
    match reported.collect::<Vec<_>>().as_slice() {
        [Output::Head(_, _, head), Output::Body(_, body), Output::End(_)] => {
            return format!("{} {}", head.status, String::from_utf8_lossy(body));
        }
        [] => {}
        other => panic!("{other:?}"),
    }
    // The client waits for other parts, then requests the missing ones.
    let wake = wake.expect("it asks again");
    let [Output::Send(_, request)] = &drain(&mut client, wake).0[..] else { panic!("it asks again") };
    let request = Request::read(request, &Limits::default()).expect("a request").head;
    let field = |name| request.fields.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
    match (field("Range"), field("If-Range")) {
        (Some(range), Some(tag)) => format!("asks {range} {tag}"),
        (None, None) => "ignored".to_owned(),
        other => panic!("{other:?}"),
    }
}

fn stream(bytes: &[u8]) -> String {
    let mut client = client(ClientConfig::paper());
    for id in [1, 2] {
        client.request(at(0), Id(id), server_at(), &head(Method::Get, "/", &[])).unwrap();
    }
    drain(&mut client, at(0));
    client.handle(at(1), Input::Accepted(ConnectionId(0), server_at()));
    client.handle(at(1), Input::Received(ConnectionId(0), bytes));
    let (mut reported, mut status, mut length) = (Vec::new(), 0, 0);
    for output in drain(&mut client, at(1)).0 {
        match output {
            Output::Head(_, _, head) => (status, length) = (head.status, 0),
            Output::Body(_, part) => length += part.len(),
            Output::End(Id(id)) => reported.push(format!("{id}:{status}:{length}")),
            Output::Close(_) => reported.push("closed".to_owned()),
            Output::Send(..) | Output::Discarded(..) => {}
            other => panic!("{other:?}"),
        }
    }
    reported.join(" ")
}

fn choices(given: &str) -> String {
    let mut server = server(ServerConfig::paper());
    let channels = given.split(", ").zip(1..).map(|(respond, id)| {
        let (kind, size) = respond.split_once(' ').expect("`fresh SIZE` or `resend SIZE`");
        let request = get(id, kind == "resend");
        let ticket = ticket(server.receive(at(0), client_at(50_000), &request));
        match server.channel(at(0), ticket, size.parse().expect("a size")) {
            Channel::Datagram => "udp",
            Channel::Parts(_) => "parts",
            Channel::Connection(_) | Channel::Open { .. } => "tcp",
            Channel::Refer(_) => "refer",
        }
    });
    channels.collect::<Vec<_>>().join(" ")
}

/// Hexadecimal digits, and text in double quotes with a few escapes.
fn bytes(given: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, part) in given.split('"').enumerate() {
        if index % 2 == 1 {
            let text =
                part.replace("\\r", "\r").replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0");
            bytes.extend_from_slice(text.as_bytes());
        } else {
            let digits: String = part.split_whitespace().collect();
            let pairs = digits.as_bytes().chunks(2);
            bytes.extend(pairs.map(|pair| {
                u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("two digits")
            }));
        }
    }
    bytes
}
