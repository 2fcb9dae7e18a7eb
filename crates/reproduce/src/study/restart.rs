//! The congestion window after an idle time between pages: retained, restarted, decayed or paced
//! (`papers/p-http#section-2-4`).
//!
//! The paper expects of pacing "a good balance between the desires for good HTTP performance and steady packet traffic".
//! It expects of decay better performance than of a restart, though with bursts. Not a study of loss: only a short queue
//! drops packets.

use render::plot::bars::{Bar, Group, Panel, picture};
use render::plot::palette;
use render::plot::scale::Scale;
use scenario::{Connection, Network, Page, Protocol, Scenario, Stack};
use simulate::page::SERVER;
use simulate::world::ObservationPoint;
use simulate::{Experiment, Hosts, PageResult};
use tcp::stack::Idle;
use tcp::stack::packets::Restart;
use wire::Duration;
use wire::link::QueueLimit;

use super::Study;
use crate::published::{Cell, Table};
use crate::verdict::Verdict;

/// Networks where a bursting window costs time, and one where a restart does.
const NETWORKS: [&str; 3] = ["fast-internet", "adsl", "direcpc"];
/// One or two timeouts of these paths, after which a decayed window is still large; and ten or so of any of them.
const THINKS: [(&str, Duration); 2] = [("3 s", Duration::from_secs(3)), ("10 s", Duration::from_secs(10))];
/// Index of the longer one.
const LONG: usize = 1;
/// A router's queue in the 1990s on a slow link; less than the window of 16 kB.
const SHORT_QUEUE: QueueLimit = QueueLimit { packets: Some(8), bytes: None };
/// Maximum ratio that counts as "nearly".
const NEARLY: f64 = 1.25;

/// Maximum part of a paced page's time that a round trip leaves unexplained: pacing has one interval less than segments.
const TOLERANCE: f64 = 0.05;

/// A policy, and its name in the table.
const POLICIES: [(&str, Idle, Restart); 4] = [
    ("kept", Idle::Unchanged, Restart::AfterSending),
    ("restarted", Idle::Restarted, Restart::AfterSending),
    ("decayed", Idle::Restarted, Restart::Decaying),
    ("paced", Idle::Paced, Restart::AfterSending),
];

const UNCHANGED: usize = 0;
const RESTARTED: usize = 1;
const DECAYED: usize = 2;
const PACED: usize = 3;

/// Every policy over every network after every idle time, each compared with the best.
///
/// # Errors
/// When the simulator refuses a scenario.
pub fn study(mut table: Table) -> Result<Study, String> {
    let mut found = Vec::new();
    let all = all_costs()?;
    for (index, (network, costs)) in all.iter().enumerate() {
        let think = index % THINKS.len();
        let min = |one: Cost, other: &Cost| std::array::from_fn(|index| one[index].min(other[index]));
        let best = costs.iter().fold([f64::INFINITY; COLUMNS], min);
        let round_trip = Network::named(network).map_err(|unknown| unknown.to_string())?.rtt.as_millis_f64();
        for (policy, (name, _, _)) in POLICIES.iter().enumerate() {
            let printed = table.columns.iter().zip(best).map(|(column, best)| column.digits.print(best));
            let labels = [*network, THINKS[think].0, *name].map(str::to_owned);
            table.rows.push(labels.into_iter().chain(printed).collect());
            found.extend((0..COLUMNS).map(|column| {
                let of = |policy: usize| costs[policy][column];
                let compared = Compared {
                    ours: of(policy),
                    best: best[column],
                    unchanged: of(UNCHANGED),
                    restarted: of(RESTARTED),
                    round_trip,
                };
                (policy, think, compared)
            }));
        }
    }
    let mut found = found.into_iter();
    let study = Study::of(table, Some(TOLERANCE), |cell: &Cell| {
        let computed = found.next();
        let (policy, think, compared) =
            computed.ok_or_else(|| format!("nothing was computed for {}", cell.name()))?;
        let (verdict, note) = judge(policy, think, &cell.column.name, &compared);
        Ok((compared.ours, verdict, note))
    })?;
    Ok(Study { says: Some(reported(&all)), ..study })
}

