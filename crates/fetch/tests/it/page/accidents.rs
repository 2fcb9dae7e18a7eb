//! Failing pages: hostile servers, each defined by its bytes in response to a request and by its end.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;

use http1::message::{Limits, Method, PeerFault, Validator};
use proptest::prelude::*;
use roundtrip_fetch::{
    Break, ConnectionId, Failure, Fetcher, FromWire, Output, PageEvent, Pipelining, Plan, PlannedObject,
    Report, Shape, Wire,
};
use wire::{Bytes, Duration, Time};

use super::back_to_back::{pipelined, plan};

/// Behaviour of a server on a connection.
#[derive(Clone, Debug)]
struct Behaviour {
    /// Responses to the first request, the second, and so on; none to later ones.
    responses: Vec<Vec<u8>>,
    /// Behaviour after the last response.
    then: AfterResponses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterResponses {
    Close,
    Break(Break),
    Silence,
}

/// Sends these responses on one connection, in order, and then behaves as `then`.
fn sends(responses: &[&str], then: AfterResponses) -> Behaviour {
    Behaviour { responses: responses.iter().map(|response| response.as_bytes().to_vec()).collect(), then }
}

const REFUSES: Behaviour = Behaviour { responses: Vec::new(), then: AfterResponses::Break(Break::Refused) };
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Outcome of a page.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    events: Vec<PageEvent>,
    connections: u32,
    ended: Time,
}

impl Outcome {
    fn completed(&self) -> Vec<usize> {
        let object = |event: &PageEvent| match event {
            PageEvent::ObjectComplete { object, .. } => Some(*object),
            _ => None,
        };
        self.events.iter().filter_map(object).collect()
    }

    fn failures(&self) -> Vec<(usize, Failure)> {
        let failure = |event: &PageEvent| match event {
            PageEvent::ObjectFailed { object, failure } => Some((*object, *failure)),
            _ => None,
        };
        self.events.iter().filter_map(failure).collect()
    }
}

/// Two objects of 5 bytes each.
fn page(shape: Shape) -> Plan {
    Plan { deadline: Duration::from_secs(60), ..plan(&[5, 5], shape) }
}

/// Fetches a page; connections get these behaviours in turn, and the last of them from then on.
fn fetch(plan: Plan, behaviours: &[Behaviour], cut: usize) -> Outcome {
    let mut now = Time::ZERO;
    let objects = plan.objects.len();
    let mut robot = Fetcher::http1(now, plan).unwrap();
    let mut outcome = Outcome { events: Vec::new(), connections: 0, ended: now };
    let mut active: BTreeMap<ConnectionId, (Behaviour, Vec<u8>)> = BTreeMap::new();
    let mut inputs: VecDeque<(ConnectionId, Event)> = VecDeque::new();
    loop {
        match robot.poll(now) {
            Output::Wire(Wire::Open(id, _)) => {
                let behaviour = behaviours.get(id.0 as usize).or(behaviours.last()).unwrap().clone();
                let refused = behaviour.responses.is_empty() && behaviour.then == REFUSES.then;
                inputs.push_back((id, if refused { Event::End(behaviour.then) } else { Event::Connected }));
                active.insert(id, (behaviour, Vec::new()));
                outcome.connections += 1;
                assert!(outcome.connections < 100, "it opens connections without end");
            }
            Output::Wire(Wire::Send(id, write)) => {
                let (behaviour, requested) = active.get_mut(&id).unwrap();
                requested.extend(write);
                while let Some(end) = requested.windows(4).position(|end| end == b"\r\n\r\n") {
                    requested.drain(..end + 4);
                    inputs.extend(behaviour.respond(id, cut));
                }
            }
            Output::Wire(Wire::Close(id, _)) => {
                assert!(active.remove(&id).is_some());
                inputs.retain(|(other, _)| *other != id);
            }
            Output::Wire(Wire::Datagram(..)) => panic!("HTTP/1 sends no datagrams"),
            Output::Report(Report { at, event }) => {
                assert_eq!(at, now);
                outcome.events.push(event);
            }
            Output::Timeout(wake) => {
                outcome.ended = now;
                let Some((id, event)) = inputs.pop_front() else {
                    let Some(wake) = wake else { break };
                    assert!(wake > now, "a timeout that is over");
                    now = wake;
                    continue;
                };
                robot.handle(now, event.input(id));
            }
        }
    }
    assert!(robot.is_done());
    let resolved = outcome.completed().len() + outcome.failures().len();
    assert_eq!(resolved, objects, "each object is reported once: {:?}", outcome.events);
    outcome
}

