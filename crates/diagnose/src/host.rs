//! Facts from the host of a live capture: the programs at its ends, its settings, and the kernel's counters of its senders.
//!
//! Packets decide. The counters (`TCP_INFO`) only name time that the packets leave unknown, and confirm or doubt what they
//! suggest. Not read here: `capture` asks the kernel.

use dissect::{Mark, Side};
use wire::{Duration, Time};

use crate::cause::Cause;
use crate::doubt::Doubt;
use crate::finding::{Confidence, Count, Finding, Severity};
use crate::flow::WARM_UP;
use crate::gap::Wait;
use crate::report::FlowReport;
pub use crate::report::host::HostFacts;
use crate::runtime::Runtime;
use crate::text::millis;
use trace::account::Share;

/// The kernel's counters of a sender: time with data to send, and its parts held by the peer's window and by its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderTimes {
    /// Time with data to send or unacknowledged.
    pub busy: Duration,
    /// Part of it that the peer's window held up.
    pub receive_window: Duration,
    /// Part of it that the send buffer held up.
    pub send_buffer: Duration,
}

/// A reason not to count the first handshake of a program.
const LOADING: &str = "; the first handshake of a virtual machine, which loads and compiles its code then, or of a browser, which starts";
/// Time worth a finding.
const WORTH: Duration = Duration::from_millis(20);

impl FlowReport {
    /// Takes the programs at both ends of the first connection of a server into account, and of those opened before it was set up.
    /// Returns when that was.
    pub fn hear_first_use(&mut self) -> Time {
        let programs = self.host.as_ref().map(|host| host.programs.clone()).unwrap_or_default();
        for (side, name) in [Side::Client, Side::Server].into_iter().zip(programs) {
            if name.as_deref().is_some_and(Runtime::is_slow_at_first) {
                self.doubt_handshake(side);
            }
        }
        self.handshake().map_or(self.started + self.elapsed, |(_, ready)| ready)
    }

    /// Returns the time of the TLS handshake, if anything followed it.
    fn handshake(&self) -> Option<(Time, Time)> {
        let note = self.findings.iter().find(|finding| finding.cause == Cause::TlsHandshake);
        note.map(|note| (note.at, note.at + note.lost))
    }

    /// Returns whether its server is a virtual machine, which loads and compiles code when that is first used.
    pub fn is_of_virtual_machine(&self) -> bool {
        let server = self.host.as_ref().and_then(|host| host.programs[1].as_deref());
        server.and_then(Runtime::named).is_some_and(Runtime::loads_classes)
    }

    /// Doubts requests that a virtual machine had before its `first` response ended, if those after took half as long, up to `later`.
    pub fn hear_first_responses(&mut self, first: Time, later: Duration) {
        let is_first = |finding: &&mut Finding| {
            finding.cause == Cause::ServerThink && finding.at < first && later <= finding.lost / 2
        };
        for finding in self.findings.iter_mut().filter(is_first) {
            finding.severity = finding.severity.min(Severity::Low);
            finding.doubt(
                "; among the first requests of a virtual machine, and those after took half as long at most",
            );
        }
    }

    /// Doubts the time that a program took within its first TLS handshake, if it loads and compiles its code on first use.
    pub(crate) fn doubt_handshake(&mut self, side: Side) {
        /// Beyond this it waits for something else.
        const MAX_LOADING: Duration = Duration::from_secs(2);
        let handshake = self.handshake();
        let is_within = |at| handshake.is_some_and(|(from, to)| (from..to).contains(&at));
        let is_doubtful = |finding: &&mut Finding| {
            matches!(finding.cause, Cause::ClientThink | Cause::ServerThink)
                && finding.side == side
                // A client's stall is no note within a handshake alone.
                && (is_within(finding.at) || finding.cause == Cause::ClientThink)
                && finding.severity > Severity::Note
                && finding.confidence > Confidence::Low
                && finding.lost <= MAX_LOADING
        };
        for finding in self.findings.iter_mut().filter(is_doubtful) {
            finding.doubt(LOADING);
            finding.severity = Severity::Low;
        }
    }

    /// Takes into account that the server's program had not accepted the connection for `time`, as its kernel shows: a response
    /// that was late mostly meanwhile is not explained by anything that the program did for it.
    pub fn hear_accept(&mut self, time: Duration) {
        let (accepted, waited) = (self.started + time, self.account.waited());
        let is_late = |finding: &&mut Finding| {
            finding.cause == Cause::ServerThink && finding.at + WORTH.max(finding.lost / 2) <= accepted
        };
        for finding in self.findings.iter_mut().filter(is_late) {
            finding.confidence = Confidence::High;
            finding.severity = Severity::of(finding.cause, finding.saving.unwrap_or(finding.lost), waited)
                .max(finding.severity);
            finding.evidence = format!(
                "{}; its kernel had the connection for {} of this before the program accepted it",
                finding.evidence.trim_end_matches(WARM_UP),
                millis(accepted.since(finding.at).min(finding.lost))
            );
        }
    }

    /// Takes into account for how long the server's threads were ready to run and waited for a CPU, which `delay` returns for a time
    /// and a duration: then the host was busy, and no program late.
    pub fn hear_run_queue(&mut self, delay: impl Fn(Time, Duration) -> Duration) {
        let waited = self.account.waited();
        for finding in self.findings.iter_mut().filter(|finding| finding.cause == Cause::ServerThink) {
            let late = delay(finding.at, finding.lost).min(finding.lost);
            if late < WORTH {
                continue;
            }
            let saving = finding.saving.unwrap_or(finding.lost).saturating_sub(late);
            finding.severity = finding.severity.min(Severity::of(finding.cause, saving, waited));
            finding.saving = Some(saving);
            finding.evidence +=
                &format!("; for {} of this its threads waited for a CPU: the host was busy", millis(late));
            for count in self.counts.iter_mut().filter(|count| count.cause == finding.cause) {
                count.saving = count.saving.saturating_sub(late);
            }
        }
    }

