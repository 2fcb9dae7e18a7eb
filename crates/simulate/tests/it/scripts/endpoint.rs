//! Runner of a script: one endpoint, driven line by line; its peer exists only in the script.

use std::collections::VecDeque;

use scenario::Stack;
use simulate::profile::{self, Clocks};
use tcp::segment::{Flags, Framing, Options, SackBlocks, SynOptions};
use tcp::stack::packets::{Recovery, Restart};
use tcp::stack::{Acks, Idle};
use tcp::{Connection, Event, Failure, Input, Output, Payload, Segment};
use wire::{Bytes, Duration, Time};

use super::script::{Script, ScriptEvent, SegmentFields};

/// The endpoint and its outputs.
struct Endpoint {
    connection: Connection,
    now: Time,
    wakes: Option<Time>,
    sent: VecDeque<(Time, Segment)>,
    reported: Vec<&'static str>,
    reads_late: bool,
    mss: u16,
    /// The shift of the endpoint's windows, and whether it has sent a timestamp.
    scale: u8,
}

/// Runs a script; the error is the first line that fails, and the reason.
pub(crate) fn run(script: &Script, stack: &Stack) -> Result<(), String> {
    let mut endpoint = Endpoint::new(script, stack)?;
    endpoint.handshake(script.is_client)?;
    for line in &script.lines {
        endpoint.line(line.after, &line.event).map_err(|error| format!("{}: {error}", line.number))?;
    }
    match endpoint.sent.front() {
        Some((at, segment)) => Err(format!("at the end: unexpected at {}: {}", millis(*at), show(segment))),
        None => Ok(()),
    }
}

impl Endpoint {
    fn new(script: &Script, stack: &Stack) -> Result<Self, String> {
        let mut stack = stack.clone();
        for (setting, value) in &script.overrides {
            set(&mut stack, setting, value)?;
        }
        let clocks = Clocks { heartbeat: Duration::ZERO, slow: Duration::ZERO };
        let config = profile::config(&stack, Bytes::new(script.mss), Duration::from_millis(1), clocks);
        let mss = config.mss;
        let connection =
            if script.is_client { Connection::client(config) } else { Connection::server(config) };
        Ok(Self {
            connection: connection.map_err(|error| error.to_string())?,
            now: Time::ZERO,
            wakes: None,
            sent: VecDeque::new(),
            reported: Vec::new(),
            reads_late: script.reads_late,
            mss,
            scale: 0,
        })
    }

    /// Opens the connection; the handshake ends 100 ms after the start.
    fn handshake(&mut self, is_client: bool) -> Result<(), String> {
        let half = Duration::from_millis(50);
        let syn = SynOptions {
            mss: Some(self.mss),
            window_scale: Some(0),
            sack_permitted: true,
            ..SynOptions::default()
        };
        let mut arriving = plain(0, Payload::EMPTY);
        arriving.options.syn = Some(Box::new(syn));
        arriving.options.timestamps = None;
        if is_client {
            self.deliver(Input::Open);
            self.advance(Time::ZERO + half * 2);
            arriving.flags = Flags { syn: true, ack: true, ..Flags::default() };
            arriving.acknowledgement = 1;
            self.deliver(Input::Segment(&arriving));
        } else {
            arriving.flags = Flags { syn: true, ..Flags::default() };
            self.deliver(Input::Segment(&arriving));
            self.advance(Time::ZERO + half * 2);
            let mut ack = plain(1, Payload::EMPTY);
            ack.acknowledgement = 1;
            self.deliver(Input::Segment(&ack));
        }
        let scale = self.sent.iter().find_map(|(_, segment)| segment.options.syn.as_ref()?.window_scale);
        self.scale = scale.unwrap_or(0);
        self.sent.clear();
        let opened = std::mem::take(&mut self.reported);
        if opened == ["connected"] { Ok(()) } else { Err(format!("0: the handshake notified of {opened:?}")) }
    }

    fn line(&mut self, after: Duration, event: &ScriptEvent) -> Result<(), String> {
        self.advance(self.now + after);
        match event {
            ScriptEvent::Sends(expected) => return self.expect(expected),
            ScriptEvent::Notified(event) => {
                let index = self.reported.iter().position(|reported| reported == event);
                self.reported.remove(index.ok_or_else(|| format!("notified of {:?}", self.reported))?);
                return Ok(());
            }
            ScriptEvent::Quiet
            | ScriptEvent::Write(_)
            | ScriptEvent::Read
            | ScriptEvent::Shutdown
            | ScriptEvent::Close
            | ScriptEvent::Abort
            | ScriptEvent::Arrive(_) => {}
        }
        if let Some((at, segment)) = self.sent.front() {
            return Err(format!("unexpected at {}: {}", millis(*at), show(segment)));
        }
        match event {
            ScriptEvent::Write(bytes) => self.deliver(Input::Write(Payload::from(vec![7; *bytes]))),
            ScriptEvent::Read => self.read(),
            ScriptEvent::Shutdown => self.deliver(Input::Shutdown),
            ScriptEvent::Close => self.deliver(Input::Close),
            ScriptEvent::Abort => self.deliver(Input::Abort),
            ScriptEvent::Arrive(numbers) => self.deliver(Input::Segment(&arriving(numbers))),
            ScriptEvent::Sends(_) | ScriptEvent::Notified(_) | ScriptEvent::Quiet => {}
        }
        Ok(())
    }

