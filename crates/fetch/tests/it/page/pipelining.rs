//! Requests that do not wait for responses: sharing of writes by requests and by responses, and retries after
//! a close.

use std::num::{NonZeroU32, NonZeroUsize};

use http1::content::Coding;
use http1::message::{Method, Validator, WritePolicy};
use http1::server::Closing;
use http1::site::Site;
use proptest::prelude::*;
use roundtrip_fetch::{
    ConnectionId, Fetcher, Flush, FromWire, Output, PageEvent, Pipelining, Plan, PlannedObject, Release,
    Report, Shape, Wire,
};
use wire::{Bytes, Duration, Time};

use super::back_to_back::{FetchedPage, Listener, pipelined, plan};

/// A document and 42 images, the number of `papers/w3c#microscape`.
const PAGE: [u64; 43] = {
    let mut sizes = [100; 43];
    sizes[0] = 5_000;
    sizes
};

fn shape(flush: Flush) -> Shape {
    Shape::Http11Pipelined(Pipelining { flush, ..Pipelining::default() })
}

/// Requests of 190 bytes, libwww's mean (`papers/w3c#pipelining`).
fn page(flush: Flush, release: Release) -> Plan {
    Plan { release, request_size: Some(Bytes::new(190)), ..plan(&PAGE, shape(flush)) }
}

/// "The result is an average request size of around 190 bytes."
#[test]
fn paper_every_request_has_190_bytes() {
    let mut plan = page(Flush::Idle, Release::AfterFirst);
    plan.accepted = vec![Coding::Deflate];
    let validators = [
        Validator::EntityTag("\"0123456789abcdef-deflate\"".to_owned()),
        Validator::LastModified("Tue, 24 Jun 1997 00:00:00 GMT".to_owned()),
    ];
    for (object, validator) in plan.objects.iter_mut().zip(validators) {
        object.path = "/images/13-picture.gif".to_owned();
        object.validator = Some(validator);
    }
    let count = plan.objects.len();
    let mut robot = Fetcher::http1(Time::ZERO, Plan { release: Release::Independent, ..plan }).unwrap();
    let mut sent = Vec::new();
    connect(&mut robot);
    loop {
        match robot.poll(Time::ZERO) {
            Output::Wire(Wire::Send(_, write)) => sent.extend(write),
            Output::Timeout(_) => break,
            Output::Wire(_) | Output::Report(_) => {}
        }
    }
    let requests: Vec<_> =
        String::from_utf8(sent).unwrap().split_inclusive("\r\n\r\n").map(str::len).collect();
    assert_eq!(requests, vec![190; count]);
}

fn connect(robot: &mut Fetcher) {
    while !matches!(robot.poll(Time::ZERO), Output::Timeout(_)) {}
    robot.handle(Time::ZERO, FromWire::Connected(ConnectionId(0)));
}

fn gathering(bytes: usize) -> Listener {
    let mut listener = Listener::new(&PAGE);
    listener.config.writes = WritePolicy { gather: NonZeroUsize::new(bytes), ..WritePolicy::default() };
    listener
}

fn fetch_all(listener: &Listener, plan: Plan) -> FetchedPage {
    let count = plan.objects.len();
    let fetched = listener.fetch(plan);
    assert_eq!(fetched.failures(), []);
    assert_eq!(fetched.completed(), (0..count).collect::<Vec<_>>(), "responses come in order");
    fetched
}

#[test]
fn requests_leave_by_full_buffers_and_the_rest_by_flush_or_timer() {
    let remainder = 42 * 190 % 1_024;
    for (flush, release, writes, ended) in [
        (Flush::Idle, Release::AfterFirst, [&[190][..], &[1_024; 7], &[remainder]].concat(), 0),
        (Flush::First, Release::AfterFirst, [&[190][..], &[1_024; 7], &[remainder]].concat(), 50),
        (Flush::Never, Release::AfterFirst, [&[190][..], &[1_024; 7], &[remainder]].concat(), 100),
        (Flush::Idle, Release::Independent, [&[1_024; 7][..], &[remainder + 190]].concat(), 0),
        (Flush::First, Release::Independent, [&[190][..], &[1_024; 7], &[remainder]].concat(), 50),
        (Flush::Never, Release::Independent, [&[1_024; 7][..], &[remainder + 190]].concat(), 50),
        (Flush::Idle, Release::Dependent, vec![190; 43], 0),
    ] {
        let fetched = fetch_all(&Listener::new(&PAGE), page(flush, release));
        assert_eq!(fetched.up, [writes], "{flush:?} {release:?}");
        assert_eq!(fetched.ended, Time::ZERO + Duration::from_millis(ended), "{flush:?} {release:?}");
    }
}

#[test]
fn responses_are_gathered_until_the_buffer_is_full_or_no_request_waits() {
    let separate = fetch_all(&Listener::new(&PAGE), page(Flush::Idle, Release::AfterFirst));
    assert_eq!(separate.down[0].len(), 43);
    let gathered = fetch_all(&gathering(1_460), page(Flush::Idle, Release::AfterFirst));
    // Five requests come with each write, and the beginning of a sixth; the responses leave when the five are
    // served.
    assert_eq!(gathered.down[0].len(), 9);
    assert_eq!(gathered.down[0].iter().sum::<usize>(), separate.down[0].iter().sum::<usize>());
    let sequential =
        fetch_all(&gathering(1_460), Plan { shape: Shape::Http11, ..page(Flush::Idle, Release::AfterFirst) });
    assert_eq!(sequential.down[0].len(), 43, "no response waits where no request does");
}