    /// Takes into account for how long the program of a reader worked, or waited for a CPU, while its window held up the other side,
    /// which `work` returns for a time and a duration: it could not read sooner. `side` is the reader's.
    pub fn hear_reader(&mut self, side: Side, work: impl Fn(Time, Duration) -> Duration) {
        let waited = self.account.waited();
        let is_match = |finding: &&mut Finding| {
            matches!(finding.cause, Cause::ReceiveWindowLimited | Cause::ZeroWindow)
                && finding.side == side.other()
        };
        let [mut busy, mut lost, mut saving] = [Duration::ZERO; 3];
        // Of the time that only the kernel counted no packets show when it was.
        for finding in self.findings.iter_mut().filter(is_match).filter(|finding| finding.packets.len() > 1) {
            busy += work(finding.at, finding.lost).min(finding.lost);
            (lost, saving) = (lost + finding.lost, saving + finding.saving.unwrap_or_default());
        }
        // Samples are too coarse for the rest of a reader that worked nearly all the time.
        let has_worked = busy > Duration::ZERO && busy * 4 >= lost * 3;
        if busy < WORTH && !has_worked {
            return;
        }
        let left = if has_worked { Duration::ZERO } else { saving.saturating_sub(busy) };
        let text = format!(
            "; for {} of {} in such waits the {side}'s program, or one that reads its output, computed or waited for a CPU, and could \
             not read sooner",
            millis(busy),
            millis(lost)
        );
        for finding in self.findings.iter_mut().filter(is_match) {
            finding.severity = finding.severity.min(Severity::of(finding.cause, left, waited));
            finding.evidence += &text;
        }
    }

    /// Compares the findings with the kernel's counters of the sender at `side`.
    pub fn hear_kernel(&mut self, side: Side, times: SenderTimes) {
        // Counters of more time than the connection took are those of a socket that lingered.
        if times.busy > self.elapsed + WORTH {
            return;
        }
        self.confirm_send_buffer(side, times.send_buffer);
        let windows = [Cause::ReceiveWindowLimited, Cause::ZeroWindow];
        let known = windows.iter().map(|cause| self.account.of(Share::Stall(*cause))).sum();
        self.attribute_unknown(side, Cause::ReceiveWindowLimited, times.receive_window, known);
        let known = self.account.of(Share::Stall(Cause::SendBufferLimited));
        self.attribute_unknown(side, Cause::SendBufferLimited, times.send_buffer, known);
    }

    /// Confirms findings of a small send buffer, or doubts them.
    fn confirm_send_buffer(&mut self, side: Side, counted: Duration) {
        let cause = Cause::SendBufferLimited;
        let is_match = |finding: &&mut Finding| finding.cause == cause && finding.side == side;
        let lost: Duration = self.findings.iter_mut().filter(is_match).map(|finding| finding.lost).sum();
        let waited = self.account.waited();
        let saving = self.findings.iter_mut().filter(is_match).filter_map(|finding| finding.saving).sum();
        for finding in self.findings.iter_mut().filter(is_match) {
            if counted * 2 >= lost {
                finding.confidence = Confidence::High;
                finding.severity = Severity::of(cause, saving, waited);
            } else if counted * 10 < lost && finding.confidence < Confidence::High {
                finding.confidence = Confidence::Low;
                finding.severity = finding.severity.unless(true);
            }
        }
    }

    /// Attributes unknown time to what the kernel counted beyond the time known for it. Behind a loss, data that has arrived fills the
    /// window, and data in flight the buffer, until the loss is repaired: that time is the loss's.
    fn attribute_unknown(&mut self, side: Side, cause: Cause, counted: Duration, known: Duration) {
        let unknown = self.account.of(Share::Unknown).saturating_sub(self.doubts.of(Doubt::DataMissing));
        let time = counted.saturating_sub(known).min(unknown);
        // Buffers that grow by themselves do so a round trip or two later than the sender could use them.
        if time < WORTH.max(self.round_trip.unwrap_or_default() * 2) {
            return;
        }
        self.account.transfer(Share::Unknown, Share::Stall(cause), time);
        let mut rest = time;
        let others = self.doubts.sorted().into_iter().filter(|(doubt, _)| *doubt != Doubt::DataMissing);
        for (doubt, unknown) in others {
            let taken = unknown.min(rest);
            self.doubts.take(doubt, taken);
            rest = rest.saturating_sub(taken);
        }
        let held_by = match cause {
            Cause::SendBufferLimited => "its own send buffer".to_owned(),
            _of_the_window => format!("the {}'s window", side.other()),
        };
        let evidence = format!(
            "by its kernel's own count (TCP_INFO) {held_by} held up the {side} for {}, of which the packets alone show {}",
            millis(counted),
            millis(known)
        );
        let start = Mark { at: self.started, frame: self.first_packet };
        let finding = Wait { from: start, to: start, side }.finding(cause, evidence);
        let severity = Severity::of(cause, time, self.account.waited());
        let packets = vec![self.first_packet];
        self.findings.push(Finding { severity, lost: time, saving: Some(time), packets, ..finding });
        match self.counts.iter_mut().find(|count| count.cause == cause) {
            Some(count) => {
                let Count { cause: _, times, lost, saving } = count;
                (*times, *lost, *saving) = (*times + 1, *lost + time, *saving + time);
            }
            None => self.counts.push(Count { cause, times: 1, lost: time, saving: time }),
        }
    }
}
