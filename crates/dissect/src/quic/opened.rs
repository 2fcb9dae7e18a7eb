//! A QUIC connection that is read with a key log: the waits between its packets with data, and its exchanges.
//!
//! Streams of requests are those that a client opens in both directions (RFC 9114, section 4.1); `messages` has
//! their methods, targets and statuses.

use std::collections::BTreeMap;
use std::sync::Arc;

use quic::frame::{Frame, StreamData, frames};
use quic::opener::{OpenedPacket, Opener};
use quic::packet::PacketType;
use tls::decrypt::Sender;
use tls::{KeyLog, decrypt::Unread};
use wire::{Duration, Time};

use super::end::{Arrival, DATA, End, Limit, Previous, Release, SPACES, SentPacket};
use super::messages::{Head, Messages};
use super::spans::Spans;
use crate::exchange::KeyUse;
use crate::http::Exchange;
use crate::{Both, Mark, Side};

/// A connection. `C` is the caller's state, which each exchange has twice.
#[derive(Debug)]
pub struct OpenedQuic<C> {
    opener: Opener,
    keys: Arc<KeyLog>,
    ends: Both<End>,
    streams: BTreeMap<u64, Stream<C>>,
    messages: Messages,
    /// Exchanges completed since they were last taken.
    pub answered: Vec<Exchange<C>>,
    /// Number of requests.
    pub requests: u64,
    /// Number of packets with a frame that is invalid or unknown, after which nothing of them is read.
    pub cut: u64,
    last_cut: Option<Mark>,
    /// The last packet with data of an exchange; before it, the end of the handshake.
    last: Option<(Side, Mark)>,
    /// Shortest times between two such packets of a side in a row.
    pace: Both<Pace>,
}

/// A wait that ended with a packet that has data of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicWait {
    /// The event before.
    pub from: Mark,
    /// The packet that ended it.
    pub to: Mark,
    /// Its sender.
    pub side: Side,
    /// Time from which on it waited for the reason; before it, packets were in flight.
    pub since: Time,
    /// Its reason.
    pub reason: WaitReason,
    /// Whether a packet within it was not read to its end.
    pub is_cut: bool,
}

/// Reason for which a packet did not come earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Data flowed, with no longer pause than the path causes.
    Flowing,
    /// The program had not written it: a server its response to the request of this packet, a client its request.
    Program(Option<Mark>),
    /// The congestion window, or the pacing of its packets: it continued after an acknowledgement.
    Window {
        /// The acknowledgement.
        acked: Mark,
        /// Bytes in flight before.
        in_flight: u64,
        /// Whether losses had reduced it.
        has_lost: bool,
    },
    /// The congestion window, whose packets it paced (RFC 9002, section 7.7).
    Paced {
        /// Bytes in flight before.
        in_flight: u64,
        /// Whether losses had reduced it.
        has_lost: bool,
    },
    /// A limit of its peer, until this packet raised it.
    FlowControl(Mark),
    /// Its packet was lost, and acknowledgements reported that.
    Reported(Mark),
    /// Its packet was lost, or an acknowledgement of it, and a timer expired.
    Timeout(Mark),
    /// The packets do not show it.
    Unknown,
}

#[derive(Debug)]
struct Stream<C> {
    requested: Mark,
    /// When the request's packet arrived, as far as the response has not begun.
    is_pending: bool,
    is_complete: bool,
    spans: Both<Spans>,
    size: Option<u64>,
    /// Method and target, and the status of the response, if they could be read.
    request: Option<(String, String)>,
    status: Option<u16>,
    context: C,
}

impl<C> Stream<C> {
    /// A stream with the request of this packet.
    fn new(requested: Mark, context: C) -> Self {
        Self {
            requested,
            is_pending: true,
            is_complete: false,
            spans: Both::default(),
            size: None,
            request: None,
            status: None,
            context,
        }
    }
}

/// The shortest times between packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pace {
    before: Option<Duration>,
    /// Half of the shortest two in a row.
    least: Option<Duration>,
}

/// Facts about the data of one datagram.
#[derive(Debug, Default)]
struct Content {
    has_data: bool,
    previous: Option<Previous>,
    /// The request whose response begins.
    responds_to: Option<Mark>,
    is_request: bool,
    /// Whether responses were pending before it.
    has_pending: bool,
    was_blocked: bool,
}

