//! Evidence that a client waited for its server's next message, where messages cannot be parsed. The server may
//! have pushed it instead, by a timer of its own or on an event elsewhere.
//!
//! A message is a response if its first bytes name the request (a correlation id), or belong to a protocol whose
//! server only responds. So is the server's first message on a connection on which the client spoke first, and
//! anything in a TLS handshake. Otherwise the client's next step decides. A client that waited continues or closes
//! promptly once it has the response, after most of its waits; and its server has been prompt, too. Without any of
//! these the wait is not proven.
//!
//! Not a reader of these protocols: only the first bytes of each message are compared (`responses`). Requests that block by design
//! (Kafka's Fetch, Redis' BLPOP) prove nothing.

mod responses;

use wire::{Duration, Time};

use crate::Both;

/// Number of pauses from which on a message is a stream.
const REPEATEDLY: u16 = 3;
/// First bytes of a message that are retained.
const HEAD_BYTES: usize = 24;
const OPENSSH: &[u8] = b"SSH-2.0-OpenSSH";

/// The turns of one connection.
#[derive(Debug, Default)]
pub struct Turns {
    /// First bytes of the client's last message, and their number.
    request: [u8; HEAD_BYTES],
    length: u8,
    /// Length of the client's first short message, if it was sent without a cause; zero if after a pause of the server.
    opener: Option<u8>,
    /// Whether the server has sent data.
    pub has_server_sent: bool,
    /// Whether it greeted like a server of mail or files, which sends statuses to commands and nothing else.
    takes_commands: bool,
    /// Whether each side has identified itself as OpenSSH (RFC 4253, section 4.2).
    pub is_openssh: Both<bool>,
    /// Waits in the last response of which it is not known whether the client acted on it.
    unproven: Option<Unproven>,
    /// Number of responses on which the client acted, and on which it did not.
    acted: u16,
    ignored: u16,
    /// Number of waits as long as those of a poll that the server holds until something happens.
    held: u16,
    /// Number of times the server sent promptly after the client's data.
    prompt: u16,
    /// Number of waits after messages as short as an acknowledgement of what the server had sent.
    terse: u16,
    /// Wait for the beginning of the server's last message.
    opening: Option<(Time, Duration)>,
    /// Pauses in that message: when the first began, and their number.
    pauses: Option<(Time, u16)>,
    /// The longest pause of messages that paused as often as a stream does.
    streamed: Option<Duration>,
}

/// Waits of the same turn.
#[derive(Clone, Copy, Debug)]
struct Unproven {
    /// When the first of them began.
    since: Time,
    /// Duration of the last of them.
    wait: Duration,
}

impl Turns {
    /// Records the beginning of a client's message.
    pub fn requests(&mut self, payload: &[u8]) {
        let length = payload.len().min(HEAD_BYTES);
        self.is_openssh.client |= self.length == 0 && payload.starts_with(OPENSSH);
        self.request = [0; HEAD_BYTES];
        self.request[..length].copy_from_slice(&payload[..length]);
        self.length = u8::try_from(length).unwrap_or_default();
        if length < HEAD_BYTES {
            self.opener.get_or_insert(if self.pauses.is_none() { self.length } else { 0 });
        }
        (self.pauses, self.opening) = (None, None);
    }

    /// Returns whether the server's `payload` responds to the client's last message, by its first bytes.
    pub fn is_response(&self, payload: &[u8]) -> bool {
        let request = self.request.get(..self.length.into()).unwrap_or_default();
        responses::is_pair(request, payload) || self.takes_commands && responses::is_status(payload)
    }

    /// Returns whether a client must wait for a server's first data: the greeting of SMTP (RFC 5321, section 3.1), FTP, NNTP, POP3 or IMAP.
    pub fn is_greeting(payload: &[u8]) -> bool {
        responses::is_greeting(payload)
    }

    /// Records data of the server.
    pub fn responds(&mut self, payload: &[u8]) {
        let is_first = self.length == 0 && !self.has_server_sent;
        self.takes_commands |= is_first && responses::is_greeting(payload);
        self.is_openssh.server |= !self.has_server_sent && payload.starts_with(OPENSSH);
        self.has_server_sent = true;
    }

