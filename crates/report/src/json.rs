//! The JSON: an object for a capture, an array of them for several.

use diagnose::report::{ExchangeReport, Oddities, VantagePoint};
use diagnose::{Account, Cause, Doubts, Finding, FlowReport, Side};
use serde_json::{Value, json};

use crate::command::CommandExit;
use crate::group::{Group, groups};
use crate::kernel::SenderCounters;
use crate::keys::{self, KeyReport};
use crate::serial;
use crate::verdict::Verdict;
use crate::watched::{WatchReport, view};
use crate::{Capture, advice, request};

/// Returns the JSON text. The verdict on all captures is in each object.
pub fn text(captures: &[Capture], verdict: &Verdict<'_>) -> String {
    let judged = |one: &Capture| {
        let mut value = capture(one);
        value["verdict"] = verdict.json();
        if let Some(report) = &one.watched {
            value["watched"] = watch(report);
        }
        value
    };
    let value = match captures {
        [one] => judged(one),
        several => several.iter().map(judged).collect(),
    };
    let mut text = serde_json::to_string_pretty(&value).expect("text for keys cannot fail to serialise");
    text.push('\n');
    text
}

/// The watch of sockets that took the place of packets.
fn watch(report: &WatchReport) -> Value {
    json!({
        "elapsed_ms": report.elapsed.as_millis_f64(),
        "sockets": report.open,
        "samples": report.samples,
        "stalls": report.rows.iter().map(|row| view::json_row(report, row)).collect::<Value>(),
    })
}

fn capture(capture: &Capture) -> Value {
    let Capture {
        name,
        packets,
        unreadable,
        started,
        flows,
        connections,
        selected: _,
        is_command_stopped: _,
        others: _,
        command,
        watched: _,
        kernel: _,
        damage,
        skipped,
        warnings,
        left_out: _,
        keys,
    } = capture;
    let ranked = ranked(capture);
    let order: Vec<Cause> = ranked.iter().map(|group| group.cause).collect();
    let notes = skipped.notes().into_iter().map(
        |(cause, packets, evidence)| json!({ "cause": cause, "packets": packets, "evidence": evidence }),
    );
    let kinds =
        skipped.by_kind().into_iter().map(|(kind, packets)| json!({ "kind": kind, "packets": packets }));
    let tunnels = skipped.tunnels.iter();
    let tunnels = tunnels.map(|(tunnel, packets)| json!({ "kind": tunnel.name(), "packets": packets }));

    json!({
        "capture": name,
        "packets": packets,
        "unreadable_packets": unreadable,
        "started_unix_ms": started.as_millis_f64(),
        "connections": connections,
        "command_status": command.and_then(CommandExit::status),
        "damage": damage,
        "warnings": warnings,
        "keys": keys.as_ref().map(KeyReport::json),
        "notes": notes.collect::<Value>(),
        "skipped": kinds.collect::<Value>(),
        "tunnels": tunnels.collect::<Value>(),
        "account_ms": account(&capture.account()),
        "causes": ranked.iter().map(|group| self::group(capture, group)).collect::<Value>(),
        "flows": flows.iter().map(|flow| self::flow(capture, flow, &order)).collect::<Value>(),
    })
}

/// Returns the causes in the order in which the text prints them.
fn ranked(capture: &Capture) -> Vec<Group<'_>> {
    let (faults, notes) = groups(capture);
    faults.into_iter().chain(notes).collect()
}

fn group(capture: &Capture, group: &Group<'_>) -> Value {
    let Group { cause, times, lost, worst: (flow, finding), connections, saving, wall_clock, .. } = group;
    json!({
        "cause": cause.name(),
        "severity": finding.severity.name(),
        "confidence": finding.confidence.name(),
        "times": times,
        "connections": connections,
        "lost_ms": lost.as_millis_f64(),
        "wall_clock_ms": wall_clock.as_millis_f64(),
        "saving_ms": saving.map(|span| span.as_millis_f64()),
        "client": flow.client.to_string(),
        "server": flow.server.to_string(),
        "at_ms": capture.millis(finding.at),
        "packets": finding.packets,
    })
}

