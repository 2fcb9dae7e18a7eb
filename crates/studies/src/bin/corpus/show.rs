//! One case of the corpus for readers: its known causes and its findings, in order, with the packets.

use simulate::page::CLIENT;
use simulate::{Experiment, Hosts};
use tcp::Segment;
use trace::Stall;
use wire::Time;

use crate::cases::Case;
use crate::judge::as_seen;
use crate::vantage::{self, CaptureProperties, NumberedPacket, Vantage};

/// Prints the known causes of one case and the findings at either end, in order; or at one vantage point, with its packets.
pub(crate) fn show(number: &str, at: Option<&str>, cases: &[Case]) -> Result<(), String> {
    let Some(case) = number.parse().ok().and_then(|number: usize| cases.get(number)) else {
        return Err(format!("there are {} cases, from 0", cases.len()));
    };
    let experiment = Experiment::new(&case.scenario, Hosts::default()).expect("it can be run");
    let fetched = experiment.run(0, true).expect("it can be run");
    let known = experiment.spent(&fetched).stalls;
    let one_way_delay = case.scenario.network.rtt.as_millis_f64() / 2.0;
    let mut lines: Vec<(f64, String)> = Vec::new();
    let line = |source: &str, stall: &Stall| {
        let Stall { cause, at_ms, lost_ms } = stall;
        (*at_ms, format!("{at_ms:>10.3} {source:>8} {cause} +{lost_ms:.3}"))
    };
    if at.is_none() {
        lines.extend(known.iter().map(|stall| line("known", stall)));
    }
    for vantage in Vantage::ALL.into_iter().filter(|vantage| at.is_none_or(|at| at == vantage.name())) {
        let properties = CaptureProperties {
            vantage,
            one_way_delay: case.scenario.network.rtt / 2,
            is_cut: false,
            is_offloaded: false,
            is_numbered: true,
        };
        if at.is_some() {
            lines.extend(known.iter().map(|stall| line("known", &as_seen(stall, vantage, one_way_delay))));
        }
        let (found, _) = vantage::found(&fetched.records, properties, fetched.began);
        lines.extend(found.iter().map(|stall| line(vantage.name(), stall)));
        if at.is_some() {
            let packets = vantage::captured(&fetched.records, properties);
            lines.extend(
                packets.iter().zip(1..).map(|(captured, frame)| packet(frame, captured, fetched.began)),
            );
        }
    }
    lines.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    println!("{}", case.name);
    lines.iter().for_each(|(_, line)| println!("{line}"));
    Ok(())
}

fn packet(frame: u64, captured: &NumberedPacket, began: Time) -> (f64, String) {
    let NumberedPacket { record, number } = captured;
    let at_ms = record.at.since(Time::ZERO).as_millis_f64() - began.since(Time::ZERO).as_millis_f64();
    let Segment { sequence, acknowledgement, window, payload, options, flags, framing: _ } = &record.segment;
    let is_clients = record.from.host == CLIENT;
    let (arrow, port) = if is_clients { ('>', record.from.port) } else { ('<', record.to.port) };
    let marks = [(flags.syn, 'S'), (flags.fin, 'F'), (flags.rst, 'R')];
    let marks: String = marks.into_iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| mark).collect();
    let sack: String =
        options.sack.ranges(*acknowledgement).map(|(start, end)| format!(" {start}-{end}")).collect();
    let length = payload.len();
    let text = format!(
        "{at_ms:>10.3} {frame:>8} {arrow} {marks}{sequence}+{length} ack {acknowledgement} win {window}{sack} ({port}) id {number}"
    );
    (at_ms, text)
}