/// Maximum number of streams that are followed.
const MAX_STREAMS: usize = 1_024;
/// Maximum time in which a program or a stack reacts to a packet.
const REACTION: Duration = Duration::from_millis(2);
/// A quarter of a round trip is no stall, nor is less than a millisecond perceptible.
const FLOWING: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];

impl<C: Clone> OpenedQuic<C> {
    /// Creates the state before the client's first packet.
    pub fn new(keys: Arc<KeyLog>) -> Self {
        Self {
            opener: Opener::default(),
            keys,
            ends: Both::default(),
            streams: BTreeMap::new(),
            messages: Messages::default(),
            answered: Vec::new(),
            requests: 0,
            cut: 0,
            last_cut: None,
            last: None,
            pace: Both::default(),
        }
    }

    /// Returns the use of the key log; `None` before the Client Hello.
    pub fn key_use(&self) -> Option<KeyUse> {
        match (self.opener.unread(), self.opener.has_read()) {
            (None, true) => Some(KeyUse::Read),
            (Some(reason), true) => Some(KeyUse::Partly(reason)),
            (Some(reason), false) => Some(KeyUse::Unread(reason)),
            (None, false) => self.opener.client_hello().map(|_| KeyUse::Unread(Unread::WrongSecret)),
        }
    }

    /// Returns whether application data is decrypted.
    pub fn is_read(&self) -> bool {
        self.key_use() == Some(KeyUse::Read)
    }

    /// Returns the number of requests without complete responses.
    pub fn unanswered(&self) -> usize {
        self.streams.values().filter(|stream| !stream.is_complete).count()
    }

    /// Returns the request, as `GET /`, whose first packet this is; `None` if its fields could not be read, or there are several.
    pub fn request_of(&self, packet: Mark) -> Option<String> {
        let mut requests = self.streams.values().filter(|stream| stream.requested == packet);
        let (method, target) = requests.next()?.request.as_ref()?;
        requests.next().is_none().then(|| format!("{method} {target}"))
    }

    /// Returns the last event up to which waits were returned.
    pub fn last(&self) -> Option<Mark> {
        self.last.map(|(_, mark)| mark)
    }

    /// Returns the round trip between both ends, as far as it is known.
    pub fn round_trip(&self) -> Duration {
        self.ends.client.distance() + self.ends.server.distance()
    }

    /// Handles a datagram of `side`; returns the wait that it ended.
    pub fn datagram(&mut self, side: Side, mark: Mark, payload: &[u8], context: &C) -> Option<QuicWait> {
        let sender = if side == Side::Client { Sender::Client } else { Sender::Server };
        let mut packets = Vec::new();
        self.opener.read(sender, payload, Some(&self.keys), &mut |packet| packets.push(packet));
        self.ends.of_mut(side).receives_until(mark.at);
        let end = self.ends.of(side);
        let mut content =
            Content { was_blocked: end.is_blocked, has_pending: self.unanswered() > 0, ..Content::default() };
        // The data in flight before this datagram.
        let before = (end.in_flight, end.sent_at);
        let mut arrival = Arrival::default();
        let mut begins = false;
        for packet in &packets {
            begins |= matches!(packet.kind, PacketType::ZeroRtt | PacketType::OneRtt);
            self.packet(side, mark, packet, &mut content, &mut arrival, context);
        }
        self.note_probe((side, begins), mark.at, before);
        arrival.has_data = content.has_data;
        self.ends.of_mut(side.other()).expects(mark, arrival);
        self.note_parameters();
        if self.last.is_none() && side == Side::Client && begins {
            self.last = Some((side, mark));
        }
        let (before_side, from) = self.last.filter(|_| content.has_data)?;
        self.last = Some((side, mark));
        let gap = mark.at.since(from.at);
        let is_flowing = self.is_flowing((before_side, side), gap);
        let is_cut = self.last_cut.is_some_and(|cut| cut.frame >= from.frame);
        let wait = QuicWait { from, to: mark, side, since: from.at, reason: WaitReason::Flowing, is_cut };
        Some(if is_flowing { wait } else { self.judge(wait, &content, before.0) })
    }

    /// Handles what has to be known before frames mean anything: limits.
    fn note_parameters(&mut self) {
        for (sender, side) in [(Sender::Client, Side::Server), (Sender::Server, Side::Client)] {
            if let Some(parameters) = self.opener.parameters(sender) {
                self.ends.of_mut(side).is_limited(parameters, side == Side::Client);
            }
        }
    }

