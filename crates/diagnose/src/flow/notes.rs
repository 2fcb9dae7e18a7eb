//! Notes: facts about the path of a connection and about its capture that are no fault of either side.

use dissect::Side;
use wire::{Duration, Time};

use crate::account::Share;
use crate::cause::{Cause, Describe as _};
use crate::doubt::Doubt;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::{counted, millis};

use super::Flow;

impl Flow {
    /// Adds the notes on the whole connection at its end.
    pub(super) fn settle_notes(&mut self) {
        let missing = self.missing_direction();
        if let Some(missing) = missing {
            self.withdraw_guesses();
            let evidence = format!(
                "no packet of the {missing} was captured: what it did, and when, is not known, and no wait is blamed on either side"
            );
            self.note(Cause::OneDirectionOnly, Duration::ZERO, evidence);
        } else if self.oddities.not_captured > 0 {
            let times = self.oddities.not_captured;
            let evidence = format!(
                "{} of data that is not in the capture: the capture lost packets, the network did not",
                counted(times, "acknowledgement")
            );
            self.note(Cause::CaptureLoss, Duration::ZERO, evidence);
        }
        if self.oddities.captured_twice > 1 {
            let evidence = format!(
                "{} packets were captured twice (on two interfaces, or on both sides of a bridge): none is a retransmission",
                self.oddities.captured_twice
            );
            self.note(Cause::DuplicateCapture, Duration::ZERO, evidence);
        }
        self.note_mss();
        self.note_proxy();
        self.note_queues();
        self.note_path();
    }

    /// Returns the direction of which nothing was captured, although the other acknowledges it.
    pub(super) fn missing_direction(&self) -> Option<Side> {
        [Side::Client, Side::Server].into_iter().find(|side| {
            let sender = &self.ends.of(*side).sender;
            self.reference.of(*side).last_packet_at.is_none()
                && !sender.is_seen
                && sender.next > 0
                && self.packets > 1
        })
    }

    /// Withdraws findings of waits: with one direction it is unknown which side waited.
    fn withdraw_guesses(&mut self) {
        let shows = |cause: Cause| {
            let is_loss = matches!(
                cause,
                Cause::RetransmissionTimeout | Cause::FastRetransmit | Cause::TailLossProbe | Cause::TlsAlert
            );
            is_loss
                || !cause.about().is_fault
                    && !matches!(cause, Cause::ClientThink | Cause::SlowStart | Cause::HeadOfLine)
        };
        for cause in Cause::ALL.into_iter().filter(|cause| !shows(*cause)) {
            self.findings.withdraw(cause);
            let time = self.account.of(Share::Stall(cause));
            self.account.transfer(Share::Stall(cause), Share::Unknown, time);
            self.doubts.add(Doubt::OneDirection, time);
        }
    }

    fn note(&mut self, cause: Cause, lost: Duration, evidence: String) {
        self.note_at(cause, self.started.at, lost, Vec::new(), evidence);
    }

    fn note_at(&mut self, cause: Cause, at: Time, lost: Duration, packets: Vec<u64>, evidence: String) {
        self.add(Finding {
            cause,
            severity: Severity::Note,
            confidence: Confidence::High,
            side: Side::Server,
            at,
            lost,
            saving: None,
            packets,
            evidence,
        });
    }

    /// Notes an MSS below Ethernet's.
    fn note_mss(&mut self) {
        /// Ethernet's MTU, which includes TCP and IP headers.
        const MTU: u32 = 1_500;
        let headers = if self.server.is_ipv6() { 60 } else { 40 };
        let mss = &self.ends.client.sender.mss;
        let (Some(one), Some(other), Some(opened)) = (mss.offered, mss.accepted, self.handshake.opened)
        else {
            return;
        };
        let least = u32::from(one.min(other));
        // Below that, the MSS is the end's own limit.
        if least + headers >= MTU || least < 1_000 {
            return;
        }
        let evidence = format!(
            "the handshake agrees on an MSS of {least} bytes (an MTU of {}): a tunnel on the path, or a router that clamps it",
            least + headers
        );
        let packets =
            self.handshake.answered.map_or(vec![opened.frame], |answered| vec![opened.frame, answered.frame]);
        self.note_at(Cause::PathMtu, opened.at, Duration::ZERO, packets, evidence);
    }

