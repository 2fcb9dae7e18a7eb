//! The plot for xplot (Tim Shepard, 1990) and compatible programs, in the colours of tcptrace.
//!
//! One file for each panel: xplot shows one. Heights are bytes, times are seconds.

use std::fmt::Write;

use wire::Time;

use super::track::{Connection, SegmentKind, Sign, Track};
use super::{Panel, Stall};

/// The file.
pub fn file(panel: &Panel) -> String {
    let track = Track::of(panel);
    let title: String = panel.title.chars().filter(|letter| !letter.is_control()).collect();
    let mut out = format!(
        "timeval unsigned\ntitle\n{title}\nxlabel\ntime\nylabel\n{} bytes\n",
        panel.sender.data_name()
    );
    for stall in &panel.stalls {
        shade(&mut out, stall, track.height);
    }
    for Connection { base: _, began: _, acknowledged, allowed, congestion } in &track.connections {
        steps(&mut out, "green", acknowledged);
        steps(&mut out, "yellow", allowed);
        steps(&mut out, "blue", congestion);
    }
    for segment in &track.segments {
        let (colour, letter) = match segment.kind {
            SegmentKind::First => ("white", None),
            SegmentKind::Retransmission => ("red", Some("R")),
            SegmentKind::Lost => ("red", Some("lost")),
        };
        let (at, from, to) = (seconds(segment.at), segment.from, segment.to);
        line(
            &mut out,
            format_args!("{colour}\ndarrow {at} {from}\nuarrow {at} {to}\nline {at} {from} {at} {to}"),
        );
        if let Some(letter) = letter {
            line(&mut out, format_args!("atext {at} {to}\n{letter}"));
        }
    }
    for mark in &track.marks {
        let word = match mark.sign {
            Sign::Syn => "SYN",
            Sign::Request => "request",
            Sign::Fin => "FIN",
            Sign::Reset => "RST",
        };
        let at = seconds(mark.at);
        line(
            &mut out,
            format_args!("orange\ndiamond {at} {height}\nbtext {at} {height}\n{word}", height = mark.height),
        );
    }
    out + "go\n"
}

/// xplot has no areas: a stall is a line along the bottom between two vertical lines, with its name.
fn shade(out: &mut String, stall: &Stall, height: u64) {
    let (from, to) = (seconds(stall.at), seconds(stall.at + stall.lost));
    line(
        out,
        format_args!(
            "purple\nline {from} 0 {from} {height}\nline {to} 0 {to} {height}\nline {from} 0 {to} 0"
        ),
    );
    line(out, format_args!("rtext {from} 0\n{} {:.1}ms", stall.name, stall.lost.as_millis_f64()));
}

fn steps(out: &mut String, colour: &str, values: &[(Time, u64)]) {
    for pair in values.windows(2) {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        let (from, to) = (seconds(from), seconds(to));
        line(out, format_args!("{colour}\nline {from} {low} {to} {low}\nline {to} {low} {to} {high}"));
        // A duplicate acknowledgement has a mark of its own.
        if low == high {
            line(out, format_args!("dtick {to} {low}"));
        }
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("text grows without fail");
}

/// Seconds with microseconds, as in captures.
fn seconds(at: Time) -> String {
    format!("{:.6}", at.as_millis_f64() / 1e3)
}

#[cfg(test)]
mod tests {
    use wire::Duration;
    use wire::packet::Flags;

    use super::super::{End, ObservationPoint, Packet};
    use super::*;

    #[test]
    fn a_segment_its_acknowledgement_and_a_stall() {
        let ack = Packet {
            at: Time::from_nanos(2_000_000),
            connection: 1,
            sender: End::Client,
            seen: ObservationPoint::Received,
            sequence: 1,
            bytes: 0,
            acknowledged: Some(101),
            window: Some(500),
            flags: Flags::ACK,
            number: None,
        };
        let data = Packet {
            at: Time::ZERO,
            sender: End::Server,
            seen: ObservationPoint::Sent,
            bytes: 100,
            acknowledged: Some(1),
            ..ack
        };
        let stall = Stall {
            name: "slow-start".to_owned(),
            at: Time::ZERO,
            lost: Duration::from_millis(2),
            is_note: false,
            evidence: String::new(),
        };
        let title = "a\npanel".to_owned();
        let packets = vec![data, ack];
        let (seen_by, sender, windows) = (End::Server, End::Server, Vec::new());
        let panel = Panel { title, seen_by, sender, packets, windows, stalls: vec![stall] };
        let expected = "timeval unsigned
title
apanel
xlabel
time
ylabel
response bytes
purple
line 0.000000 0 0.000000 100
line 0.002000 0 0.002000 100
line 0.000000 0 0.002000 0
rtext 0.000000 0
slow-start 2.0ms
green
line 0.000000 0 0.002000 0
line 0.002000 0 0.002000 100
white
darrow 0.000000 0
uarrow 0.000000 100
line 0.000000 0 0.000000 100
go
";
        assert_eq!(file(&panel), expected);
    }
}
