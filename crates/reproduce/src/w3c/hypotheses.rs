//! Hypotheses about what the note does not state, each switched on alone, and every cell that differs from print with the
//! hypotheses under which it would agree (`papers/w3c/hypotheses.md`).
//!
//! A hypothesis may be chosen by the tables of one server, and is then judged by those of the other. It survives if more cells
//! of both agree with it than without it. Nothing here changes a verdict: the tables' own set-up is in [`super::hosts`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use http1::message::WritePolicy;
use scenario::{Protocol, Scenario};
use simulate::{Experiment, Hosts};
use tcp::stack::Acks;
use tcp::stack::packets::AckDelay;
use wire::Duration;

use super::hosts::{self, ClientLocation, Software};
use super::{Setting, SettingValues, Twist, found, one_lost, overhead, run, setting};
use crate::catalogue;
use crate::published::Cell;
use crate::verdict::{self, Values, Verdict};

/// A change of the set-up.
struct Hypothesis {
    name: &'static str,
    /// What would have been otherwise than in the set-up, and the reason to ask.
    says: &'static str,
    change: fn(&Setting, &mut Scenario, &mut Hosts),
}

/// The tables whose cells are judged, by server.
const TABLES: [(&str, Software, ClientLocation); 6] = [
    ("w3c/table-4", Software::Jigsaw, ClientLocation::Lan),
    ("w3c/table-5", Software::Apache, ClientLocation::Lan),
    ("w3c/table-6", Software::Jigsaw, ClientLocation::Wan),
    ("w3c/table-7", Software::Apache, ClientLocation::Wan),
    ("w3c/table-8", Software::Jigsaw, ClientLocation::Ppp),
    ("w3c/table-9", Software::Apache, ClientLocation::Ppp),
];

/// Name of the hypothesis that loses packets, which takes the mean over several lost ones.
const ONE_LOST: &str = "one-lost-packet";
const ONE_LOST_EARLY: &str = "one-lost-packet-retransmitted-early";

