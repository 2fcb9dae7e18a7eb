//! Hypotheses about what the note does not state, each switched on alone. For every cell that differs from print: those
//! under which it would agree (`papers/w3c/hypotheses.md`).
//!
//! A hypothesis chosen by the tables of one server is judged by those of the other: as a whole, and each cell by the same cell.
//! It survives if more cells of both agree with it than without it. Nothing here changes a verdict: the tables' own set-up is
//! in [`super::hosts`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::sync::Mutex;

use http1::message::WritePolicy;
use scenario::{Protocol, Scenario, Visit};
use simulate::{Experiment, Hosts};
use tcp::stack::Acks;
use tcp::stack::packets::AckDelay;
use wire::Duration;
use wire::link::Loss;

use super::hosts::{self, ClientLocation, Software};
use super::{LOSSES, RUNS, Setting, SettingValues, initial, mean, microscape, overhead, run, setting};
use crate::catalogue;
use crate::judgement::{self, Values};
use crate::laboratory::Laboratory;
use crate::published::{Cell, Table};
use crate::verdict::Verdict;

/// A change of the set-up.
struct Hypothesis {
    name: &'static str,
    /// Difference from the set-up, and the reason to ask.
    statement: &'static str,
    change: fn(&Setting, &mut Scenario, &mut Hosts),
    mean: Mean,
}

/// Runs whose mean is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mean {
    /// The note's five.
    Runs,
    /// Runs that each lose another packet of the server.
    LostPackets,
    /// Of HTTP/1.0, runs with a connection for each request and runs with one for two, weighted so that
    /// [`SOCKETS`] carry the page.
    SharedConnections,
}

/// "Total number of sockets used" for 43 requests (`papers/w3c#table-3`).
const SOCKETS: f64 = 40.0;

/// The tables whose cells are judged, by server.
const TABLES: [(&str, Software, ClientLocation); 6] = [
    ("w3c/table-4", Software::Jigsaw, ClientLocation::Lan),
    ("w3c/table-5", Software::Apache, ClientLocation::Lan),
    ("w3c/table-6", Software::Jigsaw, ClientLocation::Wan),
    ("w3c/table-7", Software::Apache, ClientLocation::Wan),
    ("w3c/table-8", Software::Jigsaw, ClientLocation::Ppp),
    ("w3c/table-9", Software::Apache, ClientLocation::Ppp),
];

