//! Questions to the simulator: two ways to load a page, over round trips and a second quantity.

use page::{Dependency, Host, Object, Page};
use scenario::{Connection, Network, Protocol, Scenario, Stack, Tls};
use simulate::{Experiment, Hosts};
use wire::link::{Loss, QueueLimit};
use wire::{Bytes, Duration, Probability, Rate};

/// Round trips, the rows of every map, in milliseconds.
pub(crate) const RTTS_MS: [u64; 6] = [10, 25, 50, 100, 200, 400];
/// Payload rate of the link where a map does not vary it, in Mbit/s.
const RATE_MBPS: f64 = 10.0;
/// Runs of a cell with loss.
const RUNS: u32 = 40;
/// Moments of another client's page at which a neighbour begins.
const MOMENTS: u32 = 8;

/// A map: the time of one way to load a page over that of another.
pub(crate) struct Question {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) subtitle: &'static str,
    /// Title of the columns, and their values.
    pub(crate) columns: (&'static str, &'static [f64]),
    /// Titles of the panels.
    pub(crate) panels: &'static [&'static str],
    /// Both ways of a panel, for a value of the columns.
    ways: fn(usize, f64) -> [Way; 2],
}

/// A way to load a page.
#[derive(Clone)]
struct Way {
    protocol: Protocol,
    tls: Tls,
    page: Page,
    loss_percent: f64,
    rate_mbps: f64,
    /// Queue of the link, if not the network's.
    queue_kilobytes: Option<f64>,
    connection: Connection,
    /// Another client's page over the same link, in the middle of which this one begins.
    beside: Option<Box<Self>>,
}

const LOSSES: (&str, &[f64]) = ("packet loss in each direction (%)", &[0.0, 0.1, 0.5, 1.0, 2.0, 5.0]);
const RATES: (&str, &[f64]) = ("rate of the link (Mbit/s)", &[1.0, 3.0, 10.0, 30.0, 100.0]);
const PAGE: &str = "A document of 20 kB with 40 objects of 12 kB, 10 Mbit/s, Linux at both ends, 40 runs where packets are lost";