    /// Returns a hash of what the client's last message commands: the word of a command line, the code of a message of SMB.
    pub fn command(&self) -> Option<u64> {
        responses::command(self.request.get(..self.length.into())?)
    }

    /// Returns whether the client's last message waits for an event by design, as Redis' blocking commands and Kafka's Fetch do, or only
    /// acknowledges one.
    fn awaits_event(&self) -> bool {
        responses::awaits_event(self.request.get(..self.length.into()).unwrap_or_default())
    }

    /// Records that the server took a `wait` worth reporting, from `since` on, for something that is not proven to be a
    /// response, of `length` bytes. An acknowledgement of what the server had sent is shorter than that.
    pub fn waits(&mut self, since: Time, wait: Duration, length: u64) {
        /// Interactive requests take less. A held poll lasts until an event, or a timeout of mostly 30 s (RFC 6202, section
        /// 5.5).
        const HELD: Duration = Duration::from_secs(5);
        let is_like_opener = self.opener.is_some_and(|opener| opener.abs_diff(self.length) <= 2);
        let is_terse =
            usize::from(self.length) < HEAD_BYTES && u64::from(self.length) < length && !is_like_opener;
        self.terse = self.terse.saturating_add(u16::from(is_terse));
        if wait >= HELD || self.awaits_event() {
            self.is_held();
        }
        let since = self.unproven.map_or(since, |before| before.since);
        self.unproven = Some(Unproven { since, wait });
    }

    /// Handles the client's next step, `reaction` after the server's last data: `None` if it never came. Returns the
    /// time from which on waits are still unproven.
    pub fn handle_client_step(&mut self, reaction: Option<Duration>) -> Option<Time> {
        let Unproven { since, wait } = self.unproven.take()?;
        // Programs need little time, and a coincidence is unlikely within a small part of the wait.
        let bound = (wait / 4).clamp(Duration::from_millis(10), Duration::from_millis(50));
        // What a stream ends with shows nothing about its beginning.
        let is_stream = self.pauses.is_some_and(|(_, count)| count >= REPEATEDLY);
        let is_ignored = is_stream || self.awaits_event() || reaction.is_none_or(|reaction| reaction > bound);
        let count = if is_ignored { &mut self.ignored } else { &mut self.acted };
        *count = count.saturating_add(1);
        is_ignored.then_some(since)
    }

    /// Returns whether the server may have sent by a timer or on events, and the client responded to it. That is so if
    /// the client mostly did not act on what it seemed to wait for; where it did, it was a coincidence. It is also so if
    /// the server never sent promptly after the client's data, unless the client acted too often for that, or seldom after very short
    /// messages. The same holds for a server that takes several seconds more than once: the client may poll, and the server respond on
    /// events.
    pub const fn are_doubtful(&self) -> bool {
        const FEW: u16 = 2;
        const OFTEN: u16 = 4;
        let are_replies = self.terse > FEW && self.terse > self.prompt;
        self.held >= FEW
            || self.ignored > self.acted
            || (self.acted > 0 && self.acted < OFTEN && self.prompt == 0)
            || are_replies
    }

    /// Returns whether the client continued as soon as it had what the server sent late, turn after turn: it waited for that. Streams
    /// go on by themselves.
    pub const fn are_convincing(&self) -> bool {
        const FEW: u16 = 2;
        self.acted >= FEW && self.acted >= FEW * self.ignored && self.held == 0 && self.streamed.is_none()
    }

    /// Records a wait so long that the server may have held the request until an event.
    pub fn is_held(&mut self) {
        self.held = self.held.saturating_add(1);
    }

    /// Records that the server sent promptly after the client's data.
    pub fn is_prompt(&mut self) {
        self.prompt = self.prompt.saturating_add(1);
    }

    /// Records that the server began a message late, after a `wait` since then.
    pub const fn begins(&mut self, since: Time, wait: Duration) {
        self.opening = Some((since, wait));
    }

    /// Returns when the wait for the server's last message began, if an idle time within that message is as long: the message is a
    /// stream, and its beginning one of its events.
    pub fn idles(&self, idle: Duration) -> Option<Time> {
        self.opening.filter(|(_, wait)| *wait <= idle * 3 / 2).map(|(since, _)| since)
    }

