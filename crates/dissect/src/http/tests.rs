//! Conversations of HTTP/1.x, in one piece and in several.

use super::*;
use wire::Time;

fn conversation_of(messages: &[(Side, &str)]) -> Conversation<()> {
    let (mut streams, mut conversation) = (stream::Streams::default(), Conversation::default());
    let mut positions = Both { client: 10, server: 1_000 };
    for (frame, (side, text)) in (1..).zip(messages) {
        let mark = Mark { at: Time::from_nanos(frame), frame };
        let position = positions.of_mut(*side);
        let context = ();
        let mut reader = ConversationReader { conversation: &mut conversation, context: &context };
        streams.sent(*side, *position, text.as_bytes(), text.len() as u64, mark, &mut reader);
        *position += text.len() as u64;
    }
    conversation
}

fn answered(conversation: &Conversation<()>) -> Vec<(&str, u16, u64, u64)> {
    let of = |exchange: &Exchange<()>| {
        (exchange.status.unwrap_or(0), exchange.requested.frame, exchange.ended.frame)
    };
    conversation
        .answered
        .iter()
        .map(|exchange| (exchange.target.as_str(), of(exchange)))
        .map(|(target, (status, requested, ended))| (target, status, requested, ended))
        .collect()
}

use Side::{Client, Server};

#[test]
fn pipelined_requests_get_their_responses_in_order() {
    let conversation = conversation_of(&[
        (Client, "GET /a HTTP/1.1\r\nHost: h\r\n\r\nHEAD /b HTTP/1.1\r\nHo"),
        (Client, "st: h\r\n\r\n"),
        (Client, "POST /c HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /d HTTP/1.1\r\n\r\n"),
        (Server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"),
        (Server, "X: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\nHTTP/1.1 204 No\r\n\r\n"),
    ]);
    assert_eq!(answered(&conversation), [("/a", 200, 1, 5), ("/b", 200, 2, 5), ("/c", 204, 3, 5)]);
    assert_eq!((conversation.unanswered(), conversation.requests), (Some(1), 4));
}

#[test]
fn expectation_is_known_until_its_interim_response() {
    let request = (Client, "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    let response = b"HTTP/1.1 100 Continue\r\n\r\n";
    assert!(conversation_of(&[request]).message_facts(Server, response).expects_continue);
    assert!(conversation_of(&[request]).message_facts(Client, b"body").expects_continue);
    assert!(!conversation_of(&[request]).message_facts(Server, b"HTTP/1.1 417 No\r\n\r\n").expects_continue);
    let reported = conversation_of(&[request, (Server, "HTTP/1.1 100 Continue\r\n\r\n")]);
    assert!(!reported.message_facts(Client, b"body").expects_continue);
    assert_eq!(reported.unanswered(), Some(1));
}

#[test]
fn response_without_length_ends_with_the_connection() {
    let mut conversation =
        conversation_of(&[(Client, "GET / HTTP/1.0\r\n\r\n"), (Server, "HTTP/1.0 200 OK\r\n\r\nsome")]);
    assert!(conversation.message_facts(Server, b"").is_until_close);
    conversation.ended(Server, Mark { at: Time::from_nanos(9), frame: 9 });
    assert_eq!(answered(&conversation), [("/", 200, 1, 9)]);
}

#[test]
fn other_protocols_are_ignored() {
    let hello = conversation_of(&[(Client, "\u{16}\u{3}\u{1}\u{2}hello")]);
    assert_eq!((hello.unanswered(), hello.message_facts(Server, b"").is_within), (None, None));
    let upgraded = conversation_of(&[
        (Client, "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
        (Server, "HTTP/1.1 101 Switching\r\n\r\n"),
    ]);
    assert_eq!(upgraded.unanswered(), None);
}

#[test]
fn out_of_order_pieces_wait_for_their_turn() {
    let (mut streams, mut conversation) = (stream::Streams::default(), Conversation::default());
    let (first, last) = ("GET / HTTP/1.1\r\n", "Host: h\r\n\r\n");
    let context = ();
    let mark = |frame| Mark { at: Time::from_nanos(frame), frame };
    streams.sent(
        Client,
        100,
        b"G",
        1,
        mark(1),
        &mut ConversationReader { conversation: &mut conversation, context: &context },
    );
    streams.sent(
        Client,
        116,
        last.as_bytes(),
        last.len() as u64,
        mark(2),
        &mut ConversationReader { conversation: &mut conversation, context: &context },
    );
    assert_eq!(conversation.requests, 0);
    streams.sent(
        Client,
        100,
        first.as_bytes(),
        first.len() as u64,
        mark(3),
        &mut ConversationReader { conversation: &mut conversation, context: &context },
    );
    assert_eq!(conversation.requests, 1);
}

#[test]
fn empty_line_after_a_response_begins_no_other() {
    let is_within = |rest: &'static str| {
        let response = (Server, "HTTP/1.1 200 OK\nContent-Length: 3\n\nend");
        let messages = [(Client, "GET / HTTP/1.1\n\n"), response, (Server, rest)];
        conversation_of(&messages).message_facts(Server, b"").is_within
    };
    assert_eq!((is_within("\r\n"), is_within("\nHTTP")), (Some(false), Some(true)));
}