/// Costs of every policy for each network and idle time, in this order.
type AllCosts = Vec<(&'static str, Vec<Cost>)>;

fn all_costs() -> Result<AllCosts, String> {
    let mut all = Vec::new();
    for network in NETWORKS {
        for (_, think) in THINKS {
            let costs = POLICIES.iter().map(|(_, idle, restart)| cost(network, think, *idle, *restart));
            all.push((network, costs.collect::<Result<_, _>>()?));
        }
    }
    Ok(all)
}

/// Conclusion: whether the paper's expectations hold.
fn reported(all: &AllCosts) -> String {
    let times = |think: usize, column: usize, one: usize, other: usize| {
        let costs = all.iter().skip(think).step_by(THINKS.len());
        let ratios = costs.map(|(_, costs)| costs[one][column] / costs[other][column]);
        let (min, max) =
            ratios.fold((f64::INFINITY, 0.0_f64), |(min, max), ratio| (min.min(ratio), max.max(ratio)));
        format!("{min:.1} to {max:.1} times")
    };
    let [page, burst] = [0, 1];
    format!(
        "After ten seconds a paced page takes {} a kept window's time, a restarted one {}. Pacing costs at most the round \
         trip over which it spreads the window. Its longest burst is {} a restarted window's, and with a short queue it \
         alone is fast. After three seconds a decayed window takes {} a restarted one's time, with bursts of {} its size; \
         after ten it is a restarted one.",
        times(LONG, page, PACED, UNCHANGED),
        times(LONG, page, RESTARTED, UNCHANGED),
        times(LONG, burst, PACED, RESTARTED),
        times(0, page, DECAYED, RESTARTED),
        times(0, burst, DECAYED, RESTARTED),
    )
}

/// All costs, network by network.
pub fn draw() -> String {
    let all = all_costs().unwrap_or_default();
    let costs: Vec<_> = all.iter().skip(LONG).step_by(THINKS.len()).map(|(_, costs)| costs).collect();
    let colours = [
        (UNCHANGED, palette::ACCENT),
        (RESTARTED, palette::BLUE),
        (DECAYED, palette::PURPLE),
        (PACED, palette::GREEN),
    ];
    let panel = |column: usize, title, scale, ticks| Panel {
        title,
        unit: "",
        scale,
        ticks,
        groups: NETWORKS
            .iter()
            .zip(&costs)
            .map(|(network, costs)| Group {
                name: (*network).to_owned(),
                bars: colours
                    .iter()
                    .map(|(policy, colour)| Bar {
                        name: POLICIES[*policy].0,
                        colour,
                        value: costs[*policy][column],
                        interval: 0.0,
                        parts: Vec::new(),
                    })
                    .collect(),
            })
            .collect(),
        reference: None,
    };
    let (times, at) = (Scale::logarithmic(50.0, 10_000.0), [50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4]);
    let panels = [
        panel(0, "page (ms)", times, at.to_vec()),
        panel(1, "longest burst (segments)", Scale::linear(0.0, 35.0), vec![0.0, 10.0, 20.0, 30.0]),
        panel(2, "page with a short queue (ms)", times, at.to_vec()),
        panel(3, "packets dropped at the short queue", Scale::linear(0.0, 25.0), vec![0.0, 10.0, 20.0]),
    ];
    picture(
        &panels,
        "A second page after ten seconds: the congestion window",
        [
            "medium-page twice over one connection, ten seconds between; stack period, with one knob changed",
            "The short queue has a capacity of eight packets before the link",
        ],
        "roundtrip reproduce roundtrip/slow-start-restart; the question is that of Heidemann 1997, section 2.4",
    )
}

/// Cost of the second of two pages: its time in milliseconds, its longest burst, and its time and loss with a short queue.
type Cost = [f64; COLUMNS];
const COLUMNS: usize = 4;

fn cost(network: &str, think: Duration, idle: Idle, restart: Restart) -> Result<Cost, String> {
    let network = Network::named(network).map_err(|unknown| unknown.to_string())?;
    let mut short = network.clone();
    short.down.queue = SHORT_QUEUE;
    let (free, cramped) =
        (second_page(network, think, idle, restart)?, second_page(short, think, idle, restart)?);
    let millis = |fetched: &PageResult| {
        fetched.elapsed.map(|elapsed| elapsed.as_millis_f64()).ok_or("a page did not arrive")
    };
    Ok([millis(&free)?, burst(&free) as f64, millis(&cramped)?, cramped.lost as f64])
}

fn second_page(
    network: Network,
    think: Duration,
    idle: Idle,
    restart: Restart,
) -> Result<PageResult, String> {
    let mut stack = Stack::named("period").map_err(|unknown| unknown.to_string())?;
    stack.idle = idle;
    stack.packets.restart = restart;
    let page = Page::named("medium-page").map_err(|unknown| unknown.to_string())?;
    let mut scenario = Scenario::new(network, page, Protocol::Http11, stack);
    scenario.client.connection = Connection::Warm;
    let hosts = Hosts { think, ..Hosts::default() };
    let experiment = Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?;
    experiment.run(0, true).map_err(|error| error.to_string())
}

/// Maximum number of segments with data that left the server at one instant.
fn burst(fetched: &PageResult) -> usize {
    let sent = fetched.records.iter().filter(|record| {
        record.seen == ObservationPoint::Sent
            && record.from.host == SERVER
            && !record.segment.payload.is_empty()
    });
    let times: Vec<_> = sent.map(|record| record.at).collect();
    times.chunk_by(PartialEq::eq).map(<[_]>::len).max().unwrap_or(0)
}

/// A cost and those that it is compared with.
struct Compared {
    ours: f64,
    best: f64,
    unchanged: f64,
    restarted: f64,
    /// Round-trip time of the network, in milliseconds.
    round_trip: f64,
}

/// The paper's expectations: a retained window is fast, bursts, and with a short queue loses packets. A restarted one
/// is slow and smooth; a decayed one is faster and bursts. A paced one is nearly as fast and as smooth as the best.
/// "Nearly" is within 25%; a paced page may be slower by the one round trip over which pacing spreads the window. A
/// missing expected cost differs, too.
fn judge(policy: usize, think: usize, column: &str, costs: &Compared) -> (Verdict, Option<String>) {
    let Compared { ours, best, unchanged, restarted, round_trip } = *costs;
    let is_near = |other: f64| ours <= other * NEARLY;
    let cost = if best > 0.0 {
        format!("{:.1} times the best", ours / best)
    } else {
        format!("{ours} where the best has none")
    };
    if policy == DECAYED {
        let is_expected = match (think, column) {
            // Enough timeouts to halve any window of that time to its minimum: two segments (RFC 2861, section 3.1). A
            // restart leaves one.
            (LONG, "burst") => ours <= restarted + 1.0,
            (LONG, _) => is_near(restarted),
            (_, "page") => unchanged < ours && ours < restarted,
            (_, "burst") => restarted < ours && ours < unchanged,
            (_, _) => !is_near(best),
        };
        let expectation = match think {
            LONG => "a restarted window again",
            _ => "between a kept and a restarted window, with bursts",
        };
        return match is_expected {
            true => (Verdict::Holds, Some(format!("{cost}; {expectation}, as expected"))),
            false => (Verdict::Differs, Some(format!("{cost}, and expected to be {expectation}"))),
        };
    }
    let is_expected_near = match (policy, column) {
        (PACED, _) | (UNCHANGED, "page") | (RESTARTED, "burst" | "lost") => true,
        (_, _) => false,
    };
    match (is_near(best), is_expected_near) {
        (true, true) => (Verdict::Holds, Some("within 25% of the best, as expected".to_owned())),
        (false, false) => (Verdict::Holds, Some(format!("{cost}, as expected"))),
        (true, false) => {
            (Verdict::Differs, Some("within 25% of the best, and expected to be worse".to_owned()))
        }
        (false, true)
            if policy == PACED
                && column == "page"
                && (ours - best - round_trip).abs() <= TOLERANCE * ours =>
        {
            let later = ours - best;
            let note = format!(
                "{later:.0} ms later than the best: pacing spreads the window over one round trip of {round_trip:.0} ms"
            );
            (Verdict::Explained, Some(note))
        }
        (false, true) => (Verdict::Differs, Some(format!("{cost}, and expected to be nearly the best"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each acknowledgement releases two segments and one more, as in slow start, and no rest of a window.
    #[test]
    fn pacing_is_as_smooth_as_a_restart_and_at_most_a_round_trip_slower_than_a_kept_window() {
        let [unchanged, restarted, paced] = [Idle::Unchanged, Idle::Restarted, Idle::Paced]
            .map(|idle| cost("adsl", THINKS[LONG].1, idle, Restart::AfterSending).unwrap());
        let round_trip = Network::named("adsl").unwrap().rtt.as_millis_f64();
        assert!(paced[0] <= unchanged[0] + round_trip, "{paced:?} {unchanged:?}");
        assert_eq!(paced[1], restarted[1]);
        assert_eq!((paced[3], restarted[3]), (0.0, 0.0));
        assert!(paced[2] < unchanged[2] / 10.0, "{paced:?} {unchanged:?}");
    }

    #[test]
    fn decayed_window_is_between_both_until_many_timeouts_have_passed() {
        let after = |think: usize, idle, restart| cost("adsl", THINKS[think].1, idle, restart).unwrap();
        let restarted = after(0, Idle::Restarted, Restart::AfterSending);
        let [short, long] = [0, LONG].map(|think| after(think, Idle::Restarted, Restart::Decaying));
        assert!(short[0] < restarted[0] && short[1] > restarted[1], "{short:?} {restarted:?}");
        assert_eq!(long, after(LONG, Idle::Restarted, Restart::AfterSending));
    }
}
