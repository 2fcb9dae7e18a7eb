//! Figures 10 to 12 of `papers/dhttp#section-vi-b`: servers under SURGE's users, on this host.
//!
//! Not the servers (`server_benchmark`). A claim is judged at the maximum number of users; the figures have all.

use render::plot::curves::{Curve, Curves, Panel};
use render::plot::palette;
use render::plot::svg::{Point, Stroke};

use crate::laboratory::{BenchmarkResults, Laboratory};
use crate::published::Cell;
use crate::server_benchmark::benchmark_run::{BenchmarkRun, Outcome};
use crate::server_benchmark::server::ServerKind;
use crate::server_benchmark::transport::Transport;

/// Our value, or why it could not be measured.
type ReproducedValue = Result<Option<f64>, String>;

/// A server with its configuration and transport: one curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    pub(super) kind: ServerKind,
    pub(super) idle_s: u64,
    pub(super) connections: usize,
    pub(super) closes_early: bool,
    pub(super) how: Transport,
}

pub(super) const fn arm(kind: ServerKind, idle_s: u64, connections: usize) -> Arm {
    Arm { kind, idle_s, connections, closes_early: false, how: Transport::Usual }
}

/// The one time-out with which DHTTP is compared: Apache's best in the paper.
pub(super) const DHTTP: Arm = arm(ServerKind::Dhttp, 1, 3);
pub(super) const ALTRUISTIC: Arm = Arm { closes_early: true, ..arm(ServerKind::Prefork, 1, 3) };

const APACHE: [Arm; 8] = {
    use ServerKind::Prefork as P;
    [
        arm(P, 0, 3),
        arm(P, 1, 3),
        arm(P, 5, 3),
        arm(P, 15, 3),
        arm(P, 0, 1),
        arm(P, 1, 1),
        arm(P, 5, 1),
        arm(P, 15, 1),
    ]
};
const DHTTP_ARMS: [Arm; 6] = {
    use ServerKind::Dhttp as D;
    [DHTTP, arm(D, 5, 3), arm(D, 15, 3), arm(D, 1, 1), arm(D, 5, 1), arm(D, 15, 1)]
};
const TODAY: [Arm; 14] = {
    use ServerKind::{Event, Hyper, Nginx, NginxFew, PreforkModified, Roundtrip};
    [
        arm(PreforkModified, 15, 3),
        arm(Event, 0, 3),
        arm(Event, 1, 3),
        arm(Event, 15, 3),
        arm(Event, 15, 1),
        arm(Nginx, 0, 3),
        arm(Nginx, 1, 3),
        arm(Nginx, 15, 3),
        arm(NginxFew, 15, 3),
        arm(Hyper, 1, 3),
        arm(Hyper, 15, 3),
        arm(Roundtrip, 1, 3),
        arm(Roundtrip, 15, 3),
        ALTRUISTIC,
    ]
};

/// Claims of the text about Apache.
pub fn figure_10(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let connections = if cell.column.name == "three" { 3 } else { 1 };
    let apache = |idle_s| arm(ServerKind::Prefork, idle_s, connections);
    let (over, under) = match cell.label(0) {
        "1-s-over-15-s" => (apache(1), apache(15)),
        "none-over-15-s" => (apache(0), apache(15)),
        "1-s-over-none" => (apache(1), apache(0)),
        _ => (apache(15), arm(ServerKind::Prefork, 15, 3)),
    };
    let Some(benchmarks) = benchmarks(&APACHE, measured)? else { return Ok(None) };
    Ok(throughput(benchmarks, over).zip(throughput(benchmarks, under)).map(|(over, under)| over / under))
}

/// Claims about DHTTP compared with Apache.
pub fn figure_11(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let apache = arm(
        ServerKind::Prefork,
        match cell.column.name.as_str() {
            "15-s" => 15,
            "1-s" => 1,
            _ => 0,
        },
        3,
    );
    let arms: Vec<Arm> = APACHE.into_iter().chain(DHTTP_ARMS).collect();
    let Some(benchmarks) = benchmarks(&arms, measured)? else { return Ok(None) };
    let all = |of: &[Arm]| of.iter().map(|arm| throughput(benchmarks, *arm)).collect::<Option<Vec<_>>>();
    Ok(match cell.label(0) {
        "insensitive-to-time-out" => all(&DHTTP_ARMS[..3]).map(|all| min_over_max(&all)),
        "insensitive-to-connections" => all(&DHTTP_ARMS).map(|all| min_over_max(&all)),
        "scales" => scales(benchmarks),
        claim => ratio_to(benchmarks, claim, apache, cell.published),
    })
}

