//! Silences of a peer after the handshake: one side sends again and again, and nothing comes back.
//!
//! Packets that need it are acknowledged within a fixed time (RFC 9000, section 13.2.1), by default 25 ms, whatever the programs do. A
//! sender without acknowledgements probes after a timeout that doubles each time (RFC 9002, section 6.2.1). The times of
//! datagrams show both: nothing is decrypted.

use wire::Duration;

use crate::{Mark, Side};

/// A time in which one side sent in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The side that sent.
    pub sender: Side,
    /// Its first datagram in vain.
    pub since: Mark,
    /// Its last one.
    pub last: Mark,
    /// The peer's next datagram; `None` if it sent none.
    pub until: Option<Mark>,
    /// Number of timeouts, each longer than the one before.
    pub timeouts: u32,
}

/// Datagrams of one side since the other side's last one.
#[derive(Debug)]
struct Alone {
    silence: Silence,
    /// The last pause that was a timeout.
    pause: Duration,
}

/// Silences of both ends.
#[derive(Debug, Default)]
pub(super) struct Silences {
    alone: Option<Alone>,
    over: Vec<Silence>,
}

/// Minimum number and sum of timeouts.
const MIN_TIMEOUTS: u32 = 3;
const MIN_SILENCE: Duration = Duration::from_millis(300);
/// Datagrams of one probe are sent together; a timeout takes longer.
const TOGETHER: Duration = Duration::from_millis(10);
const MAX_SILENCES: usize = 16;

impl Silences {
    /// Handles a datagram after the handshake.
    pub(super) fn datagram(&mut self, sender: Side, mark: Mark) {
        if let Some(Alone { silence, pause }) =
            self.alone.as_mut().filter(|alone| alone.silence.sender == sender)
        {
            let waited = mark.at.since(silence.last.at);
            silence.last = mark;
            // New data between two probes is no timeout.
            if waited > TOGETHER && waited * 2 >= *pause * 3 {
                (*pause, silence.timeouts) = (waited, silence.timeouts + 1);
            }
            return;
        }
        let silence = Silence { sender, since: mark, last: mark, until: None, timeouts: 0 };
        let before = self.alone.replace(Alone { silence, pause: Duration::ZERO });
        if let Some(Alone { silence, .. }) = before.filter(|alone| alone.silence.is_proven())
            && self.over.len() < MAX_SILENCES
        {
            self.over.push(Silence { until: Some(mark), ..silence });
        }
    }

    /// Returns the silences so far. One to the end is that of a client's peer: a client may have closed.
    pub(super) fn all(&self) -> impl Iterator<Item = Silence> {
        let last = self.alone.as_ref().map(|alone| alone.silence);
        let last = last.filter(|silence| silence.is_proven() && silence.sender == Side::Client);
        self.over.iter().copied().chain(last)
    }
}

impl Silence {
    fn is_proven(&self) -> bool {
        self.timeouts >= MIN_TIMEOUTS && self.last.at.since(self.since.at) >= MIN_SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Time;

    fn silences(datagrams: &[(Side, u64)]) -> Vec<(Side, u64, Option<u64>, u32)> {
        let mut silences = Silences::default();
        for (frame, (side, ms)) in (1..).zip(datagrams) {
            silences.datagram(*side, Mark { at: Time::ZERO + Duration::from_millis(*ms), frame });
        }
        let all = silences.all();
        all.map(|found| (found.sender, found.since.frame, found.until.map(|mark| mark.frame), found.timeouts))
            .collect()
    }

    #[test]
    fn probes_at_doubling_intervals_were_in_vain() {
        let client = [0, 40, 41, 120, 280, 600].map(|ms| (Side::Client, ms));
        assert_eq!(silences(&client), [(Side::Client, 1, None, 4)]);
        let resumed = [&client[..], &[(Side::Server, 900)]].concat();
        assert_eq!(silences(&resumed), [(Side::Client, 1, Some(7), 4)]);
        let acknowledged: Vec<_> =
            client.iter().flat_map(|(side, ms)| [(*side, *ms), (Side::Server, ms + 5)]).collect();
        assert_eq!(silences(&acknowledged), []);
    }

    #[test]
    fn datagrams_at_equal_intervals_are_no_probes_and_a_client_may_have_closed() {
        let steady = [0, 100, 200, 300, 400, 500].map(|ms| (Side::Client, ms));
        assert_eq!(silences(&steady), []);
        let server = [0, 40, 120, 280, 600].map(|ms| (Side::Server, ms));
        assert_eq!(silences(&server), []);
    }
}
