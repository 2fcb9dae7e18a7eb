//! Pipelining over a real window: its savings, and the losses of a naive close (`papers/w3c#pipelining`,
//! `papers/w3c#connection-management`).

use std::num::NonZeroU32;
use std::sync::Arc;

use fetch::{Flush, PageEvent, Pipelining};
use http1::server::Closing;
use scenario::programs::Validation;
use scenario::{Client, Network, Page, Protocol, Scenario, Stack, Visit};
use simulate::page::Contents;
use simulate::{Experiment, Hosts, PageResult};
use wire::{Bytes, Duration, Seed};

/// The page of `papers/w3c#microscape` as the model paper has it, over its network most like the note's WAN.
fn fetch(protocol: Protocol, hosts: Hosts) -> PageResult {
    visit(Visit::First, protocol, hosts)
}

fn visit(visit: Visit, protocol: Protocol, hosts: Hosts) -> PageResult {
    let scenario = Scenario {
        visit,
        client: Client { request: Bytes::new(190), ..Client::default() },
        ..Scenario::new(
            Network::named("n-fast-internet").unwrap(),
            Page::named("w3c-page").unwrap(),
            protocol,
            Stack::named("period").unwrap(),
        )
    };
    Experiment::new(&scenario, hosts).unwrap().run(0, false).unwrap()
}

fn packets(fetched: &PageResult) -> u64 {
    fetched.up.packets + fetched.down.packets
}

/// Requests sent, objects received, and objects failed.
fn counts(fetched: &PageResult) -> [usize; 3] {
    let count =
        |is: fn(&PageEvent) -> bool| fetched.reports.iter().filter(|report| is(&report.event)).count();
    [
        count(|event| matches!(event, PageEvent::RequestSent { .. })),
        count(|event| matches!(event, PageEvent::ObjectComplete { .. })),
        count(|event| matches!(event, PageEvent::ObjectFailed { .. })),
    ]
}

/// "The savings were at least a factor of two, and sometimes as much as a factor of ten, in terms of packets
/// transmitted."
#[test]
fn paper_pipelining_halves_the_packets_of_http10_at_least_and_the_time_of_http11() {
    let [http10, http11, pipelined] = [Protocol::Http10, Protocol::Http11, Protocol::Http11Pipelined]
        .map(|protocol| fetch(protocol, Hosts::default()));
    assert!(2 * packets(&pipelined) <= packets(&http10), "{} {}", packets(&pipelined), packets(&http10));
    assert!(packets(&pipelined) < packets(&http11));
    assert!(pipelined.elapsed.unwrap() * 2 < http11.elapsed.unwrap(), "{:?}", pipelined.elapsed);
}

/// The factor of ten is that of tables 4 to 7, cache validation.
#[test]
fn paper_pipelined_revalidation_takes_less_than_a_tenth_of_the_packets_of_http10() {
    let [http10, http11, pipelined] = [Protocol::Http10, Protocol::Http11, Protocol::Http11Pipelined]
        .map(|protocol| visit(Visit::Revalidate, protocol, Hosts::default()));
    for fetched in [&http10, &http11, &pipelined] {
        assert_eq!(counts(fetched), [42, 42, 0], "{:?}", fetched.reports);
        assert!(fetched.down.payload_bytes < 42 * 200, "no bodies: {}", fetched.down.payload_bytes);
    }
    assert!(10 * packets(&pipelined) < packets(&http10), "{} {}", packets(&pipelined), packets(&http10));
    assert!(packets(&pipelined) < packets(&http11) / 3, "{} {}", packets(&pipelined), packets(&http11));
}

/// "About 16% of the packets and 12% of the elapsed time in our first time retrieval test".
#[test]
fn paper_deflate_saves_packets_and_time() {
    let [plain, deflated] = [Protocol::Http11Pipelined, Protocol::Http11PipelinedDeflate]
        .map(|protocol| fetch(protocol, Hosts::default()));
    let saved = |plain: f64, deflated: f64| 1.0 - deflated / plain;
    let packets = saved(packets(&plain) as f64, packets(&deflated) as f64);
    let [plain, deflated] = [plain, deflated].map(|fetched| fetched.elapsed.unwrap().as_millis_f64());
    assert!((0.12..0.20).contains(&packets), "{packets}");
    assert!((0.08..0.20).contains(&saved(plain, deflated)), "{plain} {deflated}");
}

