//! BSD's delayed acknowledgements for a Linux host: a shim between the host and the link.
//!
//! 4.4BSD delays an acknowledgement until the next tick of one free-running 200 ms clock for the whole host.
//! It does not if two full segments' worth of bytes waits (`papers/p-http#section-2`; papers/README.md, "The
//! 1997 stacks"). Linux acknowledges every segment while a connection is young, and later delays by a timer
//! of its own. So the shim takes the host's pure acknowledgements as they come and forwards those that BSD
//! would have sent immediately. It holds the others until the tick; a newer one replaces the older, which it
//! covers.
//!
//! It forwards immediately: segments with data, SYN, FIN or RST; acknowledgements of at least two full
//! segments more than the last one forwarded; acknowledgements of nothing new (a duplicate, an opened window,
//! a reply to a probe); the first advance after duplicates (a gap was filled); the acknowledgement of the
//! peer's FIN.
//!
//! It creates no acknowledgement, so it cannot send one earlier than Linux would. The usual
//! contract: `handle(now, ..)`, then `poll(now)` until it returns a timeout. No clock and no socket.

mod connection;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use wire::link::Output;
use wire::packet::Packet;
use wire::{Duration, Seed, Time};

use connection::{Connection, PacketAction};

/// The heartbeat of one host. `P` is the type that holds a packet's bytes.
#[derive(Debug)]
pub struct AckHeartbeat<P> {
    /// The first tick; the others follow every [`PERIOD`].
    phase: Duration,
    connections: BTreeMap<SocketPair, Connection<P>>,
    /// Packets that need not wait, and the time from which they could leave.
    ready: VecDeque<(P, Time)>,
    /// Time at which held acknowledgements leave; `None`: none is held.
    tick: Option<Time>,
    merged: u64,
}

/// The fast timer of 4.4BSD (`PR_FASTHZ`, five times a second).
const PERIOD: Duration = Duration::from_millis(200);

/// Maximum number of connections, above that of any client of a page; beyond it the one idle longest is
/// dropped.
const MAX_CONNECTIONS: usize = 1_024;

/// The host's end and the peer's.
type SocketPair = (SocketAddr, SocketAddr);

impl<P: AsRef<[u8]>> AckHeartbeat<P> {
    /// A host whose clock has a random phase, derived from the seed and `host`.
    pub fn new(seed: Seed, host: u64) -> Self {
        let phase = Duration::from_nanos(seed.stream("ack-heartbeat", host).next_u64() % PERIOD.as_nanos());
        Self { phase, connections: BTreeMap::new(), ready: VecDeque::new(), tick: None, merged: 0 }
    }

    /// Takes a packet of the host. Returns an older acknowledgement that it supersedes.
    pub fn handle(&mut self, now: Time, packet: P) -> Option<P> {
        let Some((ends, action)) = self.judge(now, packet.as_ref()) else {
            self.ready.push_back((packet, now));
            return None;
        };
        // `judge` has just looked it up; without it, the packet would leave immediately.
        let connection = self.connections.get_mut(&ends);
        let superseded = match (action, connection) {
            (PacketAction::Hold, Some(connection)) => {
                self.tick.get_or_insert(next_tick(self.phase, now));
                connection.held.replace(packet)
            }
            (PacketAction::Hold | PacketAction::Pass, connection) => {
                self.ready.push_back((packet, now));
                connection.and_then(|connection| connection.held.take())
            }
        };
        self.merged += u64::from(superseded.is_some());
        superseded
    }

    /// Inspects a packet of the peer for the host: it determines the size of a full segment, and
    /// the end of the peer's data.
    pub fn watch(&mut self, packet: &[u8]) {
        if let Ok(packet) = Packet::read(packet)
            && let (Some(segment), Some((peer, own))) = (packet.tcp(), packet.sockets())
            && let Some(connection) = self.connections.get_mut(&(own, peer))
        {
            connection.watch(&segment);
        }
    }