#[test]
fn requests_left_by_a_careful_close_are_retried() {
    for requests in [1, 5, 42] {
        let mut listener = gathering(1_460);
        listener.config.requests = NonZeroU32::new(requests);
        let fetched = fetch_all(&listener, page(Flush::Idle, Release::AfterFirst));
        assert_eq!(fetched.connections(), 43_usize.div_ceil(requests as usize));
    }
}

#[test]
fn requests_destroyed_by_a_reset_are_retried_one_by_one_at_first() {
    let mut listener = gathering(1_460);
    listener.config.requests = NonZeroU32::new(5);
    listener.config.closing = Closing::Naive;
    let fetched = listener.fetch(page(Flush::Idle, Release::Independent));
    assert_eq!(fetched.failures(), []);
    assert!(fetched.connections() > 9, "a reset destroys responses: {}", fetched.connections());
    assert!(fetched.up[0].len() > 1);
    for writes in &fetched.up[1..] {
        assert_eq!(writes[0], 190, "behind a reset nothing follows the first request: {writes:?}");
    }
}

#[test]
fn unsafe_requests_are_never_pipelined() {
    let mut plan = page(Flush::Idle, Release::Independent);
    plan.objects.truncate(4);
    plan.objects[1].method = Method::Other("POST".to_owned());
    plan.objects[1].expected = None;
    let fetched = Listener::new(&PAGE).fetch(plan);
    assert_eq!(fetched.up, [[190, 190, 380]]);
    assert_eq!(fetched.completed(), [0, 2, 3]);
}

#[test]
fn a_page_waits_for_the_page_before_it() {
    let objects = [0, 1, 2, 0, 1, 2].map(|index| PlannedObject::get(&Site::path(index), None)).to_vec();
    let plan = |release| Plan { objects: objects.clone(), begins_at: 3, ..page(Flush::Idle, release) };
    let listener = Listener { processing: Duration::from_millis(1), ..Listener::new(&PAGE) };
    assert_eq!(fetch_all(&listener, plan(Release::Independent)).up, [[570, 570]]);
    assert_eq!(fetch_all(&listener, plan(Release::AfterFirst)).up, [[190, 380, 190, 380]]);
}

proptest! {
    #[test]
    fn arrivals_are_the_same_under_any_pipelining_settings(
        shape in pipelined(),
        release in prop_oneof![Just(Release::Independent), Just(Release::AfterFirst), Just(Release::Dependent)],
        cut in 1_usize..3_000,
        buffer in prop::option::of(1_usize..3_000),
        gather in prop::option::of(1_usize..3_000),
        requests in prop::option::of(1_u32..50),
        naive: bool,
    ) {
        let mut listener = Listener { cut, ..Listener::new(&PAGE) };
        listener.config.writes = WritePolicy {
            head_apart: false,
            buffer: buffer.and_then(NonZeroUsize::new),
            gather: gather.and_then(NonZeroUsize::new),
        };
        listener.config.requests = requests.and_then(NonZeroU32::new);
        listener.config.closing = if naive { Closing::Naive } else { Closing::Careful };
        let fetched = listener.fetch(Plan { shape, ..page(Flush::Idle, release) });
        if !naive {
            prop_assert_eq!(fetched.failures(), []);
            let connections = requests.map_or(1, |requests| 43_usize.div_ceil(requests as usize));
            prop_assert_eq!(fetched.connections(), connections);
        }
    }
}

/// "When this first packet arrives, the client starts parsing the HTML" (`papers/w3c`, on compression).
#[test]
fn object_is_requested_when_its_reference_has_arrived() {
    let mut plan = Plan { release: Release::AsNamed, ..plan(&[3_000, 100, 100, 100], shape(Flush::Idle)) };
    for (object, named_at) in plan.objects.iter_mut().zip([None, Some(1_000), Some(2_000), None]) {
        object.named_at = named_at.map(Bytes::new);
    }
    let mut robot = Fetcher::http1(Time::ZERO, plan).unwrap();
    let mut requested = |input: Option<&[u8]>| {
        let id = ConnectionId(0);
        robot
            .handle(Time::ZERO, input.map_or(FromWire::Connected(id), |bytes| FromWire::Received(id, bytes)));
        let outputs = std::iter::from_fn(|| Some(robot.poll(Time::ZERO)));
        let outputs = outputs.take_while(|output| !matches!(output, Output::Timeout(_)));
        outputs
            .filter_map(|output| match output {
                Output::Report(Report { at: _, event: PageEvent::RequestSent { object, connection: _ } }) => {
                    Some(object)
                }
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(requested(None), [0]);
    assert_eq!(requested(Some(b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n")), [0; 0]);
    assert_eq!(requested(Some(&[b'x'; 999])), [0; 0]);
    assert_eq!(requested(Some(&[b'x'; 1])), [1]);
    assert_eq!(requested(Some(&[b'x'; 1_999])), [2]);
    assert_eq!(requested(Some(&[b'x'; 1])), [3]);
}
