//! Programs that compute: nothing is in flight, no window is full, and the next data is theirs to write.
//!
//! **Rule**: a side that had received something, or whose data had all been sent, sends next, and not on an acknowledgement. The
//! path's time is subtracted: until the side's own acknowledgement of the received data, or else the minimum time of its responses.
//! In the middle of sending, the time counts from the last acknowledgement that its window may have needed. A client that is silent
//! for seconds is idle: a person reads, a pool waits.
//!
//! **Refuted by**: a full or unknown window; an acknowledgement that explains the time; a hole in the sequence space; a request that
//! is not acknowledged in full; a connection of which only one direction was captured; a timestamp (TSval) that was not late; a path
//! that varies by as much; where losses were seen before, a silence of one to two timeouts (the end of the last flight may have been
//! lost again before the point of capture); a stream of events or another protocol after 101, where the server sends without
//! requests; a poll in which nothing happened (204 to a GET, an empty response at the end of a timer, or one when the wait that the
//! request names is over); packets of the sender that did not pass here (IP IDs); a short segment that Nagle's algorithm may
//! have held until an acknowledgement that was not captured; an echo (TSecr) of a timestamp that was never captured, or of an earlier
//! one than an acknowledgement that seemed to have arrived; a pause in data that a proxy forwards. Where messages cannot be read, it
//! is also refuted by a small record (TLS alert, GOAWAY), or by a pause of seconds before unsolicited data: an idle connection is
//! closed. The time is then `unknown`, or `idle`; so it is where timestamps fit no clock (a replayed capture).
//!
//! **Confidence low**: where messages cannot be read, or both sides of a stream of HTTP/2 send, unless `turns` proves that the client
//! waited (ids that match, a handshake, the first response, or a client that acts promptly, turn after turn); refuted for all of a
//! connection on which the server has pushed.
//! A pause of less than a round trip with data in flight (pacing); data after a short segment, except after the first frames of
//! HTTP/2, after the session tickets of TLS 1.3, or in HTTP/1; the third pause of a response (a stream, or paced), with those before;
//! a public server that acknowledges within 2 ms to a private address (a program nearby does); unreadable requests that take 5 s or
//! more, twice (long polls); the first responses of a server that was quick from then on (it warmed up); a connection that shares its
//! conversation with other subflows of Multipath TCP.

use dissect::exchange::PollEnd;
use dissect::service_queue::ServedInTurn;
use wire::{Duration, Time};

use super::{head_of_line, retransmission};
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::{Confidence, Finding};
use crate::gap::{Gap, GapEnd, GapStart, Wait};
use crate::ruling::{Evidence, Ruling};
use crate::side::Side;
use crate::text::millis;
use trace::account::Share;

pub(crate) const SERVER: CauseInfo = CauseInfo {
    description: "The server took long to write the response.",
    fixes: &[Fix {
        party: Party::ServerApplication,
        change: "find what the server waits for (log the time spent: nginx $upstream_response_time, Apache %D, a \
                 profiler), or answer from a cache",
    }],
    is_fault: true,
    min_duration: Duration::from_millis(30),
};

pub(crate) const CLIENT: CauseInfo = CauseInfo {
    description: "The connection was idle, and the client took long to send a request.",
    fixes: &[Fix {
        party: Party::ClientApplication,
        change: "send requests as soon as they are known: in parallel or pipelined, with preload and preconnect \
                 hints, and no work between a response and the next request",
    }],
    is_fault: false,
    min_duration: Duration::from_millis(30),
};

/// Silence after which a program waits for something that is not on this connection.
const IDLE: Duration = Duration::from_secs(5);
/// The same where messages cannot be read: after this silence, unsolicited data (a notice, or the close of an idle
/// connection) kept no one waiting.
const UNASKED: Duration = Duration::from_secs(1);
/// Maximum wait for an unreadable response; beyond that it is a push, a long poll or an idle close.
const OPAQUE: Duration = Duration::from_secs(10);
/// No round trip is longer, not even by a geostationary satellite with its queues.
const MAX_PATH: Duration = Duration::from_secs(1);
/// Acknowledgements in these ranges (ms) were delayed by a timer, and are no evidence about the path: Linux (40 ms),
/// BSD and macOS (100 ms), Windows and Linux on slow connections (200 ms).
const DELAYED: [(u64, u64); 3] = [(39, 55), (95, 125), (190, 225)];

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    if gap.awaited().is_some() {
        return None;
    }
    match gap.end {
        GapEnd::Data => {}
        GapEnd::Fin | GapEnd::Reset => return abandoned(gap),
        GapEnd::Handshake { previous: _ } | GapEnd::Repair(_) => return None,
    }
    // Data behind a hole was lost, or not captured; a single direction shows nothing about the other.
    let is_contradicted =
        gap.skipped > 0 || gap.echoes_unseen || (gap.is_clock_unlike && gap.wait.side == Side::Server);
    // Its own acknowledgement of the request shows when it had that.
    let is_shown =
        gap.is_peer_seen || gap.wait.side == Side::Client || gap.before == GapStart::Unseen(Side::Client);
    if gap.is_behind_hole || is_contradicted || !is_shown {
        return unknown_after_path(gap);
    }
    match gap.before {
        // After the handshake's last segment, or the peer's data, this side sends next.
        GapStart::Handshake(_) if is_pending(gap) && !gap.has_all => return unknown_after_path(gap),
        GapStart::Handshake(_) => {}
        GapStart::Data(from) if from != gap.wait.side => {
            if gap.wait.side == Side::Server && !gap.has_all {
                return unknown_after_path(gap);
            }
        }
        GapStart::Data(_)
            if retransmission::may_be_a_lost_tail(gap) || retransmission::may_be_lost_repeatedly(gap) =>
        {
            return None;
        }
        // Whatever the server sent last was no response: the request still waits.
        GapStart::Data(Side::Server) if is_pending(gap) && gap.has_all && gap.in_flight == 0 => {}
        GapStart::Data(_) => {
            let may_have_waited = gap.headroom.is_some_and(|headroom| headroom < gap.length.min(gap.mss));
            let is_unknown = gap.headroom.is_none() && gap.flight.bytes >= 2 * gap.mss;
            let has_window = gap.in_flight + gap.length <= gap.largest_since_loss.max(2 * gap.mss);
            // Nagle's algorithm may have held a short segment, on an acknowledgement that was not captured.
            let may_be_held = gap.is_short() && !gap.sends_shorts && !gap.has_fin;
            let is_outstanding = gap.in_flight > 0 && (!has_window || may_be_held);
            if may_have_waited || is_unknown || is_outstanding || !gap.is_acknowledged {
                return None;
            }
            // The window was full of data whose acknowledgements only seemed to have arrived.
            if gap.acks_were_late {
                return unknown_after_path(gap);
            }
            // Data that a proxy forwards arrives at the pace of the path behind it, with that path's losses.
            if gap.path.beyond_proxy.is_some() {
                return unknown_after_path(gap);
            }
        }
        GapStart::Unseen(Side::Client) if gap.wait.side == Side::Server && !gap.is_peer_seen => {}
        GapStart::Unseen(_) | GapStart::Nothing | GapStart::Ending => return None,
    }
    judge_think_time(gap)
}

