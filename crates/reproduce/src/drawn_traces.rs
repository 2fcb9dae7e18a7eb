//! Traces of the papers as time-sequence plots: the printed one above, ours below, on one time scale.

use lab::simulate::sequence;
use render::plot::time_sequence::picture::{Form, Picture};
use render::plot::time_sequence::{End, ObservationPoint, Packet, Panel, Stall};
use wire::packet::Flags;
use wire::{Duration, Time};

use super::published::{Table, compiled};
use super::{p_http, slow_start};

/// The short-initial-segment problem.
pub fn p_http_figure_1() -> String {
    let (experiment, fetched) = p_http::short_initial_segment();
    let ours = "simulated: SunOS 4.1.3 and a server that sends its head apart";
    two_panels(
        "A short initial segment",
        "A head of 226 bytes and one full segment fill a window of two, and draw no immediate ACK",
        printed(&compiled!("p-http/figure-2"), "short-initial-segment", "published"),
        sequence::panel(ours.to_owned(), &experiment, &fetched),
        "After Heidemann 1997, Figures 1 and 2; seen by the client.",
    )
}

/// The odd/short-final-segment problem.
pub fn p_http_figure_3() -> String {
    let (experiment, fetched) = p_http::short_final_segment();
    let ours = "simulated: SunOS 4.1.3, with the first fix";
    two_panels(
        "A short final segment",
        "The last 13 bytes wait, by Nagle's algorithm, for the acknowledgement of an odd segment, which is delayed",
        printed(&compiled!("p-http/figure-4"), "nagle-delayed-ack", "published, without the first response"),
        sequence::panel(ours.to_owned(), &experiment, &fetched),
        "After Heidemann 1997, Figures 3 and 4; seen by the client.",
    )
}

/// The beginning of a transaction that bandwidth does not limit.
pub fn heidemann_figure_1() -> String {
    let (experiment, fetched) = slow_start::idealised();
    let title = "simulated: a round trip to set up, then 2 and 4 segments with a stall after each".to_owned();
    let ours = sequence::panel(title, &experiment, &fetched);
    Picture {
        title: "Packets of HTTP over a TCP connection that bandwidth does not limit",
        subtitle: "12 segments of 512 bytes over 133 ms; every segment is acknowledged",
        panels: &[ours],
        is_one_time: true,
        source: "After Heidemann, Obraczka, Touch 1997, Fig. 1.",
        form: Form::Print,
    }
    .draw()
}

/// Slow start without delayed acknowledgements that time out.
pub fn heidemann_figure_3() -> String {
    let (experiment, fetched) = slow_start::trace();
    let title = "simulated: 2, 3, 3 and 6 segments between stalls, then nine back to back".to_owned();
    let ours = sequence::panel(title, &experiment, &fetched);
    Picture {
        title: "Slow start where every second segment is acknowledged",
        subtitle: "small-cluster over one connection: 133 ms, 0.734 Mb/s, segments of 512 bytes",
        panels: &[ours],
        is_one_time: true,
        source: "After Heidemann, Obraczka, Touch 1997, Fig. 3. Mb = 2^20 bits.",
        form: Form::Print,
    }
    .draw()
}

/// Both panels, one below the other. Ours is the client's view, from the first printed request (the first or the second)
/// until a little after the last printed line. Time counts from the SYN.
fn two_panels(title: &str, subtitle: &str, printed: Panel, ours: Panel, source: &str) -> String {
    let begins_with_syn = printed.packets.iter().any(|packet| packet.flags.contains(Flags::SYN));
    let last = printed.packets.last().map_or(Time::MAX, |packet| packet.at + Duration::from_millis(1));
    let Panel { title: name, seen_by: _, sender, mut packets, windows: _, mut stalls } = ours;
    let began = packets.first().map_or(Time::ZERO, |packet| packet.at).since(Time::ZERO);
    // No printed trace has anything before the SYN.
    stalls.retain(|stall| stall.at >= Time::ZERO + began);
    let since_start = |at: Time| Time::ZERO + at.since(Time::ZERO + began);
    packets.iter_mut().for_each(|packet| packet.at = since_start(packet.at));
    stalls.iter_mut().for_each(|stall| stall.at = since_start(stall.at));
    let is_request = |packet: &&Packet| {
        packet.sender == End::Client && packet.seen == ObservationPoint::Sent && packet.bytes > 0
    };
    let second = packets.iter().filter(is_request).nth(1);
    let first = second.filter(|_| !begins_with_syn).map_or(Time::ZERO, |packet| packet.at);
    packets.retain(|packet| (first..=last).contains(&packet.at));
    stalls.retain(|stall| first <= stall.at && stall.at + stall.lost <= last);
    // The client does not see the server's congestion window, and no printed trace has it.
    let windows = Vec::new();
    let ours = Panel { title: name, seen_by: End::Client, sender, packets, windows, stalls };
    Picture { title, subtitle, panels: &[printed, ours], is_one_time: true, source, form: Form::Print }.draw()
}

/// The lines of a printed trace as packets; the longest time between two segments is shaded.
fn printed(table: &Table, stall: &str, title: &str) -> Panel {
    let (mut at, mut acknowledged) = (Time::ZERO, first_byte(table));
    let mut packets = Vec::new();
    for cells in &table.rows {
        let [_, sender_name, content, bytes, pause_ms] = cells.as_slice() else { continue };
        let pause_ms: f64 = pause_ms.parse().unwrap_or_default();
        at += Duration::from_secs_f64(pause_ms / 1e3).unwrap_or_default();
        let sender = if sender_name == "client" { End::Client } else { End::Server };
        let range = content.split_once(':').and_then(|(sender_name, _)| sender_name.parse().ok());
        if sender == End::Client
            && let Some(number) = content.strip_prefix("ack ").and_then(|number| number.parse().ok())
        {
            acknowledged = number;
        }
        packets.push(Packet {
            at,
            connection: 0,
            sender,
            seen: if sender == End::Client { ObservationPoint::Sent } else { ObservationPoint::Received },
            sequence: range.unwrap_or(acknowledged),
            bytes: bytes.parse().unwrap_or_default(),
            acknowledged: Some(acknowledged),
            window: None,
            flags: if content.starts_with("SYN") { Flags::SYN } else { Flags::ACK },
            number: None,
        });
    }
    let stalls = longest_pause(&packets).map(|(at, lost)| Stall {
        name: stall.to_owned(),
        at,
        lost,
        is_note: false,
        evidence: String::new(),
    });
    let (title, stalls) = (title.to_owned(), stalls.into_iter().collect());
    Panel { title, seen_by: End::Client, sender: End::Server, packets, windows: Vec::new(), stalls }
}

/// The first sequence number of a response in a printed trace.
fn first_byte(table: &Table) -> u64 {
    let mut first = table.rows.iter().filter_map(|cells| cells.get(2)?.split_once(':')?.0.parse().ok());
    first.next().unwrap_or(1)
}

fn longest_pause(packets: &[Packet]) -> Option<(Time, Duration)> {
    let segments = packets.iter().filter(|packet| packet.sender == End::Server && packet.bytes > 0);
    let times: Vec<Time> = segments.map(|packet| packet.at).collect();
    let pauses = times.windows(2).map(|pair| (pair[0], pair[1].since(pair[0])));
    pauses.max_by_key(|(_, length)| *length)
}
