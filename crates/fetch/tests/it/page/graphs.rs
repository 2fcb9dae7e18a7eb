//! Pages as graphs: an object is requested when everything that it waits for has happened, and not before.

use std::num::NonZeroU16;

use page::{Dependency, Host, Moment};
use roundtrip_fetch::{
    Break, Browser, ConnectionId, Failure, Fetcher, FromWire, Hint, Output, PageEvent, Plan, Release, Report,
    Shape, WebConfig, Wire,
};
use wire::{Bytes, Duration, Time};

use super::back_to_back::{Listener, plan};

/// Milliseconds at which each object of a page is requested, if each response takes 10 ms.
fn requested(sizes: &[u64], after: &[&[Dependency]]) -> Vec<f64> {
    requested_by(sizes, after, |_| ())
}

/// The same of a changed plan.
fn requested_by(sizes: &[u64], after: &[&[Dependency]], change: impl FnOnce(&mut Plan)) -> Vec<f64> {
    let mut plan = graph(sizes, after);
    change(&mut plan);
    let fetched = Listener { processing: Duration::from_millis(10), ..Listener::new(sizes) }.fetch(plan);
    let sent = |index: usize| {
        let is_sent = |report: &&Report| matches!(report.event, PageEvent::RequestSent { object, connection: _ } if object == index);
        fetched.reports.iter().find(is_sent).unwrap().at.since(Time::ZERO).as_millis_f64()
    };
    (0..sizes.len()).map(sent).collect()
}

fn graph(sizes: &[u64], after: &[&[Dependency]]) -> Plan {
    let parallel = NonZeroU16::new(6).unwrap();
    let mut plan = Plan { release: Release::Graph, ..plan(sizes, Shape::Http11Parallel { parallel }) };
    for (object, after) in plan.objects.iter_mut().zip(after) {
        object.after = after.to_vec();
    }
    plan
}

/// Steps of a browser now: connections opened, requests sent on them, objects that failed.
fn steps(browser: &mut Fetcher) -> Vec<String> {
    steps_at(browser, Time::ZERO)
}

fn steps_at(browser: &mut Fetcher, now: Time) -> Vec<String> {
    let mut steps = Vec::new();
    loop {
        match browser.poll(now) {
            Output::Wire(Wire::Open(id, _)) => steps.push(format!("open {}", id.0)),
            Output::Wire(Wire::Send(id, _)) => steps.push(format!("send {}", id.0)),
            Output::Wire(Wire::Close(id, _)) => steps.push(format!("close {}", id.0)),
            Output::Report(Report { event: PageEvent::ObjectFailed { object, failure }, .. }) => {
                steps.push(format!("{object} failed: {failure:?}"));
            }
            Output::Wire(_) | Output::Report(_) => {}
            Output::Timeout(_) => return steps,
        }
    }
}