fn judge_think_time(gap: &Gap) -> Option<Ruling> {
    let since = began(gap);
    let late = gap.late_arrival.unwrap_or_default();
    let think_time = think_time(gap);
    // A segment that arrived late was not written late: the path took most of the time.
    if think_time < late {
        return Some(Ruling::plain(gap, Share::RoundTrip));
    }
    let since = since + late;
    let is_unasked = gap.messages.unanswered == Some(0) && gap.messages.is_within != Some(true);
    let is_opaque = is_opaque(gap);
    // A client that has a part of a header section has no response (RFC 9112, section 2.1): it waits however long that takes.
    let goes_on = gap.continues() && !is_pending(gap) && !gap.messages.is_within_head;
    let may_be_notice = goes_on && !gap.messages.is_sequential;
    // A short record closes an idle connection, unless a request waits: then it is the response.
    let is_control = gap.is_control && !is_pending(gap);
    let is_notice = is_opaque && (is_control || may_be_notice) && (is_control || think_time > UNASKED);
    let (share, evidence): (_, Option<Evidence>) = match gap.wait.side {
        Side::Client if think_time > IDLE && !gap.is_within_handshake => (Share::Idle, None),
        Side::Server if ends_poll(gap, think_time) => (Share::Idle, None),
        Side::Server if is_unasked || (goes_on && think_time > IDLE) => (Share::Idle, None),
        Side::Server if gap.messages.is_pushed && goes_on => (Share::Idle, None),
        Side::Server if is_notice && think_time > UNASKED => (Share::Idle, None),
        Side::Server if is_opaque && think_time > OPAQUE => (Share::Idle, None),
        Side::Client => (Share::Stall(Cause::ClientThink), Some(of_client)),
        Side::Server if is_notice => return None,
        Side::Server => (Share::Stall(Cause::ServerThink), Some(of_server)),
    };
    let is_timed = gap.path.is_at_sender || gap.late_arrival.is_some() || gap.own_ack.is_some();
    // The path's own variation, or, if nothing is known about it, its maximum.
    let path = if gap.path.to_sender.is_none() { MAX_PATH } else { gap.path.noise };
    if gap.wait.side == Side::Server && !is_timed && think_time <= path && think_time >= SERVER.min_duration {
        return unknown_after_path(gap);
    }
    // A response whose end cannot be read may have been complete: possibly no side waited for data after a short
    // segment, or for any data of a server that has sent unsolicited data.
    let is_next = may_be_notice && gap.ends_short();
    let may_be_pushed = is_opaque && (is_next || gap.has_pushed);
    // With data in flight, a sender that paces may pause for a part of a round trip.
    let may_be_paced = gap.continues() && gap.in_flight > 0 && think_time < gap.path.round_trip;
    let confidence = match goes_on {
        _ if (may_be_pushed || may_be_paced) && gap.wait.side == Side::Server => Confidence::Low,
        _ if gap.wait.side == Side::Server && !gap.is_peer_seen && is_unproven_alone(gap, think_time) => {
            Confidence::Low
        }
        false if is_timed && !is_opaque && !may_have_come_late(gap) => Confidence::High,
        false | true => Confidence::Medium,
    };
    // All of it, as for a program that needs no time.
    let is_stall = share == Share::Stall(Cause::ServerThink) || gap.is_within_handshake;
    let saving = is_stall.then_some(think_time);
    Some(Ruling { share, since, confidence, evidence, saving, lost_since: None })
}

/// Returns whether the server's packets alone do not prove the wait: a poll's request does not show, nor, near the client, whether a
/// proxy acknowledges. A first response may be late because the server warmed up.
fn is_unproven_alone(gap: &Gap, think_time: Duration) -> bool {
    const NEAR: Duration = Duration::from_millis(2);
    let may_be_proxy = gap.path.to_receiver.is_none_or(|to| to <= NEAR);
    is_opaque(gap) || is_timer(think_time) || may_be_proxy || gap.is_first_response
}

/// Returns whether the server had held the request until an event that did not come.
fn ends_poll(gap: &Gap, think_time: Duration) -> bool {
    think_time > UNASKED
        && match gap.messages.poll {
            Some(PollEnd::NoContent) => true,
            Some(PollEnd::Empty) => is_timer(think_time),
            Some(PollEnd::Named(wait)) => is_at(think_time, wait),
            None => false,
        }
}

/// Timers have round times, in milliseconds.
const ROUND: u64 = 500;

/// Returns whether a server may have waited this long for an event that did not come.
pub(crate) fn is_timer(time: Duration) -> bool {
    let round = Duration::from_millis(time.as_nanos() / 1_000_000 / ROUND * ROUND);
    time >= UNASKED && is_at(time, round)
}

