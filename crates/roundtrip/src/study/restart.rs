//! What becomes of a window while the user looks at a page: kept, restarted, decayed or paced
//! (`papers/p-http#section-2-4`).
//!
//! The paper expects that pacing has nearly the speed of a kept window and nearly the smoothness of slow start. Not a
//! study of loss: there is none but what a short queue drops.

use scenario::stack::Idle;
use scenario::stack::packets::Restart;
use scenario::{Connection, Network, Page, Protocol, Scenario, Stack};
use simulate::page::SERVER;
use simulate::world::Seen;
use simulate::{Experiment, Fetched, Hosts};
use wire::Duration;
use wire::link::QueueLimit;

use super::{Study, scenario};
use crate::reproduce::published::{Cell, Table};
use crate::reproduce::verdict::Verdict;

/// Where a window that bursts hurts, and one that restarts.
const NETWORKS: [&str; 3] = ["fast-internet", "adsl", "direcpc"];
/// Ten time-outs of any of these paths.
const THINK: Duration = Duration::from_secs(10);
/// A router's room in the 1990s on a slow link; less than the window of 16 kB.
const SHORT_QUEUE: QueueLimit = QueueLimit { packets: Some(8), bytes: None };
/// What "nearly" is taken for.
const NEARLY: f64 = 1.25;

/// A policy, and its name in the table.
const POLICIES: [(&str, Idle, Restart); 4] = [
    ("kept", Idle::Kept, Restart::AfterSending),
    ("restarted", Idle::Restarted, Restart::AfterSending),
    ("decayed", Idle::Restarted, Restart::Decaying),
    ("paced", Idle::Paced, Restart::AfterSending),
];

/// Every policy over every network, each beside the best.
///
/// # Errors
/// When the simulator refuses a scenario.
pub fn study(mut table: Table) -> Result<Study, String> {
    let mut found = Vec::new();
    for network in NETWORKS {
        let costs = POLICIES
            .iter()
            .map(|(_, idle, restart)| cost(network, *idle, *restart))
            .collect::<Result<Vec<_>, _>>()?;
        let least = |one: Cost, other: &Cost| std::array::from_fn(|place| one[place].min(other[place]));
        let best = costs.iter().fold([f64::INFINITY; COLUMNS], least);
        for ((policy, _, _), cost) in POLICIES.iter().zip(costs) {
            let printed = table.columns.iter().zip(best).map(|(column, best)| column.digits.print(best));
            let labels = [network, policy].map(str::to_owned);
            table.rows.push(labels.into_iter().chain(printed).collect());
            found.extend(best.into_iter().zip(cost));
        }
    }
    let mut found = found.into_iter();
    Study::of(table, |cell: &Cell| {
        let computed = found.next();
        let (best, ours) = computed.ok_or_else(|| format!("nothing was computed for {}", cell.name()))?;
        let (verdict, note) = judge(cell.label(1), best, ours);
        Ok((ours, verdict, note))
    })
}

/// A page after another: its time in milliseconds, its longest burst, and its time and loss with a short queue.
type Cost = [f64; COLUMNS];
const COLUMNS: usize = 4;

fn cost(network: &str, idle: Idle, restart: Restart) -> Result<Cost, String> {
    let network = Network::named(network).map_err(|unknown| unknown.to_string())?;
    let mut short = network.clone();
    short.down.queue = SHORT_QUEUE;
    let (free, cramped) = (second_page(network, idle, restart)?, second_page(short, idle, restart)?);
    let millis = |fetched: &Fetched| {
        fetched.elapsed.map(|elapsed| elapsed.as_millis_f64()).ok_or("a page did not arrive")
    };
    Ok([millis(&free)?, burst(&free) as f64, millis(&cramped)?, cramped.lost as f64])
}

fn second_page(network: Network, idle: Idle, restart: Restart) -> Result<Fetched, String> {
    let mut stack = Stack::named("period").map_err(|unknown| unknown.to_string())?;
    stack.idle = idle;
    stack.packets.restart = restart;
    let page = Page::named("medium-page").map_err(|unknown| unknown.to_string())?;
    let mut scenario: Scenario = scenario(network, page, Protocol::Http11, stack);
    scenario.client.connection = Connection::Warm;
    let hosts = Hosts { think: THINK, ..Hosts::default() };
    let experiment = Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?;
    experiment.run(0, true).map_err(|error| error.to_string())
}

/// The most segments with data that left the server at one instant.
fn burst(fetched: &Fetched) -> usize {
    let sent = fetched.records.iter().filter(|record| {
        record.seen == Seen::Sent && record.from.host == SERVER && !record.segment.payload.is_empty()
    });
    let times: Vec<_> = sent.map(|record| record.at).collect();
    times.chunk_by(PartialEq::eq).map(<[_]>::len).max().unwrap_or(0)
}

fn judge(policy: &str, best: f64, ours: f64) -> (Verdict, Option<String>) {
    if ours <= best {
        return (Verdict::Exact, None);
    }
    if ours <= best * NEARLY {
        return (Verdict::WithinTolerance, Some("within 25% of the best".to_owned()));
    }
    let cost = if best > 0.0 {
        format!("{:.1} times the best", ours / best)
    } else {
        format!("{ours} where the best has none")
    };
    let is_asked = policy == "paced";
    (Verdict::Explained, Some(if is_asked { format!("not nearly: {cost}") } else { cost }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the paper expects holds for time, and not for bursts: the first acknowledgement lets the rest of the window
    /// out at once.
    #[test]
    fn pacing_is_nearly_as_fast_as_a_kept_window_and_halves_its_bursts() {
        let [kept, paced] =
            [Idle::Kept, Idle::Paced].map(|idle| cost("adsl", idle, Restart::AfterSending).unwrap());
        assert!(paced[0] < NEARLY * kept[0], "{paced:?} {kept:?}");
        assert!(2.0 * paced[1] <= kept[1], "{paced:?} {kept:?}");
        assert!(2.0 * paced[3] < kept[3], "{paced:?} {kept:?}");
    }
}
