//! Programs that compute: nothing is on its way, no window is full, and what comes next is theirs to write.
//!
//! **Rule**: a side that had been sent something, or had sent everything that it had written, sends next, and not on an
//! acknowledgement. What the path needs is subtracted: until the side's own acknowledgement of what it was sent, or
//! else the least time that it ever needed to answer. A client that is silent for seconds is idle: a person reads, a
//! pool waits. **Refuted by**: a window without room, an acknowledgement that explains the moment, a connection of
//! which only one direction was captured.

use wire::Duration;

use super::head_of_line;
use crate::account::Share;
use crate::cause::{About, Cause, Fix, Who};
use crate::gap::{Before, End, Gap, millis};
use crate::judge::{Confidence, Evidence, Ruling};
use crate::side::Side;

pub(crate) const SERVER: About = About {
    what: "The server took its time to write the answer.",
    fixes: &[Fix {
        who: Who::ServerApplication,
        change: "look there for what it waits for (log the time spent: nginx $upstream_response_time, Apache %D, a \
                 profiler), or answer from a cache",
    }],
    is_fault: true,
    least: Duration::from_millis(30),
};

pub(crate) const CLIENT: About = About {
    what: "The connection was free, and the client took its time to ask.",
    fixes: &[Fix {
        who: Who::ClientApplication,
        change: "ask as soon as it is known what is needed: requests in parallel or pipelined, preload and preconnect \
                 hints, no work between an answer and the next request",
    }],
    is_fault: false,
    least: Duration::from_millis(30),
};

/// A program that is silent for longer waits for something that is not on this connection.
const IDLE: Duration = Duration::from_secs(5);
/// An acknowledgement later than this was delayed, and says nothing of the path: the shortest timers are 40 ms.
const PROMPT: Duration = Duration::from_millis(35);

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    if gap.awaited().is_some() {
        return None;
    }
    match gap.end {
        End::Data => {}
        End::Fin | End::Reset => return given_up(gap),
        End::Handshake { again: _ } | End::Repair(_) => return None,
    }
    let confidence = match gap.before {
        // The handshake's last segment, or what the other side said: now it is this side's turn.
        Before::Handshake(_) => Confidence::High,
        Before::Data(from) | Before::Unseen(from) if from != gap.side => Confidence::High,
        Before::Data(_) | Before::Unseen(_) => {
            let may_have_waited = gap.room.is_some_and(|room| room < gap.length.min(gap.mss));
            if may_have_waited || !gap.is_acknowledged {
                return None;
            }
            Confidence::Medium
        }
        Before::Nothing | Before::Ending => return None,
    };
    Some(thinking(gap, confidence))
}

fn thinking(gap: &Gap, confidence: Confidence) -> Ruling {
    let since = gap.from.at + crossing(gap).min(gap.duration());
    let thought = gap.to.at.since(since);
    let is_unasked = gap.talk.unanswered == Some(0) && gap.talk.is_within != Some(true);
    let (share, evidence): (_, Option<Evidence>) = match gap.side {
        Side::Client if thought > IDLE => (Share::Idle, None),
        Side::Server if is_unasked || (gap.continues() && thought > IDLE) => (Share::Idle, None),
        Side::Client => (Share::Stall(Cause::ClientThink), Some(of_client)),
        Side::Server => (Share::Stall(Cause::ServerThink), Some(of_server)),
    };
    // All of it, for a program that needs no time at all.
    let saving = (share == Share::Stall(Cause::ServerThink)).then_some(thought);
    Ruling { share, since, confidence, evidence, saving, lost_since: None }
}

/// What of a gap the path took.
fn crossing(gap: &Gap) -> Duration {
    if gap.continues() || gap.before == Before::Handshake(gap.side) {
        return Duration::ZERO;
    }
    let least = gap.path.to_sender.unwrap_or_default() + gap.path.queue;
    let own = gap.own_ack.map(|ack| ack.at.since(gap.from.at));
    own.filter(|own| gap.path.to_sender.is_none() || *own <= least + PROMPT).unwrap_or(least)
}

/// A side that ends the connection instead of waiting on: if a request is unanswered, that is what it waited for; if
/// the end of the connection is the end of the answer, the server took so long to give it.
fn given_up(gap: &Gap) -> Option<Ruling> {
    let is_open = gap.talk.is_until_close && gap.side == Side::Server && gap.continues();
    let is_unanswered =
        gap.talk.unanswered.is_some_and(|count| count > 0) && gap.before == Before::Data(Side::Client);
    (is_open || is_unanswered).then(|| {
        let since = gap.from.at + crossing(gap).min(gap.duration());
        let evidence = if is_open { of_server } else { unanswered };
        Ruling {
            since,
            saving: None,
            confidence: Confidence::Medium,
            ..Ruling::all(gap, Cause::ServerThink, evidence)
        }
    })
}