    fn packet(
        &mut self,
        side: Side,
        mark: Mark,
        packet: &OpenedPacket,
        content: &mut Content,
        arrival: &mut Arrival,
        context: &C,
    ) {
        let space = match packet.kind {
            PacketType::Initial => 0,
            PacketType::Handshake => 1,
            _ => DATA,
        };
        let mut sent = SentPacket { mark, bytes: packet.length as u64, ranges: Vec::new() };
        let mut is_eliciting = false;
        let mut frames = frames(&packet.frames);
        for frame in frames.by_ref() {
            is_eliciting |= frame.is_ack_eliciting();
            match frame {
                Frame::Ack(ack) if space < SPACES => {
                    let sender = if side == Side::Client { Sender::Client } else { Sender::Server };
                    let delay = self.opener.parameters(sender).copied().unwrap_or_default();
                    let delay = Duration::from_micros(delay.ack_delay_us(ack.delay));
                    let Both { client, server } = &mut self.ends;
                    let (end, peer) = if side == Side::Client { (client, server) } else { (server, client) };
                    end.acknowledges(peer, space, &ack, delay, mark.at);
                    arrival.acks.push((space, ack));
                }
                Frame::MaxData(limit) => arrival.limits.push(Limit::Connection(limit)),
                Frame::MaxStreamData(stream, limit) => arrival.limits.push(Limit::Stream(stream, limit)),
                Frame::Stream(data) => {
                    self.stream(side, mark, &data, content, context);
                    sent.ranges.push((data.id, data.offset, data.offset + (data.data.len() as u64).max(1)));
                }
                Frame::ResetStream(stream, ..) | Frame::StopSending(stream, _) => {
                    self.streams.remove(&stream);
                }
                _ => {}
            }
        }
        if frames.is_cut() {
            (self.cut, self.last_cut) = (self.cut + 1, Some(mark));
        }
        // An unknown frame is to be acknowledged as a rule (RFC 9000, section 19.21).
        if is_eliciting || frames.is_cut() {
            self.ends.of_mut(side).sends(space, packet.number, sent);
        }
    }

    fn stream(&mut self, side: Side, mark: Mark, data: &StreamData<'_>, content: &mut Content, context: &C) {
        let StreamData { id, offset, data: bytes, is_end } = *data;
        let to = offset + bytes.len() as u64;
        self.ends.of_mut(side).extends(id, to);
        let round_trip = self.round_trip();
        let is_new = id & 3 == 0 && self.streams.len() < MAX_STREAMS && !self.streams.contains_key(&id);
        let is_first = is_new && side == Side::Client;
        if is_first {
            self.streams.insert(id, Stream::new(mark, context.clone()));
            self.requests += 1;
        }
        self.read_heads(side, data);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let new = stream.spans.of_mut(side).add(offset, to);
        let is_repeated = new < to - offset || to == offset && stream.is_complete;
        content.has_data = true;
        content.is_request |= is_first;
        if is_repeated {
            let previous = self.ends.of(side).previous(id, offset, round_trip);
            content.previous = content.previous.or(previous);
        }
        if side == Side::Client {
            return;
        }
        if std::mem::take(&mut stream.is_pending) {
            content.responds_to = content.responds_to.or(Some(stream.requested));
        }
        stream.size = if is_end { Some(to) } else { stream.size };
        if !stream.is_complete && stream.size.is_some_and(|size| stream.spans.server.reaches(size)) {
            stream.is_complete = true;
            let request =
                stream.request.clone().unwrap_or_else(|| ("HTTP/3".to_owned(), format!("stream {id}")));
            let context = stream.context.clone();
            self.answered.push(Exchange::of_stream(request, stream.status, stream.requested, mark, context));
        }
    }

    /// Reads the heads of messages, if the protocol is HTTP/3.
    fn read_heads(&mut self, side: Side, data: &StreamData<'_>) {
        let Self { opener, messages, streams, .. } = self;
        let is_http3 = |protocol: &String| protocol == "h3" || protocol.starts_with("h3-");
        if !opener.client_hello().is_some_and(|hello| hello.protocols.iter().any(is_http3)) {
            return;
        }
        messages.read(side, data, &mut |id, head| {
            let Some(stream) = streams.get_mut(&id) else { return };
            match head {
                Head::Request(method, target) => stream.request = Some((method, target)),
                Head::Response(status) => stream.status = Some(status),
            }
        });
    }