pub(crate) const QUESTIONS: [Question; 8] = [
    Question {
        name: "http2-or-six-connections",
        title: "Time over HTTP/2 divided by that over HTTP/1.1 with six connections, both with TLS 1.3",
        subtitle: PAGE,
        columns: LOSSES,
        panels: &["one host"],
        ways: |_, loss| {
            [Protocol::Http2, Protocol::Http11Parallel].map(|protocol| Way::lossy(protocol, loss))
        },
    },
    Question {
        name: "pipelining",
        title: "Time over one pipelined HTTP/1.1 connection divided by that over another protocol, all without TLS",
        subtitle: PAGE,
        columns: LOSSES,
        panels: &["six connections", "HTTP/2 over one"],
        ways: |panel, loss| {
            let other = [Protocol::Http11Parallel, Protocol::Http2][panel];
            [Protocol::Http11Pipelined, other].map(|protocol| Way {
                tls: Tls::None,
                page: plain(),
                ..Way::lossy(protocol, loss)
            })
        },
    },
    Question {
        name: "sharding",
        title: "Time of the objects on four hosts divided by that on one, both with TLS 1.3",
        subtitle: "A document of 20 kB with 40 objects of 12 kB, no name shared by a certificate, no loss, Linux at both ends",
        columns: RATES,
        panels: &["HTTP/1.1, six connections to a host", "HTTP/2"],
        ways: |panel, rate_mbps| {
            let protocol = [Protocol::Http11Parallel, Protocol::Http2][panel];
            [4, 1].map(|hosts| Way { page: objects(hosts), rate_mbps, ..Way::lossy(protocol, 0.0) })
        },
    },
    Question {
        name: "http3-or-http2",
        title: "Time over HTTP/3 divided by that over HTTP/2, both with TLS 1.3",
        subtitle: PAGE,
        columns: LOSSES,
        panels: &["one host"],
        ways: |_, loss| [Protocol::Http3, Protocol::Http2].map(|protocol| Way::lossy(protocol, loss)),
    },
    Question {
        name: "certificates",
        title: "Time over HTTP/3 with this certificate chain divided by that with one of 2 kB",
        subtitle: "One object of 10 kB, 10 Mbit/s, no loss: a server may send three times what came (RFC 9000, section 8.1)",
        columns: ("certificate chain (kB)", &[2.5, 3.0, 3.5, 4.0, 5.0, 8.0]),
        panels: &["first visit"],
        ways: |_, chain| {
            [chain, 2.0]
                .map(|kilobytes| Way { page: certified(kilobytes), ..Way::lossy(Protocol::Http3, 0.0) })
        },
    },
    Question {
        name: "dhttp-or-http3",
        title: "Time over DHTTP divided by that over HTTP/3 with early data",
        subtitle: "One object, 10 Mbit/s, no loss, Linux at both ends; DHTTP encrypts nothing",
        columns: ("size of the object (kB)", &[0.5, 1.0, 2.0, 5.0, 20.0, 50.0]),
        panels: &["DHTTP's first contact", "DHTTP with a token"],
        ways: |panel, kilobytes| {
            let page = || single(kilobytes);
            let connection = [Connection::Cold, Connection::Warm][panel];
            let early = Way { tls: Tls::V13EarlyData, page: page(), ..Way::lossy(Protocol::Http3, 0.0) };
            [Way { tls: Tls::None, page: page(), connection, ..Way::lossy(Protocol::Dhttp, 0.0) }, early]
        },
    },
    Question {
        name: "neighbour",
        title: "Time of a neighbour's object beside another client's page, divided by that alone",
        subtitle: "One HTTP/1.1 connection with TLS 1.3, begun while the other loads 6 MB (30 images), 10 Mbit/s, no loss, Linux",
        columns: ("size of the neighbour's object (kB)", &[10.0, 50.0, 200.0, 1000.0]),
        panels: &["six connections", "HTTP/2", "HTTP/3"],
        ways: |panel, kilobytes| {
            let protocol = [Protocol::Http11Parallel, Protocol::Http2, Protocol::Http3][panel];
            let alone = Way { page: single(kilobytes), ..Way::lossy(Protocol::Http11, 0.0) };
            let other = Way { page: gallery(30), ..Way::lossy(protocol, 0.0) };
            [Way { beside: Some(Box::new(other)), ..alone.clone() }, alone]
        },
    },
    Question {
        name: "share",
        title: "Time of a page beside a neighbour's download, divided by that alone: with an equal share 2",
        subtitle: "3 MB (15 images) with TLS 1.3, begun while one HTTP/1.1 connection carries 16 MB, 10 Mbit/s, no loss but in the queue, Linux",
        columns: ("queue of the link (kB)", &[32.0, 64.0, 256.0, 1000.0]),
        panels: &["six connections", "HTTP/2", "HTTP/3"],
        ways: |panel, queue| {
            let protocol = [Protocol::Http11Parallel, Protocol::Http2, Protocol::Http3][panel];
            let queued = |way| Way { queue_kilobytes: Some(queue), ..way };
            let alone = queued(Way { page: gallery(15), ..Way::lossy(protocol, 0.0) });
            let other = queued(Way { page: single(16_000.0), ..Way::lossy(Protocol::Http11, 0.0) });
            [Way { beside: Some(Box::new(other)), ..alone.clone() }, alone]
        },
    },
];

impl Way {
    /// Over one host at the usual rate.
    fn lossy(protocol: Protocol, loss_percent: f64) -> Self {
        Self {
            protocol,
            tls: Tls::V13,
            page: objects(1),
            loss_percent,
            rate_mbps: RATE_MBPS,
            queue_kilobytes: None,
            connection: Connection::Cold,
            beside: None,
        }
    }

    /// Time of the page, in milliseconds.
    fn time(mut self, rtt_ms: u64) -> Result<f64, String> {
        let sentence = |error: simulate::Error| error.to_string();
        let Some(beside) = self.beside.take() else {
            let scenario = self.scenario(rtt_ms)?;
            let simulated = simulate::simulate(&scenario, Hosts::default()).map_err(sentence)?;
            return simulated.metrics.elapsed_ms.ok_or_else(|| "no run ended".to_owned());
        };
        let [own, other] = [self, *beside].map(|way| way.scenario(rtt_ms));
        let experiment = |scenario| Experiment::new(&scenario, Hosts::default()).map_err(sentence);
        let (own, other) = (experiment(own?)?, experiment(other?)?);
        let whole = other.run(0, false).map_err(sentence)?.elapsed.ok_or("the other page did not end")?;
        let mut sum = 0.0;
        for moment in 0..MOMENTS {
            // From a quarter to three quarters of the other page.
            let later = whole / 4 + whole * u64::from(moment) / u64::from(2 * MOMENTS);
            let [_, run] = other.run_beside(&own, later, moment).map_err(sentence)?;
            sum += run.elapsed.ok_or("the neighbour's object did not arrive")?.as_millis_f64();
        }
        Ok(sum / f64::from(MOMENTS))
    }

