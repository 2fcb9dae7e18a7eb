//! Sentences on oddities of a capture that are not faults of a connection, but affect findings.

use diagnose::report::{FlowReport, Oddities, Protocol};
use diagnose::{Cause, Finding};

use crate::Capture;
use crate::keys::KeyReport;

/// Returns a sentence for each kind of oddity in the connections that are shown.
pub fn sentences(capture: &Capture) -> Vec<String> {
    let mut all = Oddities::default();
    for flow in &capture.flows {
        let Oddities { captured_twice, not_captured, backwards, out_of_order, needless, cut } = flow.oddities;
        all.captured_twice += captured_twice;
        all.not_captured += not_captured;
        all.backwards += backwards;
        all.out_of_order += out_of_order;
        all.needless += needless;
        all.cut += cut;
    }
    let Oddities { captured_twice, not_captured, backwards, out_of_order, needless, cut } = all;
    let kinds = [
        (captured_twice, "packets captured twice", "each is counted once, and none is a retransmission"),
        (
            not_captured,
            "ACKs of data that is not in the capture",
            "the capture started late or missed packets; findings near them are less certain",
        ),
        (
            backwards,
            "packets with an earlier time than those before them",
            "several capture queues, merged captures or a clock set back; they count as simultaneous with the latest before them, \
             and the time across a step of 100 ms or more is unknown",
        ),
        (out_of_order, "segments out of order", "no cost by itself"),
        (needless, "spurious retransmissions", "the originals were late, or their ACKs were lost"),
        (
            cut,
            "QUIC packets with an unknown frame",
            "nothing after it is read; findings of waits with such packets have low confidence",
        ),
    ];
    let seen = kinds.into_iter().filter(|(count, _, _)| *count > 0);
    let seen = seen.map(|(count, what, meaning)| format!("{what}: {count}; {meaning}"));
    seen.chain(capture.keys.as_ref().map(KeyReport::sentence)).chain(unread_requests(capture)).collect()
}

/// Returns a sentence on slow requests within TLS or QUIC, which a key log would show.
fn unread_requests(capture: &Capture) -> Option<String> {
    let is_encrypted = |flow: &FlowReport| {
        flow.protocol == Protocol::Quic || flow.counts.iter().any(|count| count.cause == Cause::TlsHandshake)
    };
    let is_fault =
        |finding: &Finding| finding.cause == Cause::ServerThink && finding.severity.is_worth_fixing();
    let is_slow = |flow: &FlowReport| flow.findings.iter().any(is_fault);
    let is_unread =
        capture.keys.is_none() && capture.flows.iter().any(|flow| is_slow(flow) && is_encrypted(flow));
    is_unread.then(|| {
        "slow requests are encrypted: --keys FILE reads them with the key log of their client or server (with --run, the \
         command writes it)"
            .to_owned()
    })
}
