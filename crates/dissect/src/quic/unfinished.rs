//! Handshakes that were begun and never completed: the peer fell silent, both sides repeat theirs in vain, or the server offers no
//! version or accepts no token. Not those with early data, which end the wait of a client.

use wire::Duration;

use super::TOGETHER;
use crate::{Both, Mark, Side};

/// A handshake that was begun and never completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedHandshake {
    /// Kind of its end.
    pub end: UnfinishedEnd,
    /// The packet after which nothing changed.
    pub since: Mark,
    /// The last packet.
    pub last: Mark,
    /// Number of rounds in which each side sent since then.
    pub rounds: Both<u32>,
    /// Whether the server may send no more, three times what it has received (RFC 9000, section 8.1).
    pub is_limited: bool,
}

/// Kind of the end of a handshake that was never completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfinishedEnd {
    /// The client did not continue after a Version Negotiation: it supports none of the server's versions (RFC 9000, section 6.2).
    Version,
    /// The server sent this number of Retry packets and nothing else; a client accepts one (RFC 9000, section 17.2.5.2).
    Retry(u32),
    /// This side sent nothing more.
    Silent(Side),
    /// Both sides continued to send.
    Repeated,
}

/// Datagrams of one side, by rounds: those sent together are one.
#[derive(Clone, Copy, Debug, Default)]
struct RoundCount {
    last: Option<Mark>,
    count: u32,
}

impl RoundCount {
    fn add(&mut self, mark: Mark) {
        self.count += u32::from(self.last.is_none_or(|last| mark.at.since(last.at) > TOGETHER));
        self.last = Some(mark);
    }
}

/// The datagrams of both sides since the server's first one.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// All of them, and those since the other side's last one; the side and the packet before them.
    all: Both<RoundCount>,
    alone: Option<(Side, Mark, RoundCount)>,
    /// The server's first packet, and its first one that is neither Retry nor Version Negotiation.
    answered: Option<Mark>,
    heard: Option<Mark>,
    retries: u32,
    last: Option<Mark>,
}

/// Number of rounds in vain after which a side counts as silent, or both as stuck, and the shortest time that they take. A handshake
/// needs three rounds at most where a Retry precedes it.
const SILENT_ROUNDS: u32 = 3;
const STUCK_ROUNDS: u32 = 5;
const MIN_SILENCE: Duration = Duration::from_secs(1);

impl Progress {
    /// Handles a datagram; `is_handshake`: it has another packet than Retry and Version Negotiation.
    pub(super) fn datagram(&mut self, side: Side, is_handshake: bool, is_retry: bool, mark: Mark) {
        let before = self.last.replace(mark).unwrap_or(mark);
        if side == Side::Server {
            self.answered.get_or_insert(mark);
            self.retries += u32::from(is_retry);
            if is_handshake {
                self.heard.get_or_insert(mark);
            }
        }
        if self.answered.is_none() {
            return;
        }
        self.all.of_mut(side).add(mark);
        match &mut self.alone {
            Some((of, _, rounds)) if *of == side => rounds.add(mark),
            alone => {
                let mut rounds = RoundCount::default();
                rounds.add(mark);
                *alone = Some((side, before, rounds));
            }
        }
    }