/// Every hypothesis.
const HYPOTHESES: [Hypothesis; 18] = [
    Hypothesis {
        name: "early-retransmission",
        says: "Solaris 2.5 had its own retransmission timers, not the fix of May 1996",
        change: |_, scenario, _| scenario.stack.packets.rto = hosts::unfixed(),
    },
    Hypothesis {
        name: "timeout-of-60-ms",
        says: "Solaris 2.5 retransmitted after 60 ms at the earliest (fitted to HTTP/1.0 from Jigsaw on the LAN)",
        change: |_, scenario, _| scenario.stack.packets.rto.least = Duration::from_millis(60),
    },
    Hypothesis { name: ONE_LOST, says: "each run lost one packet of the server", change: |_, _, _| {} },
    Hypothesis {
        name: ONE_LOST_EARLY,
        says: "both: one lost packet, and Solaris's own timers",
        change: |_, scenario, _| scenario.stack.packets.rto = hosts::unfixed(),
    },
    Hypothesis {
        name: "client-acks-every-segment",
        says: "the client acknowledged every segment (a bug of several stacks of the time, RFC 2525)",
        change: |_, _, hosts| client_acks(hosts, Acks::EverySegment),
    },
    Hypothesis {
        name: "client-acks-odd-at-once",
        says: "the client acknowledged every second segment, and the last of a flight at once",
        change: |_, _, hosts| client_acks(hosts, Acks::Delayed),
    },
    Hypothesis {
        name: "client-acks-after-50-ms",
        says: "the client had a timer for each connection, of 50 ms as Solaris, not a clock of 200 ms",
        change: |_, _, hosts| client_acks_after(hosts, Duration::from_millis(50)),
    },
    Hypothesis {
        name: "client-acks-after-5-ms",
        says: "the same with 5 ms: less than the client takes for a response from Jigsaw (7.7 ms), more than for one from Apache (3.4 ms)",
        change: |_, _, hosts| client_acks_after(hosts, Duration::from_millis(5)),
    },
    Hypothesis {
        name: "server-acks-after-10-ms",
        says: "the server's timer was 10 ms: less than Jigsaw takes for a response (12 ms), more than Apache does (4.9 ms)",
        change: |_, scenario, _| {
            scenario.stack.packets.ack_delay = AckDelay::Fixed(Duration::from_millis(10));
        },
    },
    Hypothesis {
        name: "client-acks-pairs-only",
        says: "the client never acknowledged an odd segment by itself (the model's lower bound)",
        change: |_, _, hosts| client_acks(hosts, Acks::NoDelayed),
    },
    Hypothesis {
        name: "server-acks-every-segment",
        says: "the server acknowledged every segment: each request has an acknowledgement of its own",
        change: |_, scenario, _| scenario.stack.acks = Acks::EverySegment,
    },
    Hypothesis {
        name: "server-acks-pairs-only",
        says: "the server never acknowledged an odd segment by itself",
        change: |_, scenario, _| scenario.stack.acks = Acks::NoDelayed,
    },
    Hypothesis {
        name: "head-written-apart",
        says: "the server wrote the header section by itself, as P-HTTP's Apache did (papers/p-http#section-2-3)",
        change: |_, _, hosts| hosts.writes = WritePolicy { head_apart: true, ..hosts.writes },
    },
    Hypothesis {
        name: "unbuffered-responses",
        says: "the server wrote each response by itself, so that pipelined ones share no segment",
        change: |_, _, hosts| hosts.writes = WritePolicy { gather: None, ..hosts.writes },
    },
    Hypothesis {
        name: "nagle-on",
        says: "Nagle's algorithm was on at both ends",
        change: |_, scenario, hosts| {
            scenario.stack.nagle = true;
            if let Some(client) = &mut hosts.client_stack {
                client.nagle = true;
            }
        },
    },
    Hypothesis {
        name: "two-connections",
        says: "HTTP/1.1 without pipelining had two connections, as its specification allows",
        change: |setting, scenario, _| {
            if setting.protocol == Protocol::Http11 {
                scenario.protocol = Protocol::Http11Parallel;
                scenario.client.parallel = 2;
            }
        },
    },
    Hypothesis {
        name: "six-connections",
        says: "HTTP/1.0 had six connections, as in Table 3, not four",
        change: |setting, scenario, _| {
            if setting.protocol == Protocol::Http10 {
                scenario.client.parallel = 6;
            }
        },
    },
    Hypothesis {
        name: "slow-process",
        says: "the client's process ran 20 ms after data arrived, and read more at a time",
        change: |_, _, hosts| {
            if let Some(client) = &mut hosts.client_stack {
                client.packets.wake_up = Duration::from_millis(20);
            }
        },
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

/// A cell with its agreement under each hypothesis.
struct TestedCell {
    key: &'static str,
    software: Software,
    cell: Cell,
    ours: f64,
    agrees: bool,
    note: Option<String>,
    /// In the order of [`HYPOTHESES`].
    under: Vec<bool>,
}

/// The page: hypotheses with their scores, then every cell that differs.
///
/// # Errors
/// When the simulator refuses a setting.
pub fn page() -> Result<String, String> {
    let cells = tested_cells()?;
    let mut text = HEAD.to_owned();
    let count = |software: Software, is: &dyn Fn(&TestedCell) -> bool| {
        cells.iter().filter(|tested| tested.software == software && is(tested)).count()
    };
    let all = |software| count(software, &|_| true);
    let before =
        [Software::Jigsaw, Software::Apache].map(|software| count(software, &|tested| tested.agrees));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "Without any of them {} of {} cells from Jigsaw agree, and {} of {} from Apache.\n\n| hypothesis | it says | Jigsaw | \
         Apache | outcome |\n| --- | --- | ---: | ---: | --- |",
        before[0],
        all(Software::Jigsaw),
        before[1],
        all(Software::Apache)
    );
    for (index, Hypothesis { name, says, .. }) in HYPOTHESES.iter().enumerate() {
        let with = [Software::Jigsaw, Software::Apache]
            .map(|software| count(software, &|tested| tested.under.get(index) == Some(&true)));
        let outcome = match (with[0] > before[0], with[1] > before[1]) {
            (true, true) => "survives",
            (true, false) => "fitted to Jigsaw, refuted by Apache",
            (false, true) => "fitted to Apache, refuted by Jigsaw",
            (false, false) => "refuted by both",
        };
        let _ = writeln!(text, "| `{name}` | {says} | {} | {} | {outcome} |", with[0], with[1]);
    }
    let mut notes: Vec<&str> = Vec::new();
    let differing: Vec<&TestedCell> = cells.iter().filter(|tested| !tested.agrees).collect();
    let _ = writeln!(text, "\n## The {} cells that differ\n\n{COLUMNS}", differing.len());
    for TestedCell { key, cell, ours, note, under, .. } in &differing {
        let agreeing: Vec<String> = HYPOTHESES
            .iter()
            .zip(under)
            .filter(|(_, agrees)| **agrees)
            .map(|(hypothesis, _)| format!("`{}`", hypothesis.name))
            .collect();
        let agreeing = if agreeing.is_empty() { "none".to_owned() } else { agreeing.join(", ") };
        let number = note.as_deref().map(|note| {
            notes.iter().position(|known| *known == note).unwrap_or_else(|| {
                notes.push(note);
                notes.len() - 1
            }) + 1
        });
        let number = number.map_or_else(String::new, |number| number.to_string());
        let table = key.trim_start_matches("w3c/table-");
        let (printed, ours) = (&cell.text, cell.column.digits.print(*ours));
        let _ = writeln!(text, "| {table} | {} | {printed} | {ours} | {agreeing} | {number} |", cell.name());
    }
    text.push_str("\n## Notes\n\n");
    for (index, note) in notes.iter().enumerate() {
        let _ = writeln!(text, "{}. {note}", index + 1);
    }
    Ok(text)
}

const HEAD: &str = "\
# Hypotheses about Tables 4 to 9

Written by `ROUNDTRIP_BLESS=1 cargo test -p roundtrip-reproduce --lib -- paper_hypotheses`; a test compares it with our packets.

The note does not state how its hosts acknowledged, retransmitted and wrote. Each hypothesis below changes that alone, for all
cells. Whoever chooses one by Jigsaw's tables has Apache's to judge it, and the other way round. It survives if more cells of
both agree with it. Cells that something was fitted to count as agreeing; cells that the record explains by a mechanism
(verdicts.tsv) count as differing. A capture of these hosts would decide, and none is public.

## The hypotheses

";

const COLUMNS: &str = "\
| table | cell | printed | ours | agrees under | note |
| --- | --- | ---: | ---: | --- | --- |";

fn tested_cells() -> Result<Vec<TestedCell>, String> {
    let mut tested = Vec::new();
    for (key, software, location) in TABLES {
        let table = catalogue::table(key);
        for cell in table.cells() {
            let Some((setting, what)) = setting(software, location, &cell)? else { continue };
            let agreement = |values: SettingValues| {
                let ours = value(values, what)?;
                let judgement = verdict::judge(&table, &cell, Values::from(Some(ours)), None);
                Some((ours, judgement.verdict < Verdict::Explained, judgement.note))
            };
            let Some((ours, agrees, note)) = agreement(found(setting, Twist::No)?) else { continue };
            let mut under = Vec::new();
            for hypothesis in &HYPOTHESES {
                let values = with(setting, hypothesis)?;
                under.push(agreement(values).is_some_and(|(_, agrees, _)| agrees));
            }
            tested.push(TestedCell { key, software, cell, ours, agrees, note, under });
        }
    }
    Ok(tested)
}

fn value(values: SettingValues, what: &str) -> Option<f64> {
    let SettingValues { packets, bytes, seconds, .. } = values;
    match what {
        "packets" => Some(packets),
        "bytes" => Some(bytes),
        "seconds" => Some(seconds),
        "overhead" => Some(overhead(packets, bytes)),
        _ => None,
    }
}

/// Values of a setting under a hypothesis; each is computed once.
fn with(setting: Setting, hypothesis: &Hypothesis) -> Result<SettingValues, String> {
    static KNOWN: Mutex<BTreeMap<(Setting, &str), SettingValues>> = Mutex::new(BTreeMap::new());
    let key = (setting, hypothesis.name);
    if let Some(known) = KNOWN.lock().ok().and_then(|known| known.get(&key).copied()) {
        return Ok(known);
    }
    let values = match hypothesis.name {
        ONE_LOST => one_lost(setting, Twist::No)?,
        ONE_LOST_EARLY => one_lost(setting, Twist::EarlyRetransmission)?,
        _ => {
            let (mut scenario, mut hosts) = super::scenario(setting);
            (hypothesis.change)(&setting, &mut scenario, &mut hosts);
            run(&Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?)?
        }
    };
    if let Ok(mut known) = KNOWN.lock() {
        known.insert(key, values);
    }
    Ok(values)
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
