//! A printed trace's lines, matched in a simulated run.
//!
//! A line is matched by its contents (which bytes, which acknowledgement) at any position;
//! its time counts from the previous printed line.

use simulate::page::{CLIENT, SERVER};
use simulate::world::{ObservationPoint, Record};
use wire::Time;

use super::published::{Cell, Table};

/// Match of a printed line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineMatch {
    /// Time at which the client saw it, since the first packet.
    at: Time,
    /// Payload, in bytes.
    bytes: usize,
}

/// The client's view of a run, for each line of a table whose labels are number, sender and packet. A line without
/// a match is `None`.
pub fn matched(table: &Table, records: &[Record]) -> Vec<Option<LineMatch>> {
    let records: Vec<&Record> = records.iter().filter(|record| is_seen_by_client(record)).collect();
    let Some(first) = records.first().map(|record| record.at) else { return Vec::new() };
    let mut previous = first;
    let lines = table.rows.iter().map(|row| {
        let (from, content) = (row.get(1)?, row.get(2)?);
        let record = find_packet(&records, from == "client", content, previous)?;
        previous = record.at;
        Some(LineMatch { at: Time::ZERO + record.at.since(first), bytes: record.segment.payload.len() })
    });
    lines.collect()
}

/// Our value for a cell of such a table.
pub fn value(lines: &[Option<LineMatch>], cell: &Cell) -> Option<f64> {
    let number: usize = cell.label(0).parse().ok()?;
    let index = number.checked_sub(1)?;
    let line = (*lines.get(index)?)?;
    match cell.column.name.as_str() {
        "bytes" => Some(line.bytes as f64),
        "after" => {
            // The first counts from the beginning of the connection. Ours may have two in the other order.
            let previous = match index.checked_sub(1) {
                Some(previous) => (*lines.get(previous)?)?.at,
                None => Time::ZERO,
            };
            Some(line.at.as_millis_f64() - previous.as_millis_f64())
        }
        _ => None,
    }
}

fn is_seen_by_client(record: &Record) -> bool {
    match record.seen {
        ObservationPoint::Sent => record.from.host == CLIENT,
        ObservationPoint::Received => record.from.host == SERVER,
        ObservationPoint::Lost => false,
    }
}

/// The packet of a line: `SYN`, `SYN ack`, `request 2`, `ack request` (a bare acknowledgement right after the previous
/// line), `ack 1687`, `227:1687`.
fn find_packet<'a>(
    records: &[&'a Record],
    from_client: bool,
    content: &str,
    previous: Time,
) -> Option<&'a Record> {
    let sender = if from_client { CLIENT } else { SERVER };
    let mut sent = records.iter().copied().filter(|record| record.from.host == sender);
    let number = |text: &str| text.parse::<u64>().ok();
    let is_bare = |record: &&Record| record.segment.is_pure_ack();
    if content.starts_with("SYN") {
        sent.find(|record| record.segment.flags.syn)
    } else if let Some(count) = content.strip_prefix("request ").and_then(number) {
        let index = usize::try_from(count.checked_sub(1)?).ok()?;
        sent.filter(|record| !record.segment.payload.is_empty()).nth(index)
    } else if content == "ack request" {
        sent.find(|record| record.at >= previous && is_bare(record))
    } else if let Some(acknowledged) = content.strip_prefix("ack ").and_then(number) {
        sent.find(|record| is_bare(record) && record.segment.acknowledgement == acknowledged)
    } else {
        let (first, end) = content.split_once(':')?;
        let (first, end) = (number(first)?, number(end)?);
        sent.find(|record| record.segment.sequence == first && record.segment.end() == end)
    }
}
