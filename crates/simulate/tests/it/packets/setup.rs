//! Two hosts and a link: a source that writes, a sink that reads.

use simulate::world::*;
use tcp::config::*;
use tcp::{Config, Failure, Payload};
use wire::{Duration, Seed, Time, link};

/// Program of either host.
pub(crate) enum Peer {
    Source(Source),
    Sink(Sink),
}

/// Connects, makes its writes, closes, and waits for the connection's end.
pub(crate) struct Source {
    pub(crate) writes: Vec<Vec<u8>>,
    pub(crate) next: Vec<Action>,
    pub(crate) end: Option<Result<(), Failure>>,
}

/// Listens, reads to the end, closes.
#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) received: Vec<u8>,
    pub(crate) next: Vec<Action>,
    pub(crate) end: Option<Result<(), Failure>>,
}

impl Source {
    pub(crate) fn new(to: Address, mut writes: Vec<Vec<u8>>) -> Self {
        writes.reverse();
        Self { writes, next: vec![Action::Connect(to)], end: None }
    }

    fn write(&mut self, socket: SocketId) {
        self.next.push(match self.writes.pop() {
            Some(bytes) => Action::Write(socket, Payload::from(bytes)),
            None => Action::Close(socket),
        });
    }
}

impl Sink {
    pub(crate) fn listen() -> Self {
        Self { next: vec![Action::Listen(80)], ..Self::default() }
    }
}

impl Application for Peer {
    fn handle(&mut self, _now: Time, input: Input) {
        match self {
            Self::Source(source) => match input {
                Input::Connected(socket) | Input::Written(socket) => source.write(socket),
                Input::Closed(_) => source.end = Some(Ok(())),
                Input::Failed(_, failure) => source.end = Some(Err(failure)),
                Input::Accepted(..) | Input::Data(..) | Input::Finished(_) | Input::Datagram(_) => {}
            },
            Self::Sink(sink) => match input {
                Input::Data(_, payload) => sink.received.extend_from_slice(&payload),
                Input::Finished(socket) => sink.next.push(Action::Close(socket)),
                Input::Closed(_) => sink.end = Some(Ok(())),
                Input::Failed(_, failure) => sink.end = Some(Err(failure)),
                Input::Accepted(..) | Input::Connected(_) | Input::Written(_) | Input::Datagram(_) => {}
            },
        }
    }

    fn poll(&mut self, _now: Time, _fresh: SocketId) -> Action {
        let next = match self {
            Self::Source(source) => &mut source.next,
            Self::Sink(sink) => &mut sink.next,
        };
        next.pop().unwrap_or(Action::Wait(None))
    }
}

/// SunOS, abridged.
pub(crate) fn period() -> Config {
    Config {
        mss: 1460,
        send_buffer: 16_384,
        occupancy: BufferOccupancy::Unacknowledged,
        unsent_limit: None,
        receive_buffer: ReceiveBuffer::Fixed(16_384),
        timestamps: false,
        window_scaling: false,
        acks: Acks::ReadBytes { odd: OddSegmentAck::OnTick(ticks(200, 50)) },
        nagle: Some(Nagle::OnEntry),
        congestion: Congestion {
            initial_window: 1,
            handshake_opens: true,
            handshake_timeouts: None,
            initial_threshold: Some(65_535),
            counting: Counting::Bytes,
            growth: Growth::PerAck,
            avoidance: Avoidance::Reno,
            cwnd_validation: false,
        },
        recovery: Recovery::Tahoe,
        idle: Idle::Unchanged,
        idle_after: None,
        rto: Rto {
            estimator: Estimator::Coarse(ticks(500, 100)),
            initial: Duration::from_secs(6),
            min: Duration::from_secs(1),
            max: Duration::from_secs(64),
            syn_retries: 12,
            data_retries: 12,
        },
        termination: Termination {
            time_wait: Duration::from_secs(60),
            unread_resets: false,
            reset_discards: false,
        },
        handshake: Handshake::ThreeWay,
        sharing: Sharing::None,
    }
}

/// Linux, abridged.
pub(crate) fn linux() -> Config {
    Config {
        send_buffer: 1 << 20,
        occupancy: BufferOccupancy::Unacknowledged,
        unsent_limit: None,
        receive_buffer: ReceiveBuffer::Growing { initial: 65_535, max: 6_291_456 },
        timestamps: true,
        window_scaling: true,
        acks: Acks::Linux,
        nagle: Some(Nagle::Minshall),
        congestion: Congestion {
            initial_window: 10,
            handshake_opens: false,
            handshake_timeouts: Some(2),
            initial_threshold: None,
            counting: Counting::Segments,
            growth: Growth::PerByte { max_segments: 255 },
            avoidance: Avoidance::Cubic { hystart: true },
            cwnd_validation: true,
        },
        recovery: Recovery::Sack,
        idle: Idle::Decayed,
        rto: Rto {
            estimator: Estimator::FineVariation,
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(120),
            syn_retries: 6,
            data_retries: 15,
        },
        termination: Termination {
            time_wait: Duration::from_secs(60),
            unread_resets: true,
            reset_discards: false,
        },
        ..period()
    }
}

fn ticks(period: u64, phase: u64) -> Ticks {
    Ticks { period: Duration::from_millis(period), phase: Duration::from_millis(phase) }
}

/// A world of a source (0) and a sink (1).
pub(crate) fn world(
    source: Config,
    sink: Config,
    up: &link::Config,
    down: &link::Config,
    writes: Vec<Vec<u8>>,
    seed: u64,
) -> World<Peer> {
    let mut world = World::new(Seed::new(seed));
    let to = Address { host: HostId(1), port: 80 };
    let client =
        world.add_host(HostConfig::immediate(source), Peer::Source(Source::new(to, writes))).unwrap();
    let server = world.add_host(HostConfig::immediate(sink), Peer::Sink(Sink::listen())).unwrap();
    let up = world.add_link(up).unwrap();
    let down = world.add_link(down).unwrap();
    world.add_route(client, server, &[up]);
    world.add_route(server, client, &[down]);
    world
}

pub(crate) fn source(world: &World<Peer>) -> &Source {
    match world.application(HostId(0)) {
        Peer::Source(source) => source,
        Peer::Sink(_) => panic!("the source is host 0"),
    }
}

pub(crate) fn sink(world: &World<Peer>) -> &Sink {
    match world.application(HostId(1)) {
        Peer::Sink(sink) => sink,
        Peer::Source(_) => panic!("the sink is host 1"),
    }
}

pub(crate) const HOURS: Bounds =
    Bounds { until: Time::from_nanos(100 * 3_600 * 1_000_000_000), events: 300_000 };
