//! Speed of virtual time: packets and events per second on one core, and pages per second.
//!
//! Medians of several runs. As in htsim and ns-3, an event is a packet that leaves a queue, a packet that
//! arrives, a timer that expires, or a turn of an application. Here the link computes when a packet leaves,
//! so that about half of them are never scheduled; both figures are printed. For comparison, on another host
//! (notes on anchors): ns-3 with full TCP does 0.53 M events and 0.03 to 0.12 M packets a second. htsim,
//! without byte stream, Nagle and delayed ACKs, does 20 to 23 M events and 10 M packets.

extern crate roundtrip_simulate as simulate;

use std::time::Duration as Elapsed;

use page::{Dependency, Host, Object};
use scenario::{Network, Page, Protocol, Scenario, Stack, Tls};
use simulate::profile::{self, Clocks};
use simulate::world::{Action, Address, Application, Bounds, HostConfig, HostId, Input, SocketId, World};
use simulate::{Experiment, Hosts};
use tcp::Payload;
use wire::{Bytes, Duration, Rate, Seed, Time, link};

fn main() {
    // One short run and nothing else, to count instructions under valgrind, where other load does not matter.
    if std::env::args().any(|argument| argument == "--short") {
        for stack in ["period", "linux"] {
            bulk_once(&Stack::named(stack).expect("a stack of the catalogue"), 200_000);
        }
        return;
    }
    // Whole pages of today only; `--web http2 20`: those of one protocol, so often, to count instructions.
    let mut arguments = std::env::args().skip_while(|argument| argument != "--web").skip(1);
    if std::env::args().any(|argument| argument == "--web") {
        let protocol = arguments.next();
        return web(
            protocol.as_deref(),
            arguments.next().and_then(|count| count.parse().ok()).unwrap_or(500),
        );
    }
    for stack in ["period", "linux"] {
        bulk(stack);
    }
    pages();
    web(None, 500);
    grid();
}

/// One connection that sends without end over a gigabit link.
fn bulk(name: &str) {
    let stack = Stack::named(name).expect("a stack of the catalogue");
    let runs = 5;
    let mut rates: Vec<(f64, f64)> = (0..runs).map(|_| bulk_once(&stack, 3_000_000)).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (packets, scheduled) = rates[runs / 2];
    // A packet leaves its queue and arrives. Other simulators schedule both; here the link computes the
    // first.
    let events = packets + scheduled;
    println!(
        "bulk, {name:6}: {:6.2} M packets/s, {:6.2} M events/s as others count them, {:6.2} M of them scheduled",
        packets / 1e6,
        events / 1e6,
        scheduled / 1e6
    );
}

fn bulk_once(stack: &Stack, events: u64) -> (f64, f64) {
    let mss = Bytes::new(1460);
    let config = |index| {
        profile::config(stack, mss, Duration::from_micros(12), Clocks::random(Seed::default(), index))
    };
    let mut world = World::new(Seed::default());
    let source =
        world.add_host(HostConfig::immediate(config(0)), Bulk::source()).expect("a stack that can be");
    let sink = world
        .add_host(HostConfig::immediate(config(1)), Bulk::Sink { is_listening: false })
        .expect("a stack that can be");
    let link = link::Config {
        rate: Rate::from_bits_per_second(1_000_000_000),
        delay: Duration::from_micros(500),
        ..link::Config::default()
    };
    for (from, to) in [(source, sink), (sink, source)] {
        let link = world.add_link(&link).expect("a link that can be");
        world.add_route(from, to, &[link]);
    }
    let (time, ()) = timed(|| {
        world.run(Bounds { until: Time::MAX, events });
    });
    let packets = world.counters(source).packets + world.counters(sink).packets;
    (packets as f64 / time.as_secs_f64(), world.events() as f64 / time.as_secs_f64())
}

/// The papers' small cluster over its fast Internet, repeated.
fn pages() {
    for (stack, protocol) in
        [("period", Protocol::Http10KeepAlive), ("linux", Protocol::Http11), ("linux", Protocol::Http10)]
    {
        let scenario = page(stack, "fast-internet", "small-cluster", protocol);
        let experiment = Experiment::new(&scenario, Hosts::default()).expect("a scenario that can be run");
        let count = 4_000;
        let (time, packets) = timed(|| {
            (0..count)
                .map(|number| experiment.run(number, false).expect("a run"))
                .map(|run| run.up.packets + run.down.packets)
                .sum::<u64>()
        });
        println!(
            "pages, {stack} {}: {:.0} pages/s, {:.2} M packets/s",
            protocol.name(),
            f64::from(count) / time.as_secs_f64(),
            packets as f64 / time.as_secs_f64() / 1e6
        );
    }
}

