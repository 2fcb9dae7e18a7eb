//! Client and server over a network that loses, doubles, reorders and breaks, in virtual time.
//!
//! Under all faults, every request ends once and is reported once, every complete response is whole and right, and both
//! sides become idle. Not TCP: a connection here is a pipe that delivers in order, or breaks.

use std::collections::{BTreeMap, VecDeque};

use http1::message::range::{self, RequestedRange};
use http1::message::{Fields, Method, RequestHead};
use http1::server::{Response, ResponseBody};
use proptest::prelude::*;
use roundtrip_dhttp_proto::client::{self, Client, Output, Reason};
use roundtrip_dhttp_proto::server::{self, Reply, Server, Transmit, Verdict, WholeResponse};
use roundtrip_dhttp_proto::{ClientConfig, Extension, Id, ServerConfig};
use wire::seed::Random;
use wire::{Duration, Probability, Seed, Time};

use super::setting::{client, client_at, head, server, server_at};

/// Faults of the network.
#[derive(Clone, Copy, Debug)]
struct NetworkFaults {
    loss: Probability,
    doubling: Probability,
    /// Maximum one-way jitter; it reorders.
    jitter: Duration,
    /// Probability that a connection does not open, and that it breaks with each response.
    breaking: Probability,
    /// Maximum time of the server for a response.
    server_delay: Duration,
}

const CALM: NetworkFaults = NetworkFaults {
    loss: Probability::NEVER,
    doubling: Probability::NEVER,
    jitter: Duration::from_millis(20),
    breaking: Probability::NEVER,
    server_delay: Duration::ZERO,
};

/// Event at the client or the server.
#[derive(Debug)]
enum Arrival {
    Request(Vec<u8>),
    Datagram(Vec<u8>),
    ServerReady(Box<server::Ticket>, RequestHead),
    Opened(u64),
    Bytes(u64, Vec<u8>),
    Written(u64),
    Broken(u64),
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestEnd {
    Complete(usize),
    PlainHttp(Reason),
    Failed,
}

struct Simulation {
    faults: NetworkFaults,
    random: Random,
    now: Time,
    client: Client,
    server: Server,
    arrivals: BTreeMap<(Time, u64), Arrival>,
    serial: u64,
    /// Bytes that wait for each connection to open, and when the last of those sent on it arrives.
    pipes: BTreeMap<u64, (bool, VecDeque<Vec<u8>>, Time)>,
    ended: BTreeMap<u64, RequestEnd>,
    bodies: BTreeMap<u64, Vec<u8>>,
    /// Number of responses by TCP, for each request.
    by_tcp: BTreeMap<u64, u32>,
    by_udp: u32,
    /// Number of responses, or ranges of missing parts, that were divided into datagrams.
    in_parts: u32,
}

/// Requests bodies of these sizes, one request each.
fn fetch(
    faults: NetworkFaults,
    profile: (ClientConfig, ServerConfig),
    sizes: &[usize],
    seed: u64,
) -> Simulation {
    let mut simulation = Simulation {
        faults,
        random: Seed::new(seed).stream("weather", 0),
        now: Time::ZERO,
        client: client(profile.0),
        server: server(profile.1),
        arrivals: BTreeMap::new(),
        serial: 0,
        pipes: BTreeMap::new(),
        ended: BTreeMap::new(),
        bodies: BTreeMap::new(),
        by_tcp: BTreeMap::new(),
        by_udp: 0,
        in_parts: 0,
    };
    for (id, size) in sizes.iter().enumerate() {
        let head = head(Method::Get, &format!("/{size}"), &[]);
        simulation
            .client
            .request(simulation.now, Id::marked(id as u64), server_at(), &head)
            .expect("it goes over UDP");
        // A page, not a burst: requests follow one another.
        simulation.run_until(simulation.now + Duration::from_millis(7));
    }
    simulation.run_until(Time::ZERO + Duration::from_secs(3_600));
    assert_eq!(simulation.ended.len(), sizes.len(), "every request has ended");
    for (id, end) in &simulation.ended {
        if let RequestEnd::Complete(length) = end {
            assert_eq!(*length, sizes[usize::try_from(Id(*id).number().unwrap()).unwrap()], "request {id}");
        }
    }
    assert!(simulation.arrivals.is_empty(), "both stop sending");
    assert_eq!((simulation.client.outstanding(), simulation.server.connections()), (0, 0));
    simulation
}

impl Simulation {
    fn run_until(&mut self, end: Time) {
        for _ in 0..200_000 {
            let wake = [self.poll_client(), self.poll_server()].into_iter().flatten().min();
            let next = self.arrivals.first_key_value().map(|((time, _), _)| *time);
            let Some(time) = [wake, next].into_iter().flatten().min().filter(|time| *time <= end) else {
                self.now = end;
                return;
            };
            assert!(time >= self.now, "a timeout that is over");
            self.now = time;
            if next.is_some_and(|next| next <= time)
                && let Some((_, arrival)) = self.arrivals.pop_first()
            {
                self.arrive(arrival);
            }
        }
        panic!("it goes on for ever");
    }

