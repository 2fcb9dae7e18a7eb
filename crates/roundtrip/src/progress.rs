//! How far a long measurement is: a bar on stderr, and nothing where stderr is not a terminal.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// A bar that is gone when this is dropped. Its unit is the microsecond that the model predicts: runs over a modem count
/// for more than runs over an Ethernet, and what is left is known before the first one is over.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// When the last run was over, in microseconds since the beginning.
    last: Arc<AtomicU64>,
    /// What is over altogether.
    before_ms: f64,
}

impl Progress {
    /// Nothing done yet of `total_ms`, what all runs together should take by the model.
    pub fn new(total_ms: f64) -> Self {
        let last = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&last);
        let style = ProgressStyle::with_template("{bar:20} {percent:>3}%, {left} left: {prefix}{wide_msg}")
            .expect("the template is fixed")
            .with_key("left", move |state: &ProgressState, out: &mut dyn fmt::Write| left(state, &seen, out));
        let bar = ProgressBar::new(micros(total_ms)).with_style(style);
        if !bar.is_hidden() {
            // A run over a modem takes a minute: what is left is counted down all the same.
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        Self { bar, last, before_ms: 0.0 }
    }

    /// What is being measured, and how often.
    pub fn doing(&self, what: String, runs: u32) {
        self.bar.set_prefix(what);
        self.bar.set_message(format!(", 0 of {runs} runs"));
    }

    /// No more runs of this: they were to take `all_ms` together, however many there really were.
    pub fn over(&mut self, all_ms: f64) {
        self.before_ms += all_ms;
        self.bar.set_position(micros(self.before_ms));
    }

    /// One more run, of `run_ms` by the model; it was the run `number` of so many.
    pub fn done(&self, run_ms: f64, number: u32, runs: u32) {
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

/// What the model says of the runs that are not over, less what the present one has had.
fn left(state: &ProgressState, last: &AtomicU64, out: &mut dyn fmt::Write) {
    let to_do = state.len().unwrap_or_default().saturating_sub(state.pos());
    let present = whole_micros(state.elapsed()).saturating_sub(last.load(Ordering::Relaxed));
    let left = Duration::from_micros(to_do.saturating_sub(present));
    // A bar that cannot be drawn is no bar.
    let _ = write!(out, "{:#}", HumanDuration(left));
}

fn micros(millis: f64) -> u64 {
    // Saturates, and no one waits that long.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let micros = (millis * 1e3) as u64;
    micros
}

fn whole_micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
