//! Pages with a real document: embedded objects are discovered while it arrives, plain and compressed.

use std::num::NonZeroU16;

use http1::content::{Coding, DecodeFault, encoded};
use http1::site::{Compression, File, Site};
use proptest::prelude::*;
use roundtrip_fetch::{
    ConnectionId, EmbeddedObjects, Failure, Fetcher, FromWire, Output, PageEvent, Pipelining, Plan,
    PlannedObject, Release, Report, Shape,
};
use wire::{Seed, Time};

use super::back_to_back::{FetchedPage, Listener, pipelined};

const HTML: &str = "<html><link rel=stylesheet href=/style.css><body>\n<img src=pictures/a.gif><img src='b.gif'>\
                    <img src=pictures/a.gif><a href=elsewhere.html>no</a>";

fn file(path: &str, content_type: &str, body: &[u8]) -> File {
    File { path: path.to_owned(), content_type: content_type.to_owned(), body: body.into() }
}

fn listener(html: &str, cut: usize) -> Listener {
    let images = ["/home/pictures/a.gif", "/home/b.gif"].map(|path| file(path, "image/gif", &[7; 900]));
    let document = file("/home/", "text/html", html.as_bytes());
    let style = file("/style.css", "text/css", b"img{}");
    let site = Site::of_files([document, style].into_iter().chain(images));
    Listener { site, cut, ..Listener::new(&[]) }
}

fn plan(shape: Shape) -> Plan {
    let document = vec![PlannedObject::get("/home/", None)];
    let (release, embedded) = (Release::AsNamed, EmbeddedObjects::DISCOVERED);
    Plan { release, embedded, ..Plan::new("server.test", document, shape) }
}

fn discovered(fetched: &FetchedPage) -> Vec<&str> {
    fetched.reports.iter().filter_map(discovered_path).collect()
}

fn discovered_path(report: &Report) -> Option<&str> {
    match &report.event {
        PageEvent::ObjectFound { object: _, path } => Some(path),
        _ => None,
    }
}

fn filled(html: &str) -> String {
    html.to_owned() + &"<p>The rest of the page takes its time.".repeat(400)
}

#[test]
fn page_is_fetched_by_its_url_alone() {
    let parallel = const { NonZeroU16::new(4).unwrap() };
    let shapes = [Shape::Http10 { parallel }, Shape::Http11, Shape::Http11Pipelined(Pipelining::default())];
    for shape in shapes {
        let fetched = listener(&filled(HTML), 512).fetch(plan(shape));
        assert_eq!(discovered(&fetched), ["/style.css", "/home/pictures/a.gif", "/home/b.gif"]);
        assert_eq!((fetched.completed().len(), fetched.failures()), (4, Vec::new()), "{shape:?}");
    }
}

#[test]
fn object_is_requested_while_its_document_arrives() {
    for compression in [Compression::None, Compression::Beforehand, Compression::OnTheFly] {
        let mut listener = listener(&filled(HTML), 32);
        listener.site = listener.site.with_compression(compression, &Coding::ALL);
        let plan =
            Plan { accepted: vec![Coding::Deflate], ..plan(Shape::Http11Pipelined(Pipelining::default())) };
        let fetched = listener.fetch(plan);
        let at = |is_match: fn(&PageEvent) -> bool| {
            fetched.reports.iter().position(|report| is_match(&report.event)).unwrap()
        };
        let sent = at(|event| matches!(event, PageEvent::RequestSent { object: 1, .. }));
        let complete = at(|event| matches!(event, PageEvent::ObjectComplete { object: 0, .. }));
        assert!(sent < complete, "{compression:?}");
        assert_eq!(fetched.completed().len(), 4);
    }
}

#[test]
fn document_is_decoded_in_every_accepted_coding() {
    for coding in Coding::ALL {
        for compression in [Compression::Beforehand, Compression::OnTheFly] {
            let mut listener = listener(&filled(HTML), 100);
            listener.site = listener.site.with_compression(compression, &Coding::ALL);
            let fetched = listener.fetch(Plan { accepted: vec![coding], ..plan(Shape::Http11) });
            assert_eq!(discovered(&fetched).len(), 3, "{coding:?}");
            let down: usize = fetched.down.iter().flatten().sum();
            assert_eq!(down > filled(HTML).len(), coding == Coding::Identity, "{coding:?}: {down}");
        }
    }
}

