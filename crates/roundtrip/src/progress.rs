//! How far a long measurement is: a bar on stderr, and nothing where stderr is not a terminal.

use std::fmt;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// A bar that is gone when this is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Nothing done yet of `total_ms`, what all runs together should take by the model: runs over a modem count for more
    /// than runs over an Ethernet.
    pub fn new(total_ms: f64) -> Self {
        let style = ProgressStyle::with_template("{bar:20} {percent:>3}%, {left} left: {prefix}{wide_msg}")
            .expect("the template is fixed")
            .with_key("left", left);
        Self { bar: ProgressBar::new(micros(total_ms)).with_style(style) }
    }

    /// What is being measured, and how often.
    pub fn doing(&self, what: String, runs: u32) {
        self.bar.set_prefix(what);
        self.bar.set_message(format!(", 0 of {runs} runs"));
        self.bar.tick();
    }

    /// One more run, of `run_ms` by the model; it was the run `number` of so many.
    pub fn done(&self, run_ms: f64, number: u32, runs: u32) {
        self.bar.set_message(format!(", {number} of {runs} runs"));
        self.bar.inc(micros(run_ms));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// By how fast it went so far; before the first run is over, by the model.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    let expected = Duration::from_micros(state.len().unwrap_or_default());
    let left = if state.pos() == 0 { expected.saturating_sub(state.elapsed()) } else { state.eta() };
    // A bar that cannot be drawn is no bar.
    let _ = write!(out, "{:#}", HumanDuration(left));
}

/// Finer than milliseconds, because a run over an Ethernet takes few of them.
fn micros(millis: f64) -> u64 {
    // Saturates, and no one waits that long.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let micros = (millis * 1e3) as u64;
    micros
}