    /// Returns the end of a handshake that was neither completed nor closed.
    pub(super) fn unfinished(&self, has_negotiated: bool, is_limited: bool) -> Option<UnfinishedHandshake> {
        let (answered, last) = (self.answered?, self.last?);
        let (side, before, alone) = self.alone?;
        let rounds = Both { client: self.all.client.count, server: self.all.server.count };
        let ends = |end, since| Some(UnfinishedHandshake { end, since, last, rounds, is_limited });
        let is_long = |since: Mark| last.at.since(since.at) >= MIN_SILENCE;
        if self.heard.is_none() {
            if has_negotiated && rounds.client == 0 {
                return ends(UnfinishedEnd::Version, answered);
            }
            let is_refused = self.retries > 0 && rounds.client >= SILENT_ROUNDS && is_long(answered);
            return is_refused.then(|| ends(UnfinishedEnd::Retry(self.retries), answered)).flatten();
        }
        // A server at its limit repeats nothing more.
        let is_spent = is_limited && side == Side::Server;
        if alone.count >= SILENT_ROUNDS && (is_spent || is_long(before)) {
            let mut rounds = Both::default();
            *rounds.of_mut(side) = alone.count;
            let end = UnfinishedEnd::Silent(side.other());
            return Some(UnfinishedHandshake { end, since: before, last, rounds, is_limited });
        }
        let is_stuck = rounds.client.min(rounds.server) >= STUCK_ROUNDS && is_long(answered);
        is_stuck.then(|| ends(UnfinishedEnd::Repeated, answered)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Time;

    /// The end of a handshake: side, time in milliseconds, and the kind of each datagram (`h` handshake, `r` Retry, `v` Version
    /// Negotiation).
    fn end(datagrams: &[(Side, u64, char)]) -> Option<(UnfinishedEnd, u64)> {
        end_at(false, datagrams)
    }

    /// The same of a server at its limit, or below it.
    fn end_at(is_limited: bool, datagrams: &[(Side, u64, char)]) -> Option<(UnfinishedEnd, u64)> {
        let mut progress = Progress::default();
        for (frame, (side, ms, kind)) in (1..).zip(datagrams) {
            let mark = Mark { at: Time::from_nanos(ms * 1_000_000), frame };
            progress.datagram(*side, *kind == 'h', *kind == 'r', mark);
        }
        let has_negotiated = datagrams.iter().any(|(.., kind)| *kind == 'v');
        progress
            .unfinished(has_negotiated, is_limited)
            .map(|unfinished| (unfinished.end, unfinished.since.frame))
    }

    const C: Side = Side::Client;
    const S: Side = Side::Server;

    #[test]
    fn side_that_repeats_alone_has_lost_its_peer() {
        let begun = [(C, 0, 'h'), (S, 20, 'h')];
        let alone = |side, times: &[u64]| {
            end(&[&begun[..], &times.iter().map(|ms| (side, *ms, 'h')).collect::<Vec<_>>()].concat())
        };
        assert_eq!(alone(C, &[21, 320, 920, 2_120]), Some((UnfinishedEnd::Silent(S), 2)));
        assert_eq!(alone(S, &[21, 1_020, 3_020]), Some((UnfinishedEnd::Silent(C), 1)));
        assert_eq!(alone(C, &[21, 320, 920]), None, "it may still come");
        assert_eq!(alone(C, &[21, 22, 2_120]), None, "datagrams that are sent together are one round");
    }

    #[test]
    fn server_at_its_limit_has_lost_its_client_sooner() {
        let datagrams = [(C, 0, 'h'), (S, 20, 'h'), (S, 220, 'h'), (S, 620, 'h')];
        let ends = [false, true].map(|is_limited| end_at(is_limited, &datagrams));
        assert_eq!(ends, [None, Some((UnfinishedEnd::Silent(C), 1))]);
    }

    #[test]
    fn server_without_common_version_ends_the_handshake() {
        assert_eq!(end(&[(C, 0, 'h'), (S, 20, 'v')]), Some((UnfinishedEnd::Version, 2)));
        assert_eq!(end(&[(C, 0, 'h'), (S, 20, 'v'), (C, 21, 'h'), (S, 41, 'h')]), None);
    }

    #[test]
    fn retry_after_retry_is_no_reply() {
        let mut datagrams = vec![(C, 0, 'h'), (S, 20, 'r')];
        for ms in [21, 321, 921, 2_121] {
            datagrams.extend([(C, ms, 'h'), (S, ms + 20, 'r')]);
        }
        assert_eq!(end(&datagrams), Some((UnfinishedEnd::Retry(5), 2)));
        datagrams.push((S, 2_150, 'h'));
        assert_eq!(end(&datagrams), None, "the server accepted a token");
    }

    #[test]
    fn sides_that_both_repeat_are_stuck() {
        let rounds = |count: u64| {
            let both = |round: u64| [(C, round * 400, 'h'), (S, round * 400 + 20, 'h')];
            end(&(0..count).flat_map(both).collect::<Vec<_>>())
        };
        assert_eq!(rounds(6), Some((UnfinishedEnd::Repeated, 2)));
        assert_eq!(rounds(4), None);
    }
}
