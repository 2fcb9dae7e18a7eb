//! Sentences about one packet: what it does, what it waited for, and the states of its ends afterwards.

use render::output::number;
use simulate::page::{CLIENT, Flow};
use tcp::{ConnectionStats, Limit, Segment};
use trace::{Cause, Stall};
use wire::{Duration, Time};

use super::{Trip, Walk};

/// Shortest time between an arrival and its acknowledgement that is named: less is a host's wake-up.
const MIN_ACK_DELAY: Duration = Duration::from_millis(2);

/// Number of the first byte of data: the SYN's is 0.
const FIRST_BYTE: u64 = 1;

/// Kind of a packet, and its short name.
pub(super) fn kind_and_name(segment: &Segment, flow: Flow) -> (&'static str, String) {
    let Segment { sequence, acknowledgement, flags, payload, .. } = segment;
    let end = sequence + payload.len() as u64;
    match () {
        () if flow.is_datagrams() => ("datagram", format!("{} bytes", payload.len())),
        () if flags.rst => ("rst", "RST".to_owned()),
        () if flags.syn && flags.ack => ("syn", "SYN-ACK".to_owned()),
        () if flags.syn => ("syn", "SYN".to_owned()),
        () if !payload.is_empty() => ("data", format!("{sequence}:{end}")),
        () if flags.fin => ("fin", "FIN".to_owned()),
        () => ("ack", format!("ack {acknowledgement}")),
    }
}

impl Walk<'_> {
    /// All sentences, in the order of time.
    pub(super) fn sentences(&self, trip: &Trip<'_>, is_last: bool, stalls: &[Stall]) -> Vec<String> {
        let mut all: Vec<String> = stalls.iter().map(stall).collect();
        all.extend(self.release(trip).filter(|_| stalls.is_empty()));
        all.push(self.act(trip));
        all.extend(self.sender_after(trip).filter(|_| is_last));
        all.push(self.end(trip));
        all.extend(self.receiver_after(trip));
        all
    }

    const fn names(trip: &Trip<'_>) -> [&'static str; 2] {
        if trip.record.from.host.0 == CLIENT.0 { ["client", "server"] } else { ["server", "client"] }
    }

    /// The acknowledgement that let data go which a limit had held.
    fn release(&self, trip: &Trip<'_>) -> Option<String> {
        let record = trip.record;
        if record.segment.payload.is_empty() || trip.let_go != Some(record.at) {
            return None;
        }
        let before = self.ends.before((Flow::of(record), record.from.host == CLIENT), record.at)?;
        (before.limit != Limit::Nothing)
            .then(|| "An acknowledgement has just arrived, and lets it go.".to_owned())
    }

    fn act(&self, trip: &Trip<'_>) -> String {
        let record = trip.record;
        let Segment { sequence, acknowledgement, window, flags, payload, .. } = &record.segment;
        let [from, to] = Self::names(trip);
        let on = match self.connections.len() {
            1 => String::new(),
            _ => format!(" on connection {}", self.connections[&Flow::of(record)]),
        };
        let bytes = payload.len();
        if Flow::of(record).is_datagrams() {
            return format!("The {from} sends a datagram of {} bytes{on}.", count(bytes));
        }
        let fin = if flags.fin { ", and ends its direction (FIN)" } else { "" };
        match () {
            () if flags.rst => format!("The {from} resets the connection{on} (RST)."),
            () if flags.syn && flags.ack => format!("The {from} accepts the connection{on}."),
            () if flags.syn => format!("The {from} opens a connection{on}{}.", carried(bytes)),
            () if bytes > 0 => {
                let verb = if trip.is_retransmission { "retransmits" } else { "sends" };
                let is_short = bytes < self.largest[usize::from(record.from.host == CLIENT)];
                let size = if is_short { ", less than a full segment" } else { "" };
                let first = number::count(*sequence as f64);
                let last = number::count((sequence + bytes as u64 - 1) as f64);
                format!("The {from} {verb} {} bytes{on}, {first} to {last}{size}{fin}.", count(bytes))
            }
            () if flags.fin => format!("The {from} ends its direction of the connection{on} (FIN)."),
            () if trip.acknowledges > 0 && *acknowledgement <= FIRST_BYTE => {
                format!("The {from} acknowledges the {to}'s SYN{on}: the connection is open.")
            }
            () if trip.acknowledges > 0 => {
                let segments = match trip.acknowledges {
                    1 => "one segment".to_owned(),
                    several => format!("{several} segments"),
                };
                let delay = match trip.ack_delay {
                    delay if delay < MIN_ACK_DELAY => String::new(),
                    delay => format!(
                        ", {} ms after the last of them arrived: a delayed acknowledgement",
                        millis(delay)
                    ),
                };
                format!("The {from} acknowledges {segments} of the {to}{on}{delay}.")
            }
            () if trip.has_gap => {
                let missing = number::count(*acknowledgement as f64);
                format!(
                    "The {from} acknowledges what is before byte {missing}{on} again: that byte is missing, later ones are there."
                )
            }
            () if trip.repeats_ack => {
                format!(
                    "The {from} reports its window{on}, now {} in the header.",
                    count(usize::from(*window))
                )
            }
            () => format!("The {from} acknowledges{on}."),
        }
    }

    /// State of the sender: what is left, and what holds it.
    fn sender_after(&self, trip: &Trip<'_>) -> Option<String> {
        let record = trip.record;
        if record.segment.payload.is_empty() {
            return None;
        }
        let end = (Flow::of(record), record.from.host == CLIENT);
        let after = self.ends.after(end, record.at)?;
        let [from, to] = Self::names(trip);
        let fallen =
            self.ends.largest_window(end, record.at).filter(|window| *window > after.cwnd).map(|window| {
                format!(
                    "The {from}'s congestion window has fallen from {} to {} bytes. ",
                    bytes(window),
                    bytes(after.cwnd)
                )
            });
        let held = held(after, from, to);
        (fallen.is_some() || held.is_some()).then(|| fallen.unwrap_or_default() + &held.unwrap_or_default())
    }

    /// The arrival or the loss.
    fn end(&self, trip: &Trip<'_>) -> String {
        let [_, to] = Self::names(trip);
        match trip.ended {
            Some(at) if trip.is_lost => format!("It is lost at {} ms.", self.instant(at)),
            Some(at) => format!("It reaches the {to} at {} ms.", self.instant(at)),
            None => "The page is complete before it arrives.".to_owned(),
        }
    }

    /// State of the receiver: a window that an acknowledgement opened, or an acknowledgement that is delayed.
    fn receiver_after(&self, trip: &Trip<'_>) -> Option<String> {
        let record = trip.record;
        let at = trip.ended.filter(|_| !trip.is_lost)?;
        let end = (Flow::of(record), record.from.host != CLIENT);
        let after = self.ends.after(end, at)?;
        let [_, to] = Self::names(trip);
        if record.segment.flags.ack
            && let Some(before) = self.ends.before(end, at)
            && after.cwnd > before.cwnd
        {
            let (from, until) = (bytes(before.cwnd), bytes(after.cwnd));
            return Some(format!("The {to}'s congestion window grows from {from} to {until} bytes."));
        }
        let due = after.acknowledges_at.filter(|_| record.segment.end() > record.segment.sequence)?;
        Some(format!("The {to} delays its acknowledgement, until {} ms at most.", self.instant(due)))
    }

    /// A time since the page was requested, in milliseconds.
    fn instant(&self, at: Time) -> String {
        number::ratio(at.since(self.began).as_millis_f64())
    }
}

