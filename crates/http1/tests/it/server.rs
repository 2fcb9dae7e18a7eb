//! The server's connection, input by input: its outputs to the application and the socket, and how it closes.
//! Not a page: robot against server is in `page`.

use roundtrip_http1::message::{Fields, PeerFault};
use roundtrip_http1::server::{
    ConnectionTimeouts, Input, Misuse, Output, RequestId, Response, ResponseBody, ServerConfig,
    ServerConnection,
};
use wire::{Duration, Time};

const NOW: Time = Time::ZERO;
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Outputs of a connection, reduced to those that these tests check.
#[derive(Debug, PartialEq, Eq)]
enum OutputEvent {
    Requested(u64, String),
    Body(String),
    Ended(u64),
    Aborted(u64),
    Sent(String),
    HalfClosed,
    Closed,
    Reset,
    Rejected(PeerFault),
}

struct Client(ServerConnection);

impl Client {
    fn connect() -> Self {
        Self(ServerConnection::new(NOW, ServerConfig::default()))
    }

    fn receive(&mut self, bytes: impl AsRef<[u8]>) -> Vec<OutputEvent> {
        self.0.handle(NOW, Input::Received(bytes.as_ref()));
        self.poll_outputs(NOW)
    }

    fn ends(&mut self) -> Vec<OutputEvent> {
        self.0.handle(NOW, Input::EndOfStream);
        self.poll_outputs(NOW)
    }

    fn respond(&mut self, id: u64, response: Response) -> Vec<OutputEvent> {
        self.0.respond(NOW, RequestId(id), response).unwrap();
        self.poll_outputs(NOW)
    }

    fn poll_outputs(&mut self, now: Time) -> Vec<OutputEvent> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let mut outputs = Vec::new();
        loop {
            outputs.push(match self.0.poll(now) {
                Output::Request(RequestId(id), head) => OutputEvent::Requested(id, head.target),
                Output::RequestBody(_, part) => OutputEvent::Body(text(part)),
                Output::RequestEnd(RequestId(id)) => OutputEvent::Ended(id),
                Output::RequestAborted(RequestId(id)) => OutputEvent::Aborted(id),
                Output::Send(write) => OutputEvent::Sent(text(write)),
                Output::HalfClose => OutputEvent::HalfClosed,
                Output::Close => OutputEvent::Closed,
                Output::Abort => OutputEvent::Reset,
                Output::Fault(fault) => OutputEvent::Rejected(fault),
                Output::Timeout(_) => return outputs,
            });
        }
    }

    fn deadline(&mut self) -> Option<Time> {
        match self.0.poll(NOW) {
            Output::Timeout(deadline) => deadline,
            other => panic!("{other:?}"),
        }
    }
}

fn hello() -> Response {
    Response::whole(200, "text/plain", b"hello"[..].into()).unwrap()
}

fn streamed(body: ResponseBody) -> Response {
    Response { status: 200, fields: Fields::new(), body }
}

fn requested(id: u64) -> [OutputEvent; 2] {
    [OutputEvent::Requested(id, "/".to_owned()), OutputEvent::Ended(id)]
}

#[test]
fn responses_state_whether_the_connection_persists() {
    let ok = "Content-Type: text/plain\r\n";
    for (request, head, stays) in [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", format!("HTTP/1.1 200 OK\r\n{ok}"), true),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            format!("HTTP/1.1 200 OK\r\n{ok}Connection: close\r\n"),
            false,
        ),
        ("GET / HTTP/1.0\r\n\r\n", format!("HTTP/1.0 200 OK\r\n{ok}"), false),
        (
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            format!("HTTP/1.0 200 OK\r\n{ok}Connection: Keep-Alive\r\n"),
            true,
        ),
    ] {
        let mut client = Client::connect();
        assert_eq!(client.receive(request), requested(0));
        let mut expected = vec![OutputEvent::Sent(format!("{head}Content-Length: 5\r\n\r\nhello"))];
        expected.extend((!stays).then_some(OutputEvent::HalfClosed));
        assert_eq!(client.respond(0, hello()), expected, "{request}");
        assert_eq!(client.ends(), [OutputEvent::Closed]);
    }
}

