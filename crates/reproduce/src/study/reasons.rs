//! Reasons for differences between the model and the simulator: steps from one to the other, each of which changes one thing.
//!
//! The first steps extend the formula by the effects it omits; the last ones reduce the simulator's stack to the effects the
//! formula knows. The difference that is left is unexplained. Nothing here is fitted.

use std::fmt;

use model::{Assumptions, Path, SlowStart, predict};
use scenario::{Object, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts, PageResult};
use tcp::stack::Acks;
use wire::Bytes;

/// Both times, with the reasons for their difference.
#[derive(Clone, Debug)]
pub struct Reasons {
    /// Time by the formula, in milliseconds.
    pub model_ms: f64,
    /// Time by packets, in milliseconds.
    pub simulated_ms: f64,
    /// Contribution of each step, in order.
    parts: Vec<Part>,
}

/// One step.
#[derive(Clone, Copy, Debug)]
struct Part {
    name: &'static str,
    adds_ms: f64,
}

/// Number of runs whose mean is taken where the phase of a clock matters.
const PHASES: u32 = 8;
/// Minimum share of the model's time for a reason to be listed.
const MIN_STATED_SHARE: f64 = 0.005;

impl Reasons {
    /// Computes both, and every reason.
    ///
    /// # Errors
    /// When an engine refuses the scenario.
    pub fn of(scenario: &Scenario) -> Result<Self, String> {
        let model_ms = model_ms_of(scenario)?;
        let known = with_stack(scenario, known_to_the_model(&scenario.stack));
        let (known_ms, down) = simulated(&known, 1)?;
        let headed = with_heads(scenario, down);
        let formula = Formula::of(&headed);
        let buffered = with_stack(scenario, Stack { acks: known.stack.acks, ..scenario.stack.clone() });
        let buffered_ms = simulated(&buffered, 1)?.0;
        let simulated_ms = simulated(scenario, PHASES)?.0;

        let mut parts = vec![Part { name: "response headers", adds_ms: model_ms_of(&headed)? - model_ms }];
        parts.extend(formula.parts());
        let fixed_ms = model_ms + parts.iter().map(|part| part.adds_ms).sum::<f64>();
        parts.push(Part { name: UNEXPLAINED, adds_ms: known_ms - fixed_ms });
        parts
            .push(Part { name: "buffers of 16 kB and the first threshold", adds_ms: buffered_ms - known_ms });
        parts.push(Part { name: "the heartbeat's ACKs", adds_ms: simulated_ms - buffered_ms });
        Ok(Self { model_ms, simulated_ms, parts })
    }

    /// Unexplained difference, in milliseconds.
    pub fn unexplained_ms(&self) -> f64 {
        self.parts.iter().filter(|part| part.name == UNEXPLAINED).map(|part| part.adds_ms).sum()
    }

    /// The share of the model's time.
    pub fn share(&self, ms: f64) -> f64 {
        ms / self.model_ms
    }
}

const UNEXPLAINED: &str = "unexplained";

impl fmt::Display for Reasons {
    /// `stalls on a path taken for full +12.3%, response headers +0.8%`, the largest first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<&Part> =
            self.parts.iter().filter(|part| self.share(part.adds_ms).abs() >= MIN_STATED_SHARE).collect();
        parts.sort_by(|one, other| other.adds_ms.abs().total_cmp(&one.adds_ms.abs()));
        let reported =
            parts.iter().map(|part| format!("{} {:+.1}%", part.name, 100.0 * self.share(part.adds_ms)));
        f.write_str(&reported.collect::<Vec<_>>().join(", "))
    }
}

/// Effects that the formula omits from slow start, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Formula {
    /// The formula ends slow start when the segments *sent* fill the path; the *window* is not that large yet, and stalls
    /// continue.
    full_too_early: f64,
    /// In the formula only the first response of a kept-alive connection stalls; in fact the window continues to grow.
    kept_still_opens: f64,
    /// An odd segment that waits is acknowledged with the first of the next flight, not with its second.
    odd_waits: f64,
}

impl Formula {
    fn of(scenario: &Scenario) -> Self {
        let path = Path::from(&scenario.network);
        let fresh = SlowStart {
            acks: scenario.stack.acks.into(),
            growth: scenario.stack.growth,
            initial_window: u64::from(scenario.stack.initial_window),
            // The model's value (`papers/heidemann-model#appendix`).
            ssthresh: Some(Bytes::new(64 * 1024)),
        };
        let mut found = Self::default();
        let mut start = fresh;
        for (index, object) in scenario.page.objects.iter().enumerate() {
            let is_fresh = index == 0 || scenario.protocol == Protocol::Http10;
            if is_fresh {
                start = fresh;
                found.full_too_early -= fresh.delay(&path, object.size).as_millis_f64();
            }
            let (wasted, saved) = stalls_to_the_end(&start, &path, object.size);
            if is_fresh {
                found.full_too_early += wasted;
            } else {
                found.kept_still_opens += wasted;
            }
            found.odd_waits -= saved;
            start.initial_window = start.window_after(&path, object.size);
        }
        found
    }