    fn arrive(&mut self, arrival: Arrival) {
        let now = self.now;
        match arrival {
            Arrival::Request(datagram) => match self.server.receive(now, client_at(50_000), &datagram) {
                Verdict::Serve(ticket, head) => {
                    assert_eq!(head.method, "GET", "nothing else is ever executed");
                    let head = head.to_head();
                    if self.faults.server_delay == Duration::ZERO {
                        self.respond(ticket, &head);
                    } else {
                        self.server.defer(&ticket);
                        let delay = self.up_to(self.faults.server_delay);
                        self.at(now + delay, Arrival::ServerReady(Box::new(ticket), head));
                    }
                }
                Verdict::Refer(message) => self.datagram(Arrival::Datagram(message.as_bytes().to_vec())),
                Verdict::Ignore(_) => {}
            },
            Arrival::ServerReady(ticket, head) => self.respond(*ticket, &head),
            Arrival::Datagram(datagram) => {
                self.client.handle(now, client::Input::Datagram(server_at(), &datagram))
            }
            Arrival::Opened(id) => {
                self.client.handle(now, client::Input::Accepted(client::ConnectionId(id), server_at()));
                self.server.handle(now, server::Input::Opened(server::ConnectionId(id)));
                if let Some((is_open, waiting, _)) = self.pipes.get_mut(&id) {
                    *is_open = true;
                    let waiting = std::mem::take(waiting);
                    waiting.into_iter().for_each(|bytes| self.write(id, bytes));
                }
            }
            Arrival::Bytes(id, bytes) => {
                self.client.handle(now, client::Input::Received(client::ConnectionId(id), &bytes));
            }
            Arrival::Written(id) => self.server.handle(now, server::Input::Written(server::ConnectionId(id))),
            Arrival::Broken(id) => {
                self.pipes.remove(&id);
                self.client.handle(now, client::Input::Ended(client::ConnectionId(id)));
                self.server.handle(now, server::Input::Broken(server::ConnectionId(id)));
            }
        }
    }

    fn respond(&mut self, ticket: server::Ticket, request: &RequestHead) {
        let body = body(request.target[1..].parse().expect("a size"));
        let tag = format!("\"{}\"", body.len());
        let mut fields = Fields::new();
        fields.push("ETag", &tag).expect("digits");
        let (status, body) = match range::wanted(request, Some(&tag), "", body.len() as u64) {
            RequestedRange::Whole => (200, body),
            RequestedRange::Part { first, last } => {
                let range = format!("bytes {first}-{last}/{}", body.len());
                fields.push("Content-Range", &range).expect("digits");
                let at = |at: u64| usize::try_from(at).expect("small");
                (206, body[at(first)..=at(last)].to_vec())
            }
            RequestedRange::Nowhere => panic!("nobody asks for that"),
        };
        let (id, response) =
            (ticket.id.0, Response { status, fields, body: ResponseBody::Whole(body.into()) });
        let whole = WholeResponse::new(&response, &Method::Get).expect("a complete response");
        let mut transmits: Vec<Transmit> = Vec::new();
        match self.server.respond(self.now, ticket, &whole, &mut transmits) {
            Reply::Datagrams { parts: None } => self.by_udp += 1,
            Reply::Datagrams { parts: Some(_) } => self.in_parts += 1,
            Reply::Referred => {}
            Reply::Stream(stream) => {
                *self.by_tcp.entry(id).or_default() += 1;
                let (connection, opens) = (stream.connection.0, stream.opens.is_some());
                let message = stream.message(&whole);
                if opens {
                    self.pipes.insert(connection, (false, [message].into(), self.now));
                    let rtt = self.up_to(self.faults.jitter) + self.up_to(self.faults.jitter);
                    let breaks = self.random.chance(self.faults.breaking);
                    let arrival =
                        if breaks { Arrival::Broken(connection) } else { Arrival::Opened(connection) };
                    self.at(self.now + rtt, arrival);
                } else {
                    self.write(connection, message);
                }
            }
        }
        for Transmit { destination: _, contents } in transmits {
            assert!(contents.len() <= 1_460);
            self.datagram(Arrival::Datagram(contents));
        }
    }