    /// Records a pause of the server in the middle of a message. Returns when the first one began, if the message is a
    /// stream, or paced: it pauses repeatedly. The wait for its beginning is one of them if it took about as long.
    pub fn pauses(&mut self, since: Time, pause: Duration) -> Option<Time> {
        let (first, count) = self.pauses.unwrap_or_else(|| {
            let alike = self.opening.filter(|(_, wait)| *wait <= pause * 3 / 2);
            (alike.map_or(since, |(opened, _)| opened), 0)
        });
        self.pauses = Some((first, count.saturating_add(1)));
        let is_stream = count + 1 >= REPEATEDLY;
        if is_stream {
            self.streamed = Some(self.streamed.map_or(pause, |longest| longest.max(pause)));
        }
        is_stream.then_some(first)
    }

    /// Returns whether a `wait` took about as long as the pauses of a stream on this connection.
    pub fn is_of_stream(&self, wait: Duration) -> bool {
        self.streamed.is_some_and(|pause| wait <= pause * 3 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_held_for_seconds_may_be_polls() {
        let are_doubtful = |waits: [u64; 2]| {
            let mut turns = Turns::default();
            (0..3).for_each(|_| turns.is_prompt());
            for (second, wait) in (0..).zip(waits) {
                turns.requests(&[0; 100]);
                turns.waits(Time::from_nanos(second), Duration::from_secs(wait), 100);
                assert_eq!(turns.handle_client_step(Some(Duration::from_millis(1))), None);
            }
            turns.are_doubtful()
        };
        assert!(!are_doubtful([2, 30]), "one slow request");
        assert!(are_doubtful([20, 30]));
    }

    #[test]
    fn waits_of_requests_that_block_by_design_do_not_convince() {
        let are_convincing = |request: &[u8]| {
            let mut turns = Turns::default();
            for turn in 0..4_u64 {
                turns.requests(request);
                turns.waits(Time::from_nanos(turn), Duration::from_millis(700), 40);
                turns.handle_client_step(Some(Duration::from_millis(1)));
            }
            turns.are_convincing()
        };
        assert!(are_convincing(b"*2\r\n$4\r\nEVAL\r\n") && are_convincing(b"stats\r\n"));
        assert!(!are_convincing(b"*3\r\n$5\r\nBLPOP\r\n") && !are_convincing(b"reserve\r\n"));
    }

    #[test]
    fn client_that_acts_on_an_event_had_not_waited_for_a_response() {
        let acts = |request: &[u8]| {
            let mut turns = Turns::default();
            turns.requests(request);
            turns.waits(Time::ZERO, Duration::from_millis(500), 500);
            turns.handle_client_step(Some(Duration::from_millis(1))).is_none()
        };
        let kafka = |key: u8| [0, 0, 0, 70, 0, key, 0, 4, 0, 0, 0, 9, 0, 7, b'c'];
        let amqp = |method: u8| [1, 0, 1, 0, 0, 0, 13, 0, 60, 0, method, 0];
        let smb = |command: u8| {
            let header = [0, 0, 0, 68, 0xfe, b'S', b'M', b'B', 64, 0, 0, 0, 0, 0, 0, 0, command, 0, 1, 0];
            [&header[..], &[0, 0, 0, 0]].concat()
        };
        let update = |incremental: u8| [3, incremental, 0, 0, 0, 0, 3, 32, 2, 88];
        assert_eq!([1, 11, 14, 0, 3].map(|key| acts(&kafka(key))), [false, false, false, true, true]);
        assert_eq!([80, 120, 40].map(|method| acts(&amqp(method))), [false, false, true]);
        assert_eq!([15, 10, 8].map(|command| acts(&smb(command))), [false, false, true]);
        assert_eq!([1, 0].map(|incremental| acts(&update(incremental))), [false, true]);
        assert!(!acts(b"\x40\x02\0\x07"), "PUBACK");
    }

    #[test]
    fn client_that_continues_promptly_had_waited() {
        let [soon, late] = [20, 200].map(Duration::from_millis);
        let acts = |reaction| {
            let mut turns = Turns::default();
            turns.waits(Time::ZERO + late, late, 100);
            turns.handle_client_step(reaction).is_none()
        };
        assert_eq!((acts(Some(soon)), acts(Some(late)), acts(None)), (true, false, false));
    }

    #[test]
    fn client_that_acts_on_the_end_of_a_stream_had_not_waited_for_its_beginning() {
        let long = Duration::from_millis(400);
        let acts = |pauses: usize| {
            let mut turns = Turns::default();
            turns.requests(b"run");
            turns.waits(Time::ZERO, long, 100);
            for _ in 0..pauses {
                turns.pauses(Time::ZERO + long, long);
            }
            turns.handle_client_step(Some(Duration::from_millis(1))).is_none()
        };
        assert_eq!([0, 1, 3].map(acts), [true, true, false]);
    }

    #[test]
    fn message_as_long_as_its_response_is_no_acknowledgement() {
        let are_doubtful = |first: &[u8], length| {
            let mut turns = Turns::default();
            turns.requests(first);
            for turn in 0..6_u64 {
                turns.requests(b"ping 123");
                turns.waits(Time::from_nanos(turn), Duration::from_millis(300), length);
                turns.handle_client_step(Some(Duration::from_millis(1)));
            }
            turns.are_doubtful()
        };
        assert_eq!([4, 8, 9].map(|length| are_doubtful(b"subscribe to all", length)), [false, false, true]);
        // What the client sends of its own accord is a request, and so is what is like it.
        assert!(!are_doubtful(b"ping 122", 9));
    }

    #[test]
    fn client_that_mostly_acts_independently_waited_for_nothing() {
        let [soon, late] = [20, 200].map(Duration::from_millis);
        let mut turns = Turns { prompt: 1, ..Turns::default() };
        turns.requests(&[0; HEAD_BYTES]);
        let mut is_ignored = |reaction| {
            turns.waits(Time::ZERO, late, 100);
            turns.handle_client_step(Some(reaction));
            turns.are_doubtful()
        };
        assert_eq!([soon, late, late].map(&mut is_ignored), [false, false, true]);
    }

    #[test]
    fn turns_convince_unless_the_server_streams() {
        let are_convincing = |pauses: usize| {
            let mut turns = Turns::default();
            for turn in 0..4_u64 {
                turns.requests(&[0; HEAD_BYTES]);
                turns.waits(Time::from_nanos(turn), Duration::from_millis(400), 100);
                for _ in 0..pauses {
                    turns.pauses(Time::from_nanos(turn), Duration::ZERO);
                }
                turns.handle_client_step(Some(Duration::from_millis(1)));
            }
            turns.are_convincing()
        };
        assert_eq!([1, 3].map(are_convincing), [true, false]);
    }

    #[test]
    fn message_that_pauses_three_times_is_a_stream() {
        let mut turns = Turns::default();
        let first = Time::ZERO + Duration::from_millis(5);
        let pause = Duration::from_millis(300);
        assert_eq!([first, first, first].map(|since| turns.pauses(since, pause)), [None, None, Some(first)]);
        turns.requests(b"next");
        assert_eq!(turns.pauses(first, pause), None);
        assert!(turns.is_of_stream(pause) && !turns.is_of_stream(pause * 2));
        // Its first event took as long as the others; its first byte took longer.
        for (wait, expected) in [(300, Time::ZERO), (900, first)] {
            turns.requests(b"stream");
            turns.begins(Time::ZERO, Duration::from_millis(wait));
            assert_eq!([first, first, first].map(|since| turns.pauses(since, pause))[2], Some(expected));
        }
    }

    #[test]
    fn commands_of_one_word_are_alike_whatever_follows_it() {
        let [pass, other, user, binary] = [&b"PASS x\r\n"[..], b"pass 1234\r\n", b"USER x\r\n", b"\0\x01"]
            .map(|request| {
                let mut turns = Turns::default();
                turns.requests(request);
                turns.command()
            });
        assert!(pass == other && pass != user && binary.is_none());
    }

    #[test]
    fn server_that_greets_for_commands_responds_to_whatever_follows() {
        let responds = |greeting: &[u8], response: &[u8]| {
            let mut turns = Turns::default();
            turns.responds(greeting);
            turns.requests(b"1: the last line of a message\r\n.\r\n");
            turns.is_response(response)
        };
        assert!(responds(b"220 ready\r\n", b"250 queued\r\n"));
        assert!(!responds(b"220 ready\r\n", b"421 timeout\r\n"), "a server that closes");
        assert!(!responds(b"hello\r\n", b"250 queued\r\n"));
    }
}