#[test]
fn undecodable_document_fails_but_earlier_references_are_fetched() {
    let random = Seed::default().stream("filling", 0).next_u64().to_le_bytes();
    let filling: Vec<u8> =
        (0..9_u8).flat_map(|number| random.map(|byte| byte.wrapping_mul(number))).collect();
    let mut body = encoded(Coding::Gzip, &[HTML.as_bytes(), &filling].concat());
    let check = body.len() - 8;
    body[check..].fill(0xff);
    let whole = body.len();
    for (coding, length, fault) in [
        ("gzip", whole, DecodeFault::Corrupt(Coding::Gzip)),
        ("gzip", whole - 9, DecodeFault::Truncated(Coding::Gzip)),
        ("br", whole, DecodeFault::Corrupt(Coding::Brotli)),
        ("gzip, gzip", whole, DecodeFault::Layers),
        ("compress", whole, DecodeFault::Unknown),
    ] {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {length}\r\n\r\n");
        let events = events([head.as_bytes(), &body[..length]].concat());
        let failure = Failure::Content(fault);
        assert!(events.contains(&PageEvent::ObjectFailed { object: 0, failure }), "{coding}: {events:?}");
        let discovered = events.iter().filter(|event| matches!(event, PageEvent::ObjectFound { .. })).count();
        assert_eq!(discovered, if coding == "gzip" { 3 } else { 0 });
    }
}

#[test]
fn decompression_bomb_fails_but_earlier_references_are_fetched() {
    for coding in [Coding::Deflate, Coding::Gzip, Coding::Brotli] {
        let body = encoded(coding, &[HTML.as_bytes(), &vec![b' '; 2 << 20]].concat());
        let (name, length) = (coding.name(), body.len());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\nContent-Length: {length}\r\n\r\n");
        let events = events([head.as_bytes(), &body].concat());
        let failure = Failure::Content(DecodeFault::TooDense);
        assert!(events.contains(&PageEvent::ObjectFailed { object: 0, failure }), "{name}: {events:?}");
        let discovered = events.iter().filter(|event| matches!(event, PageEvent::ObjectFound { .. })).count();
        assert_eq!(discovered, 3, "{name}");
    }
}

/// Reports of a robot that gets this response for its document, and none for anything else.
fn events(response: Vec<u8>) -> Vec<PageEvent> {
    let mut robot = Fetcher::http1(Time::ZERO, plan(Shape::Http11)).unwrap();
    let mut events = Vec::new();
    let mut inputs =
        response.chunks(40).map(|piece| FromWire::Received(ConnectionId(0), piece)).rev().collect::<Vec<_>>();
    inputs.push(FromWire::Connected(ConnectionId(0)));
    loop {
        match robot.poll(Time::ZERO) {
            Output::Report(report) => events.push(report.event),
            Output::Wire(_) => {}
            Output::Timeout(_) => match inputs.pop() {
                Some(input) => robot.handle(Time::ZERO, input),
                None => return events,
            },
        }
    }
}

#[test]
fn too_many_objects_are_reported_once() {
    let images: String = (0..12_000).map(|number| format!("<img src={number}.gif>")).collect();
    let fetched = listener(&images, 1_460).fetch(plan(Shape::Http11Pipelined(Pipelining::default())));
    let events =
        fetched.reports.iter().filter(|report| report.event == PageEvent::TooManyObjects { max: 10_000 });
    assert_eq!((events.count(), discovered(&fetched).len()), (1, 9_999));
    // None of them exists, and each is reported.
    assert_eq!((fetched.completed(), fetched.failures().len()), (vec![0], 9_999));
}

#[test]
fn error_page_references_nothing() {
    let plan = Plan { objects: vec![PlannedObject::get("/nowhere", None)], ..plan(Shape::Http11) };
    let fetched = listener(HTML, 10).fetch(plan);
    assert_eq!((discovered(&fetched).len(), fetched.failures()), (0, vec![(0, Failure::Status(404))]));
}

proptest! {
    #[test]
    fn discovery_is_the_same_at_every_split(
        cut in 1_usize..200,
        shape in pipelined(),
        coding in prop::sample::select(&Coding::ALL[..]),
    ) {
        let mut listener = listener(HTML, cut);
        listener.site = listener.site.with_compression(Compression::OnTheFly, &Coding::ALL);
        let fetched = listener.fetch(Plan { accepted: vec![coding], ..plan(shape) });
        prop_assert_eq!(discovered(&fetched), ["/style.css", "/home/pictures/a.gif", "/home/b.gif"]);
        prop_assert_eq!(fetched.failures(), Vec::new());
    }
}