    /// The next packet that may leave, and the time since when; or the next tick at which one will.
    pub fn poll(&mut self, now: Time) -> Output<P> {
        if let Some(tick) = self.tick
            && tick <= now
        {
            self.tick = None;
            for connection in self.connections.values_mut() {
                self.ready.extend(connection.release_last().map(|packet| (packet, tick)));
            }
        }
        match self.ready.pop_front() {
            Some((packet, due)) => Output::Deliver { packet, due },
            None => Output::Timeout(self.tick),
        }
    }

    /// Number of acknowledgements superseded by a later one while they were held.
    pub const fn merged(&self) -> u64 {
        self.merged
    }

    /// Connection of a packet, and whether it may leave; `None` if it is not a TCP segment.
    fn judge(&mut self, now: Time, packet: &[u8]) -> Option<(SocketPair, PacketAction)> {
        let packet = Packet::read(packet).ok()?;
        let (segment, ends) = (packet.tcp()?, packet.sockets()?);
        if !self.connections.contains_key(&ends) {
            self.evict_oldest(now);
        }
        let connection = self.connections.entry(ends).or_insert_with(Connection::new);
        connection.last_heard = now;
        Some((ends, connection.judge(&segment)))
    }

    fn evict_oldest(&mut self, now: Time) {
        if self.connections.len() < MAX_CONNECTIONS {
            return;
        }
        let idlest = self.connections.iter().min_by_key(|(_, connection)| connection.last_heard);
        if let Some(ends) = idlest.map(|(ends, _)| *ends)
            && let Some(evicted) = self.connections.remove(&ends)
        {
            self.ready.extend(evicted.held.map(|packet| (packet, now)));
        }
    }
}

