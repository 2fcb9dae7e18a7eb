//! Invariants for any bytes that a client receives: the reader's events are the same at every cut, and the robot ends and
//! reports every object once. Not a generator: the bytes are the server's output.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use fetch::{
    Break, ConnectionId, EmbeddedObjects, Fetcher, FirstBytes, FirstBytesPolicy, FromWire, Output, PageEvent,
    Pipelining, Plan, PlannedObject, Shape, Wire,
};
use http1::message::{Event, Limits, Method, PeerFault, ResponseReader};
use wire::Time;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    for responses in [Method::Get, Method::Head] {
        let whole = read(data, data.len().max(1), &responses);
        for cut in [1, 2, 7, 64] {
            assert_eq!(read(data, cut, &responses), whole, "cut {cut}, answering {responses:?}");
        }
    }
    let pipelined = Shape::Http11Pipelined(Pipelining::default());
    for shape in [Shape::Http10KeepAlive, Shape::Http11, pipelined] {
        for then in [Some(None), Some(Some(Break::Reset)), None] {
            for cut in [1 + data.len() % 9, data.len().max(1)] {
                fetch(data, cut, shape, then);
            }
        }
    }
}

/// Everything the reader tells, bodies in one piece, and how it ends.
fn read(data: &[u8], cut: usize, responses: &Method) -> (Vec<String>, Result<bool, PeerFault>) {
    let mut reader = ResponseReader::new(limits());
    let (mut reported, mut body) = (Vec::new(), Vec::new());
    for mut piece in data.chunks(cut) {
        loop {
            match reader.read(&mut piece, responses) {
                Ok(None) => break,
                Ok(Some(Event::Head(head, framing))) => reported.push(format!("{head:?} {framing:?}")),
                Ok(Some(Event::Body(part))) => body.extend_from_slice(part),
                Ok(Some(Event::End)) => reported.push(format!("{:?}", std::mem::take(&mut body))),
                Err(fault) => return (reported, Err(fault)),
            }
        }
        assert!(piece.is_empty(), "the reader left something");
    }
    reported.push(format!("{body:?}"));
    (reported, reader.end_of_stream())
}

/// A page of three objects from a server that answers every request with `data`, and `then` closes, breaks the
/// connection, or (`None`) falls silent.
fn fetch(data: &[u8], cut: usize, shape: Shape, then: Option<Option<Break>>) {
    let object = |index: usize| PlannedObject::get(&format!("/{index}"), None);
    let embedded = EmbeddedObjects::Discovered { max: 6 };
    let first = FirstBytes { bytes: NonZeroU32::MIN, policy: FirstBytesPolicy::First };
    let first_bytes = cut.is_multiple_of(2).then_some(first);
    let plan = Plan {
        limits: limits(),
        embedded,
        first_bytes,
        ..Plan::new("h", (0..3).map(object).collect(), shape)
    };
    let mut now = Time::ZERO;
    let mut robot = Fetcher::http1(now, plan).expect("a plan that can be carried out");
    let mut open: BTreeMap<ConnectionId, BytesInFlight<'_>> = BTreeMap::new();
    let (mut resolved, mut finished) = (vec![0; 3], 0);
    for _ in 0..100_000 {
        match robot.poll(now) {
            Output::Wire(Wire::Open(id, _)) => {
                assert!(open.insert(id, BytesInFlight::default()).is_none(), "opened twice")
            }
            Output::Wire(Wire::Send(id, write)) => {
                assert!(!write.is_empty());
                let arriving = open.get_mut(&id).filter(|arriving| arriving.connected);
                arriving.expect("sent where nothing is open").pieces.extend(data.chunks(cut));
            }
            Output::Wire(Wire::Close(id, _)) => assert!(open.remove(&id).is_some(), "closed twice"),
            Output::Wire(Wire::Datagram(..)) => panic!("HTTP/1 sends no datagrams"),
            Output::Report(report) => match report.event {
                PageEvent::ObjectComplete { object, .. } | PageEvent::ObjectFailed { object, .. } => {
                    resolved[object] += 1
                }
                PageEvent::Finished { .. } => finished += 1,
                PageEvent::ObjectFound { object, .. } => {
                    assert_eq!(object, resolved.len());
                    resolved.push(0);
                }
                PageEvent::RequestSent { .. }
                | PageEvent::HeadReceived { .. }
                | PageEvent::TooManyObjects { .. }
                | PageEvent::FirstBytesReceived { .. }
                | PageEvent::Fault { .. } => {}
            },
            Output::Timeout(wake) => {
                let Some((&id, arriving)) = open.iter_mut().next() else {
                    assert!(robot.is_done(), "nothing is open and it is not done");
                    assert_eq!((&resolved, finished), (&vec![1; resolved.len()], 1));
                    return;
                };
                if !std::mem::replace(&mut arriving.connected, true) {
                    robot.handle(now, FromWire::Connected(id));
                } else if let Some(piece) = arriving.pieces.pop_front() {
                    robot.handle(now, FromWire::Received(id, piece));
                } else if let Some(then) = then {
                    robot
                        .handle(now, then.map_or(FromWire::EndOfStream(id), |why| FromWire::Broken(id, why)));
                    if then.is_some() {
                        open.remove(&id);
                    }
                } else {
                    let wake = wake.expect("it waits for something that may never come");
                    assert!(wake > now, "a timeout that is over");
                    now = wake;
                }
            }
        }
    }
    panic!("it goes on for ever");
}

/// Bytes in flight to the robot on one connection.
#[derive(Default)]
struct BytesInFlight<'a> {
    connected: bool,
    pieces: VecDeque<&'a [u8]>,
}

/// Small, so that short inputs reach them.
fn limits() -> Limits {
    Limits { head_bytes: 512, fields: 8, body_bytes: 1_024, extension_bytes: 16, ..Limits::default() }
}