    fn parts(self) -> [Part; 3] {
        let Self { full_too_early, kept_still_opens, odd_waits } = self;
        [
            Part { name: "stalls of a path taken for full too early", adds_ms: full_too_early },
            Part { name: "stalls of a persistent connection", adds_ms: kept_still_opens },
            Part { name: "odd segments that wait for the next flight", adds_ms: odd_waits },
        ]
    }
}

/// Time lost in slow start until the reply has been sent, wherever the formula ends it, in milliseconds. And the part
/// of it that odd waiting segments saved.
fn stalls_to_the_end(start: &SlowStart, path: &Path, reply: Bytes) -> (f64, f64) {
    // The receiver waits for the second of a pair, under either bound for BSD.
    const PAIR: u64 = 2;
    let segments = reply.pieces_of(path.mss);
    let wasted = |alone: u64| (path.rtt - path.segments_time(alone)).as_millis_f64();
    let (mut all, mut saved) = (0.0, 0.0);
    for period in start.periods().take_while(|period| period.csegs < segments) {
        let waiting = period.cwnd.saturating_sub(period.segs);
        let plain = wasted(period.segs.saturating_sub(PAIR));
        all += plain;
        saved += plain - wasted((period.segs + waiting).saturating_sub(PAIR));
    }
    (all, saved)
}

/// The stack as the formula sees it: its lower bound for acknowledgements, unlimited buffers, no threshold.
fn known_to_the_model(stack: &Stack) -> Stack {
    let mut known = stack.clone();
    known.acks = Acks::NoDelayed;
    known.receive_buffer = Some(Bytes::new(1 << 24));
    known.window_scaling = true;
    known.packets.send_buffer = Bytes::new(1 << 24);
    known.packets.initial_threshold = None;
    known
}

fn with_stack(scenario: &Scenario, stack: Stack) -> Scenario {
    Scenario { stack, ..scenario.clone() }
}

/// The same page with the header section of each response in it, where the server has sent `down` bytes in all.
fn with_heads(scenario: &Scenario, down: u64) -> Scenario {
    let page = &scenario.page;
    let heads = down.saturating_sub(page.size().get());
    let head = heads / (page.objects.len() as u64).max(1);
    let longer = |object: &Object| Object { size: object.size + Bytes::new(head), ..object.clone() };
    let page = Page { objects: page.objects.iter().map(longer).collect(), contents: None, ..page.clone() };
    Scenario { page, ..scenario.clone() }
}

fn model_ms_of(scenario: &Scenario) -> Result<f64, String> {
    let prediction = predict(scenario, &Assumptions::default()).map_err(|refusal| refusal.to_string())?;
    Ok(prediction.elapsed.as_millis_f64())
}

/// The mean time of `runs` runs, and the payload that the server sent in the last.
fn simulated(scenario: &Scenario, runs: u32) -> Result<(f64, u64), String> {
    let experiment = Experiment::new(scenario, Hosts::default()).map_err(|error| error.to_string())?;
    let (mut total, mut down) = (0.0, 0);
    for run in 0..runs {
        let PageResult { elapsed, down: sent, .. } =
            experiment.run(run, false).map_err(|error| error.to_string())?;
        let elapsed = elapsed.ok_or_else(|| format!("{} did not arrive", scenario.page.name))?;
        total += elapsed.as_millis_f64();
        down = sent.payload_bytes;
    }
    Ok((total / f64::from(runs), down))
}

#[cfg(test)]
mod tests {
    use scenario::{Network, Page};

    use super::*;

    fn reasons(network: &str, page: &str) -> Reasons {
        let network = Network::named(network).unwrap();
        let page = Page::named(page).unwrap();
        let period = Stack::named("period").unwrap();
        Reasons::of(&scenario::Scenario::new(network, page, Protocol::Http10KeepAlive, period)).unwrap()
    }

    #[test]
    fn the_parts_add_up_to_the_difference() {
        let reasons = reasons("direcpc", "medium-cluster");
        let sum: f64 = reasons.parts.iter().map(|part| part.adds_ms).sum();
        assert!((reasons.model_ms + sum - reasons.simulated_ms).abs() < 1e-6, "{reasons}");
    }

    #[test]
    fn a_kept_alive_connection_stalls_on_a_long_path_after_its_first_response_too() {
        let reported = reasons("direcpc", "medium-cluster").to_string();
        assert!(reported.starts_with("stalls of a persistent connection +"), "{reported}");
    }
}