/// The first tick after `now`.
fn next_tick(phase: Duration, now: Time) -> Time {
    let first = Time::ZERO + phase;
    if now < first {
        return first;
    }
    let passed = now.since(first).as_nanos() / PERIOD.as_nanos();
    first + PERIOD * (passed + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::packet::{Flags, TcpBuilder, TcpOption, UdpBuilder};

    const MSS: u32 = 512;

    /// A client host and its shim; everything happens between two ticks unless time is advanced.
    struct Client {
        shim: AckHeartbeat<Vec<u8>>,
        now: Time,
    }

    impl Client {
        /// A client just after a tick.
        fn new() -> Self {
            let shim = AckHeartbeat::new(Seed::default(), 0);
            let now = Time::ZERO + shim.phase + Duration::from_nanos(1);
            Self { shim, now }
        }

        /// A client with a connection from this port, opened with an MSS of 512 at both ends.
        fn connected(port: u16) -> Self {
            let mut client = Self::new();
            client.connect(port, &[TcpOption::Mss(512)]);
            client
        }

        fn connect(&mut self, port: u16, options: &[TcpOption<'_>]) {
            assert_eq!(self.sends(port, Flags::SYN, 0, 16_384, options, b""), 1);
            self.server_sends(port, Flags::SYN | Flags::ACK, 0, options, b"");
            assert_eq!(self.acks(port, 1), 1, "the handshake's last segment leaves immediately");
        }

        /// Number of packets forwarded to the server because of this one.
        fn sends(
            &mut self,
            port: u16,
            flags: Flags,
            ack: u32,
            window: u16,
            options: &[TcpOption<'_>],
            payload: &[u8],
        ) -> usize {
            let (source, destination) = ends(port);
            let builder = TcpBuilder { source, destination, seq: 1, ack, flags, window, options };
            let mut packet = Vec::new();
            builder.write(payload, &mut packet).unwrap();
            self.shim.handle(self.now, packet);
            self.released().len()
        }

        fn acks(&mut self, port: u16, ack: u32) -> usize {
            self.sends(port, Flags::ACK, ack, 16_384, &[], b"")
        }

        fn server_sends(
            &mut self,
            port: u16,
            flags: Flags,
            seq: u32,
            options: &[TcpOption<'_>],
            payload: &[u8],
        ) {
            let (destination, source) = ends(port);
            let mut packet = Vec::new();
            let builder = TcpBuilder { source, destination, seq, ack: 1, flags, window: 16_384, options };
            builder.write(payload, &mut packet).unwrap();
            self.shim.watch(&packet);
        }

        /// Acknowledgements that leave now, each with the time from which it could.
        fn released(&mut self) -> Vec<(u32, Time)> {
            let mut released = Vec::new();
            while let Output::Deliver { packet, due } = self.shim.poll(self.now) {
                released.push((Packet::read(&packet).unwrap().tcp().map_or(0, |segment| segment.ack), due));
            }
            released
        }

        fn next_tick(&self) -> Time {
            next_tick(self.shim.phase, self.now)
        }
    }

    fn ends(port: u16) -> SocketPair {
        (SocketAddr::from(([10, 0, 0, 1], port)), SocketAddr::from(([10, 0, 0, 2], 80)))
    }

    #[test]
    fn an_ack_of_every_segment_becomes_one_of_every_second() {
        let mut client = Client::connected(5_000);
        let forwarded: Vec<usize> = (1..=6).map(|segments| client.acks(5_000, 1 + segments * MSS)).collect();
        assert_eq!(forwarded, [0, 1, 0, 1, 0, 1]);
        assert_eq!(client.shim.merged(), 3);
    }

    #[test]
    fn paper_p_http_a_single_segment_is_acknowledged_on_the_tick_and_not_before() {
        let mut client = Client::connected(5_000);
        assert_eq!(client.acks(5_000, 1 + MSS), 0);
        let tick = client.next_tick();
        assert_eq!(client.shim.poll(client.now), Output::Timeout(Some(tick)));
        client.now = tick;
        assert_eq!(client.released(), [(1 + MSS, tick)]);
        assert_eq!(
            client.shim.poll(tick),
            Output::Timeout(None),
            "no timeout without a held acknowledgement"
        );
    }

    #[test]
    fn a_short_and_a_full_segment_are_not_two() {
        let mut client = Client::connected(5_000);
        assert_eq!(client.acks(5_000, 1 + 226), 0);
        assert_eq!(client.acks(5_000, 1 + 226 + MSS), 0);
        assert_eq!(client.acks(5_000, 1 + 2 * MSS), 1);
    }

    #[test]
    fn one_tick_serves_the_whole_host() {
        let mut client = Client::connected(5_000);
        client.connect(5_001, &[TcpOption::Mss(512)]);
        assert_eq!(client.acks(5_000, 1 + MSS), 0);
        let tick = client.next_tick();
        client.now += Duration::from_millis(150);
        assert_eq!(client.acks(5_001, 2 + MSS), 0);
        client.now = tick;
        assert_eq!(client.released(), [(1 + MSS, tick), (2 + MSS, tick)]);
    }

    #[test]
    fn after_a_tick_the_count_begins_anew() {
        let mut client = Client::connected(5_000);
        client.acks(5_000, 1 + MSS);
        client.now = client.next_tick();
        assert_eq!(client.released().len(), 1);
        assert_eq!([2, 3].map(|segments| client.acks(5_000, 1 + segments * MSS)), [0, 1]);
    }

    #[test]
    fn data_fin_and_rst_leave_immediately_with_held_acks() {
        let cases =
            [(Flags::ACK | Flags::PSH, &b"GET"[..]), (Flags::FIN | Flags::ACK, b""), (Flags::RST, b"")];
        for (flags, payload) in cases {
            let mut client = Client::connected(5_000);
            assert_eq!(client.acks(5_000, 1 + MSS), 0);
            assert_eq!(client.sends(5_000, flags, 1 + MSS, 16_384, &[], payload), 1, "{flags}");
            client.now = client.next_tick();
            assert_eq!(client.released(), [], "no acknowledgement follows {flags}");
        }
    }

    #[test]
    fn duplicates_and_opened_windows_leave_immediately() {
        let mut client = Client::connected(5_000);
        assert_eq!(client.acks(5_000, 1 + MSS), 0);
        assert_eq!(client.acks(5_000, 1 + MSS), 1, "a duplicate");
        assert_eq!(client.acks(5_000, 1 + MSS), 1, "and another");
        assert_eq!(client.sends(5_000, Flags::ACK, 1 + MSS, 16_896, &[], b""), 1, "a window that opens");
    }

    #[test]
    fn ack_of_a_filled_gap_leaves_immediately() {
        let mut client = Client::connected(5_000);
        assert_eq!(client.acks(5_000, 1), 1);
        assert_eq!(client.acks(5_000, 1 + MSS), 1);
        assert_eq!(client.acks(5_000, 1 + 2 * MSS), 0, "and then they wait again");
    }

    #[test]
    fn end_of_the_servers_data_is_acknowledged_immediately() {
        let mut client = Client::connected(5_000);
        client.server_sends(5_000, Flags::FIN | Flags::ACK, 1, &[], b"short");
        assert_eq!(client.acks(5_000, 1 + 5), 0, "the data alone waits");
        assert_eq!(client.acks(5_000, 1 + 5 + 1), 1);
    }

    #[test]
    fn timestamps_make_a_full_segment_shorter() {
        let mut client = Client::new();
        client.connect(5_000, &[TcpOption::Mss(512), TcpOption::Timestamps { value: 1, echo: 0 }]);
        assert_eq!(client.acks(5_000, 1 + 2 * (MSS - 12) - 1), 0);
        assert_eq!(client.acks(5_000, 1 + 2 * (MSS - 12)), 1);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut client = Client::connected(5_000);
        let high = u32::MAX - MSS + 1;
        client.sends(5_000, Flags::ACK, high, 16_384, &[], b"x");
        assert_eq!(client.acks(5_000, high.wrapping_add(MSS)), 0);
        assert_eq!(client.acks(5_000, high.wrapping_add(2 * MSS)), 1);
    }

    #[test]
    fn other_packets_than_tcp_leave_immediately() {
        let mut client = Client::new();
        let (source, destination) = ends(5_000);
        let mut datagram = Vec::new();
        UdpBuilder { source, destination }.write(b"hello", &mut datagram).unwrap();
        for packet in [datagram, vec![], vec![0xff; 40]] {
            assert_eq!(client.shim.handle(client.now, packet.clone()), None);
            assert_eq!(client.shim.poll(client.now), Output::Deliver { packet, due: client.now });
        }
    }

    #[test]
    fn the_first_segment_of_a_connection_that_the_peer_opened_waits_for_the_tick() {
        let mut client = Client::new();
        let options = [TcpOption::Mss(512)];
        assert_eq!(client.sends(5_000, Flags::SYN | Flags::ACK, 1, 16_384, &options, b""), 1);
        assert_eq!(client.acks(5_000, 1 + MSS), 0);
        assert_eq!(client.acks(5_000, 1 + 2 * MSS), 1);
    }

    #[test]
    fn dropped_connection_loses_no_acknowledgement() {
        let mut client = Client::connected(1);
        client.acks(1, 1 + MSS);
        for port in 2..=1_024 {
            client.now += Duration::from_nanos(1);
            assert_eq!(client.sends(port, Flags::SYN, 0, 16_384, &[], b""), 1);
        }
        client.now += Duration::from_nanos(1);
        assert_eq!(
            client.sends(1_025, Flags::SYN, 0, 16_384, &[], b""),
            2,
            "the idle connection's, and the SYN"
        );
        assert_eq!(client.shim.connections.len(), MAX_CONNECTIONS);
    }

    #[test]
    fn every_packet_is_forwarded_or_returned_and_acknowledgements_never_decrease() {
        let mut random = Seed::default().stream("test", 0);
        let mut client = Client::connected(5_000);
        let (mut ack, mut last, mut offered, mut forwarded) = (1, 1, 0, 0);
        for _ in 0..10_000 {
            ack += u32::try_from(random.up_to(700)).unwrap();
            client.now += Duration::from_micros(random.up_to(30_000));
            let before = client.released();
            offered += 1;
            let flags = if random.up_to(9) == 0 { Flags::ACK | Flags::FIN } else { Flags::ACK };
            let merged = client.shim.merged();
            let now = client.sends(5_000, flags, ack, 16_384, &[], b"");
            forwarded += before.len() as u64 + now as u64;
            let held =
                client.shim.connections.values().filter(|connection| connection.held.is_some()).count();
            assert_eq!(offered, forwarded + client.shim.merged() + held as u64);
            assert!(client.shim.merged() - merged <= 1);
            for (acknowledged, due) in before {
                assert!(acknowledged >= last && due <= client.now);
                last = acknowledged;
            }
        }
    }
}
