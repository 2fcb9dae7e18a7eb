//! Pages whose objects are requested in two parts: the first bytes of every one, and then the rest.

use std::num::{NonZeroU16, NonZeroU32};

use http1::content::AcceptedCodings;
use http1::server::{Closing, ServerConfig};
use http1::site::{File, Site};
use proptest::prelude::*;
use roundtrip_fetch::{
    EmbeddedObjects, FirstBytes, FirstBytesPolicy, PageEvent, Pipelining, Plan, PlannedObject, Release, Shape,
};
use wire::{Bytes, Seed};

use super::back_to_back::{FetchedPage, Listener, pipelined, plan};

const SIZES: [u64; 5] = [3_000, 9_000, 100, 512, 20_000];

fn first(bytes: u32, policy: FirstBytesPolicy) -> Option<FirstBytes> {
    Some(FirstBytes { bytes: NonZeroU32::new(bytes).unwrap(), policy })
}

fn objects_of(fetched: &FetchedPage, is_match: fn(&PageEvent) -> Option<usize>) -> Vec<usize> {
    fetched.reports.iter().filter_map(|report| is_match(&report.event)).collect()
}

fn object_of_first_bytes(event: &PageEvent) -> Option<usize> {
    match event {
        PageEvent::FirstBytesReceived { object } => Some(*object),
        _ => None,
    }
}

fn object_of_request(event: &PageEvent) -> Option<usize> {
    match event {
        PageEvent::RequestSent { object, connection: _ } => Some(*object),
        _ => None,
    }
}

#[test]
fn the_first_bytes_of_every_object_come_before_the_rest_of_any() {
    let shape = Shape::Http11Pipelined(Pipelining::default());
    let mut listener = Listener::new(&SIZES);
    for has_validators in [false, true] {
        if has_validators {
            listener.site = listener.site.with_validators(Seed::default());
        }
        let plan = Plan { first_bytes: first(512, FirstBytesPolicy::First), ..plan(&SIZES, shape) };
        let fetched = listener.fetch(Plan { release: Release::AfterFirst, ..plan });
        assert_eq!(objects_of(&fetched, object_of_request), [0, 1, 2, 3, 4, 1, 4]);
        assert_eq!(objects_of(&fetched, object_of_first_bytes), [0, 1, 2, 3, 4]);
        assert_eq!((fetched.completed(), fetched.failures()), (vec![0, 2, 3, 1, 4], Vec::new()));
    }
}

#[test]
fn first_bytes_are_reported_without_extra_requests() {
    let plan = |first_bytes| Plan { first_bytes, ..plan(&SIZES, Shape::Http11) };
    let (watched, plain) = (
        Listener::new(&SIZES).fetch(plan(first(512, FirstBytesPolicy::Together))),
        Listener::new(&SIZES).fetch(plan(None)),
    );
    assert_eq!(watched.up, plain.up);
    assert_eq!(objects_of(&watched, object_of_first_bytes), [0, 1, 2, 3, 4]);
    assert_eq!(objects_of(&plain, object_of_first_bytes), [0; 0]);
}

#[test]
fn unchanged_objects_are_known_and_changed_ones_come_in_parts() {
    let mut listener = Listener::new(&SIZES);
    listener.site = listener.site.with_validators(Seed::default());
    let shape = Shape::Http11Pipelined(Pipelining::default());
    let mut plan = Plan { first_bytes: first(512, FirstBytesPolicy::First), ..plan(&SIZES, shape) };
    for (index, object) in plan.objects.iter_mut().enumerate() {
        let cached = if index == 4 { 0 } else { index };
        object.validator = listener
            .site
            .validator(cached, shape.version(), &AcceptedCodings::any_of(&[]))
            .filter(|_| index != 1);
    }
    plan.objects[2].validator = listener.site.validator(2, shape.version(), &AcceptedCodings::any_of(&[]));
    let fetched = listener.fetch(plan);
    assert_eq!(objects_of(&fetched, object_of_request), [0, 1, 2, 3, 4, 1, 4]);
    let statuses = fetched.reports.iter().filter_map(|report| match report.event {
        PageEvent::ObjectComplete { object, status, body } => Some((object, status, body.get())),
        _ => None,
    });
    let expected = [(0, 304, 0), (2, 304, 0), (3, 304, 0), (1, 206, 9_000), (4, 206, 20_000)];
    assert_eq!(statuses.collect::<Vec<_>>(), expected);
}

#[test]
fn discovered_objects_are_requested_in_parts_too() {
    let html = "<img src=a.gif><img src=empty.gif><img src=b.gif>".to_owned() + &" ".repeat(4_000);
    let bodies = [("/", html.as_bytes()), ("/a.gif", &[1; 700]), ("/empty.gif", &[]), ("/b.gif", &[2; 99])];
    let file = |(path, body): (&str, &[u8])| File {
        path: path.to_owned(),
        content_type: "text/html".to_owned(),
        body: body.into(),
    };
    let listener = Listener { site: Site::of_files(bodies.map(file)), cut: 100, ..Listener::new(&[]) };
    let shape = Shape::Http10 { parallel: const { NonZeroU16::new(4).unwrap() } };
    let fetched = listener.fetch(Plan {
        embedded: EmbeddedObjects::DISCOVERED,
        release: Release::AsNamed,
        first_bytes: first(100, FirstBytesPolicy::First),
        ..Plan::new("h", vec![PlannedObject::get("/", None)], shape)
    });
    assert_eq!(fetched.failures(), Vec::new());
    assert_eq!(fetched.completed().len(), 4);
    assert_eq!(objects_of(&fetched, object_of_request).iter().filter(|object| **object == 1).count(), 2);
}

proptest! {
    #[test]
    fn page_is_complete_at_every_split_and_close(
        sizes in prop::collection::vec(1_u64..3_000, 1..8),
        bytes in 1_u32..2_000,
        cut in 1_usize..1_500,
        shape in pipelined(),
        requests in prop::option::of(1_u32..4),
    ) {
        let config = ServerConfig {
            requests: requests.map(|max| max.try_into().unwrap()),
            closing: Closing::Careful,
            ..ServerConfig::default()
        };
        let listener = Listener { cut, config, ..Listener::new(&sizes) };
        let fetched = listener.fetch(Plan { first_bytes: first(bytes, FirstBytesPolicy::First), ..plan(&sizes, shape) });
        prop_assert_eq!(fetched.failures(), Vec::new());
        prop_assert_eq!(objects_of(&fetched, object_of_first_bytes).len(), sizes.len());
        let mut bodies: Vec<_> = fetched.reports.iter().filter_map(|report| match report.event {
            PageEvent::ObjectComplete { object, status: _, body } => Some((object, body)),
            _ => None,
        }).collect();
        bodies.sort_unstable();
        let expected: Vec<_> = sizes.iter().map(|size| Bytes::new(*size)).enumerate().collect();
        prop_assert_eq!(bodies, expected);
    }
}