/// Every hypothesis.
const HYPOTHESES: [Hypothesis; 21] = [
    Hypothesis {
        name: "early-retransmission",
        statement: "Solaris 2.5 had its own retransmission timers, not the fix of May 1996",
        change: |_, scenario, _| scenario.stack.packets.rto = hosts::unfixed(),
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "timeout-of-60-ms",
        statement: "Solaris 2.5 retransmitted after 60 ms at the earliest (fitted to HTTP/1.0 from Jigsaw on the LAN)",
        change: |_, scenario, _| scenario.stack.packets.rto.min = Duration::from_millis(60),
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "one-lost-packet",
        statement: "each run lost one packet of the server",
        change: |_, _, _| {},
        mean: Mean::LostPackets,
    },
    Hypothesis {
        name: "one-lost-packet-retransmitted-early",
        statement: "both: one lost packet, and Solaris's own timers",
        change: |_, scenario, _| scenario.stack.packets.rto = hosts::unfixed(),
        mean: Mean::LostPackets,
    },
    Hypothesis {
        name: "client-acks-every-segment",
        statement: "the client acknowledged every segment (a bug of several stacks of the time, RFC 2525)",
        change: |_, _, hosts| client_acks(hosts, Acks::EverySegment),
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "client-acks-odd-at-once",
        statement: "the client acknowledged every second segment, and the last of a flight immediately",
        change: |_, _, hosts| client_acks(hosts, Acks::Delayed),
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "client-acks-after-50-ms",
        statement: "the client had a timer for each connection, of 50 ms as Solaris, not a clock of 200 ms",
        change: |_, _, hosts| client_acks_after(hosts, Duration::from_millis(50)),
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "client-acks-after-5-ms",
        statement: "the same with 5 ms: less than the client takes for a response from Jigsaw (7.7 ms), more than for one from Apache (3.4 ms)",
        change: |_, _, hosts| client_acks_after(hosts, Duration::from_millis(5)),
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "server-acks-after-10-ms",
        statement: "the server's timer was 10 ms: less than Jigsaw takes for a response (12 ms), more than Apache does (4.9 ms)",
        change: |_, scenario, _| {
            scenario.stack.packets.ack_delay = AckDelay::Fixed(Duration::from_millis(10));
        },
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "client-acks-pairs-only",
        statement: "the client never acknowledged an odd segment by itself (the model's lower bound)",
        change: |_, _, hosts| client_acks(hosts, Acks::NoDelayed),
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "server-acks-every-segment",
        statement: "the server acknowledged every segment: each request has an acknowledgement of its own",
        change: |_, scenario, _| scenario.stack.acks = Acks::EverySegment,
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "server-acks-pairs-only",
        statement: "the server never acknowledged an odd segment by itself",
        change: |_, scenario, _| scenario.stack.acks = Acks::NoDelayed,
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "head-written-apart",
        statement: "the server wrote the header section by itself, as P-HTTP's Apache did (papers/p-http#section-2-3)",
        change: |_, _, hosts| hosts.writes = WritePolicy { head_apart: true, ..hosts.writes },
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "unbuffered-responses",
        statement: "the server wrote each response by itself, so that pipelined ones share no segment",
        change: |_, _, hosts| hosts.writes = WritePolicy { gather: None, ..hosts.writes },
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "nagle-on",
        statement: "Nagle's algorithm was on at both ends",
        change: |_, scenario, hosts| {
            scenario.stack.nagle = true;
            if let Some(client) = &mut hosts.client_stack {
                client.nagle = true;
            }
        },
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "two-connections",
        statement: "HTTP/1.1 without pipelining had two connections, as its specification allows",
        change: |setting, scenario, _| {
            if setting.protocol == Protocol::Http11 {
                scenario.protocol = Protocol::Http11Parallel;
                scenario.client.parallel = 2;
            }
        },
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "six-connections",
        statement: "HTTP/1.0 had six connections, as in Table 3, not four",
        change: |setting, scenario, _| {
            if setting.protocol == Protocol::Http10 {
                scenario.client.parallel = 6;
            }
        },
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "slow-process",
        statement: "the client's process ran 20 ms after data arrived, and read more at a time",
        change: |_, _, hosts| {
            if let Some(client) = &mut hosts.client_stack {
                client.packets.wake_up = Duration::from_millis(20);
            }
        },
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "fin-with-data",
        statement: "the server's FIN left in the segment of its last data, as RFC 793 allows",
        change: |_, _, hosts| hosts.fin_with_data = true,
        mean: Mean::Runs,
    },
    Hypothesis {
        name: "forty-connections",
        statement: "HTTP/1.0 had 40 connections for 43 requests, as in Table 3: three carried two requests",
        change: |_, _, _| {},
        mean: Mean::SharedConnections,
    },
    Hypothesis {
        name: "forty-connections-fin-with-data",
        statement: "both: 40 connections, and a FIN with the last data",
        change: |_, _, hosts| hosts.fin_with_data = true,
        mean: Mean::SharedConnections,
    },
];

fn client_acks(hosts: &mut Hosts, acks: Acks) {
    if let Some(client) = &mut hosts.client_stack {
        client.acks = acks;
    }
}

fn client_acks_after(hosts: &mut Hosts, delay: Duration) {
    client_acks(hosts, Acks::Timer);
    if let Some(client) = &mut hosts.client_stack {
        client.packets.ack_delay = AckDelay::Fixed(delay);
    }
}

/// Fetch that a cell measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fetch {
    setting: Setting,
    /// The document alone, deflated or not; `None`: the page.
    document: Option<bool>,
}

/// A cell with its agreement under each hypothesis.
struct TestedCell {
    key: &'static str,
    fetch: Fetch,
    cell: Cell,
    ours: f64,
    agrees: bool,
    note: Option<String>,
    /// In the order of [`HYPOTHESES`].
    under: Vec<bool>,
}

impl TestedCell {
    fn software(&self) -> Software {
        self.fetch.setting.software
    }

    /// Its name without the server's.
    fn shared_name(&self) -> String {
        self.cell.name().replace("jigsaw.", "").replace("apache.", "")
    }

    /// Whether the other is the same cell of the other server.
    fn is_judged_by(&self, other: &Self) -> bool {
        self.fetch.setting.location == other.fetch.setting.location
            && self.software() != other.software()
            && self.shared_name() == other.shared_name()
    }
}

