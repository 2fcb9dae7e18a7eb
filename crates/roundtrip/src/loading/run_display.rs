//! Progress display of a load run, and its interruption by signals.
//!
//! [`view`] makes the contents. Without a terminal on standard error nothing is displayed. Lines overwrite the previous
//! ones in a single write, which does not flicker. indicatif clears first, and its full-width lines merge when a terminal
//! is widened.

use std::io::Write;
use std::process;
use std::sync::{Arc, OnceLock};
use std::thread;

use linux::clock::calendar;
use load::progress::{Progress, Stop};
use load::report::view;
use nix::sys::signal::{SigSet, Signal};
use render::terminal::Terminal;
use wire::Duration;

use crate::failure::Failure;

/// Display of a run; dropping erases it.
#[derive(Debug)]
pub struct RunDisplay {
    /// The URL.
    title: String,
    duration: Duration,
    /// Width of each line on the screen, in columns.
    line_widths: Vec<usize>,
}

impl RunDisplay {
    /// Starts the display of a run of this URL and duration, which begins at `at` since 1970, or now.
    pub fn new(title: &str, duration: Duration, at: Option<Duration>) -> Self {
        let mut display = Self { title: title.to_owned(), duration, line_widths: Vec::new() };
        let wait = at.map_or(Duration::ZERO, |at| at.saturating_sub(calendar())).as_nanos() / 1_000_000_000;
        if wait > 0 {
            display.draw(|_| vec![format!("the run begins in {wait} s")]);
        }
        display
    }

    /// Shows the progress; the terminal may have another size by now.
    pub fn show(&mut self, progress: &Progress) {
        let (title, duration) = (self.title.clone(), self.duration);
        self.draw(|terminal| view::lines(progress, &title, duration, terminal));
    }

    fn draw(&mut self, lines: impl FnOnce(Terminal) -> Vec<String>) {
        let Some((terminal, height)) = crate::terminal::interactive_stderr() else { return };
        let mut lines = lines(terminal);
        // The cursor takes a line of its own; lines scrolled off the screen cannot be overwritten.
        lines.truncate(height.saturating_sub(1));
        let text = view::overwrite(&self.line_widths, terminal.width, height, &lines);
        self.line_widths = lines.iter().map(|line| view::columns(line)).collect();
        // A closed standard error is not an error of the run.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for RunDisplay {
    fn drop(&mut self) {
        self.draw(|_| Vec::new());
    }
}

/// The received SIGINT or SIGTERM, if any.
#[derive(Clone, Debug)]
pub struct StopSignal(Arc<OnceLock<Signal>>);

/// Sets `stop` on the first of these signals; only the second ends this program. Must be called before any thread starts, so
/// that no other thread receives them.
pub fn listen(stop: Stop) -> Result<StopSignal, Failure> {
    let cannot = |error| Failure::Network(format!("cannot wait for signals: {error}"));
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_block().map_err(cannot)?;
    let received = StopSignal(Arc::default());
    let receiver = received.clone();
    thread::spawn(move || {
        while let Ok(signal) = signals.wait() {
            if stop.stop() {
                process::exit(status(signal).into());
            }
            receiver.0.get_or_init(|| signal);
        }
    });
    Ok(received)
}

impl StopSignal {
    /// The exit status of an interrupted run: that of a shell for a process killed by a signal, so that scripts stop, too.
    pub fn status(&self) -> u8 {
        status(self.0.get().copied().unwrap_or(Signal::SIGINT))
    }
}

fn status(signal: Signal) -> u8 {
    // Signal numbers are at most 64.
    128 + u8::try_from(signal as i32).unwrap_or(0)
}