    /// Returns whether a packet followed the one before as data flows.
    fn is_flowing(&mut self, (before, side): (Side, Side), gap: Duration) -> bool {
        let [least, most] = FLOWING;
        let quarter = (self.round_trip() / 4).clamp(least, most);
        let pace = self.pace.of_mut(side);
        if before != side {
            *pace = Pace { before: None, ..*pace };
            return gap <= quarter;
        }
        if let Some(two) = pace.before.replace(gap).map(|before| (before + gap) / 2) {
            pace.least = Some(pace.least.map_or(two, |least| least.min(two)));
        }
        gap <= quarter.max(pace.least.unwrap_or_default() * 2)
    }

    /// Returns the time after which a timer of an end may expire (RFC 9002, section 6.2.1): more than a round trip and its variation,
    /// with queues as they are, and of application data the maximum delay of its peer's acknowledgements. Without that, losses
    /// are found by time after nine eighths of a round trip (section 6.1.2).
    fn min_timeout(&self, side: Side, is_data: bool) -> Duration {
        const GRANULARITY: Duration = Duration::from_millis(1);
        let usual = (self.ends.client.latest() + self.ends.server.latest()).max(self.round_trip());
        if !is_data {
            return usual * 9 / 8 + GRANULARITY;
        }
        let peer = if side == Side::Client { Sender::Server } else { Sender::Client };
        let delay = self.opener.parameters(peer).copied().unwrap_or_default().max_ack_delay_ms;
        (usual * 3 / 2).max(usual + Duration::from_millis(delay))
    }

    /// Notes whether what an end has sent now followed the expiry of a timer. `before` is what was in flight before, and when the last
    /// of it was sent.
    fn note_probe(
        &mut self,
        (side, is_data): (Side, bool),
        at: Time,
        (in_flight, sent_at): (u64, Option<Time>),
    ) {
        let (timeout, end) = (self.min_timeout(side, is_data), self.ends.of_mut(side));
        let is_quiet = end.arrived.is_none_or(|arrived| at.since(arrived) > REACTION);
        let is_late = sent_at.is_some_and(|sent| at.since(sent) > timeout);
        if end.sent_at == Some(at) && in_flight > 0 && is_quiet && is_late {
            end.probed = Some(at);
        }
    }

    /// Names the reason of a wait. `in_flight` was in flight before the packet.
    fn judge(&self, wait: QuicWait, content: &Content, in_flight: u64) -> QuicWait {
        let (end, at) = (self.ends.of(wait.side), wait.to.at);
        let of = |reason| QuicWait { reason, ..wait };
        if let Some(Previous { mark, is_reported }) =
            content.previous.filter(|_| content.responds_to.is_none())
        {
            // Without a probe since then, what arrived earlier than it seems here reported the loss.
            let is_reported = is_reported.unwrap_or(end.probed.is_none_or(|probed| probed <= mark.at));
            return of(if is_reported { WaitReason::Reported(mark) } else { WaitReason::Timeout(mark) });
        }
        match wait.side {
            _ if end.probed == Some(at) && content.responds_to.is_none() => {
                of(WaitReason::Timeout(wait.from))
            }
            Side::Client => self.judge_client(wait, content),
            Side::Server => self.judge_server(wait, content, in_flight),
        }
    }

    fn judge_client(&self, wait: QuicWait, content: &Content) -> QuicWait {
        let (end, at) = (&self.ends.client, wait.to.at);
        let arrived = end.data_arrived.map(|data| data.at + end.distance());
        let is_reaction = arrived.is_some_and(|arrived| at.since(arrived) <= REACTION);
        let (since, reason) = match arrived {
            _ if is_reaction => (at, WaitReason::Flowing),
            // Of a client that awaits responses nothing shows what it had to request.
            _ if content.has_pending => (wait.from.at, WaitReason::Unknown),
            Some(arrived) => (arrived, WaitReason::Program(None)),
            None => (wait.from.at, WaitReason::Program(None)),
        };
        QuicWait { since: since.clamp(wait.from.at, at), reason, ..wait }
    }