/// Claims about users who close early, and Figure 11's claim for other servers.
pub fn figure_12(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    let kind = match cell.column.name.as_str() {
        "prefork" => ServerKind::Prefork,
        "event" => ServerKind::Event,
        "nginx" => ServerKind::Nginx,
        "hyper" => ServerKind::Hyper,
        _ => ServerKind::Roundtrip,
    };
    let short = arm(ServerKind::Prefork, 1, 3);
    let arms: Vec<Arm> = TODAY.into_iter().chain([DHTTP, short]).collect();
    let Some(benchmarks) = benchmarks(&arms, measured)? else { return Ok(None) };
    Ok(match cell.label(0) {
        "closing-idle-ones-over-1-s" => {
            let closing = match kind {
                ServerKind::Prefork => ServerKind::PreforkModified,
                _ => ServerKind::NginxFew,
            };
            let [few, short] = [arm(closing, 15, 3), arm(kind, 1, 3)];
            throughput(benchmarks, few).zip(throughput(benchmarks, short)).map(|(few, short)| few / short)
        }
        claim => match claim.strip_suffix("-altruistic") {
            Some(claim) => ratio_to(benchmarks, claim, ALTRUISTIC, cell.published),
            None => ratio_to(benchmarks, claim, arm(kind, 15, 3), cell.published),
        },
    })
}

/// Ratio of the throughput of DHTTP, or of the latency of the other; `None` if the generator decides whether it reaches
/// `claimed`.
fn ratio_to(benchmarks: &BenchmarkResults, claim: &str, other: Arm, claimed: f64) -> Option<f64> {
    match claim {
        "throughput" => Some(throughput(benchmarks, DHTTP)? / throughput(benchmarks, other)?),
        _ => slower(benchmarks, other, DHTTP, claimed),
    }
}

/// Ratio of two latencies; `None` if the generator's possible share of either decides whether the ratio reaches
/// `claimed`. Three orders of magnitude remain valid although requests were a tenth of a millisecond late.
pub(super) fn slower(benchmarks: &BenchmarkResults, one: Arm, other: Arm, claimed: f64) -> Option<f64> {
    times(outcome(benchmarks, one)?, outcome(benchmarks, other)?, claimed)
}

fn times(one: &Outcome, other: &Outcome, claimed: f64) -> Option<f64> {
    let servers = |outcome: &Outcome| (outcome.mean_ms - outcome.own_ms).max(0.0);
    let (lower, upper) = (servers(one) / other.mean_ms, one.mean_ms / servers(other));
    ((lower >= claimed) == (upper >= claimed)).then_some(one.mean_ms / other.mean_ms)
}

/// Ratio of DHTTP's throughput per user at the maximum number of users to that at the minimum.
fn scales(benchmarks: &BenchmarkResults) -> Option<f64> {
    let (few, upper) = (*benchmarks.users.first()?, *benchmarks.users.last()?);
    let each = |users: u32| Some(benchmarks.of(&DHTTP.benchmark(users))?.throughput()? / f64::from(users));
    Some(each(upper)? / each(few)?)
}

fn min_over_max(all: &[f64]) -> f64 {
    let upper = all.iter().copied().fold(0.0, f64::max);
    all.iter().copied().fold(f64::INFINITY, f64::min) / upper
}

/// Outcome at the maximum number of users.
fn outcome(benchmarks: &BenchmarkResults, arm: Arm) -> Option<&Outcome> {
    benchmarks.of(&arm.benchmark(*benchmarks.users.last()?))
}

pub(super) fn throughput(benchmarks: &BenchmarkResults, arm: Arm) -> Option<f64> {
    outcome(benchmarks, arm)?.throughput()
}

impl Arm {
    pub(super) fn benchmark(self, users: u32) -> BenchmarkRun {
        let Self { kind, idle_s, connections, closes_early, how } = self;
        BenchmarkRun { kind, idle_s, connections, closes_early, how, users }
    }
}

/// Outcomes of these arms for every number of users.
pub(super) fn benchmarks<'a>(
    arms: &[Arm],
    measured: &'a mut Laboratory<'_>,
) -> Result<Option<&'a BenchmarkResults>, String> {
    let of = |users: &u32| arms.iter().map(|arm| arm.benchmark(*users)).collect::<Vec<_>>();
    let runs: Vec<BenchmarkRun> = measured.users().iter().flat_map(of).collect();
    measured.benchmarks(&runs)
}

/// Apache's throughput and latency.
pub fn draw_10(benchmarks: &BenchmarkResults) -> Option<String> {
    let curves = |connections: usize| {
        let arms = APACHE.into_iter().filter(move |arm| arm.connections == connections);
        arms.map(|arm| (by_time_out(arm.idle_s), arm)).collect()
    };
    let title = "Apache with 200 processes under SURGE's users";
    draw(
        benchmarks,
        title,
        &VALUES,
        [("three connections a user", curves(3)), ("one connection", curves(1))],
        "Fig. 10",
    )
}

/// DHTTP's throughput and latency.
pub fn draw_11(benchmarks: &BenchmarkResults) -> Option<String> {
    let curves = |connections: usize| {
        let arms = DHTTP_ARMS.into_iter().filter(move |arm| arm.connections == connections);
        arms.map(|arm| (by_time_out(arm.idle_s), arm)).collect()
    };
    let title = "DHTTP under SURGE's users";
    draw(
        benchmarks,
        title,
        &VALUES,
        [("three connections a user", curves(3)), ("one connection", curves(1))],
        "Fig. 11",
    )
}

