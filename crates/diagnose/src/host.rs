//! Facts from the host of a live capture: the programs at its ends, its settings, and the kernel's counters of its senders.
//!
//! Packets decide. The counters (`TCP_INFO`) only name time that the packets leave unknown, and confirm or doubt what they
//! suggest. Not read here: `capture` asks the kernel.

use dissect::{Mark, Side};
use wire::Duration;

use crate::cause::Cause;
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

/// A reason not to count the first handshake of a virtual machine.
const LOADING: &str = "; the first handshake of a virtual machine, which loads and compiles its code then";
/// Time worth a finding.
const WORTH: Duration = Duration::from_millis(20);

impl FlowReport {
    /// Takes the programs at both ends of the first connection of a server into account.
    pub fn hear_first_use(&mut self) {
        let Some(host) = self.host.clone() else { return };
        for (side, name) in [Side::Client, Side::Server].into_iter().zip(&host.programs) {
            if name.as_deref().and_then(Runtime::named).is_some_and(Runtime::loads_classes) {
                self.doubt_handshake(side);
            }
        }
    }

    /// Doubts the time that a program took within its first TLS handshake, if it loads and compiles its code on first use.
    pub(crate) fn doubt_handshake(&mut self, side: Side) {
        /// Beyond this it waits for something else.
        const MAX_LOADING: Duration = Duration::from_secs(2);
        let note = self.findings.iter().find(|finding| finding.cause == Cause::TlsHandshake);
        let Some((from, to)) = note.map(|note| (note.at, note.at + note.lost)) else { return };
        let is_doubtful = |finding: &&mut Finding| {
            matches!(finding.cause, Cause::ClientThink | Cause::ServerThink)
                && finding.side == side
                && (from..to).contains(&finding.at)
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

    /// Attributes unknown time to what the kernel counted beyond the time known for it.
    fn attribute_unknown(&mut self, side: Side, cause: Cause, counted: Duration, known: Duration) {
        let time = counted.saturating_sub(known).min(self.account.of(Share::Unknown));
        if time < WORTH {
            return;
        }
        self.account.transfer(Share::Unknown, Share::Stall(cause), time);
        let mut rest = time;
        for (doubt, unknown) in self.doubts.sorted() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::VantagePoint;
    use crate::script::{Script, at_client, opened};

    /// A message whose second half follows a pause that the packets do not explain.
    fn unexplained() -> FlowReport {
        let lines = "30 C send=100\n45 S send=1460\n60.1 C\n75.1 S send=1460 ack=100\n75.2 S seq=4380 send=1460\n600 S seq=5840 send=1460\n615 C ack=7300";
        Script { one_way_ms: 15.0, lines: &opened(15.0, lines) }.diagnose(VantagePoint::Server)
    }

    #[test]
    fn first_handshake_of_a_virtual_machine_is_doubted_at_its_side() {
        let lines =
            "30 C client-hello\n45 S server-hello\n970 C records=53\n970.1 C records=300\n986 S records=900";
        let is_worth_fixing = |programs: [&str; 2]| {
            let mut report = at_client(lines);
            let programs = programs.map(|name| Some(name.to_owned()));
            report.host = Some(Box::new(HostFacts { programs, ..HostFacts::default() }));
            report.hear_first_use();
            report.is_worth_fixing()
        };
        assert!(!is_worth_fixing(["java", "nginx"]));
        assert!(is_worth_fixing(["python3", "java"]));
    }

    #[test]
    fn response_of_a_connection_that_was_accepted_late_is_late() {
        let late = || {
            let mut lines = "30 C send=100\n45.1 S\n600 S send=400\n615 C\n".to_owned();
            for at in (620..900).step_by(40) {
                lines += &format!("{at} C send=100\n{} S send=400\n{} C\n", at + 15, at + 30);
            }
            at_client(&lines)
        };
        let mut report = late();
        assert!(!report.is_worth_fixing(), "it may have warmed up");
        report.hear_accept(Duration::from_millis(10));
        assert!(!report.is_worth_fixing(), "it was accepted at once");
        report.hear_accept(Duration::from_millis(100));
        assert!(!report.is_worth_fixing(), "most of the time the program had it");
        report.hear_accept(Duration::from_millis(580));
        assert!(report.is_worth_fixing());
        let finding = report.findings.iter().find(|finding| finding.cause == Cause::ServerThink).unwrap();
        assert!(finding.evidence.ends_with("520 ms of this before the program accepted it"), "{finding:?}");
        assert!(!finding.evidence.contains(WARM_UP));
    }

    #[test]
    fn kernels_count_names_time_that_the_packets_leave_unknown() {
        let mut report = unexplained();
        let unknown = report.account.of(Share::Unknown);
        assert!(unknown > Duration::from_millis(300), "{:?}", report.account);
        let total = report.account.total();
        let times =
            |receive_window| SenderTimes { busy: receive_window, receive_window, ..SenderTimes::default() };
        report.hear_kernel(Side::Server, times(Duration::from_millis(300)));
        let found =
            report.findings.iter().find(|finding| finding.cause == Cause::ReceiveWindowLimited).unwrap();
        assert_eq!((found.lost, found.severity), (Duration::from_millis(300), Severity::High));
        assert_eq!(
            (report.account.total(), report.doubts.total()),
            (total, report.account.of(Share::Unknown))
        );
        // A socket that lingered, and a healthy one.
        for quiet in [Duration::from_secs(6), Duration::from_millis(10)] {
            let mut report = unexplained();
            report.hear_kernel(Side::Server, times(quiet));
            assert_eq!(report.account.of(Share::Unknown), unknown);
        }
    }
}
