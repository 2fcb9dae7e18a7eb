//! Where time goes in a run: pauses in which the path lay idle, by cause, as one knows them who sees both ends.
//!
//! Out of packets, in causes that `diagnose` has the same names for. It is no diagnosis: that sees one end only and
//! must infer what is known here, when an acknowledgement left and which buffers there are.

use std::collections::BTreeMap;

use trace::Stall;
use wire::{Bytes, Duration, Rate, Time};

use crate::page::CLIENT;
use crate::world::{Record, Seen};

/// What is known of path and hosts beside the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Towards the server.
    pub up: Rate,
    /// Towards the client.
    pub down: Rate,
    /// The largest segment's payload.
    pub mss: Bytes,
    /// What the server's application may write before it waits.
    pub send_buffer: Bytes,
    /// Whether a short segment waits until everything before it is acknowledged.
    pub nagle: bool,
}

/// How the time of a run was spent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// The path sent something useful, in either direction.
    pub working: Duration,
    /// Pauses that need not have been, in order. A request's or an answer's way through the path is none.
    pub stalls: Vec<Stall>,
}

/// How the time since `began` was spent between a client and a server on one path.
pub fn spent(records: &[Record], began: Time, known: &Known) -> Spent {
    let mut watch = Watch::new(began, *known);
    for record in records {
        watch.see(record);
    }
    watch.spent
}

/// One who watches both ends.
struct Watch {
    began: Time,
    known: Known,
    spent: Spent,
    lines: BTreeMap<u16, Line>,
    /// Until when each direction has something to send: up, down.
    busy: [Time; 2],
    /// The end of what was useful so far.
    useful_until: Time,
    /// When the client last received data.
    received: Time,
}

/// What is known of a connection.
#[derive(Debug, Default)]
struct Line {
    syn_sent: Option<Time>,
    opened: Option<Time>,
    /// How far windows are shifted that the client advertises; `None` on a connection that was open before.
    scale: Option<u8>,
    /// The number after the last that the client has sent; 0 before its first request.
    asked: u64,
    /// When the server last received a request, and when it last sent data.
    request_received: Time,
    sent: Option<Time>,
    /// The number after the last that the server has sent.
    next: u64,
    /// The most that was ever on its way.
    largest_flight: u64,
    /// A segment that was not full is on its way.
    has_short: bool,
    data_received: Time,
    /// Acknowledgements on their way: number, and how long the client took.
    acks: BTreeMap<u64, Duration>,
    acknowledged: u64,
    /// When the server last received anything.
    heard: Time,
    last_ack: Option<Ack>,
    advertised: Option<u64>,
    was_lost: bool,
}

/// An acknowledgement that moved the server's window.
#[derive(Clone, Copy, Debug)]
struct Ack {
    received: Time,
    /// After the data that it acknowledges had arrived.
    delay: Duration,
    /// What was on its way until then.
    flight: u64,
    /// Whether a segment in that was not full.
    had_short: bool,
}

/// Something that leaves after a pause.
struct Pause {
    from: Time,
    until: Time,
    sent: Time,
    /// What it takes on its link.
    packet: Duration,
}

impl Pause {
    fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

/// IPv4's and TCP's, without options.
const HEADERS: u64 = 40;

impl Watch {
    fn new(began: Time, known: Known) -> Self {
        Self {
            began,
            known,
            spent: Spent::default(),
            lines: BTreeMap::new(),
            busy: [Time::ZERO; 2],
            useful_until: began,
            received: began,
        }
    }

    fn see(&mut self, record: &Record) {
        let is_client = record.from.host == CLIENT;
        match (record.seen, is_client) {
            (Seen::Sent, true) => self.client_sends(record),
            (Seen::Sent, false) => self.server_sends(record),
            (Seen::Received, true) => self.server_receives(record),
            (Seen::Received, false) => self.client_receives(record),
            (Seen::Lost, _) => self.line(record).was_lost = true,
        }
    }

    /// The connection, by the client's port.
    fn line(&mut self, record: &Record) -> &mut Line {
        let client = if record.from.host == CLIENT { record.from } else { record.to };
        self.lines.entry(client.port).or_default()
    }

    /// Puts a packet on its link; a pause, if it is data and nothing useful was going on before.
    fn transmit(&mut self, record: &Record, direction: usize, rate: Rate) -> Option<Pause> {
        let from = self.busy[direction].max(record.at);
        // A network's rate is that of what packets carry.
        let carried = record.segment.ip_bytes().saturating_sub(HEADERS);
        let until = from + rate.time_for(Bytes::new(carried));
        self.busy[direction] = until;
        if record.segment.payload.is_empty() {
            return None;
        }
        let pause =
            Pause { from: self.useful_until, until: from, sent: record.at, packet: until.since(from) };
        self.spent.working += until.since(from.max(self.useful_until));
        self.useful_until = self.useful_until.max(until);
        (pause.length() > Duration::ZERO).then_some(pause)
    }

    fn client_sends(&mut self, record: &Record) {
        let pause = self.transmit(record, 0, self.known.up);
        let received = self.received;
        let segment = &record.segment;
        let line = self.line(record);
        if segment.flags.syn {
            line.syn_sent.get_or_insert(record.at);
            line.scale = Some(scale(record));
        } else if segment.flags.ack {
            let delay = record.at.since(line.data_received);
            line.acks.entry(segment.acknowledgement).or_insert(delay);
        }
        if segment.payload.is_empty() {
            return;
        }
        let handshake = line.syn_sent.zip(line.opened).filter(|_| line.asked == 0);
        let is_again = segment.sequence < line.asked;
        line.asked = line.asked.max(segment.end());
        let Some(pause) = pause else { return };
        if is_again {
            self.stall(&pause, "retransmission-timeout", pause.from, pause.until);
            return;
        }
        // What the request waited for: what came before it, or its connection.
        match handshake {
            Some((syn, opened)) => {
                self.stall(&pause, "client-think", received, syn);
                self.stall(&pause, "connection-setup", syn, opened);
                self.stall(&pause, "client-think", opened, pause.sent);
            }
            None => self.stall(&pause, "client-think", received, pause.sent),
        }
    }