/// The page: hypotheses with their scores, then every cell that differs.
///
/// # Errors
/// When the simulator refuses a setting.
pub fn page() -> Result<String, String> {
    let cells = tested_cells()?;
    let mut text = HEAD.to_owned();
    scores(&cells, &mut text);
    let mut notes = Vec::new();
    let differing: Vec<&TestedCell> = cells.iter().filter(|tested| !tested.agrees).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n## The {} cells that differ\n\n{COLUMNS}", differing.len());
    for tested in &differing {
        let TestedCell { key, fetch, cell, ours, agrees: _, note, under } = tested;
        let judge = cells.iter().find(|other| tested.is_judged_by(other));
        let list_hypotheses = |is_judged_well: bool| {
            let hypotheses = HYPOTHESES.iter().zip(under).enumerate();
            let names = hypotheses.filter(|(index, (_, agrees))| {
                let judged = judge.is_some_and(|judge| judge.under.get(*index) == Some(&true));
                **agrees && judged == is_judged_well
            });
            let names: Vec<String> =
                names.map(|(_, (hypothesis, _))| format!("`{}`", hypothesis.name)).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let unknown = unknown(*fetch, cell);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {unknown} | {} |",
            numbers(key, cell, *ours),
            list_hypotheses(true),
            list_hypotheses(false),
            numbered(note.as_deref(), &mut notes)
        );
    }
    initial_table(&mut text, &mut notes)?;
    text.push_str("\n## Notes\n\n");
    for (index, note) in notes.iter().enumerate() {
        let _ = writeln!(text, "{}. {note}", index + 1);
    }
    Ok(text)
}

const HEAD: &str = "\
# Hypotheses about Tables 4 to 9 and the modem test

Written by `ROUNDTRIP_BLESS=1 cargo test -p roundtrip-reproduce --lib -- paper_hypotheses`; a test compares it with our packets.

The note does not state how its hosts acknowledged, retransmitted, wrote and closed. Each hypothesis below changes that alone,
for all cells. A choice by Jigsaw's tables is judged by Apache's, and the other way round. It survives if more cells of
both agree with it. Cells that something was fitted to count as agreeing; cells that the record explains by a mechanism
(verdicts.tsv) count as differing. A capture of these hosts would decide, and none is public.

## The hypotheses

";

const COLUMNS: &str = "\
| table | cell | printed | ours | off | agrees under, as does the other server's cell | agrees under, refuted by the \
other server's cell | to be known | note |
| --- | --- | ---: | ---: | ---: | --- | --- | --- | --- |";

/// The hypotheses, each with the cells of either server that agree.
fn scores(cells: &[TestedCell], text: &mut String) {
    let servers = [Software::Jigsaw, Software::Apache];
    let count = |software: Software, is: &dyn Fn(&TestedCell) -> bool| {
        cells.iter().filter(|tested| tested.software() == software && is(tested)).count()
    };
    let [all_jigsaw, all_apache] = servers.map(|software| count(software, &|_| true));
    let [jigsaw, apache] = servers.map(|software| count(software, &|tested| tested.agrees));
    let _ = writeln!(
        text,
        "Without any of them {jigsaw} of {all_jigsaw} cells from Jigsaw agree, and {apache} of {all_apache} from Apache; \
         under each, as many, with those gained and lost:\n\n\
         | hypothesis | it says | Jigsaw | Apache | outcome |\n| --- | --- | ---: | ---: | --- |"
    );
    for (index, Hypothesis { name, statement, .. }) in HYPOTHESES.iter().enumerate() {
        let agrees = |tested: &TestedCell| tested.under.get(index) == Some(&true);
        let gained = servers.map(|software| count(software, &|tested| agrees(tested) && !tested.agrees));
        let lost = servers.map(|software| count(software, &|tested| tested.agrees && !agrees(tested)));
        let outcome = match (gained[0] > lost[0], gained[1] > lost[1]) {
            (true, true) => "survives",
            (true, false) => "fitted to Jigsaw, refuted by Apache",
            (false, true) => "fitted to Apache, refuted by Jigsaw",
            (false, false) => "refuted by both",
        };
        let [jigsaw, apache] = [(jigsaw, 0), (apache, 1)].map(|(agreeing, at)| {
            format!("{} (+{}, -{})", agreeing + gained[at] - lost[at], gained[at], lost[at])
        });
        let _ = writeln!(text, "| `{name}` | {statement} | {jigsaw} | {apache} | {outcome} |");
    }
}

/// Cells of Table 3 that differ: its server is not named, so that no other table can judge a choice.
fn initial_table(text: &mut String, notes: &mut Vec<String>) -> Result<(), String> {
    let table = catalogue::table("w3c/table-3");
    let mut lines = String::new();
    let mut count = 0;
    for cell in table.cells() {
        let Some(ours) = initial::table_3(&cell, &mut Laboratory::new(None, None, None))? else { continue };
        let judgement = judgement::judge(&table, &cell, Values::from(Some(ours)), None);
        if judgement.verdict < Verdict::Explained {
            continue;
        }
        count += 1;
        let note = numbered(judgement.note.as_deref(), notes);
        let _ = writeln!(lines, "| {} | {note} |", numbers("w3c/table-3", &cell, ours));
    }
    let _ = writeln!(
        text,
        "\n## The {count} cells of Table 3 that differ\n\nIts host and server are not named, so no other table could judge a \
         hypothesis that is fitted to it. To be known: the server.\n\n\
         | table | cell | printed | ours | off | note |\n| --- | --- | ---: | ---: | ---: | --- |\n{}",
        lines.trim_end()
    );
    Ok(())
}

