//! The scenarios of the corpus: families that each provoke a cause, over round trips, windows, congestion controls and
//! losses with and without SACK. Expected findings are not listed here: the endpoints supply them.

use scenario::programs::HeadWrite;
use scenario::{
    Client, Connection, Network, Page, Programs, Protocol, Requests, Scenario, Server, Stack, Tls, Visit,
};
use tcp::stack::{Acks, Congestion, Idle};
use wire::link::Loss;
use wire::{Bytes, Duration, Probability, Rate, Seed};

/// One run of the simulator.
pub(crate) struct Case {
    /// Family, and index in it.
    pub(crate) name: String,
    /// Scenario to run.
    pub(crate) scenario: Scenario,
}

const ROUND_TRIPS_MS: [u64; 8] = [1, 5, 12, 30, 60, 100, 200, 400];
const INITIAL_WINDOWS: [u16; 2] = [2, 10];
const RATES_MBPS: [u64; 2] = [20, 100];
const FAMILIES: [&str; 13] = [
    "plain",
    "connection-per-request",
    "server-thinks",
    "client-thinks",
    "nagle",
    "nagle-delayed-ack",
    "short-initial-segment",
    "delayed-ack",
    "send-buffer",
    "receive-buffer",
    "loss",
    "loss-of-short-answers",
    "after-idle",
];

/// All cases, in a fixed order.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for family in FAMILIES {
        for (rtt, rate) in ROUND_TRIPS_MS.into_iter().flat_map(|rtt| RATES_MBPS.map(|rate| (rtt, rate))) {
            for window in INITIAL_WINDOWS {
                for congestion in [Congestion::Reno, Congestion::Cubic] {
                    for sack in [true, false] {
                        let mut scenario = base(rtt, rate, cases.len());
                        let stack = &mut scenario.stack;
                        (stack.initial_window, stack.congestion, stack.sack) = (window, congestion, sack);
                        provoke(family, &mut scenario);
                        let control = if congestion == Congestion::Reno { "reno" } else { "cubic" };
                        let sack = if sack { "sack" } else { "no-sack" };
                        let name = format!("{family} {rtt}ms {rate}Mbps iw{window} {control} {sack}");
                        cases.push(Case { name, scenario });
                    }
                }
            }
        }
    }
    cases
}

fn base(rtt_ms: u64, rate_mbps: u64, number: usize) -> Scenario {
    let rate = Rate::from_bits_per_second(rate_mbps * 1_000_000).expect("it is not zero");
    let mut stack = Stack::named("linux").expect("it is a stack's name");
    stack.nagle = false;
    Scenario {
        network: Network::new("corpus".to_owned(), Duration::from_millis(rtt_ms), rate, Bytes::new(1_460)),
        page: Page::named("medium-cluster").expect("it is a page's name"),
        visit: Visit::First,
        protocol: Protocol::Http11,
        tls: Tls::None,
        stack,
        client: Client {
            request: Bytes::new(256),
            requests: Requests::Dependent,
            parallel: 1,
            connection: Connection::Cold,
        },
        server: Server { processing: Duration::ZERO },
        programs: Programs::default(),
        runs: 1,
        seed: Seed::new(number as u64 + 1),
    }
}

fn provoke(family: &str, scenario: &mut Scenario) {
    /// A page of `count` objects of one size.
    fn page(count: usize, bytes: u64) -> Page {
        Page::from_sizes("corpus", vec![Bytes::new(bytes); count]).expect("it is a page")
    }
    let Scenario { network, stack, programs, .. } = scenario;
    let loses =
        |percent: f64| Loss::Independent(Probability::new(percent / 100.0).expect("it is a probability"));
    match family {
        "connection-per-request" => scenario.protocol = Protocol::Http10,
        "server-thinks" => scenario.server.processing = Duration::from_millis(60),
        "client-thinks" => programs.client_think = Some(Duration::from_millis(40)),
        "nagle" | "nagle-delayed-ack" => {
            (programs.server_head, programs.nagle) = (Some(HeadWrite::Apart), Some(true));
            scenario.page = page(6, 500);
            stack.acks = if family == "nagle" { Acks::EverySegment } else { Acks::Timer };
        }
        "short-initial-segment" => {
            (programs.server_head, stack.acks) = (Some(HeadWrite::Apart), Acks::Timer);
            stack.initial_window = stack.initial_window.min(2);
            scenario.page = page(4, 10_000);
        }
        "delayed-ack" => {
            stack.acks = Acks::Timer;
            stack.initial_window = if stack.initial_window == 2 { 1 } else { 3 };
            scenario.page = page(2, 25_000);
        }
        "send-buffer" => {
            (programs.send_buffer, scenario.page) = (Some(Bytes::new(16_384)), page(1, 150_000));
        }
        "receive-buffer" => {
            (stack.receive_buffer, scenario.page) = (Some(Bytes::new(16_384)), page(1, 150_000));
        }
        "loss" => (network.down.loss, scenario.page) = (loses(2.0), page(3, 150_000)),
        "loss-of-short-answers" => (network.down.loss, scenario.page) = (loses(4.0), page(12, 6_000)),
        "after-idle" => {
            (stack.idle, programs.client_think) = (Idle::Restarted, Some(Duration::from_secs(3)));
            scenario.page = page(3, 100_000);
        }
        _ => {}
    }
}