    fn expect(&mut self, expected: &SegmentFields) -> Result<(), String> {
        let Some((at, segment)) = self.sent.pop_front() else { return Err("nothing was sent".to_owned()) };
        if at != self.now {
            return Err(format!("sent at {}, not at {}: {}", millis(at), millis(self.now), show(&segment)));
        }
        let letters = flags(&segment);
        let window = u64::from(segment.window) << self.scale;
        let holds = (segment.sequence, segment.end()) == (expected.start, expected.end)
            && expected.ack.is_none_or(|ack| ack == segment.acknowledgement)
            && expected.window.is_none_or(|expected| expected == window)
            && expected.flags == letters
            && expected.sack == segment.options.sack.ranges(segment.acknowledgement).collect::<Vec<_>>();
        if holds { Ok(()) } else { Err(format!("sent {} win {window}", show(&segment))) }
    }

    /// Advances time to `until`, and expires timers.
    fn advance(&mut self, until: Time) {
        while let Some(wakes) = self.wakes.filter(|wakes| *wakes <= until) {
            self.now = wakes;
            self.poll();
        }
        self.now = until;
    }

    fn deliver(&mut self, input: Input<'_>) {
        self.connection.handle(self.now, input);
        self.poll();
    }

    fn read(&mut self) {
        while self.connection.read().is_some() {
            self.poll();
        }
    }

    fn poll(&mut self) {
        loop {
            match self.connection.poll(self.now) {
                Output::Transmit(segment) => self.sent.push_back((self.now, segment)),
                Output::Event(event) => self.reported.push(name(event)),
                Output::Timeout(wakes) => {
                    self.wakes = wakes;
                    break;
                }
            }
        }
        if !self.reads_late && self.connection.read().is_some() {
            self.poll();
        }
    }
}

fn set(stack: &mut Stack, setting: &str, value: &str) -> Result<(), String> {
    let on = value == "on";
    match (setting, value) {
        ("nagle", _) => stack.nagle = on,
        ("timestamps", _) => stack.timestamps = on,
        ("sack", _) => stack.sack = on,
        ("initial-window", number) => stack.initial_window = number.parse().map_err(|_| "0: no number")?,
        ("send-buffer", bytes) => stack.packets.send_buffer = Bytes::new(number(bytes)?),
        ("ssthresh", bytes) => stack.packets.initial_threshold = Some(Bytes::new(number(bytes)?)),
        ("acks", "every-segment") => stack.acks = Acks::EverySegment,
        ("acks", "delayed") => stack.acks = Acks::Delayed,
        ("acks", "no-delayed") => stack.acks = Acks::NoDelayed,
        ("idle", "kept") => stack.idle = Idle::Unchanged,
        ("idle", "paced") => stack.idle = Idle::Paced,
        ("idle", "decayed") => {
            stack.idle = Idle::Restarted;
            stack.packets.restart = Restart::Decaying;
        }
        ("recovery", "newreno") => stack.packets.recovery = Recovery::NewReno,
        _ => return Err(format!("0: cannot set {setting} to {value}")),
    }
    Ok(())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("0: {text} is no number"))
}

fn plain(sequence: u64, payload: Payload) -> Segment {
    Segment {
        sequence,
        acknowledgement: 0,
        window: 16_384,
        flags: Flags { ack: true, ..Flags::default() },
        options: Options::default(),
        framing: Framing::Tcp,
        payload,
    }
}

fn arriving(numbers: &SegmentFields) -> Segment {
    let SegmentFields { flags, start, end, ack, window, sack } = numbers;
    let has = |letter| flags.contains(letter);
    let bytes = usize::try_from(end - start).unwrap() - usize::from(has('F')) - usize::from(has('S'));
    let acknowledgement = ack.unwrap_or(0);
    let mut blocks = SackBlocks::default();
    for (start, end) in sack {
        blocks.push(acknowledgement, *start, *end);
    }
    Segment {
        acknowledgement,
        window: window.map_or(16_384, |window| window.try_into().unwrap_or(u16::MAX)),
        flags: Flags { syn: has('S'), ack: ack.is_some(), fin: has('F'), rst: has('R'), psh: has('P') },
        options: Options { sack: blocks, ..Options::default() },
        ..plain(*start, Payload::from(vec![9; bytes]))
    }
}

fn flags(segment: &Segment) -> String {
    let flags = segment.flags;
    let letters = [(flags.syn, 'S'), (flags.fin, 'F'), (flags.rst, 'R'), (flags.psh, 'P')];
    letters.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect()
}

fn show(segment: &Segment) -> String {
    let (start, end) = (segment.sequence, segment.end());
    let sack: String =
        segment.options.sack.ranges(segment.acknowledgement).map(|(a, b)| format!(" sack {a}:{b}")).collect();
    format!("> {} {start}:{end} ack {}{sack}", flags(segment), segment.acknowledgement)
}

fn name(event: Event) -> &'static str {
    match event {
        Event::Connected => "connected",
        Event::Readable => "readable",
        Event::Written => "written",
        Event::PeerFinished => "finished",
        Event::Closed => "closed",
        Event::Failed(Failure::Refused) => "refused",
        Event::Failed(Failure::Reset) => "reset",
        Event::Failed(Failure::TimedOut) => "timed-out",
    }
}

fn millis(at: Time) -> String {
    format!("{:.3} ms", at.as_millis_f64())
}