    /// Sends on a connection, in order, perhaps only half of it before it breaks.
    fn write(&mut self, id: u64, mut bytes: Vec<u8>) {
        let delay = self.up_to(self.faults.jitter);
        let breaks = self.random.chance(self.faults.breaking);
        let Some((is_open, waiting, last)) = self.pipes.get_mut(&id) else { return };
        if !*is_open {
            waiting.push_back(bytes);
            return;
        }
        let time = (*last).max(self.now + delay);
        *last = time;
        if breaks {
            bytes.truncate(bytes.len() / 2);
        }
        self.at(time, Arrival::Bytes(id, bytes));
        self.at(time, if breaks { Arrival::Broken(id) } else { Arrival::Written(id) });
    }

    /// Sends a datagram, loses it, or duplicates it.
    fn datagram(&mut self, arrival: Arrival) {
        let copies = 1 + u32::from(self.random.chance(self.faults.doubling));
        for _ in 0..copies {
            let copy = match &arrival {
                Arrival::Request(bytes) => Arrival::Request(bytes.clone()),
                Arrival::Datagram(bytes) => Arrival::Datagram(bytes.clone()),
                other => panic!("{other:?} is no datagram"),
            };
            let delay = self.up_to(self.faults.jitter);
            if !self.random.chance(self.faults.loss) {
                self.at(self.now + delay, copy);
            }
        }
    }

    fn poll_client(&mut self) -> Option<Time> {
        loop {
            match self.client.poll(self.now) {
                Output::Send(_, datagram) => self.datagram(Arrival::Request(datagram)),
                Output::Head(Id(id), _, _) => {
                    assert!(self.bodies.insert(id, Vec::new()).is_none(), "request {id} has two heads");
                }
                Output::Body(Id(id), part) => self.bodies.get_mut(&id).expect("a head before").extend(part),
                Output::End(Id(id)) => {
                    let length = self.bodies[&id].len();
                    assert_eq!(self.bodies[&id], body(length), "request {id} has other bytes");
                    self.end(id, RequestEnd::Complete(length));
                }
                Output::Fallback(Id(id), why) => {
                    assert!(!self.bodies.contains_key(&id), "something of {id} had come");
                    self.end(id, RequestEnd::PlainHttp(why));
                }
                Output::Failed(Id(id), _) => self.end(id, RequestEnd::Failed),
                Output::Close(id) => {
                    if self.pipes.remove(&id.0).is_some() {
                        self.server.handle(self.now, server::Input::Closed(server::ConnectionId(id.0)));
                    }
                }
                Output::Discarded(..) => {}
                Output::Timeout(wake) => return wake,
            }
        }
    }

    fn poll_server(&mut self) -> Option<Time> {
        loop {
            match self.server.poll(self.now) {
                server::Output::Close(id) | server::Output::Abort(id) => {
                    if self.pipes.remove(&id.0).is_some() {
                        self.client.handle(self.now, client::Input::Ended(client::ConnectionId(id.0)));
                    }
                }
                server::Output::Timeout(wake) => return wake,
            }
        }
    }

    fn end(&mut self, id: u64, end: RequestEnd) {
        assert_eq!(self.ended.insert(id, end), None, "request {id} ended twice");
    }

    fn at(&mut self, time: Time, arrival: Arrival) {
        self.serial += 1;
        self.arrivals.insert((time, self.serial), arrival);
    }

    fn up_to(&mut self, max: Duration) -> Duration {
        Duration::from_nanos(self.random.up_to(max.as_nanos()))
    }