    fn judge_server(&self, wait: QuicWait, content: &Content, in_flight: u64) -> QuicWait {
        let (end, at) = (&self.ends.server, wait.to.at);
        let is_recent = |release: &Release| at.since(release.at) <= REACTION;
        let has_lost = end.has_lost;
        let raised = end.raised.filter(|raised| content.was_blocked && is_recent(raised));
        let acked = end.acked.filter(|acked| acked.in_flight > 0 && is_recent(acked));
        let requested = content.responds_to.map(|requested| (requested, requested.at + end.distance()));
        let (since, reason) = match (requested, raised, acked) {
            (Some((_, arrived)), ..) if at.since(arrived) <= REACTION => (at, WaitReason::Flowing),
            (_, Some(raised), _) => (wait.from.at, WaitReason::FlowControl(raised.mark)),
            (Some((request, arrived)), _, None) => (arrived, WaitReason::Program(Some(request))),
            (Some((request, arrived)), ..) if arrived >= wait.from.at => {
                (arrived, WaitReason::Program(Some(request)))
            }
            (_, _, Some(Release { mark: acked, in_flight, at: _ })) => {
                (wait.from.at, WaitReason::Window { acked, in_flight, has_lost })
            }
            (None, None, None) if in_flight == 0 => (wait.from.at, WaitReason::Program(None)),
            (None, None, None) => (wait.from.at, WaitReason::Paced { in_flight, has_lost }),
        };
        QuicWait { since: since.clamp(wait.from.at, at), reason, ..wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quic::sealer::{Sealer, readable_packet};
    use tls::session::quic as messages;
    use tls::session::{Handshake, SessionConfig};

    const LABELS: [&str; 4] = [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ];

    fn key_log() -> KeyLog {
        let line = |label: &&str| format!("{label} {} {}\n", "01".repeat(32), "07".repeat(32));
        let mut log = KeyLog::default();
        log.read(LABELS.iter().map(line).collect::<String>().as_bytes());
        log
    }

    fn crypto(bytes: &[u8]) -> Vec<u8> {
        [&[6, 0][..], &(0x4000 | u16::try_from(bytes.len()).unwrap()).to_be_bytes(), bytes].concat()
    }

    /// STREAM 0 from an offset, `length` bytes, and whether they are the last.
    fn stream(offset: u16, length: u16, is_end: bool) -> Vec<u8> {
        let head = [0x0e | u8::from(is_end), 0];
        let numbers = [(0x4000 | offset).to_be_bytes(), (0x4000 | length).to_be_bytes()].concat();
        [&head[..], &numbers, &vec![1; length.into()]].concat()
    }

    /// ACK of packets up to `largest`; the first `missing` of the last ones before it are not acknowledged.
    fn ack(largest: u8, missing: Option<u8>) -> Vec<u8> {
        match missing {
            None => vec![2, largest, 0, 0, largest],
            // A range from the packet behind it, and one up to the packet before it.
            Some(missing) => vec![2, largest, 0, 1, largest - missing - 1, 0, missing - 1],
        }
    }

    /// A connection captured at its client, 40 ms from its server: the request leaves at 40 ms. Then packets of application data:
    /// side, time in milliseconds, number and frames. Returns the waits, with times since the event before, and the connection.
    fn waits(packets: &[(char, u64, u8, Vec<u8>)]) -> (Vec<(u64, u64, WaitReason)>, OpenedQuic<()>) {
        let config = SessionConfig { protocol: "h3", ..SessionConfig::new(Handshake::Full) };
        // Windows of the connection and of the client's own streams: 3,000 bytes.
        let hello = crypto(&messages::client_hello(&config, &[4, 2, 0x4b, 0xb8, 5, 2, 0x4b, 0xb8]));
        let server = crypto(&messages::server_hello(&config));
        let mut datagrams = vec![
            ('C', 0, readable_packet(0xc0, 0, &hello)),
            (
                'S',
                40,
                [
                    readable_packet(0xc0, 0, &[&server[..], &[2, 0, 0, 0, 0]].concat()),
                    readable_packet(0xe0, 0, &[1]),
                ]
                .concat(),
            ),
            (
                'C',
                40,
                [readable_packet(0xe0, 0, &[2, 0, 0, 0, 0]), readable_packet(0x40, 0, &stream(0, 50, true))]
                    .concat(),
            ),
        ];
        datagrams.extend(
            packets
                .iter()
                .map(|(side, ms, number, frames)| (*side, *ms, readable_packet(0x40, *number, frames))),
        );
        let log = key_log();
        let mut sealer = Sealer::new(*log.secrets(&[1; 32]).unwrap());
        let (mut opened, mut waits) = (OpenedQuic::new(Arc::new(log)), Vec::new());
        for (frame, (side, ms, mut datagram)) in (1..).zip(datagrams) {
            let (side, sender) =
                if side == 'C' { (Side::Client, Sender::Client) } else { (Side::Server, Sender::Server) };
            sealer.seal(sender, &mut datagram);
            let mark = Mark { at: Time::from_nanos(ms * 1_000_000), frame };
            let wait = opened.datagram(side, mark, &datagram, &());
            waits.extend(wait.map(|wait| {
                let since = |time: Time| time.since(wait.from.at).as_nanos() / 1_000_000;
                (since(wait.since), since(wait.to.at), wait.reason)
            }));
        }
        assert_eq!(opened.key_use(), Some(KeyUse::Read));
        (waits, opened)
    }

    const fn mark(frame: u64, ms: u64) -> Mark {
        Mark { at: Time::from_nanos(ms * 1_000_000), frame }
    }

    #[test]
    fn program_has_the_time_beyond_the_round_trip() {
        let (waits, opened) = waits(&[('S', 180, 0, [ack(0, None), stream(0, 500, true)].concat())]);
        assert_eq!(waits[1..], [(40, 140, WaitReason::Program(Some(mark(3, 40))))]);
        assert_eq!((opened.requests, opened.unanswered(), opened.answered.len()), (1, 0, 1));
        assert_eq!(opened.answered[0].ended, mark(4, 180));
        assert_eq!((&opened.answered[0].method[..], opened.answered[0].status), ("HTTP/3", None));
        assert_eq!(opened.round_trip(), Duration::from_millis(40));
    }

    #[test]
    fn window_has_the_time_until_an_acknowledgement() {
        let (waits, opened) = waits(&[
            ('S', 80, 0, stream(0, 1_000, false)),
            ('C', 80, 1, ack(0, None)),
            ('S', 120, 1, stream(1_000, 500, true)),
        ]);
        let window = WaitReason::Window { acked: mark(5, 80), in_flight: 1_025, has_lost: false };
        assert_eq!(waits[1].2, WaitReason::Flowing);
        assert_eq!(waits[2..], [(0, 40, window)]);
        assert_eq!(opened.unanswered(), 0);
    }

    #[test]
    fn limit_of_the_peer_has_the_time_until_it_is_raised() {
        let (waits, _) = waits(&[
            ('S', 80, 0, stream(0, 3_000, false)),
            ('C', 80, 1, ack(0, None)),
            // MAX_DATA and MAX_STREAM_DATA of 8,000 bytes.
            ('C', 200, 2, vec![0x10, 0x5f, 0x40, 0x11, 0, 0x5f, 0x40]),
            ('S', 240, 1, stream(3_000, 500, true)),
        ]);
        assert_eq!(waits[2..], [(0, 160, WaitReason::FlowControl(mark(6, 200)))]);
    }

    #[test]
    fn loss_that_acknowledgements_report_is_told_from_a_timeout() {
        let sent = |number: u8| ('S', 80, number, stream(1_000 * u16::from(number), 1_000, number == 4));
        let first = [sent(0), sent(1), sent(2), sent(3), sent(4)];
        let again = |ms| ('S', ms, 5, stream(1_000, 1_000, false));
        let reported = [&first[..], &[('C', 80, 1, ack(4, Some(1))), again(120)]].concat();
        assert_eq!(waits(&reported).0.last(), Some(&(0, 40, WaitReason::Reported(mark(5, 80)))));
        let timeout = [&first[..], &[again(220)]].concat();
        assert_eq!(waits(&timeout).0.last(), Some(&(0, 140, WaitReason::Timeout(mark(5, 80)))));
    }

    #[test]
    fn what_is_retransmitted_before_a_timer_can_have_expired_was_reported() {
        let sent = |number: u8| ('S', 80, number, stream(1_000 * u16::from(number), 1_000, number == 4));
        // By the shortest round trip, the acknowledgement arrives at 121 ms.
        let early = [('C', 81, 1, ack(4, Some(1))), ('S', 118, 5, stream(1_000, 1_000, false))];
        let all = [&[sent(0), sent(1), sent(2), sent(3), sent(4)][..], &early].concat();
        assert_eq!(waits(&all).0.last(), Some(&(0, 38, WaitReason::Reported(mark(5, 80)))));
    }

    #[test]
    fn timer_waits_for_the_maximum_delay_of_acknowledgements() {
        // A round trip of 40 ms, and 25 ms (RFC 9000, section 18.2).
        let second = |ms| {
            let data = [('S', 80, 0, stream(0, 1_000, false)), ('S', ms, 1, stream(1_000, 1_000, false))];
            waits(&data).0.last().unwrap().2
        };
        assert_eq!(second(144), WaitReason::Paced { in_flight: 1_025, has_lost: false });
        assert_eq!(second(146), WaitReason::Timeout(mark(4, 80)));
    }

    #[test]
    fn exchanges_have_methods_targets_and_statuses() {
        // HEADERS of static fields (RFC 9204, appendix A): GET, https, / and 404; the request ends in another packet.
        let request = [0x0a, 4, 7, 1, 5, 0, 0, 0xd1, 0xd7, 0xc1].to_vec();
        let end = [0x0f, 4, 7, 0].to_vec();
        let response = [0x0b, 4, 5, 1, 3, 0, 0, 0xdb].to_vec();
        let (_, opened) = waits(&[
            ('C', 60, 1, request),
            ('C', 60, 2, end),
            ('S', 100, 0, [ack(2, None), response].concat()),
        ]);
        let exchange = &opened.answered[0];
        assert_eq!((&exchange.method[..], &exchange.target[..], exchange.status), ("GET", "/", Some(404)));
        assert_eq!(opened.request_of(mark(4, 60)).as_deref(), Some("GET /"));
        assert_eq!(opened.request_of(mark(3, 40)), None, "its fields are no HTTP/3");
    }

    #[test]
    fn packets_with_unknown_frames_are_counted_and_their_waits_are_marked() {
        // A frame of a type that no one has defined before the response's.
        let unknown = [&[0x40, 0x99, 1][..], &stream(0, 500, false)].concat();
        let (found, opened) = waits(&[('S', 100, 0, unknown), ('S', 180, 1, stream(0, 500, true))]);
        assert_eq!((opened.cut, found.len()), (1, 2));
        assert_eq!(found[1].2, WaitReason::Program(Some(mark(3, 40))));
        assert!(opened.last_cut.is_some_and(|cut| cut == mark(4, 100)));
    }

    #[test]
    fn next_connection_between_the_same_ports_begins_with_an_initial_of_its_own_keys() {
        let config = SessionConfig { protocol: "h3", ..SessionConfig::new(Handshake::Full) };
        let hello = crypto(&messages::client_hello(&config, &[]));
        let first = |id| {
            let mut datagram = readable_packet(0xc0, 0, &hello);
            datagram[6] = id;
            Sealer::new(tls::keylog::Secrets::default()).seal(Sender::Client, &mut datagram);
            datagram
        };
        let (one, mut other) = (first(9), first(7));
        let mut opening = crate::quic::QuicOpening::new(mark(1, 0));
        opening.datagram(Side::Client, &one, one.len() as u64, mark(1, 0));
        assert_eq!([opening.is_of_another(&one), opening.is_of_another(&other)], [false, true]);
        // Later Initials have the server's ID, from which their keys do not follow.
        *other.last_mut().unwrap() ^= 1;
        assert!(!opening.is_of_another(&other));
    }

    #[test]
    fn unknown_secrets_leave_application_data_out() {
        let mut opened = OpenedQuic::<()>::new(Arc::new(KeyLog::default()));
        let config = SessionConfig { protocol: "h3", ..SessionConfig::new(Handshake::Full) };
        let mut hello = readable_packet(0xc0, 0, &crypto(&messages::client_hello(&config, &[])));
        Sealer::new(tls::keylog::Secrets::default()).seal(Sender::Client, &mut hello);
        assert_eq!(opened.datagram(Side::Client, mark(1, 0), &hello, &()), None);
        assert_eq!((opened.key_use(), opened.is_read()), (Some(KeyUse::Unread(Unread::NotLogged)), false));
    }
}
