//! Concurrent requests of which a server handles only a few at a time: the streams of one connection, though their responses may come
//! in any order (RFC 9113, section 5).
//!
//! A server with one worker ends a response, and has the next after the time that the first took; one with two ends two together.
//! Requests in flight all the while wait in a queue. Not the time of a link or of a window: the caller passes the part of the time
//! that was the server's.

use wire::{Duration, Time};

use crate::Mark;

/// The queue of a connection, and those that it had.
#[derive(Clone, Debug, Default)]
pub struct ServiceQueue {
    current: Option<Box<ServedInTurn>>,
    /// Chains of responses in groups, each after the one before; those too short to show a queue are left out.
    pub chains: Vec<ServedInTurn>,
}

/// Responses to requests that were in flight together, in groups of which each began after the one before had ended.
#[derive(Clone, Copy, Debug)]
pub struct ServedInTurn {
    /// Number of responses.
    pub count: u64,
    /// Number of responses in the first group, which no other exceeds: that of workers.
    pub workers: u64,
    /// The end of the first response.
    pub began: Mark,
    /// The end of the last response.
    pub ended: Mark,
    /// The shortest and the longest time of a group.
    pub spacing: [Duration; 2],
    groups: u64,
    group: Group,
    /// The last request of the groups before.
    requested: u64,
}

/// Responses that end together.
#[derive(Clone, Copy, Debug)]
struct Group {
    size: u64,
    /// The end of its first response.
    began: Time,
    /// The last packet of its requests.
    requested: u64,
    /// The server's time until then, since the connection was opened.
    thinking: Duration,
}

/// Fewer groups may be evenly spaced by chance; groups of several responses less so.
const MIN_GROUPS: [u64; 2] = [4, 3];
/// Minimum time of a response: shorter ones are work that a CPU does in turn.
const MIN_TIME: Duration = Duration::from_millis(30);
/// Maximum number of chains of a connection that are retained.
const MAX_CHAINS: usize = 16;

impl ServiceQueue {
    /// Records a response: its request, its end, and the server's part of the time of the connection until then.
    pub fn ended(&mut self, requested: Mark, ended: Mark, thinking: Duration) {
        let next = self.current.as_deref().and_then(|before| before.followed_by(requested, ended, thinking));
        if next.is_none() {
            self.settle();
        }
        self.current =
            Some(Box::new(next.unwrap_or_else(|| ServedInTurn::first(requested, ended, thinking))));
    }

    /// Ends the current chain.
    pub fn settle(&mut self) {
        let is_queue = |chain: &ServedInTurn| chain.groups >= MIN_GROUPS[usize::from(chain.workers > 1)];
        let chain = self.current.take().filter(|chain| is_queue(chain));
        if self.chains.len() < MAX_CHAINS {
            self.chains.extend(chain.map(|chain| *chain));
        }
    }
}

impl ServedInTurn {
    fn first(requested: Mark, ended: Mark, thinking: Duration) -> Self {
        let elapsed = ended.at.since(requested.at);
        Self {
            count: 1,
            workers: 1,
            began: ended,
            ended,
            spacing: [elapsed, elapsed],
            groups: 1,
            group: Group { size: 1, began: ended.at, requested: requested.frame, thinking },
            requested: 0,
        }
    }

    /// Returns the chain with another response, if its request waited for the group before, and the server then took as long for it as
    /// for the others.
    fn followed_by(&self, requested: Mark, ended: Mark, thinking: Duration) -> Option<Self> {
        let [shortest, longest] = self.spacing;
        let time = ended.at.since(self.group.began);
        let is_together = time < shortest / 4;
        let newest = self.group.requested.max(requested.frame);
        if is_together {
            let size = self.group.size + 1;
            let workers = if self.groups == 1 { size } else { self.workers };
            let is_next = requested.frame >= self.requested && size <= workers;
            let group = Group { size, requested: newest, ..self.group };
            return is_next.then_some(Self { count: self.count + 1, workers, ended, group, ..*self });
        }
        let is_in_turn = requested.frame >= self.group.requested && requested.at < self.ended.at;
        let is_servers = thinking.saturating_sub(self.group.thinking) * 4 >= time * 3;
        let spacing = [shortest.min(time), longest.max(time)];
        let is_even = time >= MIN_TIME && spacing[1] * 2 <= spacing[0] * 3;
        let is_full = self.group.size == self.workers;
        (is_in_turn && is_servers && is_even && is_full).then_some(Self {
            count: self.count + 1,
            ended,
            spacing,
            groups: self.groups + 1,
            group: Group { size: 1, began: ended.at, requested: requested.frame, thinking },
            requested: self.group.requested,
            ..*self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of responses in each chain; responses are `(requested, ended)`, in milliseconds.
    fn chains(responses: &[(u64, u64)], servers_part: u64) -> Vec<u64> {
        let mut queue = ServiceQueue::default();
        let mark = |millis: u64| Mark { at: Time::from_nanos(millis * 1_000_000), frame: millis };
        for (requested, ended) in responses.iter().copied() {
            queue.ended(mark(requested), mark(ended), Duration::from_millis(ended * servers_part / 100));
        }
        queue.settle();
        queue.chains.iter().map(|chain| chain.count).collect()
    }

    #[test]
    fn evenly_spaced_responses_to_concurrent_requests_were_served_in_turn() {
        let in_turn = [(0, 80), (1, 162), (2, 241), (3, 323), (4, 400)];
        assert_eq!(chains(&in_turn, 100), [5]);
        let again = in_turn.map(|(requested, ended)| (requested + 1_000, ended + 1_000));
        assert_eq!(chains(&[in_turn, again].concat(), 100), [5, 5]);
        assert!(chains(&in_turn, 50).is_empty(), "the link took half of the time");
    }

    #[test]
    fn responses_of_several_workers_come_in_groups() {
        let pairs = [(1, 101), (0, 103), (2, 202), (3, 203), (5, 301), (4, 304), (6, 400)];
        assert_eq!(chains(&pairs, 100), [7]);
        let growing = [(0, 101), (1, 202), (2, 203), (3, 204), (4, 301)];
        assert!(chains(&growing, 100).is_empty(), "not a number of workers");
    }

    #[test]
    fn concurrent_service_is_no_queue() {
        assert!(chains(&[(0, 80), (1, 81), (2, 82), (3, 83), (4, 84)], 100).is_empty());
        assert!(chains(&[(0, 80), (80, 160), (160, 240), (240, 320)], 100).is_empty(), "sequential requests");
        assert!(chains(&[(0, 35), (1, 160), (2, 190), (3, 400)], 100).is_empty(), "different work");
        assert!(chains(&[(3, 80), (2, 160), (1, 240), (0, 320)], 100).is_empty(), "not in their order");
    }
}
