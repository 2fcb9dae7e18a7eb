//! Every connection policy, against a server without faults.

use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};

use http1::message::WritePolicy;
use proptest::prelude::*;
use roundtrip_fetch::{PageEvent, Plan, Release, Report, Shape};
use wire::{Bytes, Duration, Time};

use super::back_to_back::{FetchedPage, Listener, SMALL_CLUSTER, pipelined, plan};

const fn http10(parallel: u16) -> Shape {
    Shape::Http10 { parallel: NonZeroU16::new(parallel).unwrap() }
}

fn fetch(shape: Shape, release: Release) -> FetchedPage {
    let plan = Plan { release, request_size: Some(Bytes::new(256)), ..plan(&SMALL_CLUSTER, shape) };
    let fetched =
        Listener { processing: Duration::from_millis(3), ..Listener::new(&SMALL_CLUSTER) }.fetch(plan);
    assert_eq!(fetched.failures(), []);
    fetched
}

#[test]
fn every_shape_fetches_the_whole_page() {
    for shape in [http10(1), http10(2), http10(9), Shape::Http10KeepAlive, Shape::Http11] {
        for release in [Release::Independent, Release::Dependent] {
            let fetched = fetch(shape, release);
            assert_eq!(fetched.completed(), [0, 1, 2], "{shape:?} {release:?}");
            assert_eq!(fetched.reports.last().unwrap().event, PageEvent::Finished { failed: 0 });
            let requests = fetched.up.iter().flatten();
            assert!(requests.eq(&[256, 256, 256]), "{shape:?}: each request is one write of 256 bytes");
        }
    }
}

#[test]
fn policy_determines_the_number_of_connections() {
    for (shape, connections) in
        [(http10(1), 3), (http10(9), 3), (Shape::Http10KeepAlive, 1), (Shape::Http11, 1)]
    {
        assert_eq!(fetch(shape, Release::Independent).connections(), connections, "{shape:?}");
    }
}

#[test]
fn dependent_requests_leave_one_by_one() {
    let ends = |shape, release| fetch(shape, release).ended;
    let one_by_one = Time::ZERO + Duration::from_millis(9);
    assert_eq!(ends(http10(9), Release::Independent), Time::ZERO + Duration::from_millis(3));
    assert_eq!(ends(http10(2), Release::Independent), Time::ZERO + Duration::from_millis(6));
    for shape in [http10(9), Shape::Http10KeepAlive, Shape::Http11] {
        assert_eq!(ends(shape, Release::Dependent), one_by_one, "{shape:?}");
    }
}

#[test]
fn object_is_reported_sent_then_headers_then_complete() {
    let mut reports = fetch(Shape::Http11, Release::Dependent).reports.into_iter();
    for object in 0..3 {
        let events: Vec<Report> = reports.by_ref().take(3).collect();
        assert!(
            matches!(
                events[..],
                [
                    Report { event: PageEvent::RequestSent { object: first, .. }, .. },
                    Report { event: PageEvent::HeadReceived { object: second, status: 200 }, .. },
                    Report { event: PageEvent::ObjectComplete { object: third, status: 200, .. }, .. },
                ] if [first, second, third] == [object; 3]
            ),
            "{events:?}"
        );
    }
}

#[test]
fn response_headers_of_the_papers_pages_take_at_most_120_bytes() {
    for shape in [http10(1), Shape::Http10KeepAlive, Shape::Http11] {
        let fetched = fetch(shape, Release::Dependent);
        for (write, size) in fetched.down.iter().flatten().zip(SMALL_CLUSTER) {
            let head = *write as u64 - size;
            assert!((1..=120).contains(&head), "{shape:?}: {head}");
        }
    }
}

#[test]
fn separately_flushed_header_section_is_a_write_of_its_own() {
    let mut listener = Listener::new(&SMALL_CLUSTER);
    listener.config.writes = WritePolicy { head_apart: true, buffer: NonZeroUsize::new(4_096), gather: None };
    let fetched = listener.fetch(plan(&SMALL_CLUSTER, Shape::Http11));
    assert_eq!(fetched.down, [[66, 4_096, 2_555, 66, 3_883, 66, 1_866]]);
}

#[test]
fn requests_use_new_connections_without_keep_alive() {
    for shape in [Shape::Http10KeepAlive, Shape::Http11] {
        for (requests, connections) in [(1, 3), (2, 2), (3, 1)] {
            let mut listener = Listener::new(&SMALL_CLUSTER);
            listener.config.requests = NonZeroU32::new(requests);
            let fetched = listener.fetch(plan(&SMALL_CLUSTER, shape));
            assert_eq!(fetched.completed(), [0, 1, 2]);
            assert_eq!(fetched.connections(), connections, "{shape:?}, {requests} requests a connection");
        }
    }
}

proptest! {
    #[test]
    fn reports_are_the_same_at_every_split(
        cut in 1_usize..3_000,
        sizes in prop::collection::vec(0_u64..5_000, 1..6),
        shape in prop_oneof![
            Just(http10(1)), Just(http10(3)), Just(Shape::Http10KeepAlive), Just(Shape::Http11),
            pipelined(),
        ],
        head_apart: bool,
        buffer in prop::option::of(1_usize..3_000),
        gather in prop::option::of(1_usize..3_000),
    ) {
        let mut listener = Listener::new(&sizes);
        let whole = Listener { cut: usize::MAX, ..Listener::new(&sizes) }.fetch(plan(&sizes, shape));
        listener.cut = cut;
        listener.config.writes =
            WritePolicy { head_apart, buffer: buffer.and_then(NonZeroUsize::new), gather: gather.and_then(NonZeroUsize::new) };
        let cut = listener.fetch(plan(&sizes, shape));
        prop_assert_eq!(in_order(cut.reports), in_order(whole.reports));
    }
}

/// Parallel connections may finish in any order; everything else is compared in order.
fn in_order(mut reports: Vec<Report>) -> Vec<String> {
    let mut events: Vec<_> = reports.drain(..).map(|report| format!("{:?}", report.event)).collect();
    events.sort();
    events
}
