//! The congestion window after an idle time between pages: retained, restarted, decayed or paced
//! (`papers/p-http#section-2-4`).
//!
//! The paper expects that pacing has nearly the speed of a retained window and nearly the smoothness of slow start. Not a
//! study of loss: only a short queue drops packets.

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
/// Ten time-outs of any of these paths.
const THINK: Duration = Duration::from_secs(10);
/// A router's queue in the 1990s on a slow link; less than the window of 16 kB.
const SHORT_QUEUE: QueueLimit = QueueLimit { packets: Some(8), bytes: None };
/// Maximum ratio that counts as "nearly".
const NEARLY: f64 = 1.25;

/// A policy, and its name in the table.
const POLICIES: [(&str, Idle, Restart); 4] = [
    ("kept", Idle::Kept, Restart::AfterSending),
    ("restarted", Idle::Restarted, Restart::AfterSending),
    ("decayed", Idle::Restarted, Restart::Decaying),
    ("paced", Idle::Paced, Restart::AfterSending),
];

const KEPT: usize = 0;
const RESTARTED: usize = 1;
const DECAYED: usize = 2;
const PACED: usize = 3;

/// Every policy over every network, each compared with the best.
///
/// # Errors
/// When the simulator refuses a scenario.
pub fn study(mut table: Table) -> Result<Study, String> {
    let mut found = Vec::new();
    let all = costs()?;
    for (network, costs) in NETWORKS.iter().zip(&all) {
        let least = |one: Cost, other: &Cost| std::array::from_fn(|place| one[place].min(other[place]));
        let best = costs.iter().fold([f64::INFINITY; COLUMNS], least);
        for ((policy, _, _), cost) in POLICIES.iter().zip(costs) {
            let printed = table.columns.iter().zip(best).map(|(column, best)| column.digits.print(best));
            let labels = [*network, *policy].map(str::to_owned);
            table.rows.push(labels.into_iter().chain(printed).collect());
            found.extend(best.into_iter().zip(*cost));
        }
    }
    let mut found = found.into_iter();
    let study = Study::of(table, None, |cell: &Cell| {
        let computed = found.next();
        let (best, ours) = computed.ok_or_else(|| format!("nothing was computed for {}", cell.name()))?;
        let (verdict, note) = judge(cell.label(1), &cell.column.name, best, ours);
        Ok((ours, verdict, note))
    })?;
    Ok(Study { says: Some(reported(&all)), ..study })
}

/// Every policy over every network.
fn costs() -> Result<Vec<Vec<Cost>>, String> {
    let over =
        |network: &&str| POLICIES.iter().map(|(_, idle, restart)| cost(network, *idle, *restart)).collect();
    NETWORKS.iter().map(over).collect()
}

/// Conclusion: whether the paper's expectation holds.
fn reported(costs: &[Vec<Cost>]) -> String {
    let times = |column: usize, one: usize, other: usize| {
        let ratios = costs.iter().map(|costs| costs[one][column] / costs[other][column]);
        let (least, most) =
            ratios.fold((f64::INFINITY, 0.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
        format!("{least:.1} to {most:.1} times")
    };
    let [page, burst] = [0, 1];
    format!(
        "The paper expects of pacing nearly the speed of a kept window and nearly the smoothness of slow start. The \
         first holds nearly: a paced page takes {} a kept window's time, where a restarted one takes {}. The second \
         does not: its longest burst is {} a restarted window's, since the first acknowledgement ends the pacing and \
         lets out the rest of the window at once; of a kept window's it is {}.",
        times(page, PACED, KEPT),
        times(page, RESTARTED, KEPT),
        times(burst, PACED, RESTARTED),
        times(burst, PACED, KEPT),
    )
}

/// All costs, network by network.
pub fn draw() -> String {
    let costs = costs().unwrap_or_default();
    let colours = [
        (KEPT, palette::ACCENT),
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

fn cost(network: &str, idle: Idle, restart: Restart) -> Result<Cost, String> {
    let network = Network::named(network).map_err(|unknown| unknown.to_string())?;
    let mut short = network.clone();
    short.down.queue = SHORT_QUEUE;
    let (free, cramped) = (second_page(network, idle, restart)?, second_page(short, idle, restart)?);
    let millis = |fetched: &PageResult| {
        fetched.elapsed.map(|elapsed| elapsed.as_millis_f64()).ok_or("a page did not arrive")
    };
    Ok([millis(&free)?, burst(&free) as f64, millis(&cramped)?, cramped.lost as f64])
}

fn second_page(network: Network, idle: Idle, restart: Restart) -> Result<PageResult, String> {
    let mut stack = Stack::named("period").map_err(|unknown| unknown.to_string())?;
    stack.idle = idle;
    stack.packets.restart = restart;
    let page = Page::named("medium-page").map_err(|unknown| unknown.to_string())?;
    let mut scenario = Scenario::new(network, page, Protocol::Http11, stack);
    scenario.client.connection = Connection::Warm;
    let hosts = Hosts { think: THINK, ..Hosts::default() };
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

/// The paper expects that pacing is nearly the best everywhere; that the retained window bursts, and with a short queue loses
/// packets; that the others are slow. A missing expected cost differs, too.
fn judge(policy: &str, column: &str, best: f64, ours: f64) -> (Verdict, Option<String>) {
    let is_near = ours <= best * NEARLY;
    let cost = if best > 0.0 {
        format!("{:.1} times the best", ours / best)
    } else {
        format!("{ours} where the best has none")
    };
    let is_expected_near = match (policy, column) {
        ("paced", _) | ("kept", "page") | ("restarted" | "decayed", "burst" | "short-queue" | "lost") => true,
        ("kept" | "restarted" | "decayed", _) | (_, _) => false,
    };
    match (is_near, is_expected_near) {
        (true, true) => (Verdict::Holds, Some("within 25% of the best, as expected".to_owned())),
        (false, false) => (Verdict::Holds, Some(format!("{cost}, as expected"))),
        (true, false) => {
            (Verdict::Differs, Some("within 25% of the best, and expected to be worse".to_owned()))
        }
        (false, true) => (Verdict::Differs, Some(format!("{cost}, and expected to be nearly the best"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's expectation holds for time, and not for bursts: the first acknowledgement immediately releases the rest of
    /// the window.
    #[test]
    fn pacing_is_nearly_as_fast_as_a_kept_window_and_halves_its_bursts() {
        let [retained, paced] =
            [Idle::Kept, Idle::Paced].map(|idle| cost("adsl", idle, Restart::AfterSending).unwrap());
        assert!(paced[0] < NEARLY * retained[0], "{paced:?} {retained:?}");
        assert!(2.0 * paced[1] <= retained[1], "{paced:?} {retained:?}");
        assert!(2.0 * paced[3] < retained[3], "{paced:?} {retained:?}");
    }
}