fn is_at(time: Duration, wait: Duration) -> bool {
    time >= wait && time - wait <= Duration::from_millis(ROUND / 10)
}

/// Returns whether the server's late acknowledgement and its response were sent at almost the same time. Then its timer
/// had expired just before the response, or, as probably, the request had just arrived.
fn may_have_come_late(gap: &Gap) -> bool {
    let immediate = Duration::from_millis(5);
    gap.own_ack
        .is_some_and(|ack| gap.wait.to.at.since(ack.at) <= immediate && began(gap) + immediate < ack.at)
}

/// Returns whether nothing in the messages shows that the segment is a response.
const fn is_opaque(gap: &Gap) -> bool {
    let is_unread = gap.messages.is_within.is_none() || gap.messages.is_duplex;
    is_unread && !gap.is_response && !(is_pending(gap) && gap.messages.is_of_requests)
}

/// Returns whether a request that the server has in full waits for the first byte of its response.
const fn is_pending(gap: &Gap) -> bool {
    matches!(gap.wait.side, Side::Server) && gap.messages.pending.is_some()
}

/// Returns whether the client's next step must show that it waited for the segment.
pub(crate) const fn is_unproven(gap: &Gap) -> bool {
    let is_greeting = gap.messages.is_greeting || matches!(gap.before, GapStart::Handshake(_));
    is_opaque(gap) && (is_greeting || !gap.is_first_response)
}

/// Attributes the path's time; the cause of the rest is unknown.
fn unknown_after_path(gap: &Gap) -> Option<Ruling> {
    let crossed = gap.wait.from.at + path_time(gap).min(gap.duration());
    let has_crossed = crossed > gap.wait.from.at;
    has_crossed.then(|| Ruling { since: crossed, ..Ruling::plain(gap, Share::Unknown) })
}

/// Returns the time from when a side could have sent until its segment was generated.
fn think_time(gap: &Gap) -> Duration {
    gap.wait.to.at.since(began(gap)).saturating_sub(gap.late_arrival.unwrap_or_default())
}

/// Returns when a side could have sent: when the data sent to it, or the last acknowledgement that its window may have
/// needed, had arrived.
fn began(gap: &Gap) -> Time {
    let crossed = gap.wait.from.at + path_time(gap).min(gap.duration());
    let has_window = gap.flight.bytes + gap.length <= gap.largest_since_loss.max(2 * gap.mss);
    let window = gap.last_ack_at.filter(|_| gap.flight.bytes > 0 && gap.acks > 0 && !has_window);
    window.map_or(crossed, |acked| acked.max(crossed).min(gap.wait.to.at))
}

/// Returns the part of a gap that the path took.
fn path_time(gap: &Gap) -> Duration {
    if gap.continues() || gap.before == GapStart::Handshake(gap.wait.side) {
        return Duration::ZERO;
    }
    let least = gap.path.to_sender.unwrap_or_default().max(gap.path.beyond_proxy.unwrap_or_default())
        + gap.path.queue;
    // The proxy's acknowledgement is not the server's.
    let own = gap.own_ack.filter(|_| gap.path.beyond_proxy.is_none());
    let Some(own) = own.map(|ack| ack.at.since(gap.wait.from.at)) else { return least };
    // The data had just arrived when both were generated, however late that was.
    if gap.is_with_own_ack {
        return own;
    }
    if let Some(late) = gap.own_ack_late {
        return own.min(least + late);
    }
    let late = own.saturating_sub(least);
    let is_of =
        |(from, to): &(u64, u64)| (Duration::from_millis(*from)..Duration::from_millis(*to)).contains(&late);
    // A delayed acknowledgement covers at most a segment.
    let is_delayed = DELAYED.iter().any(is_of) && gap.requested <= gap.mss;
    if gap.path.to_sender.is_some() && is_delayed { least } else { own }
}

/// Handles a side that closes the connection instead of waiting on. If a request has no response, it waited for that;
/// if the close ends the response, the server took this long to send it.
fn abandoned(gap: &Gap) -> Option<Ruling> {
    let is_message = gap.messages.is_until_close && !gap.messages.is_pushed;
    let is_open = is_message && gap.wait.side == Side::Server && gap.continues();
    let is_unanswered = gap.messages.unanswered.is_some_and(|count| count > 0)
        && gap.before == GapStart::Data(Side::Client)
        && if gap.wait.side == Side::Server { gap.has_all } else { gap.is_heard };
    (is_open || is_unanswered).then(|| {
        let since = gap.wait.from.at + path_time(gap).min(gap.duration());
        let evidence = if is_open { of_server } else { unanswered };
        // A response that never came is observed.
        let confidence = if is_open { Confidence::Medium } else { Confidence::High };
        Ruling {
            since,
            saving: Some(gap.wait.to.at.since(since)),
            confidence,
            ..Ruling::all(gap, Cause::ServerThink, evidence)
        }
    })
}

fn of_client(gap: &Gap) -> String {
    if gap.is_within_handshake {
        return format!(
            "the client had the server's part of the TLS handshake (packet {}) and continued it (packet {}) only {} later: it \
             checks a certificate, or waits for a card, a proxy or a prompt",
            gap.wait.from.frame,
            gap.wait.to.frame,
            millis(gap.duration())
        );
    }
    let what = match gap.before {
        GapStart::Handshake(_) => " after the connection was open",
        GapStart::Data(Side::Client) | GapStart::Unseen(Side::Client) => {
            " in the middle of what it was sending"
        }
        GapStart::Data(Side::Server) | GapStart::Unseen(Side::Server) => " after it had the response",
        GapStart::Nothing | GapStart::Ending => "",
    };
    format!(
        "the client paused{what} (packet {}) and sent more (packet {}) {} later",
        gap.wait.from.frame,
        gap.wait.to.frame,
        millis(gap.duration())
    )
}

