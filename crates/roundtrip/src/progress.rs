//! Progress bar of a long measurement on stderr; nothing where stderr is not a terminal.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// Progress bar that disappears when it is dropped. Its unit is a microsecond of the predicted time. A run over a
/// modem counts for more than one over Ethernet, and the remaining time is known from the start.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Completion time of the last run, in microseconds since the start.
    last: Arc<AtomicU64>,
    /// Predicted time of all completed runs, in milliseconds.
    completed_ms: f64,
}

impl Progress {
    /// A bar at zero of `total_ms`, the time of all runs by the model.
    pub fn new(total_ms: f64) -> Self {
        let last = Arc::new(AtomicU64::new(0));
        let last_completed = Arc::clone(&last);
        let style = ProgressStyle::with_template("{bar:20} {percent:>3}%, {left} left: {prefix}{wide_msg}")
            .expect("the template is fixed")
            .with_key("left", move |state: &ProgressState, out: &mut dyn fmt::Write| {
                write_remaining_time(state, &last_completed, out)
            });
        let bar = ProgressBar::new(micros(total_ms)).with_style(style);
        if !bar.is_hidden() {
            // A run over a modem takes a minute: the time left counts down meanwhile.
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        Self { bar, last, completed_ms: 0.0 }
    }

    /// Shows the measurement in progress, and its number of runs.
    pub fn begin_measurement(&self, description: String, runs: u32) {
        self.bar.set_prefix(description);
        self.bar.set_message(format!(", 0 of {runs} runs"));
    }

    /// Completes all runs of a measurement, `all_ms` together, whatever their actual number.
    pub fn complete_measurement(&mut self, all_ms: f64) {
        self.completed_ms += all_ms;
        self.bar.set_position(micros(self.completed_ms));
    }

    /// Completes run `number` of `runs`, of `run_ms` by the model.
    pub fn complete_run(&self, run_ms: f64, number: u32, runs: u32) {
        self.last.store(whole_micros(self.bar.elapsed()), Ordering::Relaxed);
        self.bar.set_message(format!(", {number} of {runs} runs"));
        self.bar.inc(micros(run_ms));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Writes the predicted time of the remaining runs, less the time that the current one has taken.
fn write_remaining_time(state: &ProgressState, last: &AtomicU64, out: &mut dyn fmt::Write) {
    let remaining_micros = state.len().unwrap_or_default().saturating_sub(state.pos());
    let current_run = whole_micros(state.elapsed()).saturating_sub(last.load(Ordering::Relaxed));
    let remaining = Duration::from_micros(remaining_micros.saturating_sub(current_run));
    // A progress bar that cannot be drawn is not an error.
    let _ = write!(out, "{:#}", HumanDuration(remaining));
}

/// Progress of the rows of a grid: a bar on a terminal, and a sentence before a run longer than a minute.
#[derive(Debug)]
pub struct RowProgress {
    all: usize,
    done: usize,
    started: Instant,
    bar: Option<ProgressBar>,
    has_bar: bool,
}

/// Time after which a run's duration can be estimated.
const ESTIMATE_AFTER: Duration = Duration::from_millis(500);
/// Duration of a run that is announced.
const LONG: Duration = Duration::from_secs(60);

impl RowProgress {
    /// Progress of so many rows; without a bar of its own where each row has one.
    #[expect(clippy::disallowed_methods, reason = "progress shows how long the rest will take")]
    pub fn new(all: usize, has_bar: bool) -> Self {
        Self { all, done: 0, started: Instant::now(), bar: None, has_bar }
    }

    /// Counts rows.
    pub fn add(&mut self, rows: usize) {
        self.done += rows;
        let elapsed = self.started.elapsed();
        if self.bar.is_none() && elapsed > ESTIMATE_AFTER && self.done < self.all {
            let expected = elapsed.mul_f64(self.all as f64 / self.done.max(1) as f64);
            if expected > LONG {
                eprintln!("roundtrip: {} rows, in about {:#}", self.all, HumanDuration(expected));
            }
            let style = ProgressStyle::with_template("{bar:20} {pos} of {len} rows, {eta} left");
            let bar = if self.has_bar { ProgressBar::new(self.all as u64) } else { ProgressBar::hidden() };
            self.bar = Some(bar.with_style(style.expect("the template is fixed")));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
        }
    }
}

impl Drop for RowProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn micros(millis: f64) -> u64 {
    // The cast saturates, at 584,000 years.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let micros = (millis * 1e3) as u64;
    micros
}

fn whole_micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
