//! A real page over simulated TCP: the client knows only the document, and discovers the rest in its bytes as
//! they arrive, plain or compressed. Discovery in HTML is tested in `fetch`.

use std::sync::Arc;

use fetch::{PageEvent, named_at};
use page::Host;
use page::contents::file;
use scenario::programs::ProgramKey;
use scenario::{Client, Connection, Network, Page, Protocol, Requests, Scenario, Stack, Visit};
use simulate::page::Contents;
use simulate::{Experiment, Hosts, PageResult};
use wire::{Bytes, Duration};

fn scenario(page: Page, protocol: Protocol) -> Scenario {
    let network = Network::named("n-fast-internet").unwrap();
    Scenario::new(network, page, protocol, Stack::named("linux").unwrap())
}

fn microscape(protocol: Protocol) -> Scenario {
    scenario(Page::named("microscape").unwrap(), protocol)
}

fn run(scenario: &Scenario) -> PageResult {
    Experiment::new(scenario, Hosts::default()).unwrap().run(0, false).unwrap()
}

fn printed(mut scenario: Scenario, printed: &[(ProgramKey, &str)]) -> Scenario {
    printed.iter().for_each(|(key, text)| scenario.programs.set(*key, text).unwrap());
    scenario
}

fn object_count(fetched: &PageResult) -> usize {
    fetched.reports.iter().filter(|report| matches!(report.event, PageEvent::ObjectFound { .. })).count()
}

#[test]
fn every_protocol_finds_the_page_in_its_document() {
    let protocols = [
        Protocol::Http10,
        Protocol::Http10KeepAlive,
        Protocol::Http11,
        Protocol::Http11Parallel,
        Protocol::Http11Pipelined,
        Protocol::Ttcp,
        Protocol::Ardp,
        Protocol::Dhttp,
    ];
    for protocol in protocols {
        for (requests, parallel) in [(Requests::Dependent, 1), (Requests::Independent, 4)] {
            for connection in [Connection::Cold, Connection::Warm] {
                let parallel = if protocol.is_parallel() { parallel } else { 1 };
                let client = Client { requests, parallel, connection, ..Client::default() };
                let fetched = run(&Scenario { client, ..microscape(protocol) });
                assert!(fetched.elapsed.is_some(), "{protocol:?} {requests:?} {connection:?}");
                assert_eq!(object_count(&fetched), 42, "{protocol:?} {requests:?} {connection:?}");
            }
        }
    }
}

/// The tables of `papers/w3c` are computed with the objects that a robot would discover, and where, given in
/// advance.
#[test]
fn discovered_objects_are_requested_at_the_times_of_a_complete_plan() {
    let real = microscape(Protocol::Http11Pipelined);
    let contents = real.page.contents.clone().unwrap();
    let [document, ..] = &contents.files[..] else { panic!("no files") };
    let named =
        named_at(Host::UNNAMED, &document.path, http1::content::Coding::Identity, &document.body).unwrap();
    let named_at =
        std::iter::once(Bytes::ZERO).chain(named.into_iter().map(|reference| reference.named_at)).collect();
    let objects = contents.files.iter().map(|file| Arc::clone(&file.body)).collect();
    let hosts = Hosts { contents: Some(Contents { objects, named_at }), ..Hosts::default() };
    let planned = scenario(Page { contents: None, ..real.page.clone() }, Protocol::Http11Pipelined);
    let planned = Experiment::new(&planned, hosts).unwrap().run(0, false).unwrap();
    let object_count = run(&real);
    let [planned, object_count] = [planned, object_count].map(|fetched| fetched.elapsed.unwrap());
    // The headers have the type with and without its character set.
    let apart = object_count.saturating_sub(planned).max(planned.saturating_sub(object_count));
    assert!(apart < Duration::from_millis(2), "{object_count} {planned}");
}

