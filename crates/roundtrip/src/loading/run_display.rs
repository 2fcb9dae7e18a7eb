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
        let text = overwrite(&self.line_widths, terminal.width, height, &lines);
        self.line_widths = lines.iter().map(|line| columns(line)).collect();
        // A closed standard error is not an error of the run.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for RunDisplay {
    fn drop(&mut self) {
        self.draw(|_| Vec::new());
    }
}

/// Escape sequences and text that write `lines` over those on the screen, which a narrowed terminal has wrapped.
fn overwrite(line_widths: &[usize], width: Option<usize>, height: usize, lines: &[String]) -> String {
    let rows = |columns: &usize| columns.div_ceil(width.unwrap_or(usize::MAX).max(1)).max(1);
    let up = line_widths.iter().map(rows).sum::<usize>().min(height.saturating_sub(1));
    let mut text = if up > 0 { format!("\r\x1b[{up}A") } else { String::new() };
    for line in lines {
        text += &format!("\x1b[K{line}\r\n");
    }
    if up > 0 {
        text += "\x1b[J";
    }
    text
}

/// Columns of a line, without its escape sequences.
fn columns(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_overwrite_the_previous_ones() {
        let lines = ["a".to_owned(), "\x1b[31mb\x1b[0mc".to_owned()];
        assert_eq!(overwrite(&[], Some(80), 24, &lines), "\x1b[Ka\r\n\x1b[K\x1b[31mb\x1b[0mc\r\n");
        assert_eq!(columns(&lines[1]), 2);
        assert_eq!(overwrite(&[80, 0], Some(80), 24, &[]), "\r\x1b[2A\x1b[J");
        // A narrower terminal, a lower one, and one of unknown size.
        assert_eq!(overwrite(&[80, 30], Some(40), 24, &[]), "\r\x1b[3A\x1b[J");
        assert_eq!(overwrite(&[80, 30], Some(40), 3, &[]), "\r\x1b[2A\x1b[J");
        assert_eq!(overwrite(&[80, 30], Some(0), 0, &[]), "");
    }
}