/// Table, name, printed number, ours and the deviation, as columns.
fn numbers(key: &str, cell: &Cell, ours: f64) -> String {
    let off = if cell.column.within_points.is_some() {
        format!("{:+.1} points", ours - cell.published)
    } else {
        format!("{:+.0}%", 100.0 * (ours / cell.published - 1.0))
    };
    let table = key.trim_start_matches("w3c/").trim_start_matches("table-");
    format!("{table} | {} | {} | {} | {off}", cell.name(), cell.text, cell.column.digits.print(ours))
}

/// Number of a note, which is listed once; empty without one.
fn numbered(note: Option<&str>, notes: &mut Vec<String>) -> String {
    let Some(note) = note else { return String::new() };
    let index = notes.iter().position(|values| values == note).unwrap_or_else(|| {
        notes.push(note.to_owned());
        notes.len() - 1
    });
    (index + 1).to_string()
}

/// Facts that would decide a cell, and that nothing published has.
fn unknown(fetch: Fetch, cell: &Cell) -> &'static str {
    let Setting { software: _, location, protocol, visit } = fetch.setting;
    let is_time = cell.column.name.ends_with("seconds");
    match (fetch.document, protocol, visit, location) {
        (Some(_), ..) => "what the line carried for each segment, and when the client acknowledged",
        (None, Protocol::Http10, Visit::First, _) => {
            "which segments the server retransmitted, and after what time"
        }
        (None, Protocol::Http10, Visit::Revalidate, _) => {
            "which segments close a connection, and how many requests shared one"
        }
        (None, Protocol::Http11Pipelined | Protocol::Http11PipelinedDeflate, _, ClientLocation::Wan) => {
            "which packets were lost, and when they were retransmitted"
        }
        _ if is_time => "the hosts' time for each response",
        (None, Protocol::Http11, ..) => "when the client acknowledged a response",
        _ => "when each end acknowledged, and which requests shared a segment",
    }
}

fn tested_cells() -> Result<Vec<TestedCell>, String> {
    let mut tested = Vec::new();
    for (key, software, location) in TABLES {
        let table = catalogue::table(key);
        for cell in table.cells() {
            let Some((setting, quantity_name)) = setting(software, location, &cell)? else { continue };
            let fetch = Fetch { setting, document: None };
            let ours = |hypothesis: Option<&Hypothesis>| Ok(value(values(fetch, hypothesis)?, quantity_name));
            tested.extend(tested_cell(key, &table, &cell, fetch, &ours)?);
        }
    }
    let (key, table) = ("w3c/modem-compression", catalogue::table("w3c/modem-compression"));
    for cell in table.cells() {
        let Some((software, quantity_name)) = cell.column.name.split_once('.') else { continue };
        let software = if software == "jigsaw" { Software::Jigsaw } else { Software::Apache };
        let (location, protocol, visit) = (ClientLocation::Ppp, Protocol::Http11, Visit::First);
        let setting = Setting { software, location, protocol, visit };
        let document = |is_deflated| Fetch { setting, document: Some(is_deflated) };
        let value_of = |is_deflated, hypothesis: Option<&Hypothesis>| {
            Ok::<_, String>(value(values(document(is_deflated), hypothesis)?, quantity_name))
        };
        let ours = |hypothesis: Option<&Hypothesis>| match cell.label(0) {
            "as it is" => value_of(false, hypothesis),
            "deflated" => value_of(true, hypothesis),
            _ => {
                let sizes = value_of(false, hypothesis)?.zip(value_of(true, hypothesis)?);
                Ok(sizes.map(|(baseline, deflated)| 100.0 * (1.0 - deflated / baseline)))
            }
        };
        tested.extend(tested_cell(key, &table, &cell, document(false), &ours)?);
    }
    Ok(tested)
}