    /// Notes acknowledgements that arrive much sooner or much later than the SYN/ACK did.
    fn note_proxy(&mut self) {
        let Some(proxy) = self.path.proxy(Side::Server) else { return };
        let (handshake, data) = (millis(proxy.handshake), millis(proxy.data));
        let evidence = if proxy.data < proxy.handshake {
            format!(
                "the SYN/ACK came {handshake} after the SYN, acknowledgements of data come after {data}: a proxy or NAT nearby \
                 acknowledges for the server, and the round trip to it is not seen"
            )
        } else {
            format!(
                "the SYN/ACK came {handshake} after the SYN, acknowledgements of data come after {data}: something nearby \
                 answers handshakes for the server"
            )
        };
        self.note(Cause::ProxyInPath, Duration::ZERO, evidence);
    }

    /// Notes a queue on the path that the connection's own or competing data fills.
    fn note_queues(&mut self) {
        for receiver in [Side::Client, Side::Server] {
            let Some(queue) = self.path.standing_queue(receiver) else { continue };
            let lost = queue.worst.saturating_sub(queue.least).min(self.last_at.since(self.started.at));
            let evidence = format!(
                "acknowledgements of what the {} sent took {} at first and up to {} later, in {} of {} cases at least three times \
                 as long: the data waits in a queue on the path; a larger window would only lengthen it",
                receiver.other(),
                millis(queue.least),
                millis(queue.worst),
                queue.inflated,
                queue.samples,
            );
            self.note(Cause::BottleneckQueue, lost, evidence);
        }
    }

    /// Notes the largest share of the time, where it was the path.
    fn note_path(&mut self) {
        const MIN_LOST: Duration = Duration::from_millis(20);
        const LONG: Duration = Duration::from_millis(200);
        let of = |share| self.account.of(share);
        let waited = self.account.waited();
        let setup = of(Share::Stall(Cause::ConnectionSetup));
        let path_time = of(Share::RoundTrip) + setup + of(Share::Stall(Cause::SlowStart));
        let transfer = of(Share::Transfer);
        let round_trip = self.path.round_trip().unwrap_or_default();
        let has_queue = self.findings.times(Cause::BottleneckQueue) > 0;
        let inflated =
            self.path.inflated_round_trip().filter(|_| path_time * 2 >= waited && round_trip >= MIN_LOST);
        if let Some(inflated) = inflated.filter(|_| !has_queue) {
            let evidence = format!(
                "{} of {} went on round trips that took {} at best and {} on average: packets waited in a queue on the path",
                millis(path_time),
                millis(waited),
                millis(round_trip),
                millis(inflated)
            );
            self.note(Cause::BottleneckQueue, path_time, evidence);
        } else if path_time * 2 >= waited && round_trip >= MIN_LOST && !has_queue {
            let evidence = format!(
                "{} of {} went on round trips of {}: distance",
                millis(path_time),
                millis(waited),
                millis(round_trip)
            );
            self.note(Cause::PathLatency, path_time, evidence);
        }
        if transfer * 2 >= waited && transfer >= LONG {
            #[expect(clippy::cast_precision_loss)]
            let rate = self.bytes.get() as f64 * 8.0 / transfer.as_secs_f64();
            let evidence = format!(
                "{} of {} went on the transfer of {}, {:.1} Mbit/s on average",
                millis(transfer),
                millis(waited),
                counted(self.bytes.get(), "byte"),
                rate / 1e6,
            );
            self.note(Cause::BandwidthLimited, transfer, evidence);
        }
    }
}
