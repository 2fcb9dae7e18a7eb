//! Notes: facts about the path of a connection and about its capture that are no fault of either side. Their rules are in
//! `causes/`; here is their order.

use core::net::IpAddr;

use dissect::Side;
use wire::Duration;

use crate::cause::Cause;
use crate::causes::{
    bandwidth_limited, bottleneck_queue, capture_loss, duplicate_capture, one_direction_only, path_latency,
    path_mtu, proxy_in_path,
};
use crate::doubt::Doubt;
use crate::finding::Finding;
use crate::whole::WholeFacts;
use trace::account::Share;

use super::Flow;

/// Causes that a subflow of Multipath TCP alone does not prove: the next data, the response or the acknowledgement may
/// have taken another subflow, and all subflows share one window (RFC 8684, section 3.3.1).
const SHARED: [Cause; 8] = [
    Cause::ServerThink,
    Cause::HeadOfLine,
    Cause::Nagle,
    Cause::NagleDelayedAck,
    Cause::CongestionWindow,
    Cause::SlowStartRestart,
    Cause::SendBufferLimited,
    Cause::ReceiveWindowLimited,
];
const SUBFLOW: &str =
    "; Multipath TCP: other subflows share the conversation, and what they carried does not show here";
/// Reason to doubt what was in flight.
const NOT_CAPTURED: &str = "; packets of the connection were not captured";

impl Flow {
    /// Returns whether acknowledgements of a public address come sooner than a path to it takes: a program near the
    /// client (a VPN's, a virtual machine's) may send them, and the path beyond it does not show.
    pub(super) fn is_answered_nearby(&self) -> bool {
        const SHORTEST: Duration = Duration::from_millis(2);
        let is_far = !is_local(self.server.ip()) && is_local(self.client.ip());
        // A private address of the client shows that the point of capture is in its network.
        let is_soon = |to_server| to_server < SHORTEST;
        // What routers have forwarded was sent by no neighbour. Nor was data that came as soon: the server itself is near.
        let is_forwarded = self.path.hops(Side::Server).is_some_and(|hops| hops > 1);
        is_far && !is_forwarded && !self.has_prompt_data && self.path.to(Side::Server).is_some_and(is_soon)
    }

    /// Doubts what a capture without all packets, or without all subflows, does not show.
    pub(super) fn doubt_by_capture(&mut self) {
        // The data in flight is uncertain where packets are missing, and so is what messages lack.
        if self.oddities.not_captured > 0 {
            let causes = [Cause::SendBufferLimited, Cause::ResetLostData, Cause::ResetMidTransfer];
            causes.into_iter().for_each(|cause| self.findings.doubt_all(cause, NOT_CAPTURED));
        }
        if self.multipath.as_ref().is_some_and(|multipath| multipath.is_split) {
            SHARED.into_iter().for_each(|cause| self.findings.doubt_all(cause, SUBFLOW));
        }
    }

    /// Adds the notes on the whole connection at its end.
    pub(super) fn settle_notes(&mut self) {
        if self.missing_direction().is_some() {
            self.withdraw_guesses();
        }
        let whole = self.whole();
        let queues =
            [Side::Client, Side::Server].map(|receiver| bottleneck_queue::standing(&whole, receiver));
        let has_queue = whole.has_queue || queues.iter().any(Option::is_some);
        let whole = WholeFacts { has_queue, ..whole };
        let of_capture =
            [one_direction_only::note(&whole), capture_loss::note(&whole), duplicate_capture::note(&whole)];
        let of_path = [path_mtu::note(&whole), proxy_in_path::note(&whole)];
        let of_time = [
            bottleneck_queue::on_average(&whole),
            path_latency::note(&whole),
            bandwidth_limited::note(&whole),
        ];
        let notes = of_capture.into_iter().chain(of_path).chain(queues).chain(of_time);
        let notes: Vec<Finding> = notes.flatten().collect();
        notes.into_iter().for_each(|note| self.add(note));
    }

    fn whole(&self) -> WholeFacts<'_> {
        let mss = &self.ends.client.sender.mss;
        WholeFacts {
            started: self.started.at,
            ended: self.last_at,
            bytes: self.bytes,
            is_ipv6: self.server.is_ipv6(),
            opened: self.handshake.opened,
            answered: self.handshake.answered,
            mss: mss.offered.zip(mss.accepted),
            missing: self.missing_direction(),
            oddities: &self.oddities,
            path: &self.path,
            account: &self.account,
            has_queue: self.findings.times(Cause::BottleneckQueue) > 0,
        }
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
        for cause in Cause::ALL.into_iter().filter(|cause| !one_direction_only::shows(*cause)) {
            self.findings.withdraw(cause);
            let time = self.account.of(Share::Stall(cause));
            self.account.transfer(Share::Stall(cause), Share::Unknown, time);
            self.doubts.add(Doubt::OneDirection, time);
        }
    }
}

/// Reason not to count what OpenSSH holds.
pub(super) const OPENSSH: &str =
    "; OpenSSH sets TCP_NODELAY once the client has logged in, and has no option for it";
/// Reason to doubt times of a server that acknowledges too soon.
pub(super) const NEARBY: &str = "; the acknowledgements come too soon for a public address: a program nearby sends them, and the path \
                      beyond it may have taken this time";

/// Returns whether an address is of the host itself or of a private network (RFC 1918, RFC 4193, RFC 6598).
fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let is_shared = first == 100 && second & 0xc0 == 64;
            address.is_private() || address.is_loopback() || address.is_link_local() || is_shared
        }
        IpAddr::V6(address) => {
            address.is_unique_local() || address.is_loopback() || address.is_unicast_link_local()
        }
    }
}