/// 100 objects of 12 hosts over 4G, with TLS 1.3.
fn web(only: Option<&str>, count: u32) {
    let object = |index: u64| Object {
        host: usize::try_from(index % 12).unwrap_or_default(),
        after: if index == 0 { Vec::new() } else { vec![Dependency::on_end(0)] },
        ..Object::sized(Bytes::new(2_000 + index * 97 % 20_000))
    };
    let hosts = (0..12).map(|host| Host::new(&format!("host-{host}"))).collect();
    let page = Page { hosts, ..Page::of("twelve hosts", (0..100).map(object).collect()) };
    let network = Network::named("4g").expect("a network of the catalogue");
    let stack = Stack::named("linux").expect("a stack of the catalogue");
    for protocol in [Protocol::Http3, Protocol::Http2, Protocol::Http11Parallel] {
        if only.is_some_and(|only| only != protocol.name()) {
            continue;
        }
        let scenario = Scenario::new(network.clone(), page.clone(), protocol, stack.clone());
        let scenario = Scenario { tls: Tls::V13, ..scenario };
        let experiment = Experiment::new(&scenario, Hosts::default()).expect("a scenario that can be run");
        let (time, packets) = timed(|| {
            (0..count)
                .map(|number| experiment.run(number, false).expect("a run"))
                .map(|run| run.up.packets + run.down.packets)
                .sum::<u64>()
        });
        println!(
            "web pages, {}: {:.0} pages/s, {:.2} M packets/s",
            protocol.name(),
            f64::from(count) / time.as_secs_f64(),
            packets as f64 / time.as_secs_f64() / 1e6
        );
    }
}

/// Ten networks, six pages, three protocols.
fn grid() {
    let protocols = [Protocol::Http10, Protocol::Http10KeepAlive, Protocol::Http11];
    let (time, count) = timed(|| {
        let mut count = 0;
        for network in Network::ten() {
            for of in Page::six() {
                for protocol in protocols {
                    let scenario = page("period", &network.name, &of.name, protocol);
                    let experiment = Experiment::new(&scenario, Hosts::default()).expect("a scenario");
                    experiment.run(0, false).expect("a run");
                    count += 1;
                }
            }
        }
        count
    });
    println!("grid of {count} scenarios: {:.0} ms", time.as_secs_f64() * 1e3);
}

fn page(stack: &str, network: &str, page: &str, protocol: Protocol) -> Scenario {
    Scenario::new(
        Network::named(network).expect("a network of the catalogue"),
        Page::named(page).expect("a page of the catalogue"),
        protocol,
        Stack::named(stack).expect("a stack of the catalogue"),
    )
}

/// A source that writes 64 KiB whenever it may, and a sink.
enum Bulk {
    Source { block: Payload, next: Option<Action> },
    Sink { is_listening: bool },
}

impl Bulk {
    fn source() -> Self {
        let to = Address { host: HostId(1), port: 9 };
        Self::Source { block: Payload::from(vec![7; 65_536]), next: Some(Action::Connect(to)) }
    }
}

impl Application for Bulk {
    fn handle(&mut self, _now: Time, input: Input) {
        if let (Self::Source { block, next }, Input::Connected(socket) | Input::Written(socket)) =
            (self, input)
        {
            *next = Some(Action::Write(socket, block.clone()));
        }
    }

    fn poll(&mut self, _now: Time, _fresh: SocketId) -> Action {
        match self {
            Self::Source { block: _, next } => next.take().unwrap_or(Action::Wait(None)),
            Self::Sink { is_listening: true } => Action::Wait(None),
            Self::Sink { is_listening } => {
                *is_listening = true;
                Action::Listen(9)
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn timed<T>(work: impl FnOnce() -> T) -> (Elapsed, T) {
    let start = std::time::Instant::now();
    let result = work();
    (start.elapsed(), result)
}