enum Event {
    Connected,
    Bytes(Vec<u8>),
    End(AfterResponses),
}

impl Event {
    fn input(&self, id: ConnectionId) -> FromWire<'_> {
        match self {
            Self::Connected => FromWire::Connected(id),
            Self::Bytes(bytes) => FromWire::Received(id, bytes),
            Self::End(AfterResponses::Break(cause)) => FromWire::Broken(id, *cause),
            Self::End(AfterResponses::Close | AfterResponses::Silence) => FromWire::EndOfStream(id),
        }
    }
}

impl Behaviour {
    fn respond(&mut self, id: ConnectionId, cut: usize) -> Vec<(ConnectionId, Event)> {
        let mut events = Vec::new();
        if !self.responses.is_empty() {
            let response = self.responses.remove(0);
            events.extend(response.chunks(cut).map(|piece| (id, Event::Bytes(piece.to_vec()))));
        }
        if self.responses.is_empty() && self.then != AfterResponses::Silence {
            events.push((id, Event::End(self.then)));
            // Only once.
            self.then = AfterResponses::Silence;
        }
        events
    }
}

/// The outcome, asserted to be the same at every split.
fn at_every_cut(plan: &Plan, behaviours: &[Behaviour]) -> Outcome {
    let whole = fetch(plan.clone(), behaviours, usize::MAX);
    for cut in 1..100 {
        assert_eq!(fetch(plan.clone(), behaviours, cut), whole, "cut {cut}");
    }
    whole
}

#[test]
fn closed_keep_alive_connection_is_reopened() {
    for then in [AfterResponses::Close, AfterResponses::Break(Break::Reset)] {
        let outcome = at_every_cut(&page(Shape::Http11), &[sends(&[OK], then)]);
        assert_eq!(outcome.completed(), [0, 1]);
        assert_eq!(outcome.connections, 2);
    }
}

#[test]
fn request_without_a_response_is_retried_a_limited_number_of_times() {
    for then in [AfterResponses::Close, AfterResponses::Break(Break::Reset)] {
        let unresponsive = sends(&[""], then);
        let retried = at_every_cut(
            &page(Shape::Http11),
            &[unresponsive.clone(), sends(&[OK, OK], AfterResponses::Silence)],
        );
        assert_eq!((retried.completed(), retried.connections), (vec![0, 1], 2));
        let exhausted = at_every_cut(&page(Shape::Http11), &[unresponsive]);
        let failure = match then {
            AfterResponses::Break(cause) => Failure::Broken(cause),
            AfterResponses::Close | AfterResponses::Silence => Failure::Unanswered,
        };
        assert_eq!((exhausted.failures(), exhausted.connections), (vec![(0, failure), (1, failure)], 6));
    }
    let refused = fetch(page(Shape::Http11), &[REFUSES], 1);
    let failure = Failure::Broken(Break::Refused);
    assert_eq!((refused.failures(), refused.connections), (vec![(0, failure), (1, failure)], 6));
}

#[test]
fn broken_pipeline_continues_after_the_last_response() {
    for then in [AfterResponses::Close, AfterResponses::Break(Break::Reset)] {
        for responses in 1..5 {
            let page = plan(&[5; 5], Shape::Http11Pipelined(Pipelining::default()));
            let outcome = at_every_cut(
                &page,
                &[sends(&[OK; 5][..responses], then), sends(&[OK; 5], AfterResponses::Silence)],
            );
            assert_eq!(
                (outcome.completed(), outcome.connections),
                (vec![0, 1, 2, 3, 4], 2),
                "{responses} {then:?}"
            );
        }
    }
}

#[test]
fn broken_pipeline_loses_only_the_object_with_a_partial_response() {
    let page = plan(&[5; 4], Shape::Http11Pipelined(Pipelining::default()));
    for (response, then, failure) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            AfterResponses::Close,
            Failure::Fault(PeerFault::Truncated),
        ),
        ("SSH-2.0-OpenSSH_9.6\r\n", AfterResponses::Silence, Failure::Fault(PeerFault::StatusLine)),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            AfterResponses::Break(Break::Reset),
            Failure::Broken(Break::Reset),
        ),
    ] {
        let outcome =
            at_every_cut(&page, &[sends(&[OK, response], then), sends(&[OK; 3], AfterResponses::Silence)]);
        assert_eq!(outcome.failures(), [(1, failure)]);
        assert_eq!((outcome.completed(), outcome.connections), (vec![0, 2, 3], 2));
    }
}