    fn complete(&self) -> usize {
        self.ended.values().filter(|end| matches!(end, RequestEnd::Complete(_))).count()
    }
}

/// A body whose parts all differ.
fn body(length: usize) -> Vec<u8> {
    let byte = |at: usize| u8::try_from((at ^ (at >> 8) ^ length) & 0xff).expect("masked");
    (0..length).map(byte).collect()
}

fn chance(probability: f64) -> Probability {
    Probability::new(probability).expect("a probability")
}

/// Small, large, and one that just fits.
const SIZES: [usize; 12] = [0, 5, 300, 1_000, 1_150, 9_000, 5, 40_000, 700, 300, 1_866, 5];

#[test]
fn without_faults_every_request_gets_an_immediate_response() {
    for (name, profile) in profiles() {
        let simulation = fetch(CALM, profile, &SIZES, 1);
        assert_eq!((name, simulation.complete()), (name, SIZES.len()));
        assert_eq!(
            simulation.by_tcp.len() + (simulation.by_udp + simulation.in_parts) as usize,
            SIZES.len(),
            "{name}: each by one channel"
        );
    }
}

#[test]
fn responses_in_parts_come_in_one_round_trip_and_what_is_lost_of_them_in_another() {
    // Sequential: a client with much in flight takes the rest by TCP.
    let each = |loss| {
        let faults = NetworkFaults { loss: chance(loss), ..CALM };
        let simulations = (0..60).map(|number: usize| {
            let sizes = [2_000 + 137 * number];
            let simulation = fetch(faults, profiles()[0].1, &sizes, number as u64);
            assert_eq!(simulation.complete(), 1);
            [u64::from(simulation.in_parts + simulation.by_udp), simulation.by_tcp.len() as u64]
        });
        simulations.fold([0, 0], |[in_parts, by_tcp], [more, tcp]| [in_parts + more, by_tcp + tcp])
    };
    let [in_parts, by_tcp] = each(0.0);
    assert_eq!((in_parts, by_tcp), (60, 0));
    let [in_parts, by_tcp] = each(0.05);
    assert!(in_parts > 70 && by_tcp < 15, "{in_parts} {by_tcp}");
}

#[test]
fn peers_with_and_without_parts_interoperate() {
    let [(_, more), _, (_, paper), _] = profiles();
    for profile in [(more.0, paper.1), (paper.0, more.1)] {
        let simulation = fetch(CALM, profile, &SIZES, 1);
        assert_eq!((simulation.complete(), simulation.in_parts), (SIZES.len(), 0));
    }
}

#[test]
fn paper_a_late_resend_is_not_answered_twice_by_tcp() {
    // A server so slow that everything is resent.
    let faults = NetworkFaults { server_delay: Duration::from_secs(20), ..CALM };
    let profile = (ClientConfig::paper(), ServerConfig::paper());
    for seed in 0..50 {
        let simulation = fetch(faults, profile, &SIZES, seed);
        assert!(simulation.by_tcp.values().all(|responses| *responses == 1), "{:?}", simulation.by_tcp);
        assert_eq!(simulation.complete(), SIZES.len());
    }
}

#[test]
fn paper_lost_responses_come_by_tcp_and_then_small_ones_do() {
    let faults = NetworkFaults { loss: chance(0.3), ..CALM };
    let profile = (ClientConfig::paper(), ServerConfig::paper());
    let simulation = fetch(faults, profile, &[100; 1_000], 3);
    let by_tcp = simulation.by_tcp.len();
    assert!(by_tcp > 300, "{by_tcp} by TCP, {} by UDP", simulation.by_udp);
}

#[test]
fn regress_same_seed_gives_the_same_run() {
    let faults = NetworkFaults { loss: chance(0.2), breaking: chance(0.2), ..CALM };
    let run = || {
        let simulation = fetch(faults, profiles()[1].1, &SIZES, 9);
        (simulation.ended, simulation.by_tcp, simulation.by_udp, simulation.serial)
    };
    assert_eq!(run(), run());
}

fn profiles() -> [(&'static str, (ClientConfig, ServerConfig)); 4] {
    let with = |client: ClientConfig, server: ServerConfig| {
        let all = Extension::ALL.into_iter();
        all.fold((client, server), |(client, server), one| (client.with(one, true), server.with(one, true)))
    };
    [
        ("paper and more", with(ClientConfig::paper(), ServerConfig::paper())),
        ("internet and more", with(ClientConfig::internet(), ServerConfig::internet())),
        ("paper", (ClientConfig::paper(), ServerConfig::paper())),
        ("internet", (ClientConfig::internet(), ServerConfig::internet())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_once_under_any_network_behaviour(
        (loss, doubling, breaking) in (0.0..0.9, 0.0..0.5, 0.0..0.6),
        (jitter, server_delay) in (1_u64..3_000, 0_u64..12_000),
        profile in 0_usize..4,
        sizes in prop::collection::vec(prop_oneof![0_usize..1_400, 1_400_usize..20_000], 1..20),
        seed: u64,
    ) {
        let faults = NetworkFaults {
            loss: chance(loss),
            doubling: chance(doubling),
            jitter: Duration::from_millis(jitter),
            breaking: chance(breaking),
            server_delay: Duration::from_millis(server_delay),
        };
        fetch(faults, profiles()[profile].1, &sizes, seed);
    }
}