#[test]
fn a_browser_opens_two_connections_and_a_request_takes_the_first_that_is_free() {
    let after: [&[Dependency]; 4] =
        [&[], &[on(0, Moment::Ended, 0)], &[on(0, Moment::Ended, 0)], &[on(0, Moment::Ended, 0)]];
    let mut browser = Fetcher::http1(Time::ZERO, graph(&[5, 5, 5, 5], &after)).unwrap();
    assert_eq!(steps(&mut browser), ["open 0", "open 1"]);
    let connected = |id| FromWire::Connected(ConnectionId(id));
    let response =
        |id| FromWire::Received(ConnectionId(id), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    browser.handle(Time::ZERO, connected(0));
    assert_eq!(steps(&mut browser), ["send 0"]);
    browser.handle(Time::ZERO, response(0));
    assert_eq!(steps(&mut browser), ["open 2", "send 0"], "two requests wait for two connections");
    browser.handle(Time::ZERO, response(0));
    assert_eq!(steps(&mut browser), ["send 0"], "a connection that was used is free before they are open");
    browser.handle(Time::ZERO, connected(2));
    assert_eq!(steps(&mut browser), ["send 2"]);
    browser.handle(Time::ZERO, connected(1));
    assert_eq!(steps(&mut browser), [""; 0]);
}

/// A browser over HTTP/2 in the clear, with three objects that begin with the document on another host.
fn over_http2() -> Fetcher {
    let with_it: &[Dependency] = &[on(0, Moment::Begun, 0)];
    let mut plan = Plan { shape: Shape::Http2, ..graph(&[5, 5, 5, 5], &[&[], with_it, with_it, with_it]) };
    plan.origins.push("static".to_owned());
    plan.objects[1..].iter_mut().for_each(|object| object.origin = 1);
    let config = WebConfig::of(&[Host::new("h"), Host::new("static")], true, None);
    Fetcher::web(Time::ZERO, plan, config).unwrap()
}

#[test]
fn a_browser_opens_a_connection_for_each_request_to_a_host_that_may_not_speak_http2() {
    let mut browser = over_http2();
    assert_eq!(steps(&mut browser), ["open 0", "open 1"], "the document's, and a second");
    let connected = |id| FromWire::Connected(ConnectionId(id));
    browser.handle(Time::ZERO, connected(0));
    assert_eq!(steps(&mut browser), ["send 0", "open 2", "open 3", "open 4"]);
    browser.handle(Time::ZERO, connected(1));
    assert_eq!(steps(&mut browser), ["close 1"], "the first carries all");
    browser.handle(Time::ZERO, connected(3));
    assert!(steps(&mut browser).iter().all(|step| step == "send 3"));
    for id in [2, 4] {
        browser.handle(Time::ZERO, connected(id));
        assert_eq!(steps(&mut browser), [format!("close {id}")]);
    }
}

#[test]
fn a_browser_opens_another_connection_beside_a_first_that_takes_long() {
    let at = |millis| Time::ZERO + Duration::from_millis(millis);
    let (before, after) = (at(249), at(250));
    let by_http1 = || Fetcher::http1(Time::ZERO, graph(&[5], &[&[]])).unwrap();
    for mut browser in [by_http1(), over_http2()] {
        assert_eq!(steps(&mut browser), ["open 0", "open 1"]);
        assert_eq!(steps_at(&mut browser, before), [""; 0]);
        assert_eq!(steps_at(&mut browser, after), ["open 2"]);
        assert_eq!(steps_at(&mut browser, at(900)), [""; 0], "once");
    }
    let mut soon = by_http1();
    assert_eq!(steps(&mut soon), ["open 0", "open 1"]);
    soon.handle(before, FromWire::Connected(ConnectionId(1)));
    assert_eq!(steps_at(&mut soon, after), ["send 1"], "no request waits");
}

#[test]
fn a_browser_s_connections_that_are_refused_cost_a_request_its_tries() {
    let mut browser = Fetcher::http1(Time::ZERO, graph(&[5], &[&[]])).unwrap();
    let mut all = steps(&mut browser);
    let refused = |id| FromWire::Broken(ConnectionId(id), Break::Refused);
    for id in 0..20 {
        browser.handle(Time::ZERO, refused(id));
        all.extend(steps(&mut browser));
    }
    let failed = format!("0 failed: {:?}", Failure::Broken(Break::Refused));
    assert_eq!(all.last(), Some(&failed), "{all:?}");
    assert!(all.len() < 10, "{all:?}");
    assert!(browser.is_done());
}

fn on(on: usize, at: Moment, plus_ms: u64) -> Dependency {
    Dependency { on, at, plus: Duration::from_millis(plus_ms) }
}

#[test]
fn object_is_requested_when_all_that_it_waits_for_has_happened() {
    let after: [&[Dependency]; 5] = [
        &[],
        &[on(0, Moment::Begun, 3)],
        &[on(0, Moment::Delivered(Bytes::new(2_000)), 0)],
        &[on(1, Moment::Ended, 0), on(2, Moment::Ended, 5)],
        // It stands last and waits for less than the object before it.
        &[on(0, Moment::Ended, 1)],
    ];
    assert_eq!(requested(&[5_000, 100, 100, 100, 100], &after), [0.0, 3.0, 10.0, 25.0, 11.0]);
}

#[test]
fn object_that_waits_for_more_than_arrives_is_requested_at_the_end() {
    let beyond = on(0, Moment::Delivered(Bytes::new(6_000)), 2);
    assert_eq!(requested(&[5_000, 100], &[&[], &[beyond]]), [0.0, 12.0]);
}

#[test]
fn first_request_to_a_host_waits_for_the_lookup_of_its_name() {
    let after: [&[Dependency]; 3] = [&[], &[on(0, Moment::Begun, 3)], &[on(0, Moment::Ended, 1)]];
    let with = |lookups: &[u64]| {
        let lookups = lookups.iter().map(|millis| Duration::from_millis(*millis)).collect();
        requested_by(&[5_000, 100, 100], &after, |plan| plan.lookups = lookups)
    };
    assert_eq!(with(&[]), [0.0, 3.0, 11.0]);
    assert_eq!(with(&[7]), [7.0, 10.0, 18.0]);
}

#[test]
fn a_busy_clients_threads_take_requests_and_responses_one_after_another() {
    let of_document = [on(0, Moment::Ended, 0)];
    let after: [&[Dependency]; 4] = [&[], &of_document, &of_document, &[on(1, Moment::Ended, 1)]];
    let with = |millis: u64| {
        requested_by(&[5_000, 100, 100, 100], &after, |plan| {
            plan.client_time = Duration::from_millis(millis);
        })
    };
    assert_eq!(with(0), [0.0, 10.0, 10.0, 21.0]);
    // The document leaves at 4 and is handled at 18; its images leave at 22 and 26. The first response is handled from 32 to 36, and the
    // second until 40: what the first makes known at 37 leaves at 44.
    assert_eq!(with(4), [4.0, 22.0, 26.0, 44.0]);
}

#[test]
fn firefox_holds_images_back_while_a_style_sheet_is_in_flight() {
    let of_document = [on(0, Moment::Ended, 0)];
    let late = [on(0, Moment::Ended, 2)];
    // A style sheet, an image known with it, and an image known before a second style sheet.
    let by = |browser: Browser, after: &[&[Dependency]]| {
        requested_by(&[5_000, 100, 100], after, |plan| {
            plan.browser = browser;
            plan.objects[1].is_before_body = true;
            plan.objects[2].is_delayable = true;
        })
    };
    let together: [&[Dependency]; 3] = [&[], &of_document, &of_document];
    assert_eq!(by(Browser::CHROMIUM, &together), [0.0, 10.0, 10.0], "two may be in flight");
    assert_eq!(by(Browser::FIREFOX, &together), [0.0, 10.0, 20.0]);
    let image_first: [&[Dependency]; 3] = [&[], &late, &of_document];
    assert_eq!(by(Browser::FIREFOX, &image_first), [0.0, 12.0, 10.0], "no leader is in flight yet");
}

#[test]
fn firefox_paces_images_while_more_than_six_connections_are_in_use() {
    // A document that takes long, and images on two other hosts: six to the first, the others to the second.
    let with_it: &[Dependency] = &[on(0, Moment::Begun, 0)];
    let after: Vec<&[Dependency]> = std::iter::once(&[][..]).chain([with_it; 12]).collect();
    let sends = |browser: Browser, priority: page::Priority| {
        let mut plan = Plan { browser, ..graph(&[5; 13], &after) };
        plan.origins.extend(["a", "b"].map(str::to_owned));
        for (index, object) in plan.objects.iter_mut().enumerate().skip(1) {
            (object.origin, object.priority) = (1 + index / 7, priority);
        }
        let mut fetcher = Fetcher::http1(Time::ZERO, plan).unwrap();
        let mut sent = Vec::new();
        let step = Duration::from_micros(500);
        for now in (0..100).map(|steps| Time::ZERO + step * steps) {
            loop {
                let steps = steps_at(&mut fetcher, now);
                let new = steps.iter().filter(|step| step.starts_with("send")).count();
                sent.extend(vec![now.as_millis_f64(); new]);
                let opened = steps.iter().filter_map(|step| step.strip_prefix("open ")?.parse().ok());
                let opened: Vec<u32> = opened.collect();
                opened.iter().for_each(|id| fetcher.handle(now, FromWire::Connected(ConnectionId(*id))));
                if opened.is_empty() {
                    break;
                }
            }
        }
        sent
    };
    let firefox = sends(Browser::FIREFOX, page::Priority::Low);
    assert_eq!(firefox.len(), 13);
    // The document and nine images are the burst; the others follow 80 a second.
    assert!(firefox[..10].iter().all(|millis| *millis < 5.0), "{firefox:?}");
    assert_eq!(firefox[10..], [12.5, 25.0, 37.5]);
    let at_once = |sent: Vec<f64>| sent.iter().all(|millis| *millis < 12.5);
    assert!(at_once(sends(Browser::FIREFOX, page::Priority::Medium)), "scripts are not paced");
    assert!(at_once(sends(Browser { pacing: None, ..Browser::FIREFOX }, page::Priority::Low)));
}

#[test]
fn a_hint_opens_a_connection_that_the_first_request_uses() {
    let after: [&[Dependency]; 2] = [&[], &[on(0, Moment::Ended, 0)]];
    let hint = |opens| Hint { origin: 1, after: on(0, Moment::Begun, 0), opens };
    let plan = |shape, hints, lookup| {
        let mut plan = Plan { shape, hints, ..graph(&[5, 5], &after) };
        plan.origins.push("static".to_owned());
        plan.objects[1].origin = 1;
        plan.lookups = vec![Duration::ZERO, Duration::from_millis(lookup)];
        plan
    };
    let parallel = NonZeroU16::new(6).unwrap();
    let config = || WebConfig::of(&[Host::new("h"), Host::new("static")], true, None);
    let connected = |id| FromWire::Connected(ConnectionId(id));
    for shape in [Shape::Http11Parallel { parallel }, Shape::Http2] {
        let begin = |hints, lookup| {
            let plan = plan(shape, hints, lookup);
            let mut browser = match shape {
                Shape::Http2 => Fetcher::web(Time::ZERO, plan, config()).unwrap(),
                _ => Fetcher::http1(Time::ZERO, plan).unwrap(),
            };
            assert_eq!(steps(&mut browser), ["open 0", "open 1"]);
            browser.handle(Time::ZERO, connected(0));
            browser
        };
        let sent = |browser: &mut Fetcher, now| {
            steps_at(browser, now).into_iter().filter(|step| step.starts_with("open")).collect::<Vec<_>>()
        };
        assert_eq!(sent(&mut begin(vec![hint(true)], 0), Time::ZERO), ["open 2"], "{shape:?}");
        assert_eq!(sent(&mut begin(vec![hint(false)], 0), Time::ZERO), [""; 0], "it looks the name up");
        assert_eq!(sent(&mut begin(Vec::new(), 0), Time::ZERO), [""; 0]);
        // The connection waits for the name.
        let (mut browser, later) = (begin(vec![hint(true)], 7), Time::ZERO + Duration::from_millis(7));
        assert_eq!(sent(&mut browser, Time::ZERO), [""; 0]);
        assert_eq!(sent(&mut browser, later), ["open 2"]);
        browser.handle(later, connected(2));
        assert_eq!(
            sent(&mut browser, later + Duration::from_secs(1)),
            [""; 0],
            "no request waits for another"
        );
    }
}

#[test]
fn a_lookup_ahead_of_the_request_takes_no_time_of_it() {
    let after: [&[Dependency]; 2] = [&[], &[on(0, Moment::Ended, 0)]];
    let with = |hints: Vec<Hint>| {
        requested_by(&[5_000, 100], &after, |plan| {
            plan.origins.push("static".to_owned());
            plan.objects[1].origin = 1;
            (plan.lookups, plan.hints) = (vec![Duration::ZERO, Duration::from_millis(7)], hints);
        })
    };
    let hint = |opens| Hint { origin: 1, after: on(0, Moment::Begun, 5), opens };
    assert_eq!(with(Vec::new()), [0.0, 17.0]);
    assert_eq!(with(vec![hint(false)]), [0.0, 12.0]);
    assert_eq!(with(vec![hint(true)]), [0.0, 12.0]);
}