/// Returns a connection; its findings are in the order of the causes, then in chronological order.
fn flow(capture: &Capture, flow: &FlowReport, order: &[Cause]) -> Value {
    let FlowReport {
        protocol,
        is_within_dialogue,
        client,
        server,
        started,
        is_whole,
        first_packet,
        elapsed,
        packets,
        bytes,
        round_trip,
        vantage_point,
        requests,
        findings,
        counts,
        account,
        doubts,
        exchanges,
        oddities,
        missing_direction,
        keys,
        plot: _,
        ..
    } = flow;
    let Oddities { captured_twice, not_captured, backwards, out_of_order, needless, cut } = oddities;
    let rank = |cause: Cause| order.iter().position(|ranked| *ranked == cause);
    let mut findings: Vec<&Finding> = findings.iter().collect();
    findings.sort_by_key(|finding| (rank(finding.cause), finding.at));
    json!({
        "protocol": protocol.name(),
        "within_dialogue": is_within_dialogue,
        "of_other_program": capture.others.has(flow),
        "client": client.to_string(),
        "server": server.to_string(),
        "packets": packets,
        "bytes": bytes.get(),
        "rtt_ms": round_trip.map(|span| span.as_millis_f64()),
        "at_ms": capture.millis(*started),
        "elapsed_ms": elapsed.as_millis_f64(),
        "opening_captured": is_whole,
        "first_packet": first_packet,
        "captured_at": vantage_point_name(*vantage_point),
        "requests": requests,
        "in_a_row": serial::Row::of(flow).map(serial::Row::json),
        "findings": findings.iter().map(|finding| self::finding(capture, flow, finding)).collect::<Value>(),
        "causes": counts
            .iter()
            .map(|count| json!({
                "cause": count.cause.name(), "times": count.times, "lost_ms": count.lost.as_millis_f64(),
            }))
            .collect::<Value>(),
        "account_ms": self::account(account),
        "unknown": unknown(doubts),
        "exchanges": exchanges.iter().map(|exchange| self::exchange(capture, exchange)).collect::<Value>(),
        "kernel": capture.kernel.of(flow).iter().map(kernel).collect::<Vec<_>>(),
        "keys": keys.map(keys::name),
        "missing_direction": missing_direction.map(|side| side.to_string()),
        "captured_twice": captured_twice,
        "not_captured": not_captured,
        "backward_times": backwards,
        "out_of_order": out_of_order,
        "needless_retransmissions": needless,
        "unread_frames": cut,
    })
}

fn finding(capture: &Capture, flow: &FlowReport, finding: &Finding) -> Value {
    let Finding { cause, severity, confidence, side, at, lost, saving, packets, evidence } = finding;
    let fixes = flow.fixes_of(finding).into_iter();
    json!({
        "cause": cause.name(),
        "severity": severity.name(),
        "at_ms": capture.millis(*at),
        "lost_ms": lost.as_millis_f64(),
        "request": request::of(flow, finding),
        "packets": packets,
        "evidence": evidence,
        "fix": advice::line(flow, finding),
        "fixes": fixes
            .map(|(party, change)| json!({ "who": advice::party_of(finding, party), "change": change }))
            .collect::<Value>(),
        "confidence": confidence.name(),
        "saving_ms": saving.map(|span| span.as_millis_f64()),
        "side": side.to_string(),
    })
}

fn exchange(capture: &Capture, exchange: &ExchangeReport) -> Value {
    let ExchangeReport { request, status, at, elapsed, packets: (first, last), account } = exchange;
    json!({
        "request": request,
        "status": status,
        "at_ms": capture.millis(*at),
        "elapsed_ms": elapsed.as_millis_f64(),
        "packets": [first, last],
        "account_ms": self::account(account),
    })
}

fn account(account: &Account) -> Value {
    account.iter().map(|(share, time)| (share.name(), time.as_millis_f64())).collect()
}

/// Returns the reasons for unknown time, the longest first.
fn unknown(doubts: &Doubts) -> Value {
    let reasons = doubts.sorted().into_iter();
    reasons
        .map(|(doubt, time)| json!({ "reason": doubt.name(), "lost_ms": time.as_millis_f64(), "evidence": doubt.reason() }))
        .collect()
}

/// Returns the name of a point of capture.
pub fn vantage_point_name(vantage_point: VantagePoint) -> &'static str {
    match vantage_point {
        VantagePoint::Client => "client",
        VantagePoint::Server => "server",
        VantagePoint::Between => "between",
        VantagePoint::Unknown => "unknown",
    }
}

/// Returns the kernel's counters for one end.
fn kernel((side, counters): &(Side, SenderCounters)) -> Value {
    let SenderCounters { busy, receive_window_limited, send_buffer_limited, round_trip, retransmitted } =
        counters;
    json!({
        "side": side.to_string(),
        "busy_ms": busy.as_millis_f64(),
        "receive_window_limited_ms": receive_window_limited.as_millis_f64(),
        "send_buffer_limited_ms": send_buffer_limited.as_millis_f64(),
        "rtt_ms": round_trip.as_millis_f64(),
        "retransmitted": retransmitted,
    })
}