/// The cell with its agreement, by the function that computes ours under a hypothesis.
fn tested_cell(
    key: &'static str,
    table: &Table,
    cell: &Cell,
    fetch: Fetch,
    ours: &dyn Fn(Option<&Hypothesis>) -> super::ReproducedValue,
) -> Result<Option<TestedCell>, String> {
    let judged = |ours| judgement::judge(table, cell, Values::from(Some(ours)), None);
    let agrees = |ours| judged(ours).verdict < Verdict::Explained;
    let Some(baseline) = ours(None)? else { return Ok(None) };
    let mut under = Vec::new();
    for hypothesis in &HYPOTHESES {
        under.push(ours(Some(hypothesis))?.is_some_and(agrees));
    }
    let (cell, note) = (cell.clone(), judged(baseline).note);
    Ok(Some(TestedCell { key, fetch, cell, ours: baseline, agrees: agrees(baseline), note, under }))
}

fn value(values: SettingValues, quantity_name: &str) -> Option<f64> {
    let SettingValues { packets, bytes, seconds, .. } = values;
    match quantity_name {
        "packets" => Some(packets),
        "bytes" => Some(bytes),
        "seconds" => Some(seconds),
        "overhead" => Some(overhead(packets, bytes)),
        _ => None,
    }
}

/// Values of a fetch under a hypothesis; each is computed once.
fn values(fetch: Fetch, hypothesis: Option<&Hypothesis>) -> Result<SettingValues, String> {
    static CACHE: Mutex<BTreeMap<(Fetch, &str), SettingValues>> = Mutex::new(BTreeMap::new());
    let key = (fetch, hypothesis.map_or("", |hypothesis| hypothesis.name));
    if let Some(values) = CACHE.lock().ok().and_then(|values| values.get(&key).copied()) {
        return Ok(values);
    }
    let Fetch { setting, document } = fetch;
    let (mut scenario, mut hosts) = match document {
        None => super::scenario(setting),
        Some(is_deflated) => {
            let real = if is_deflated { microscape::deflated() } else { microscape::plain() };
            let Setting { software, location, protocol, visit } = setting;
            super::tuned(software, location, protocol, visit, &microscape::document(real))
        }
    };
    if let Some(Hypothesis { change, .. }) = hypothesis {
        change(&setting, &mut scenario, &mut hosts);
    }
    let values = match hypothesis.map_or(Mean::Runs, |hypothesis| hypothesis.mean) {
        Mean::LostPackets => over_lost_packets(&scenario, &hosts)?,
        Mean::SharedConnections if setting.protocol == Protocol::Http10 => {
            with_shared_connections(&scenario, &hosts)?
        }
        Mean::Runs | Mean::SharedConnections => run(&experiment(&scenario, &hosts)?)?,
    };
    if let Ok(mut cached) = CACHE.lock() {
        cached.insert(key, values);
    }
    Ok(values)
}

fn experiment(scenario: &Scenario, hosts: &Hosts) -> Result<Experiment, String> {
    Experiment::new(scenario, hosts.clone()).map_err(|error| error.to_string())
}

/// Means over the index of the lost packet of the server.
fn over_lost_packets(scenario: &Scenario, hosts: &Hosts) -> Result<SettingValues, String> {
    let packets = run(&experiment(scenario, hosts)?)?.down;
    let mut experiments = Vec::new();
    for index in 0..LOSSES {
        let mut scenario = scenario.clone();
        scenario.network.down.loss = Loss::Exactly([super::lost_packet(packets, index)].into());
        experiments.push((experiment(&scenario, hosts)?, index % RUNS));
    }
    mean(experiments.iter().map(|(experiment, number)| (experiment, *number)))
}

/// Means of runs with a connection for each request and with one for two, weighted for [`SOCKETS`].
fn with_shared_connections(scenario: &Scenario, hosts: &Hosts) -> Result<SettingValues, String> {
    let separate = run(&experiment(scenario, hosts)?)?;
    let scenario = Scenario { protocol: Protocol::Http11Parallel, ..scenario.clone() };
    let hosts = Hosts { requests: NonZeroU32::new(2), ..hosts.clone() };
    let shared = run(&experiment(&scenario, &hosts)?)?;
    let weight = (separate.connections - SOCKETS) / (separate.connections - shared.connections);
    let between = |separate: f64, shared: f64| separate + weight * (shared - separate);
    Ok(SettingValues {
        packets: between(separate.packets, shared.packets),
        bytes: between(separate.bytes, shared.bytes),
        seconds: between(separate.seconds, shared.seconds),
        connections: SOCKETS,
        down: between(separate.down, shared.down),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_hypotheses_about_every_cell_that_differs_are_those_on_record() {
        let page = page().unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/w3c/hypotheses.md");
        if std::env::var_os("ROUNDTRIP_BLESS").is_some() {
            std::fs::write(path, page).unwrap();
            return;
        }
        assert_eq!(page, std::fs::read_to_string(path).unwrap());
    }
}