#[test]
fn bodies_coded_in_advance_or_on_the_fly_are_decoded_as_they_arrive() {
    let plain = run(&microscape(Protocol::Http11Pipelined));
    for coding in ["deflate", "gzip", "br", "zstd", "gzip+br"] {
        let ways = ["beforehand", "on-the-fly"].map(|when| {
            let keys = [(ProgramKey::ClientCodings, coding), (ProgramKey::ServerCompression, when)];
            run(&printed(microscape(Protocol::Http11Pipelined), &keys))
        });
        assert!(
            ways.iter().all(|fetched| object_count(fetched) == 42 && fetched.elapsed < plain.elapsed),
            "{coding}"
        );
        assert_eq!(ways[0].down, ways[1].down, "{coding}");
        assert!(ways[0].down.payload_bytes + 25_000 < plain.down.payload_bytes, "{coding}");
    }
    let named = run(&microscape(Protocol::Http11PipelinedDeflate));
    let requested =
        run(&printed(microscape(Protocol::Http11Pipelined), &[(ProgramKey::ClientCodings, "deflate")]));
    assert_eq!(named.down, requested.down);
    let none = [(ProgramKey::ClientCodings, "gzip"), (ProgramKey::ServerCompression, "none")];
    let none = run(&printed(microscape(Protocol::Http11Pipelined), &none));
    assert_eq!(none.down.payload_bytes, plain.down.payload_bytes);
}

#[test]
fn revalidation_works_for_coded_and_plain_objects() {
    for keys in [&[][..], &[(ProgramKey::ClientCodings, "br")]] {
        for validation in ["entity-tags", "dates"] {
            let revalidating = Scenario { visit: Visit::Revalidate, ..microscape(Protocol::Http11Pipelined) };
            let fetched =
                run(&printed(printed(revalidating, keys), &[(ProgramKey::ClientValidation, validation)]));
            let is_unchanged =
                |event: &PageEvent| matches!(event, PageEvent::ObjectComplete { status: 304, .. });
            let unchanged = fetched.reports.iter().filter(|report| is_unchanged(&report.event)).count();
            assert_eq!(unchanged, 43, "{keys:?} {validation}");
        }
    }
}

#[test]
fn missing_objects_are_reported_and_the_rest_arrives() {
    let html =
        "<p><img src=a.gif><img src=gone.gif><img src=empty.gif><table><td background=b.gif>".to_owned();
    let files = [
        ("index.html", html.into_bytes()),
        ("a.gif", vec![1; 900]),
        ("b.gif", vec![2; 900]),
        ("empty.gif", Vec::new()),
    ];
    let page = Page::real("folder", files.map(|(place, body)| file(place, body)).into()).unwrap();
    let simulation =
        simulate::simulate(&scenario(page, Protocol::Http11Pipelined), Hosts::default()).unwrap();
    assert!(simulation.metrics.elapsed_ms.is_some());
    let expected = ["objects that the document references and the server lacks: 1.0"];
    assert_eq!(simulation.remarks.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn discovers_at_most_ten_thousand_objects() {
    let html: String = (0..12_000).map(|index| format!("<img src=/{index}>")).collect();
    let page = Page::real("endless", vec![file("index.html", html.into_bytes())]).unwrap();
    let simulation =
        simulate::simulate(&scenario(page, Protocol::Http11Pipelined), Hosts::default()).unwrap();
    let expected = [
        "objects that the document references and the server lacks: 9999.0",
        "the document references more than 10000 objects; those beyond were not fetched",
    ];
    assert_eq!(simulation.remarks.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn rejects_codings_of_unknown_contents_and_unrequested_compression() {
    let sized = scenario(Page::named("w3c-page").unwrap(), Protocol::Http11);
    let refusal = |scenario| Experiment::new(&scenario, Hosts::default()).unwrap_err().to_string();
    assert_eq!(
        refusal(printed(sized, &[(ProgramKey::ClientCodings, "gzip")])),
        "the simulator cannot do codings of w3c-page, of which only sizes are known; name microscape, or a directory"
    );
    assert_eq!(
        refusal(printed(microscape(Protocol::Http11), &[(ProgramKey::ServerCompression, "on-the-fly")])),
        "the simulator cannot do a compression that no client accepts; set the accepted ones, as client-codings = \"gzip\""
    );
}