#[test]
fn requests_sent_ahead_are_handed_over_one_at_a_time() {
    let mut client = Client::connect();
    assert_eq!(client.receive([GET, GET, &GET[..9]].concat()), requested(0));
    let mut after_first = client.respond(0, hello());
    assert_eq!(after_first.split_off(1), requested(1));
    assert!(client.0.is_reading());
    assert_eq!(client.receive(&GET[9..]), []);
    assert_eq!(client.ends(), []);
    assert!(!client.0.is_reading());
    assert_eq!(client.respond(1, hello()).split_off(1), requested(2));
    assert_eq!(client.respond(2, hello()).split_off(1), [OutputEvent::Closed]);
}

#[test]
fn reading_pauses_for_a_client_that_pipelines_without_end() {
    let mut client = Client::connect();
    let pushed = (0..).take_while(|_| {
        client.receive(GET);
        client.0.is_reading()
    });
    assert!((100..2_000).contains(&pushed.count()));
}

#[test]
fn a_head_request_gets_the_header_section_alone() {
    let mut client = Client::connect();
    client.receive("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(client.respond(0, hello()), [OutputEvent::Sent(head.to_owned())]);
    client.receive(GET);
    let not_modified = client.respond(1, Response::empty(304));
    assert_eq!(not_modified, [OutputEvent::Sent("HTTP/1.1 304 Not Modified\r\n\r\n".to_owned())]);
}

#[test]
fn a_body_in_parts_is_chunked_or_counted_or_ends_with_the_connection() {
    for (request, body, writes) in [
        (
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            ResponseBody::Unknown,
            vec![
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                "6\r\n world\r\n",
                "0\r\n\r\n",
            ],
        ),
        (
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            ResponseBody::Length(11),
            vec!["HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello", " world"],
        ),
        (
            "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
            ResponseBody::Unknown,
            vec!["HTTP/1.0 200 OK\r\n\r\nhello", " world", "(end)"],
        ),
    ] {
        let mut client = Client::connect();
        client.receive(request);
        let mut outputs = client.respond(0, streamed(body));
        for part in ["hello", "", " world"] {
            client.0.send_part(RequestId(0), part.as_bytes()).unwrap();
        }
        client.0.finish(NOW, RequestId(0)).unwrap();
        outputs.extend(client.poll_outputs(NOW));
        let expected = writes.into_iter().map(|write| match write {
            "(end)" => OutputEvent::HalfClosed,
            write => OutputEvent::Sent(write.to_owned()),
        });
        assert_eq!(outputs, expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_request_with_a_body_is_handed_over_in_parts() {
    let mut client = Client::connect();
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(
        client.receive(format!("{head}he")),
        [OutputEvent::Requested(0, "/".to_owned()), OutputEvent::Body("he".to_owned())]
    );
    assert_eq!(client.receive("llo"), [OutputEvent::Body("llo".to_owned()), OutputEvent::Ended(0)]);
}

#[test]
fn response_before_the_end_of_its_request_is_the_last() {
    let mut client = Client::connect();
    client.receive("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe");
    assert_eq!(client.respond(0, Response::empty(413)).split_off(1), [OutputEvent::HalfClosed]);
    assert_eq!(client.receive("llo"), []);
    assert_eq!(client.ends(), [OutputEvent::Closed]);
}

#[test]
fn bad_request_gets_400_and_is_read_no_further() {
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(8_000));
    let long_head = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(16_384));
    let many_fields = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(100));
    let long_body = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    for (request, fault, status) in [
        (&*long_target, PeerFault::TargetTooLong, 414),
        (&*long_head, PeerFault::HeadTooLarge, 431),
        (&*many_fields, PeerFault::TooManyFields, 431),
        (&*long_body, PeerFault::BodyTooLarge, 413),
        ("GET /\r\n\r\n", PeerFault::RequestLine, 400),
        ("\x16\x03\x01", PeerFault::ControlCharacter, 400),
        ("GET / HTTP/1.1\r\n\r\n", PeerFault::Host, 400),
        ("GET / HTTP/3.0\r\n\r\n", PeerFault::Version, 505),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", PeerFault::TransferEncoding, 501),
    ] {
        let mut client = Client::connect();
        let outputs = client.receive(request);
        assert_eq!(outputs[0], OutputEvent::Rejected(fault), "{request:?}");
        let OutputEvent::Sent(response) = &outputs[1] else { panic!("{outputs:?}") };
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert!(response.ends_with("\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), "{response}");
        assert_eq!(outputs[2..], [OutputEvent::HalfClosed]);
        assert_eq!(client.receive(GET), []);
    }
}

#[test]
fn truncated_request_is_aborted() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = Client::connect();
    client.receive(post);
    let outputs = client.receive("nonsense\r\n");
    assert_eq!(outputs[..2], [OutputEvent::Rejected(PeerFault::Chunk), OutputEvent::Aborted(0)]);
    assert_eq!(client.0.respond(NOW, RequestId(0), hello()), Err(Misuse::NotAwaited(RequestId(0))));

    let mut client = Client::connect();
    client.receive(post);
    let outputs = client.ends();
    assert_eq!(outputs[..2], [OutputEvent::Rejected(PeerFault::Truncated), OutputEvent::Aborted(0)]);
    assert_eq!(outputs[3..], [OutputEvent::Closed]);

    let mut client = Client::connect();
    client.receive(post);
    client.respond(0, streamed(ResponseBody::Unknown));
    let outputs = client.receive("nonsense\r\n");
    assert_eq!(
        outputs,
        [OutputEvent::Rejected(PeerFault::Chunk), OutputEvent::Aborted(0), OutputEvent::Reset]
    );

    let mut client = Client::connect();
    client.receive(GET);
    client.0.handle(NOW, Input::Reset);
    assert_eq!(client.poll_outputs(NOW), [OutputEvent::Aborted(0), OutputEvent::Closed]);
}

#[test]
fn rfc9110_10_1_1_expectations_with_a_body_get_100() {
    let continue_response = || OutputEvent::Sent("HTTP/1.1 100 Continue\r\n\r\n".to_owned());
    for (request, gets_100) in [
        ("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", true),
        ("POST / HTTP/1.1\r\nHost: h\r\nexpect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n", true),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", false),
        ("POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n", false),
    ] {
        let outputs = Client::connect().receive(request);
        assert_eq!(outputs.contains(&continue_response()), gets_100, "{request}: {outputs:?}");
    }
}

#[test]
fn rfc9110_15_2_interim_responses_are_sent_immediately_and_only_before_the_final_one() {
    let id = RequestId(0);
    let mut hints = Fields::new();
    hints.push("Link", "</a>").unwrap();
    let mut client = Client::connect();
    assert_eq!(client.0.interim(id, 103, &hints), Err(Misuse::NotAwaited(id)));
    client.receive(GET);
    for status in [99, 101, 200] {
        assert_eq!(client.0.interim(id, status, &hints), Err(Misuse::Status(status)));
    }
    client.0.interim(id, 103, &hints).unwrap();
    assert_eq!(
        client.poll_outputs(NOW),
        [OutputEvent::Sent("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_owned())]
    );
    client.0.respond(NOW, id, streamed(ResponseBody::Length(3))).unwrap();
    assert_eq!(client.0.interim(id, 103, &hints), Err(Misuse::OutOfOrder(id)));
    let mut old = Client::connect();
    old.receive("GET / HTTP/1.0\r\n\r\n");
    old.0.interim(id, 103, &hints).unwrap();
    assert_eq!(old.poll_outputs(NOW), []);
}

#[test]
fn rfc9112_7_1_2_trailers_only_follow_chunks() {
    let id = RequestId(0);
    let mut trailers = Fields::new();
    trailers.push("X-Sum", "9").unwrap();
    for (request, body, end) in [
        (GET, ResponseBody::Unknown, "0\r\nX-Sum: 9\r\n\r\n"),
        (GET, ResponseBody::Length(1), "x"),
        (b"GET / HTTP/1.0\r\n\r\n", ResponseBody::Unknown, "x"),
    ] {
        let mut client = Client::connect();
        client.receive(request);
        client.0.respond(NOW, id, streamed(body)).unwrap();
        client.0.send_part(id, b"x").unwrap();
        client.0.finish_with(NOW, id, &trailers).unwrap();
        let sent: String = client
            .poll_outputs(NOW)
            .into_iter()
            .filter_map(|output| match output {
                OutputEvent::Sent(text) => Some(text),
                _ => None,
            })
            .collect();
        assert!(sent.ends_with(end), "{sent}");
    }
}

#[test]
fn rejects_responses_that_would_not_arrive_as_meant() {
    let id = RequestId(0);
    let mut client = Client::connect();
    let server = &mut client.0;
    assert_eq!(server.respond(NOW, id, hello()), Err(Misuse::NotAwaited(id)));
    server.handle(NOW, Input::Received(GET));
    assert_eq!(server.send_part(id, b"x"), Err(Misuse::OutOfOrder(id)));
    assert_eq!(server.finish(NOW, id), Err(Misuse::OutOfOrder(id)));
    assert_eq!(server.respond(NOW, id, Response::empty(101)), Err(Misuse::Status(101)));
    let mut framed = hello();
    framed.fields.push("content-length", "7").unwrap();
    assert_eq!(server.respond(NOW, id, framed), Err(Misuse::ConnectionField("Content-Length")));
    server.respond(NOW, id, streamed(ResponseBody::Length(3))).unwrap();
    assert_eq!(server.respond(NOW, id, hello()), Err(Misuse::OutOfOrder(id)));
    assert_eq!(server.send_part(id, b"four"), Err(Misuse::TooLong(id)));
    server.send_part(id, b"tw").unwrap();
    assert_eq!(server.finish(NOW, id), Err(Misuse::TooShort(id)));
    assert_eq!(client.poll_outputs(NOW).last(), Some(&OutputEvent::Reset));
}

#[test]
fn empty_line_before_the_end_is_ignored() {
    let mut client = Client::connect();
    assert_eq!(client.receive("\r\n"), []);
    assert_eq!(client.ends(), [OutputEvent::Closed]);
    let mut client = Client::connect();
    assert_eq!(client.receive("\r"), []);
    assert_eq!(client.ends()[0], OutputEvent::Rejected(PeerFault::Truncated));
}

#[test]
fn timeouts_depend_on_the_awaited_event() {
    let ConnectionTimeouts { idle, request, least_rate: _, linger } = ConnectionTimeouts::default();
    let mut client = Client::connect();
    assert_eq!(client.deadline(), Some(NOW + idle));
    assert_eq!(client.poll_outputs(NOW + idle), [OutputEvent::HalfClosed]);
    assert_eq!(client.poll_outputs(NOW + idle + linger), [OutputEvent::Closed]);
    assert_eq!(client.deadline(), None);

    let mut client = Client::connect();
    client.receive(&GET[..3]);
    client.0.handle(NOW + Duration::from_secs(1), Input::Received(&GET[3..9]));
    assert_eq!(client.deadline(), Some(NOW + request), "a slow header section does not extend its timeout");
    let outputs = client.poll_outputs(NOW + request);
    assert_eq!(outputs[0], OutputEvent::Rejected(PeerFault::TooSlow));
    assert!(matches!(&outputs[1], OutputEvent::Sent(response) if response.starts_with("HTTP/1.1 408 ")));

    let mut client = Client::connect();
    client.receive(GET);
    assert_eq!(client.deadline(), None, "an application has no timeout");
}

#[test]
fn slow_body_times_out_and_steady_body_gets_more_time() {
    let request = ConnectionTimeouts::default().request;
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
    let mut client = Client::connect();
    client.receive(head);
    let mut now = NOW;
    for _ in 0..29 {
        now += Duration::from_secs(1);
        client.0.handle(now, Input::Received(b"x"));
        client.poll_outputs(now);
    }
    let end = NOW + request + Duration::from_millis(29 * 2);
    assert_eq!(client.deadline(), Some(end), "each byte adds two milliseconds");
    assert_eq!(client.poll_outputs(end)[0], OutputEvent::Rejected(PeerFault::TooSlow));

    let mut client = Client::connect();
    client.receive(head);
    client.0.handle(now, Input::Received(&[b'x'; 90_000]));
    assert_eq!(client.poll_outputs(now).len(), 1);
    assert_eq!(client.deadline(), Some(now + request), "no more than the timeout itself");
}