/// A wait, with its cause.
fn stall(stall: &Stall) -> String {
    let lost = number::significant(stall.lost_ms);
    format!("{lost} ms were lost to {} before: {}.", stall.cause, gloss(stall.cause))
}

/// The limit that holds the data that is left.
fn held(stats: &ConnectionStats, from: &str, to: &str) -> Option<String> {
    let in_flight = bytes(stats.in_flight);
    Some(match stats.limit {
        Limit::Nothing => return None,
        Limit::CongestionWindow => format!(
            "More is ready, but the {from}'s congestion window of {} bytes has no space for it: {in_flight} are in flight.",
            bytes(stats.cwnd)
        ),
        Limit::ReceiveWindow => {
            format!(
                "More is ready, but the {to} accepts {} bytes, and {in_flight} are in flight.",
                bytes(stats.peer_window)
            )
        }
        Limit::SendBuffer => format!(
            "The {from}'s program waits for space in its send buffer: {in_flight} bytes are in flight."
        ),
        Limit::Nagle => format!(
            "What is left is less than a segment: Nagle's algorithm holds it until {in_flight} bytes in flight are acknowledged."
        ),
        Limit::Pacing => format!(
            "More is ready, but the {from} sends one segment at a time until an acknowledgement arrives."
        ),
    })
}

/// Data in a SYN.
fn carried(bytes: usize) -> String {
    if bytes == 0 { String::new() } else { format!(", with {} bytes of data in its SYN", count(bytes)) }
}

/// Meaning of a cause that the simulator reports.
const fn gloss(cause: Cause) -> &'static str {
    match cause {
        Cause::ConnectionSetup => "a request waits for the handshake of its connection",
        Cause::TlsHandshake | Cause::QuicHandshake => "a request waits for the keys",
        Cause::QuicAmplificationLimit => "a server may not send more before it knows the client's address",
        Cause::NagleDelayedAck => {
            "a short segment waited for an acknowledgement, by Nagle's algorithm, and the receiver delayed that"
        }
        Cause::Nagle => "a short segment waited for an acknowledgement, by Nagle's algorithm",
        Cause::ShortInitialSegment => {
            "a short segment used up a part of the window, and for so little the receiver delays its acknowledgement"
        }
        Cause::DelayedAck => "the receiver delayed the acknowledgement that the window waited for",
        Cause::SlowStart => "the congestion window is still opening",
        Cause::SlowStartRestart => "the congestion window had been larger, and began anew after an idle time",
        Cause::CongestionWindow => "losses have reduced the congestion window",
        Cause::ReceiveWindowLimited => "the receiver's window was full",
        Cause::SendBufferLimited => "the send buffer was full",
        Cause::RetransmissionTimeout => "nothing but the sender's timer reported a loss",
        Cause::TailLossProbe => "a probe had to find a loss at the end of a flight",
        Cause::FastRetransmit => "the receiver's acknowledgements reported a loss",
        Cause::DatagramResend => "a datagram was lost, and only the client's timer reported it",
        Cause::ServerThink => "the server's program took this time",
        Cause::ClientThink => "the client's program took this time",
        _ => "the path was idle",
    }
}

fn count(number: usize) -> String {
    number::count(number as f64)
}

fn bytes(number: u64) -> String {
    number::count(number as f64)
}

fn millis(duration: Duration) -> String {
    number::significant(duration.as_millis_f64())
}