#[test]
fn silent_server_gets_each_request_as_often_as_planned() {
    let page = plan(&[5; 4], Shape::Http11Pipelined(Pipelining::default()));
    let outcome = at_every_cut(&page, &[sends(&[""], AfterResponses::Close)]);
    assert_eq!((outcome.failures().len(), outcome.connections), (4, 12));
}

#[test]
fn unsafe_request_is_never_retried() {
    for (method, tries) in [("GET", 3), ("HEAD", 3), ("POST", 1)] {
        let mut plan = plan(&[5], Shape::Http11);
        plan.objects[0].method = match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            other => Method::Other(other.to_owned()),
        };
        let outcome = fetch(plan, &[sends(&[""], AfterResponses::Close)], 1);
        assert_eq!(
            (outcome.failures(), outcome.connections),
            (vec![(0, Failure::Unanswered)], tries),
            "{method}"
        );
    }
}

#[test]
fn response_to_head_has_no_body_whatever_its_length() {
    let mut plan = page(Shape::Http11);
    plan.objects[0] = PlannedObject { method: Method::Head, ..PlannedObject::get("/", None) };
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let outcome = at_every_cut(&plan, &[sends(&[head, OK], AfterResponses::Silence)]);
    assert_eq!((outcome.completed(), outcome.connections), (vec![0, 1], 1));
}