fn of_client(gap: &Gap) -> String {
    let what = match gap.before {
        Before::Handshake(_) => "after the connection was open",
        Before::Data(Side::Client) | Before::Unseen(Side::Client) => "in the middle of what it was sending",
        Before::Data(Side::Server) | Before::Unseen(Side::Server) => "after it had the answer",
        Before::Nothing | Before::Ending => "",
    };
    format!(
        "the client was free to send {what} (packet {}) and did so (packet {}) {} later",
        gap.from.frame,
        gap.to.frame,
        millis(gap.duration())
    )
}

fn of_server(gap: &Gap) -> String {
    let thought = millis(gap.duration().saturating_sub(crossing(gap)));
    let (from, to) = (gap.from.frame, gap.to.frame);
    match (gap.continues(), gap.talk.is_within) {
        (true, Some(false)) => format!(
            "the server had ended one answer (packet {from}) and began the next, which had been asked for (packet \
             {to}), {thought} later"
        ),
        (true, Some(true) | None) => format!(
            "the server stopped in the middle of its answer (packet {from}) with nothing in its way, and went on \
             (packet {to}) {thought} later"
        ),
        (false, _) => {
            let others =
                head_of_line::unknown(gap).map_or_else(String::new, |unknown| format!("; {unknown}"));
            format!(
                "the server had the request (packet {from}) and began to answer (packet {to}) {thought} later, the round \
                 trip subtracted{others}"
            )
        }
    }
}

fn unanswered(gap: &Gap) -> String {
    format!(
        "the request (packet {}) was not answered until the connection was ended by the {} (packet {}) {} later",
        gap.from.frame,
        gap.side,
        gap.to.frame,
        millis(gap.duration())
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::Place;
    use crate::script::{Script, opened};

    const ASK: &str = "text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n";
    const ANSWER: &str = "text=HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok";

    fn found(lines: &str, place: Place) -> Vec<(Cause, u64)> {
        let lines = opened(15.0, lines);
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(place);
        let thinks = [Cause::ServerThink, Cause::ClientThink];
        let thinks = report.findings.iter().filter(|finding| thinks.contains(&finding.cause));
        thinks.map(|finding| (finding.cause, finding.lost.as_nanos() / 1_000_000)).collect()
    }

    #[test]
    fn the_round_trip_is_subtracted_wherever_the_capture_was_taken() {
        let lines = format!("30 C {ASK}\n45 S\n245 S {ANSWER}\n260 C\n760 C {ASK}\n775 S {ANSWER}\n790 C");
        for place in [Place::Client, Place::Server, Place::Between] {
            assert_eq!(
                found(&lines, place),
                [(Cause::ServerThink, 200), (Cause::ClientThink, 500)],
                "{place:?}"
            );
        }
    }

    /// Found in the corpus: the server's timer and the client's both repeat an opening, and the second answer to it comes
    /// when the request is on its way.
    #[test]
    fn regress_an_opening_that_is_answered_twice_is_no_turn_of_the_conversation() {
        let lines = format!(
            "0 C syn\n30 S syn lost\n1000 C reopen\n1030 S reopen\n1030.4 S reopen\n1060 C\n1060.1 C {ASK}\n1060.4 C\n\
             1090.1 S\n1090.2 S {ANSWER}\n1120.3 C"
        );
        let report = Script { one_way_ms: 30.0, lines: &lines }.diagnose(Place::Client);
        assert!(report.findings.iter().all(|finding| finding.cause != Cause::ServerThink), "{report:?}");
    }

    #[test]
    fn it_is_named_without_http_too_and_in_the_middle_of_an_answer() {
        let lines = "30 C send=300\n45 S\n245 S send=500\n260 C\n400 S send=500\n415 C";
        for place in [Place::Client, Place::Server, Place::Between] {
            assert_eq!(
                found(lines, place),
                [(Cause::ServerThink, 200), (Cause::ServerThink, 155)],
                "{place:?}"
            );
        }
    }

    #[test]
    fn idle_keep_alive_is_no_stall_whatever_ends_it() {
        let closed = format!("30 C {ASK}\n45 S {ANSWER}\n60 C\n27000 C fin\n27015 S fin\n27030 C");
        let used_again = format!("30 C {ASK}\n45 S {ANSWER}\n60 C\n27000 C {ASK}\n27015 S {ANSWER}\n27030 C");
        for place in [Place::Client, Place::Server, Place::Between] {
            assert_eq!(found(&closed, place), []);
            assert_eq!(found(&used_again, place), []);
        }
    }

    #[test]
    fn a_client_that_gives_up_tells_how_long_it_waited() {
        let lines = format!("30 C {ASK}\n45 S\n5030 C fin\n5045 S rst");
        assert_eq!(found(&lines, Place::Client), [(Cause::ServerThink, 5_000)]);
    }

    #[test]
    fn keep_alive_probes_neither_end_nor_begin_anything() {
        let lines = format!(
            "30 C {ASK}\n45 S {ANSWER}\n60 C\n1060 C seq=26 send=1\n1075 S\n2060 C {ASK}\n2075 S {ANSWER}"
        );
        assert_eq!(found(&lines, Place::Client), [(Cause::ClientThink, 2_000)]);
    }
}