/// The same of current servers.
pub fn draw_12(benchmarks: &BenchmarkResults) -> Option<String> {
    use ServerKind::{Event, Hyper, Nginx, NginxFew, Roundtrip};
    let solid = |name, colour| (name, Stroke::solid(colour, WIDTH));
    let dashed = |name, colour| (name, Stroke { colour, width: WIDTH, dashes: "5 4" });
    let paper = vec![
        (solid("DHTTP", palette::ACCENT), DHTTP),
        (solid("prefork", palette::INK), arm(ServerKind::Prefork, 1, 3)),
        (dashed("prefork, early close", palette::INK), ALTRUISTIC),
        (dashed("prefork, modified", palette::ORANGE), arm(ServerKind::PreforkModified, 15, 3)),
    ];
    let today = vec![
        (solid("DHTTP", palette::ACCENT), DHTTP),
        (solid("event", palette::ORANGE), arm(Event, 15, 3)),
        (solid("nginx", palette::BLUE), arm(Nginx, 15, 3)),
        (dashed("nginx, 328", palette::BLUE), arm(NginxFew, 15, 3)),
        (solid("hyper", palette::GREY), arm(Hyper, 15, 3)),
        (dashed("ours, HTTP", palette::ACCENT), arm(Roundtrip, 15, 3)),
    ];
    let title = "DHTTP beside Apache, and beside servers of today";
    draw(
        benchmarks,
        title,
        &VALUES,
        [("Apache prefork, 1 s", paper), ("servers of today, 15 s", today)],
        "Fig. 12",
    )
}

/// Width of a curve, in pixels.
pub(super) const WIDTH: f64 = 1.8;

pub(super) type NamedArm = ((&'static str, Stroke<'static>), Arm);

fn by_time_out(idle_s: u64) -> (&'static str, Stroke<'static>) {
    let (name, colour) = match idle_s {
        0 => ("a connection each", palette::BLUE),
        1 => ("idle ones closed after 1 s", palette::ACCENT),
        5 => ("5 s", palette::ORANGE),
        _ => ("15 s", palette::INK),
    };
    (name, Stroke::solid(colour, WIDTH))
}

/// Throughput above, latency below.
const VALUES: [(&str, Value); 2] =
    [("responses a second", Outcome::throughput), ("mean latency, ms", Outcome::latency_ms)];

/// A quantity of a curve.
pub(super) type Value = fn(&Outcome) -> Option<f64>;

/// A row for each quantity, a column for each group of arms.
pub(super) fn draw(
    benchmarks: &BenchmarkResults,
    title: &str,
    quantities: &[(&str, Value)],
    groups: [(&str, Vec<NamedArm>); 2],
    figure: &str,
) -> Option<String> {
    let upper = *benchmarks.users.last()?;
    let mut rows = Vec::new();
    for (quantity, value) in quantities {
        let mut row = Vec::new();
        for (group, arms) in &groups {
            let mut curves = Vec::new();
            for ((name, stroke), arm) in arms {
                let point =
                    |users: &u32| Some((f64::from(*users), value(benchmarks.of(&arm.benchmark(*users))?)?));
                let points: Vec<Point> = benchmarks.users.iter().filter_map(point).collect();
                curves.push(Curve { name, stroke: *stroke, is_joined: true, points });
            }
            row.push(Panel { title: format!("{group}: {quantity}"), curves });
        }
        rows.push(row);
    }
    let mut key: Vec<(&str, Stroke<'_>)> = Vec::new();
    for (named, _) in groups.iter().flat_map(|(_, arms)| arms) {
        if key.iter().all(|(name, _)| *name != named.0) {
            key.push(*named);
        }
    }
    let ticks = (0..=5).map(|tick| f64::from(upper) * f64::from(tick) / 5.0).collect();
    let picture = Curves {
        title,
        subtitle: [
            "Each server alone with its users, in its own network; latency from when a request was due.",
            "Requests without a response count with the client timeout.",
        ],
        key,
        bottom: "user equivalents",
        ticks,
        rows,
        source: &format!("After Rabinovich, Wang 2004, {figure}; measured on this machine."),
    };
    Some(picture.draw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_given_only_if_the_generators_share_does_not_decide_the_claim() {
        let took = |mean_ms: f64, own_ms: f64| Outcome { mean_ms, own_ms, ..Outcome::default() };
        let dhttp = took(0.6, 0.2);
        assert_eq!(times(&took(6_000.0, 0.2), &dhttp, 10.0), Some(10_000.0));
        assert_eq!(times(&took(0.9, 0.3), &dhttp, 10.0), Some(1.5));
        assert_eq!(times(&took(5.0, 0.2), &dhttp, 10.0), None);
        assert_eq!(times(&took(0.9, 0.9), &took(0.6, 0.6), 10.0), None);
    }
}