fn of_server(gap: &Gap) -> String {
    let think_time = millis(think_time(gap));
    let (from, to) = (gap.wait.from.frame, gap.wait.to.frame);
    let goes_on = gap.continues() && !is_pending(gap);
    match (goes_on, gap.messages.is_within) {
        (true, Some(false)) => format!(
            "the server had ended one response (packet {from}) and began the next (packet {to}), whose request it had, \
             {think_time} later"
        ),
        (true, Some(true) | None) => format!(
            "the server stopped in the middle of its response (packet {from}), with everything acknowledged or room in its \
             windows, and continued (packet {to}) {think_time} later"
        ),
        (false, _) if gap.messages.is_greeting || matches!(gap.before, GapStart::Handshake(_)) => format!(
            "the connection was open (packet {from}) and the server sent its first data (packet {to}) {think_time} later, the \
             round trip subtracted"
        ),
        (false, _) => {
            let stamps = if gap.late_arrival.is_some() { "; its timestamp (TSval) agrees" } else { "" };
            let others =
                head_of_line::unknown(gap).map_or_else(String::new, |unknown| format!("; {unknown}"));
            let from = gap.messages.pending.map_or(from, |request| request.frame);
            format!(
                "the server had the request (packet {from}) and began its response (packet {to}) {think_time} later, the round \
                 trip subtracted{stamps}{others}"
            )
        }
    }
}

fn unanswered(gap: &Gap) -> String {
    format!(
        "the request (packet {}) had no response when the connection was ended by the {} (packet {}) {} later",
        gap.wait.from.frame,
        gap.wait.side,
        gap.wait.to.frame,
        millis(gap.duration())
    )
}