    fn scenario(self, rtt_ms: u64) -> Result<Scenario, String> {
        let Self { protocol, tls, page, loss_percent, rate_mbps, queue_kilobytes, connection, beside: _ } =
            self;
        let mut network = Network::named("cable").map_err(|error| error.to_string())?;
        let rate = Rate::from_bits_per_second(thousands(1e3 * rate_mbps));
        network.rate = rate.ok_or_else(|| format!("{rate_mbps} Mbit/s is no rate"))?;
        (network.rate_up, network.rtt) = (None, Duration::from_millis(rtt_ms));
        if let Some(probability) = Probability::new(loss_percent / 100.0).filter(|_| loss_percent > 0.0) {
            network.up.loss = Loss::Independent(probability);
            network.down.loss = Loss::Independent(probability);
        }
        if let Some(kilobytes) = queue_kilobytes {
            let queue = QueueLimit { packets: None, bytes: Some(Bytes::new(thousands(kilobytes))) };
            (network.up.queue, network.down.queue) = (queue, queue);
        }
        let stack = Stack::named("linux").map_err(|error| error.to_string())?;
        let runs = if loss_percent > 0.0 { RUNS } else { 1 };
        let mut scenario = Scenario { tls, runs, ..Scenario::new(network, page, protocol, stack) };
        scenario.client.connection = connection;
        Ok(scenario)
    }
}

impl Question {
    /// Times of both ways in a cell, in milliseconds.
    pub(crate) fn times(&self, panel: usize, rtt_ms: u64, column: f64) -> Result<[f64; 2], String> {
        let [first, second] = (self.ways)(panel, column);
        let time = |way: Way| way.time(rtt_ms).map_err(|reason| format!("{}: {reason}", self.name));
        Ok([time(first)?, time(second)?])
    }
}

/// A document, and objects that it names, on this number of hosts.
fn objects(hosts: usize) -> Page {
    let object = |index: usize| Object {
        host: index % hosts,
        after: vec![Dependency::on_end(0)],
        ..Object::sized(Bytes::new(12_000))
    };
    let document = Object::sized(Bytes::new(20_000));
    let objects = std::iter::once(document).chain((1..=40).map(object)).collect();
    let hosts = (0..hosts).map(|index| Host::new(&format!("h{index}.example"))).collect();
    Page { hosts, ..Page::of("document-and-40", objects) }
}

/// The same without dependencies: objects named in the document, as the papers' pages are.
fn plain() -> Page {
    let sizes = std::iter::once(20_000).chain(std::iter::repeat_n(12_000, 40));
    Page::of("document-and-40", sizes.map(|bytes| Object::sized(Bytes::new(bytes))).collect())
}

/// A document, and this number of pictures of 200 kB.
fn gallery(pictures: usize) -> Page {
    let picture = || Object { after: vec![Dependency::on_end(0)], ..Object::sized(Bytes::new(200_000)) };
    let document = std::iter::once(Object::sized(Bytes::new(20_000)));
    Page::of("gallery", document.chain(std::iter::repeat_with(picture).take(pictures)).collect())
}

fn single(kilobytes: f64) -> Page {
    Page::of("one-object", vec![Object::sized(Bytes::new(thousands(kilobytes)))])
}

fn certified(kilobytes: f64) -> Page {
    let certificate_chain = Some(Bytes::new(thousands(kilobytes)));
    Page { hosts: vec![Host { certificate_chain, ..Host::new("h0.example") }], ..single(10.0) }
}

/// Bytes of kilobytes, or bit/s of kbit/s.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small constant of this file")]
fn thousands(number: f64) -> u64 {
    (number * 1e3) as u64
}