#[test]
fn careful_close_loses_nothing_and_naive_close_loses_responses_in_flight() {
    let hosts = |closing| Hosts { requests: NonZeroU32::new(5), closing, ..Hosts::default() };
    let [careful, naive] =
        [Closing::Careful, Closing::Naive].map(|closing| fetch(Protocol::Http11Pipelined, hosts(closing)));
    assert_eq!(careful.up.connections, 9, "42 objects, 5 on each");
    let [_, completed, failed] = counts(&careful);
    assert_eq!((completed, failed), (42, 0));
    // A truncated response is lost; a request without any response is retried.
    let [_, completed, failed] = counts(&naive);
    assert!(
        failed > 0 && completed > failed && completed + failed == 42,
        "{completed} came, {failed} failed"
    );
    assert!(naive.up.connections > careful.up.connections, "{}", naive.up.connections);
}

#[test]
fn waiting_for_the_flush_timer_costs_its_duration() {
    let tuned = |flush, flush_after| {
        let pipelining = Pipelining { flush, flush_after, ..Pipelining::default() };
        fetch(Protocol::Http11Pipelined, Hosts { pipelining, ..Hosts::default() }).elapsed.unwrap()
    };
    let second = Duration::from_secs(1);
    let explicit = tuned(Flush::Idle, second);
    // Table 3's: the document's request waits a second, and so do the last images'.
    let late = tuned(Flush::Never, second);
    assert!(late > explicit + second, "{late} {explicit}");
}

/// "Issuing HEAD requests on the images instead of Conditional GET requests": the document comes whole.
#[test]
fn http10_robot_revalidates_with_get_for_the_document_and_head_for_the_rest() {
    let heads = visit(
        Visit::Revalidate,
        Protocol::Http10,
        Hosts { validation: Some(Validation::Heads), ..Hosts::default() },
    );
    assert_eq!(counts(&heads), [42, 42, 0], "{:?}", heads.reports);
    let document = 42 * 1024;
    assert!(
        (document..document + 42 * 200).contains(&heads.down.payload_bytes),
        "{}",
        heads.down.payload_bytes
    );
}

#[test]
fn objects_named_early_in_a_real_document_are_requested_early() {
    let page = Page::named("w3c-page").unwrap();
    let objects: Vec<Arc<[u8]>> = page
        .objects
        .iter()
        .map(|object| vec![0; usize::try_from(object.size.get()).unwrap()].into())
        .collect();
    let elapsed = |named_at: Vec<Bytes>| {
        let contents = Some(Contents { objects: objects.clone(), named_at });
        fetch(Protocol::Http11Pipelined, Hosts { contents, ..Hosts::default() }).elapsed.unwrap()
    };
    let late = elapsed(Vec::new());
    assert_eq!(late, fetch(Protocol::Http11Pipelined, Hosts::default()).elapsed.unwrap());
    let early = elapsed(vec![Bytes::new(1_000); 42]);
    assert!(early + Duration::from_millis(80) < late, "a round trip less: {early} {late}");
}

/// "Deflate compression is more efficient than the data compression algorithms used in modems": it gains less behind
/// one, and still gains.
#[test]
fn paper_a_modem_that_compresses_leaves_something_for_deflate() {
    let text = "the word of a page ".repeat(2_264).into_bytes();
    let took = |modem: &str, size: usize, deflated: Option<usize>| {
        let mut network = Network::named("n-modem").unwrap();
        network.modem = quantity::path::modem(modem).unwrap();
        let body = deflated.map_or_else(|| text[..size].to_vec(), noise);
        let page = Page::from_sizes("text", [Bytes::new(body.len() as u64)]).unwrap();
        let contents = Some(Contents { objects: vec![body.into()], named_at: Vec::new() });
        let scenario = Scenario {
            client: Client { request: Bytes::new(190), ..Client::default() },
            ..Scenario::new(network, page, Protocol::Http11, Stack::named("nt-4.0").unwrap())
        };
        let hosts = Hosts { contents, ..Hosts::default() };
        Experiment::new(&scenario, hosts).unwrap().run(0, false).unwrap().elapsed.unwrap()
    };
    let (plain, modem) = (took("none", 43_008, None), took("v42bis", 43_008, None));
    let (deflated, both) = (took("none", 0, Some(11_264)), took("v42bis", 0, Some(11_264)));
    assert!(modem < plain / 2, "{modem} {plain}");
    assert!(
        both < deflated * 5 / 4 && deflated < both * 5 / 4,
        "what is deflated does not shrink: {both} {deflated}"
    );
    assert!(
        took("v42bis/38.4kbit", 43_008, None) > Duration::from_secs(11),
        "no more than the port lets through"
    );
}

/// Bytes that do not compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut random = Seed::default().stream("noise", 0);
    (0..bytes).map(|_| random.next_u64().to_le_bytes()[0]).collect()
}
