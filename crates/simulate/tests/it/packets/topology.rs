//! More than two hosts: many clients, one CPU, one heartbeat, links in a row.

use simulate::world::*;
use tcp::config::{Acks, OddSegmentAck, Ticks};
use tcp::{Config, Payload};
use wire::{Duration, Rate, Seed, Time, link};

use super::setup::{HOURS, period};

/// A client that sends a request and waits for the response; a server that works on each request.
enum Node {
    Client { next: Vec<Action>, answered: Option<Time>, stays: bool },
    Server { work: Duration, next: Vec<Action>, connections: u32 },
}

impl Node {
    /// A client with `connections` connections; it closes each after its response, unless `stays`.
    fn client(connections: usize, stays: bool) -> Self {
        let server = Address { host: HostId(0), port: 80 };
        Self::Client { next: vec![Action::Connect(server); connections], answered: None, stays }
    }

    fn server(work: Duration) -> Self {
        Self::Server { work, next: vec![Action::Listen(80)], connections: 0 }
    }
}

impl Application for Node {
    fn handle(&mut self, now: Time, input: Input) {
        match (self, input) {
            (Self::Client { next, .. }, Input::Connected(socket)) => {
                next.push(Action::Write(socket, Payload::from(vec![1; 100])));
            }
            (Self::Client { next, answered, stays }, Input::Data(socket, _)) => {
                *answered = Some(now);
                if !*stays {
                    next.push(Action::Close(socket));
                }
            }
            (Self::Server { work, next, .. }, Input::Data(socket, _)) => {
                // The last pushed is executed first.
                next.push(Action::Write(socket, Payload::from(vec![2; 1000])));
                next.push(Action::Work(*work));
            }
            (Self::Server { connections, .. }, Input::Accepted(..)) => *connections += 1,
            (Self::Server { next, .. }, Input::Finished(socket)) => next.push(Action::Close(socket)),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time, _fresh: SocketId) -> Action {
        let (Self::Client { next, .. } | Self::Server { next, .. }) = self;
        next.pop().unwrap_or(Action::Wait(None))
    }
}

/// Clients 1 to `clients` and a server 0, each with a link of its own to a router, and one link between.
fn star(clients: u16, work: Duration) -> World<Node> {
    let mut world = World::new(Seed::default());
    let config = HostConfig::immediate(period());
    let server = world.add_host(config.clone(), Node::server(work)).unwrap();
    let near = link::Config { delay: Duration::from_millis(1), ..link::Config::default() };
    let far = link::Config {
        rate: Rate::from_bits_per_second(1_000_000),
        delay: Duration::from_millis(20),
        ..link::Config::default()
    };
    let [up, down] = [&far, &far].map(|link| world.add_link(link).unwrap());
    for _ in 0..clients {
        let client = world.add_host(config.clone(), Node::client(1, false)).unwrap();
        let [in_link, out_link] = [&near, &near].map(|link| world.add_link(link).unwrap());
        world.add_route(client, server, &[out_link, up]);
        world.add_route(server, client, &[down, in_link]);
    }
    world
}

fn responses(world: &World<Node>, clients: u16) -> Vec<f64> {
    let answered = (1..=clients).map(|client| match world.application(HostId(client)) {
        Node::Client { answered, .. } => answered.unwrap().as_millis_f64(),
        Node::Server { .. } => panic!("the server is host 0"),
    });
    answered.collect()
}

#[test]
fn one_cpu_serves_many_clients_sequentially() {
    let mut world = star(5, Duration::from_millis(100));
    assert_eq!(world.run(HOURS), RunEnd::Quiet);
    let mut responses = responses(&world, 5);
    responses.sort_by(f64::total_cmp);
    for pair in responses.windows(2) {
        assert!((pair[1] - pair[0] - 100.0).abs() < 0.001, "{responses:?}");
    }
    // Two round trips of 42 ms, the work, and the transmission time.
    assert!((184.0..200.0).contains(&responses[0]), "{responses:?}");
    assert_eq!(world.counters(HostId(0)).connections, 5);
}

#[test]
fn packets_pass_every_link_of_their_route_and_share_the_bottleneck() {
    let mut world = star(20, Duration::ZERO);
    assert_eq!(world.run(HOURS), RunEnd::Quiet);
    let responses = responses(&world, 20);
    // 1,040 bytes take 8.3 ms at a megabit: twenty responses are spread over 158 ms.
    let spread = responses.iter().fold(0.0_f64, |max, at| max.max(*at))
        - responses.iter().fold(f64::MAX, |min, at| min.min(*at));
    assert!((150.0..170.0).contains(&spread), "{responses:?}");
}

#[test]
fn one_heartbeat_acknowledges_for_every_connection_of_a_host() {
    let mut world: World<Node> = World::new(Seed::default());
    let ticks = Ticks { period: Duration::from_millis(200), phase: Duration::from_millis(150) };
    let beating = Config { acks: Acks::ReadBytes { odd: OddSegmentAck::OnTick(ticks) }, ..period() };
    let work = Duration::from_millis(20);
    let server = world.add_host(HostConfig::immediate(period()), Node::server(work)).unwrap();
    let client = world.add_host(HostConfig::immediate(beating), Node::client(3, true)).unwrap();
    for (from, to) in [(client, server), (server, client)] {
        let delay = Duration::from_millis(10);
        let link = world.add_link(&link::Config { delay, ..link::Config::default() }).unwrap();
        world.add_route(from, to, &[link]);
    }
    world.record();
    let soon = Bounds { until: Time::ZERO + Duration::from_millis(900), events: 1_000 };
    world.run(soon);
    // The responses arrived at three times, 20 ms apart; each was acknowledged on the same tick.
    let acks = world.records().iter().filter(|record| {
        record.seen == ObservationPoint::Sent
            && record.from.host == client
            && record.segment.is_pure_ack()
            && record.segment.acknowledgement == 1001
    });
    assert_eq!(acks.map(|ack| ack.at.as_millis_f64()).collect::<Vec<_>>(), [150.0; 3]);
}