    fn server_receives(&mut self, record: &Record) {
        let segment = &record.segment;
        let line = self.line(record);
        line.heard = record.at;
        if !segment.payload.is_empty() {
            line.request_received = record.at;
        }
        if segment.flags.ack && segment.acknowledgement > line.acknowledged {
            let delay = line.acks.remove(&segment.acknowledgement).unwrap_or_default();
            line.acks.retain(|number, _| *number > segment.acknowledgement);
            let (flight, had_short) = (line.flight(), line.has_short);
            line.last_ack = Some(Ack { received: record.at, delay, flight, had_short });
            line.acknowledged = segment.acknowledgement;
            line.has_short = false;
        }
        let scale = if segment.flags.syn { Some(0) } else { line.scale };
        line.advertised = scale.map(|scale| u64::from(segment.window) << scale.min(14));
    }

    fn server_sends(&mut self, record: &Record) {
        let pause = self.transmit(record, 1, self.known.down);
        let known = self.known;
        let segment = &record.segment;
        let line = self.line(record);
        if segment.flags.syn && scale(record) == 0 {
            line.scale = Some(0);
        }
        if segment.payload.is_empty() {
            return;
        }
        let bytes = segment.payload.len() as u64;
        if line.sent.is_none() {
            // All before it, on a connection that was open, has arrived.
            (line.next, line.acknowledged) = (segment.sequence, segment.sequence);
        }
        let named = pause.map(|pause| (line.cause(record, &known), pause));
        line.has_short |= bytes < known.mss.get();
        line.next = line.next.max(segment.end());
        line.largest_flight = line.largest_flight.max(line.flight());
        line.sent = Some(record.at);
        match named {
            Some((Cause::Request(received), pause)) => {
                self.stall(&pause, "server-think", received, pause.sent);
            }
            // A pause in which not even this packet would have fitted is none.
            Some((Cause::Named(cause), pause)) if pause.length() > pause.packet => {
                self.stall(&pause, cause, pause.from, pause.until);
            }
            Some((Cause::Named(_), _)) | None => {}
        }
    }

    fn client_receives(&mut self, record: &Record) {
        let line = self.line(record);
        if record.segment.flags.syn {
            line.opened.get_or_insert(record.at);
        }
        if !record.segment.payload.is_empty() {
            line.data_received = record.at;
            self.received = record.at;
        }
    }

    /// What of a time lies within a pause: on other connections something useful may have gone on.
    fn stall(&mut self, pause: &Pause, cause: &str, from: Time, until: Time) {
        let from = from.max(pause.from);
        let lost = until.min(pause.until).since(from);
        if lost > Duration::ZERO {
            let (at_ms, lost_ms) = (from.since(self.began).as_millis_f64(), lost.as_millis_f64());
            self.spent.stalls.push(Stall { cause: cause.to_owned(), at_ms, lost_ms });
        }
    }
}

/// Why the server's data comes after a pause.
enum Cause {
    /// A request was on its way; it arrived at this time.
    Request(Time),
    /// By its name.
    Named(&'static str),
}

impl Line {
    /// Why data that leaves now did not leave before.
    fn cause(&self, record: &Record, known: &Known) -> Cause {
        let bytes = record.segment.payload.len() as u64;
        let Some(sent) = self.sent.filter(|sent| *sent >= self.request_received) else {
            return Cause::Request(self.request_received);
        };
        let released = self.last_ack.filter(|ack| ack.received > sent);
        // An acknowledgement that moves nothing tells of a loss, and of room for something else.
        let was_told = self.heard == record.at;
        let Some(ack) = released.filter(|_| record.segment.sequence >= self.next) else {
            let is_again = record.segment.sequence < self.next;
            return Cause::Named(match (was_told, is_again) {
                (true, _) => "fast-retransmit",
                (false, true) => "retransmission-timeout",
                (false, false) => "server-think",
            });
        };
        let is_short = bytes < known.mss.get();
        // The window has room for what was on its way once.
        let would_fit = ack.flight + bytes <= self.largest_flight;
        let waits = known.nagle && is_short && would_fit;
        Cause::Named(match ack.delay > Duration::ZERO {
            true if waits => "nagle-delayed-ack",
            false if waits => "nagle",
            true if ack.had_short => "short-initial-segment",
            true => "delayed-ack",
            false => self.limit(ack.flight, bytes, known),
        })
    }

    /// Which window was full.
    fn limit(&self, flight: u64, bytes: u64, known: &Known) -> &'static str {
        if self.advertised.is_some_and(|window| flight + bytes > window) {
            "receive-window-limited"
        } else if flight + bytes > known.send_buffer.get() {
            "send-buffer-limited"
        } else if flight < self.largest_flight && !self.was_lost {
            "slow-start-restart"
        } else {
            "slow-start"
        }
    }

    /// What the server has on its way.
    const fn flight(&self) -> u64 {
        self.next.saturating_sub(self.acknowledged)
    }
}

/// The shift that a SYN announces.
fn scale(record: &Record) -> u8 {
    record.segment.options.syn.as_ref().and_then(|syn| syn.window_scale).unwrap_or_default()
}