#[test]
fn partial_response_is_a_failure_without_a_retry() {
    let parts = ["H", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"];
    for part in parts {
        for (then, failure) in [
            (AfterResponses::Close, Failure::Fault(PeerFault::Truncated)),
            (AfterResponses::Break(Break::Reset), Failure::Broken(Break::Reset)),
        ] {
            let outcome = at_every_cut(
                &page(Shape::Http11),
                &[sends(&[part], then), sends(&[OK], AfterResponses::Silence)],
            );
            let failure = match (then, part.ends_with("\r\n\r\n")) {
                (AfterResponses::Close, true) => Failure::Unanswered,
                _ => failure,
            };
            assert_eq!(outcome.failures(), [(0, failure)], "{part:?} {then:?}");
            assert_eq!(outcome.completed(), [1]);
        }
    }
}

#[test]
fn a_body_without_a_length_ends_with_the_stream_but_not_with_a_reset() {
    let unbounded = "HTTP/1.1 200 OK\r\n\r\nhello";
    let closed = at_every_cut(&page(Shape::Http11), &[sends(&[unbounded], AfterResponses::Close)]);
    assert_eq!((closed.completed(), closed.connections), (vec![0, 1], 2));
    let reset =
        at_every_cut(&page(Shape::Http11), &[sends(&[unbounded], AfterResponses::Break(Break::Reset))]);
    assert_eq!(reset.failures().len(), 2);
}

#[test]
fn invalid_http_fails_the_object_and_closes_the_connection() {
    for (response, fault) in [
        ("SSH-2.0-OpenSSH_9.6\r\n", PeerFault::StatusLine),
        ("HTTP/1.1 OK\r\n\r\n", PeerFault::StatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n", PeerFault::Version),
        ("HTTP/1.1 200 OK\n\n", PeerFault::BareLineFeed),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", PeerFault::Switched),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", PeerFault::ContentLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello", PeerFault::Chunk),
    ] {
        let behaviours = [sends(&[response], AfterResponses::Silence), sends(&[OK], AfterResponses::Silence)];
        let outcome = at_every_cut(&page(Shape::Http11), &behaviours);
        assert_eq!(outcome.failures(), [(0, Failure::Fault(fault))], "{response:?}");
        assert_eq!((outcome.completed(), outcome.connections), (vec![1], 2), "{response:?}");
    }
}

#[test]
fn limits_end_endless_headers_bodies_and_interim_responses() {
    let limits = Limits { head_bytes: 200, body_bytes: 50, interim_responses: 2, ..Limits::default() };
    let plan = Plan { limits, ..page(Shape::Http11) };
    let head = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(200));
    let body = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(51));
    for (response, fault) in [
        (head, PeerFault::HeadTooLarge),
        (body, PeerFault::BodyTooLarge),
        ("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3), PeerFault::TooManyInterim),
    ] {
        let outcome = at_every_cut(
            &plan,
            &[sends(&[&response], AfterResponses::Silence), sends(&[OK], AfterResponses::Silence)],
        );
        assert_eq!(outcome.failures(), [(0, Failure::Fault(fault))]);
    }
    let interim_twice = format!("{}{OK}", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(2));
    let outcome = at_every_cut(&plan, &[sends(&[&interim_twice, &interim_twice], AfterResponses::Silence)]);
    assert_eq!(
        (outcome.completed(), outcome.connections),
        (vec![0, 1], 1),
        "each response has its own allowance"
    );
}

#[test]
fn wrong_content_length_is_detected() {
    let long = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhello";
    let outcome = fetch(
        page(Shape::Http11),
        &[sends(&[long], AfterResponses::Silence), sends(&[OK], AfterResponses::Silence)],
        99,
    );
    let size = Failure::Size { expected: Bytes::new(5), received: Bytes::new(4) };
    assert_eq!(outcome.failures(), [(0, size)]);
    let fault = PageEvent::Fault { connection: ConnectionId(0), fault: PeerFault::Unsolicited };
    assert!(outcome.events.contains(&fault), "{:?}", outcome.events);
    assert_eq!(outcome.completed(), [1]);
}

#[test]
fn unsolicited_response_is_not_taken_for_the_next_one() {
    let doubled = OK.repeat(2);
    for shape in [Shape::Http10KeepAlive, Shape::Http11] {
        let outcome = fetch(page(shape), &[sends(&[&doubled], AfterResponses::Silence)], usize::MAX);
        assert_eq!((outcome.completed(), outcome.connections), (vec![0, 1], 2));
    }
}

#[test]
fn an_error_status_fails_its_object_and_keeps_the_connection() {
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnever";
    let outcome = at_every_cut(&page(Shape::Http11), &[sends(&[missing, OK], AfterResponses::Silence)]);
    assert_eq!(outcome.failures(), [(0, Failure::Status(404))]);
    assert_eq!((outcome.completed(), outcome.connections), (vec![1], 1));
}

#[test]
fn not_modified_is_valid_only_for_a_conditional_request() {
    let unchanged = "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 5\r\n\r\n";
    let mut plan = page(Shape::Http11);
    plan.objects[0].validator = Some(Validator::EntityTag("\"x\"".to_owned()));
    let outcome = at_every_cut(&plan, &[sends(&[unchanged, unchanged], AfterResponses::Silence)]);
    assert_eq!((outcome.completed(), outcome.failures()), (vec![0], vec![(1, Failure::Status(304))]));
}

#[test]
fn connection_for_one_request_ignores_offered_keep_alive() {
    let shape = Shape::Http10 { parallel: NonZeroU16::MIN };
    let outcome = at_every_cut(&page(shape), &[sends(&[OK, OK], AfterResponses::Silence)]);
    assert_eq!((outcome.completed(), outcome.connections), (vec![0, 1], 2));
}

#[test]
fn silent_connection_ends_at_the_deadline() {
    for response in ["", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"] {
        let outcome = fetch(page(Shape::Http11), &[sends(&[response], AfterResponses::Silence)], 99);
        assert_eq!(outcome.failures(), [(0, Failure::Deadline), (1, Failure::Deadline)]);
        assert_eq!(outcome.ended, Time::ZERO + Duration::from_secs(60));
    }
}

#[test]
fn announced_close_is_awaited_for_a_limited_time() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let outcome = at_every_cut(&page(Shape::Http11), &[sends(&[closing], AfterResponses::Silence)]);
    assert_eq!((outcome.completed(), outcome.connections), (vec![0, 1], 2));
    assert_eq!(outcome.ended, Time::ZERO + Duration::from_secs(2));
}

proptest! {
    #[test]
    fn page_ends_under_any_server_behaviour(
        responses in prop::collection::vec(
            prop_oneof![
                Just(OK.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..50),
                (0..OK.len()).prop_map(|length| OK.as_bytes()[..length].to_vec()),
            ],
            0..5,
        ),
        then in prop_oneof![Just(AfterResponses::Close), Just(AfterResponses::Break(Break::Reset)), Just(AfterResponses::Silence)],
        shape in prop_oneof![Just(Shape::Http10KeepAlive), Just(Shape::Http11), pipelined()],
        cut in 1_usize..60,
    ) {
        // `fetch` itself asserts that every object is resolved once and that the robot ends.
        fetch(page(shape), &[Behaviour { responses, then }], cut);
    }
}