/// Returns the finding that only a few of the requests in flight together were handled at a time: by so many workers, or under a lock.
pub(crate) fn in_turn(served: &ServedInTurn) -> Finding {
    let ServedInTurn { count, workers, began, ended, spacing: [shortest, longest], .. } = *served;
    let evidence = format!(
        "the server had {count} requests together and responded to {workers} at a time, in their order (packets {} to {}), after {} to \
         {} each: {} serves them, and each request waited for those before it",
        began.frame,
        ended.frame,
        millis(shortest),
        millis(longest),
        if workers == 1 {
            "one worker or one lock".to_owned()
        } else {
            format!("a pool of {workers} workers")
        }
    );
    Finding {
        confidence: Confidence::Medium,
        ..Wait { from: began, to: ended, side: Side::Server }.finding(Cause::ServerThink, evidence)
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::finding::{Confidence, Finding, Severity};
    use crate::report::{FlowReport, VantagePoint};
    use crate::script::{Script, opened};
    use crate::side::Side;

    const REQUEST: &str = "text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n";
    const RESPONSE: &str = "text=HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok";

    fn server_think(report: &FlowReport) -> Option<&Finding> {
        report.findings.iter().find(|finding| finding.cause == Cause::ServerThink)
    }

    /// Captured at the client, on a path of 15 ms.
    fn at_client(lines: &str) -> FlowReport {
        Script { one_way_ms: 15.0, lines: &opened(15.0, lines) }.diagnose(VantagePoint::Client)
    }

    fn found(lines: &str, vantage_point: VantagePoint) -> Vec<(Cause, u64)> {
        let lines = opened(15.0, lines);
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(vantage_point);
        let thinks = [Cause::ServerThink, Cause::ClientThink];
        let thinks = report.findings.iter().filter(|finding| thinks.contains(&finding.cause));
        thinks.map(|finding| (finding.cause, finding.lost.as_nanos() / 1_000_000)).collect()
    }

    #[test]
    fn the_round_trip_is_subtracted_wherever_the_capture_was_taken() {
        let lines = format!(
            "30 C {REQUEST}\n45 S\n245 S {RESPONSE}\n260 C\n760 C {REQUEST}\n775 S {RESPONSE}\n790 C"
        );
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            assert_eq!(
                found(&lines, vantage_point),
                [(Cause::ServerThink, 200), (Cause::ClientThink, 500)],
                "{vantage_point:?}"
            );
        }
    }

    /// Found in the corpus: the timers of both sides retransmit SYN and SYN/ACK, and the second SYN/ACK arrives while
    /// the request is in flight.
    #[test]
    fn regress_second_syn_ack_is_no_turn_of_the_conversation() {
        let lines = format!(
            "0 C syn\n30 S syn lost\n1000 C reopen\n1030 S reopen\n1030.4 S reopen\n1060 C\n1060.1 C {REQUEST}\n1060.4 C\n\
             1090.1 S\n1090.2 S {RESPONSE}\n1120.3 C"
        );
        let report = Script { one_way_ms: 30.0, lines: &lines }.diagnose(VantagePoint::Client);
        assert!(server_think(&report).is_none(), "{report:?}");
    }

    /// HTTP/2's preface with SETTINGS, and the server's SETTINGS; then a request.
    #[test]
    fn late_settings_are_awaited_by_a_client_without_a_request() {
        let preface =
            "text=PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00";
        let request = "hex=00000101050000000182";
        let lines = format!(
            "30 C {preface}\n45.1 S\n345.1 S hex=000000040000000000\n360.1 C hex=000000040100000000\n361 C {request}\n\
             376.1 S hex=000001010500000001 88\n391.2 C"
        );
        let lines = lines.replace(" 88", "88");
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            assert_eq!(found(&lines, vantage_point), [(Cause::ServerThink, 300)], "{vantage_point:?}");
        }
    }

    #[test]
    fn named_without_http_too_and_in_the_middle_of_a_response() {
        let lines = "30 C send=300\n45 S\n245 S send=500\n260 C\n400 S send=500\n415 C";
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            assert_eq!(
                found(lines, vantage_point),
                [(Cause::ServerThink, 200), (Cause::ServerThink, 155)],
                "{vantage_point:?}"
            );
        }
    }

    #[test]
    fn idle_keep_alive_is_no_stall_whatever_ends_it() {
        let closed = format!("30 C {REQUEST}\n45 S {RESPONSE}\n60 C\n27000 C fin\n27015 S fin\n27030 C");
        let reused =
            format!("30 C {REQUEST}\n45 S {RESPONSE}\n60 C\n27000 C {REQUEST}\n27015 S {RESPONSE}\n27030 C");
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            assert_eq!(found(&closed, vantage_point), []);
            assert_eq!(found(&reused, vantage_point), []);
        }
    }

    #[test]
    fn client_that_aborts_shows_how_long_it_waited() {
        let lines = format!("30 C {REQUEST}\n45 S\n5030 C fin\n5045 S rst");
        assert_eq!(found(&lines, VantagePoint::Client), [(Cause::ServerThink, 5_000)]);
    }

    #[test]
    fn client_that_closes_its_own_side_waits_for_the_response() {
        let lines = "30 C send=400\n30.1 C fin\n46 S\n446 S send=900\n447 S fin\n460 C";
        for vantage_point in EVERYWHERE {
            assert_eq!(found(lines, vantage_point), [(Cause::ServerThink, 400)], "{vantage_point:?}");
        }
        let closed = "30 C send=40\n45 S send=40\n60 C fin\n75 S\n475 S fin\n490 C";
        assert_eq!(found(closed, VantagePoint::Client), []);
    }

    #[test]
    fn keep_alive_probes_neither_end_nor_begin_anything() {
        let lines = format!(
            "30 C {REQUEST}\n45 S {RESPONSE}\n60 C\n1060 C seq=26 send=1\n1075 S\n2060 C {REQUEST}\n2075 S {RESPONSE}"
        );
        assert_eq!(found(&lines, VantagePoint::Client), [(Cause::ClientThink, 2_000)]);
    }

    fn of_server(lines: &str, vantage_point: VantagePoint) -> Vec<u64> {
        let found = found(lines, vantage_point).into_iter().filter(|(cause, _)| *cause == Cause::ServerThink);
        found.map(|(_, lost)| lost).collect()
    }

    /// According to the capture, its timeout is 230 ms, and one silence is exactly that. Consecutive IP IDs show that nothing
    /// was lost.
    #[test]
    fn silence_of_one_timer_after_losses_is_not_judged() {
        let lost = "45 S send=1460\n45.1 S send=1460 lost\n45.2 S send=1460\n60.2 C ack=1460\n60.4 C ack=1460\n\
                    300 S seq=1460 send=1460\n315.1 C ack=4380";
        let whole = "45 S send=1460\n45.1 S send=1460\n45.2 S send=1460\n60.3 C\n300 S send=1460\n315.1 C";
        let pauses = "330.2 S send=500\n345.3 C\n660 S send=500\n675.1 C\n1600 S send=500\n1615.1 C";
        let thinks = |first| of_server(&format!("30 C send=100\n{first}\n{pauses}"), VantagePoint::Client);
        assert_eq!((thinks(lost), thinks(whole)), (vec![940], vec![224, 329, 940]));
    }

    const EVERYWHERE: [VantagePoint; 3] = [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between];

    #[test]
    fn close_of_an_idle_tls_connection_is_no_response() {
        // A close_notify of TLS 1.3 and a FIN five seconds after the last response.
        let lines = "30 C text=\\x17\\x03\\x03\\x00\\x05hello\n45 S text=\\x17\\x03\\x03\\x00\\x05world\n60 C\n\
                     5045 S text=\\x17\\x03\\x03\\x00\\x13close it, please fin\n5060 C fin\n5075 S";
        for vantage_point in EVERYWHERE {
            assert_eq!(of_server(lines, vantage_point), [0_u64; 0], "{vantage_point:?}");
        }
    }

    #[test]
    fn close_of_an_idle_connection_responds_to_nothing() {
        let tls = "text=\\x17\\x03\\x03\\x00\\x05hello";
        let http2 = "hex=505249202a20485454502f322e300d0a0d0a534d0d0a0d0a000004040000000000";
        // close_notify in TLS 1.2 and in TLS 1.3; a GOAWAY frame, plain and encrypted; a FIN alone.
        let closes = [
            (tls, "60045 S hex=15030300020100 fin"),
            (tls, "60045 S hex=1703030013aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa fin"),
            (
                tls,
                "60045 S hex=1703030021aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n60045.1 S \
                   hex=1703030013aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n60045.2 S fin",
            ),
            (http2, "60045 S hex=0000080700000000000000000100000000 fin"),
            (REQUEST, "60045 S fin"),
        ];
        for ((request, close), idle) in closes.into_iter().flat_map(|close| [(close, "15"), (close, "600")]) {
            let response = if request == REQUEST { RESPONSE } else { tls };
            let lines = format!("30 C {request}\n45 S {response}\n60 C\n{close}\n60060.3 C fin\n60075.4 S");
            let lines = opened(15.0, &lines.replace("\n600", &format!("\n{idle}")));
            for vantage_point in EVERYWHERE {
                let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(vantage_point);
                let has_thought = report.counts.iter().any(|count| count.cause == Cause::ServerThink);
                assert!(
                    !has_thought && !report.is_worth_fixing(),
                    "{lines} {vantage_point:?}: {:?}",
                    report.findings
                );
            }
        }
    }

    #[test]
    fn polls_that_end_without_an_event_are_idle() {
        let found = |target: &str, wait: u32, response: &str| {
            let lines = format!(
                "30 C text=GET {target} HTTP/1.1\\r\\n\\r\\n\n45 S\n{} S text=HTTP/1.1 {response}\n{} C",
                45 + wait,
                60 + wait
            );
            of_server(&lines, VantagePoint::Client).len()
        };
        let (empty, list) = ("204 No Content\\r\\n\\r\\n", "200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n[]");
        let ok = "200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok";
        assert_eq!(
            (found("/", 1_700, empty), found("/", 1_504, list), found("/?wait=2s", 2_004, ok)),
            (0, 0, 0)
        );
        // Work takes any time, and a fixed wait alone is no poll.
        assert_eq!(
            (found("/", 1_700, list), found("/?wait=2s", 1_700, ok), found("/", 2_000, ok)),
            (1, 1, 1)
        );
    }

    #[test]
    fn data_behind_a_hole_is_not_written_late() {
        let lines = "30 C send=300\n45 S send=1460\n60 C\n300 S seq=9000 send=1460\n315 C ack=1460";
        for vantage_point in EVERYWHERE {
            assert_eq!(of_server(lines, vantage_point), [0_u64; 0], "{vantage_point:?}");
        }
    }

    #[test]
    fn response_generated_promptly_but_late_is_the_path() {
        // Ten requests a second; the last response has a timestamp 45 ms after the one before, and passes 245 ms after
        // it.
        let mut lines = String::from("0 C syn ts=0:0\n15 S syn ts=7000:0\n30 C ts=30:7000\n");
        for n in 0..10 {
            let (ask, response) = (130 + 100 * n, 145 + 100 * n);
            lines += &format!(
                "{ask} C send=100 ts={ask}:{}\n{response} S send=100 ts={}:{ask}\n",
                6_900 + response,
                6_985 + response
            );
        }
        let late =
            lines.clone() + "1130 C send=100 ts=1130:8030\n1345 S send=100 ts=8130:1130\n1360 C ts=1360:8130";
        let written_late =
            lines + "1130 C send=100 ts=1130:8030\n1345 S send=100 ts=8330:1130\n1360 C ts=1360:8330";
        for vantage_point in EVERYWHERE {
            let found = |lines: &str| {
                let report = Script { one_way_ms: 15.0, lines }.diagnose(vantage_point);
                server_think(&report).is_some()
            };
            assert_eq!((found(&late), found(&written_late)), (false, true), "{vantage_point:?}");
        }
    }

    #[test]
    fn response_of_the_same_tick_as_the_acknowledgement_of_its_request_took_no_time() {
        // An upload fills a queue: the request arrives 300 ms after it passed. The response is generated with the
        // acknowledgement, or 150 ms after it.
        let lines = |stamp: u32, at: u32| {
            let mut lines = String::from("0 C syn ts=0:0\n15 S syn ts=7000:0\n30 C ts=30:7000\n");
            for n in 0..5 {
                let (ask, reply) = (130 + 100 * n, 145 + 100 * n);
                lines +=
                    &format!("{ask} C send=100 ts={ask}:7000\n{reply} S send=9 ts={}:{ask}\n", 6_985 + reply);
            }
            lines
                + &format!(
                    "630 C send=100 ts=630:7530\n945 S ts=7915:630\n{at} S send=500 ts={stamp}:630\n{} C ts={0}:{stamp}",
                    at + 15
                )
        };
        let found = |stamp, at| found_in(&lines(stamp, at));
        assert_eq!((found(7_915, 946).len(), found(8_065, 1_096).len()), (0, 1));
        // The next tick began between the two.
        assert_eq!((found(7_916, 948).len(), found(7_966, 996).len()), (0, 1));
    }

    #[test]
    fn an_acknowledgement_too_late_for_any_timer_shows_a_slow_path() {
        let lines = "30 C send=300\n350 S\n366 S send=500\n381 C";
        assert_eq!(of_server(lines, VantagePoint::Client), [0_u64; 0]);
        // With a timer of 200 ms it was the server's time.
        let delayed = "30 C send=300\n250 S\n366 S send=500\n381 C";
        assert_eq!(of_server(delayed, VantagePoint::Client), [321]);
    }

    #[test]
    fn server_that_speaks_first_had_no_request() {
        let lines = opened(15.0, "250 S send=100\n266 C send=100\n282 S send=100\n298 C");
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
        let first = report.findings.iter().find(|finding| finding.cause == Cause::ServerThink).unwrap();
        assert!(first.evidence.contains("the connection was open (packet 3) and"), "{}", first.evidence);
        assert!(first.evidence.contains("first data (packet 4) 205 ms later"), "{}", first.evidence);
    }

    #[test]
    fn earlier_data_of_a_pushing_server_may_have_been_a_push() {
        let late = "30 C send=40\n45 S\n245 S send=40\n260 C";
        let push = "\n3245 S send=40\n3260 C";
        let severity = |lines: &str, vantage_point| {
            let report = Script { one_way_ms: 15.0, lines: &opened(15.0, lines) }.diagnose(vantage_point);
            server_think(&report).map(|finding| finding.severity)
        };
        for vantage_point in EVERYWHERE {
            assert_eq!(severity(late, vantage_point), Some(Severity::Medium), "{vantage_point:?}");
            assert_eq!(
                severity(&format!("{late}{push}"), vantage_point),
                Some(Severity::Low),
                "{vantage_point:?}"
            );
        }
    }

    #[test]
    fn event_stream_is_no_wait() {
        let head = "HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n\\r\\n";
        let lines =
            format!("30 C {REQUEST}\n45 S text={head}\n60 C\n445 S send=40\n460 C\n845 S send=40\n860 C");
        for vantage_point in EVERYWHERE {
            assert_eq!(of_server(&lines, vantage_point), [0_u64; 0], "{vantage_point:?}");
        }
    }

    /// The data sequence number of the second request skips: other data went over another subflow.
    #[test]
    fn what_other_subflows_carry_may_be_what_was_waited_for() {
        let is_worth_fixing = |second: &str| {
            let lines = format!(
                "30 C mptcp=2004000003e80000000100648000 send=100\n45 S\n46 S send=500\n61 C\n70 C \
                 mptcp=2004{second}0000006500648000 send=100\n85.1 S\n485 S send=500\n500 C\n501 C send=100\n516 S \
                 send=100\n531 C fin\n546 S fin"
            );
            at_client(&lines).is_worth_fixing()
        };
        assert!(is_worth_fixing("0000044c"), "1,100 follows 1,000");
        assert!(!is_worth_fixing("00000fa0"), "4,000 does not");
    }

    #[test]
    fn window_opened_by_an_acknowledgement_is_no_think_time() {
        // Two segments, as the window allows; the next leave 2 ms after the acknowledgement, half a second later.
        let lines = "30 C send=300\n45 S send=1460\n45.1 S send=1460\n560 C\n577 S send=1460\n577.1 S send=1460\n593 C";
        assert_eq!(of_server(lines, VantagePoint::Server), [0_u64; 0]);
    }

    #[test]
    fn behind_a_proxy_the_path_is_subtracted_and_pauses_are_not_judged() {
        let lines = "0 C syn\n500 S syn\n500.2 C\n501 C send=100\n501.2 S\n1015 S send=900\n1015.3 C
            1020 C send=100\n1020.2 S\n2020 S send=900\n2020.3 C\n2700 S send=1460\n2700.3 C";
        assert_eq!(found_over(0.1, lines), [500]);
    }

    /// An exchange in TLS, a request whose response takes 585 ms, and the client's next step.
    fn severity_before(next_step: &str, vantage_point: VantagePoint) -> Option<Severity> {
        let record = "text=\\x17\\x03\\x03\\x01\\x00data";
        let lines = format!(
            "30 C {record}\n45 S send=300\n60 C\n200 C {record}\n215 S\n815 S send=900\n830 C\n{next_step}"
        );
        let report = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(vantage_point);
        server_think(&report).map(|finding| finding.severity)
    }

    #[test]
    fn unreadable_wait_counts_if_the_client_acts_on_its_end() {
        for vantage_point in EVERYWHERE {
            for acts in ["833 C send=90", "833 C fin", "833 C rst"] {
                assert_eq!(
                    severity_before(acts, vantage_point),
                    Some(Severity::High),
                    "{acts} {vantage_point:?}"
                );
            }
            for ignores in ["", "1200 C send=90", "900 S send=90\n1400 C fin"] {
                assert_eq!(
                    severity_before(ignores, vantage_point),
                    Some(Severity::Low),
                    "{ignores} {vantage_point:?}"
                );
            }
        }
    }

    #[test]
    fn response_that_names_its_request_needs_no_other_proof() {
        // A PostgreSQL query of 585 ms in a session that someone types.
        let query = "text=Q\\x00\\x00\\x00\\x0dSELECT 1\\x00";
        let row = "text=T\\x00\\x00\\x00\\x21\\x00\\x01";
        let lines = format!(
            "30 C {query}\n45 S {row}\n60 C\n2000 C {query}\n2015 S\n2615 S {row}\n2630 C\n9000 C {query}\n9015 S {row}"
        );
        for vantage_point in EVERYWHERE {
            let report = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(vantage_point);
            assert!(report.is_worth_fixing(), "{vantage_point:?}");
        }
    }

    #[test]
    fn public_server_that_acknowledges_like_a_neighbour_may_be_behind_a_program() {
        let severity = |one_way: f64, word: &str| {
            let (request_at, acked) = (2.1 * one_way, 3.1 * one_way);
            let lines = format!(
                "{request_at} C {word} send=90\n{acked} S {word}\n300 S {word} send=90\n302 C {word}"
            );
            let lines =
                format!("0 C {word} syn\n{one_way} S {word} syn\n{} C {word}\n{lines}", 2.0 * one_way);
            let report = Script { one_way_ms: one_way, lines: &lines }.diagnose(VantagePoint::Client);
            server_think(&report).map(|finding| finding.severity)
        };
        assert_eq!(severity(0.2, "public"), Some(Severity::Low));
        assert_eq!(severity(0.2, ""), Some(Severity::Medium));
        assert_eq!(severity(5.0, "public"), Some(Severity::Medium));
        // A program on the client's host is slow, and its network stack is not.
        let lines = "0 C public syn\n2.6 S public syn\n16 C public\n210 C public send=90\n210.3 S public\n\
                     1557 S public send=900\n1570 C public";
        let report = Script { one_way_ms: 0.1, lines }.diagnose(VantagePoint::Client);
        assert_eq!(server_think(&report).map(|finding| finding.severity), Some(Severity::Low));
    }

    #[test]
    fn pause_within_a_round_trip_with_data_in_flight_may_be_pacing() {
        let head = "text=HTTP/1.1 200 OK\\r\\nContent-Length: 9000\\r\\n\\r\\n";
        let confidence = |pause: u32| {
            let at = 150 + pause;
            let lines = format!("100 C {REQUEST}\n150 S {head}\n200 C\n{at} S send=1460\n{} C", at + 50);
            let report =
                Script { one_way_ms: 50.0, lines: &opened(50.0, &lines) }.diagnose(VantagePoint::Server);
            server_think(&report).map(|finding| finding.confidence)
        };
        assert_eq!((confidence(60), confidence(251)), (Some(Confidence::Low), Some(Confidence::Medium)));
    }

    /// The handshake of TLS 1.3 on a path of 15 ms, with the client's Finished message and a request at 60 ms.
    const TLS: &str = "30 C client-hello\n45 S server-hello\n60 C records=53\n60.1 C records=300\n";

    fn of_server_over_tls(lines: &str) -> Vec<(u64, Confidence)> {
        let report = at_client(&format!("{TLS}{lines}"));
        let thinks = report.findings.iter().filter(|finding| finding.cause == Cause::ServerThink);
        thinks.map(|finding| (finding.lost.as_nanos() / 1_000_000, finding.confidence)).collect()
    }

    #[test]
    fn session_tickets_are_no_response() {
        let found = of_server_over_tls("76 S records=250,250\n91 C\n1500 S records=1400\n1515 C");
        assert_eq!(found, [(1_424, Confidence::High)]);
        let prompt = of_server_over_tls("76 S records=250,250\n76.1 S records=1400\n91 C");
        assert_eq!(prompt, []);
    }

    #[test]
    fn settings_and_window_updates_are_no_response() {
        // SETTINGS, WINDOW_UPDATE and the acknowledgement of SETTINGS, each with 17 bytes of encryption.
        let found =
            of_server_over_tls("76 S records=44,30\n76.2 S records=26\n91 C\n1500 S records=1400\n1515 C");
        assert_eq!(found, [(1_424, Confidence::High)]);
    }

    #[test]
    fn client_that_stalls_in_a_handshake_is_no_reader() {
        let report = at_client(
            "30 C client-hello\n45 S server-hello\n970 C records=53\n970.1 C records=300\n986 S records=900",
        );
        let found = report.findings.iter().find(|finding| finding.cause == Cause::ClientThink);
        assert_eq!(
            found.map(|finding| (finding.severity, finding.side)),
            Some((Severity::High, Side::Client))
        );
    }

    /// As a reply of Redis over TLS: 51 bytes with encryption, and the client's next request at once.
    #[test]
    fn short_record_is_the_response_where_a_request_waits() {
        let mut lines =
            "30 C client-hello\n45 S server-hello\n60 C records=53\n60.1 C records=55\n76 S records=2000\n\
                         91 C\n"
                .to_owned();
        let idle = format!("{lines}800 S records=51\n815 C fin");
        for number in 0..4 {
            let at = 92 + 330 * number;
            lines += &format!("{at} C records=55\n{} S\n{} S records=51\n", at + 15, at + 315);
        }
        assert_eq!(of_server(&(lines + "1420 C fin"), VantagePoint::Client), [300; 4]);
        assert_eq!(of_server(&idle, VantagePoint::Client).len(), 0, "the close of an idle connection");
    }

    /// The server's first record is no SETTINGS: it speaks HTTP/1.1, and sends nothing but responses.
    #[test]
    fn server_of_http1_over_tls_that_pauses_is_within_its_response() {
        let severity = |next: &str, first: &str| {
            let lines = format!(
                "30 C client-hello\n45 S server-hello\n60 C records=53\n60.1 C records=300\n76 S records={first}\n91 C\n\
                 576 S records=900\n591.2 {next}\n607 S records=900\n622 C"
            );
            server_think(&at_client(&lines)).map(|wait| wait.severity)
        };
        assert_eq!(severity("C records=300", "2000"), Some(Severity::High));
        assert!(severity("C", "2000") < Some(Severity::Medium), "the client did not wait for it");
        // SETTINGS of 27 bytes: HTTP/2, whose server may push.
        assert!(severity("C records=300", "44,2000") < Some(Severity::Medium));
    }

    #[test]
    fn timestamps_that_fit_no_clock_make_the_time_unknown() {
        // A replayed capture: packets 700 ms apart whose sender's clock advanced by 20 ms.
        let lines = |stamp: u32| {
            format!(
                "0 C syn ts=0:0\n15 S syn ts=7000:0\n30 C ts=30:7000\n31 C {REQUEST_HEX} ts=31:7000\n46 S ts=7031:31\n\
                 746 S send=500 ts={stamp}:31\n761 C ts=761:{stamp}"
            )
        };
        assert_eq!((found_in(&lines(7_731)).len(), found_in(&lines(7_051)).len()), (1, 0));
    }

    #[test]
    fn acknowledgement_and_response_sent_together_show_when_the_request_arrived() {
        // Both are 100 ms late, by a clock that was observed for 160 ms only: the path was slow, not a timer.
        let lines = |at: u32, stamp: u32| {
            format!(
                "0 C syn ts=0:0\n15 S syn ts=7000:0\n30 C ts=30:7000\n31 C {REQUEST_HEX} ts=31:7000\n146 S ts=7131:31\n\
                 {at} S send=500 ts={stamp}:31\n{} C ts=400:{stamp}",
                at + 15
            )
        };
        assert_eq!((found_in(&lines(148, 7_132)), found_in(&lines(250, 7_235))), (vec![], vec![204]));
    }

    #[test]
    fn without_timestamps_an_acknowledgement_just_before_the_response_leaves_a_doubt() {
        let confidence = |at: u32| {
            let lines = format!("30 C {REQUEST}\n145 S\n{at} S {RESPONSE}\n{} C", at + 15);
            server_think(&at_client(&lines)).map(|finding| finding.confidence)
        };
        assert_eq!((confidence(148), confidence(200)), (Some(Confidence::Medium), Some(Confidence::High)));
    }

    const REQUEST_HEX: &str = "hex=474554202f20485454502f312e310d0a486f73743a20680d0a0d0a";

    #[test]
    fn short_segment_that_may_be_held_is_not_judged_where_acknowledgements_were_not_captured() {
        let lines = "0 C send=105\n60 S send=105\n163 S send=20\n1000 C send=90\n1060 S send=90";
        let script = Script { one_way_ms: 30.0, lines };
        assert!(script.faults(VantagePoint::Client).iter().all(|(cause, _)| *cause != Cause::ServerThink));
    }

    #[test]
    fn segment_that_echoes_what_was_not_captured_is_not_judged() {
        let lines = |echo: u32| {
            format!(
                "0 C syn ts=0:0\n15 S syn ts=500:0\n30 C ts=30:500\n31 C send=100 ts=31:500\n46 S ts=531:31\n\
                 346 S send=500 ts=831:{echo}\n361 C ts=361:831"
            )
        };
        let thinks = |echo| found_in(&lines(echo));
        assert_eq!((thinks(31), thinks(290)), (vec![300], vec![]));
    }

    fn found_in(lines: &str) -> Vec<u64> {
        found_over(15.0, lines)
    }

    fn found_over(one_way_ms: f64, lines: &str) -> Vec<u64> {
        let found = Script { one_way_ms, lines }.faults(VantagePoint::Client);
        found.into_iter().filter(|(cause, _)| *cause == Cause::ServerThink).map(|(_, lost)| lost).collect()
    }
}
