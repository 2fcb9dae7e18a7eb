//! A load run in progress, as a few lines for a terminal: the last second, and graphs of those before it.
//!
//! Numbers in, text out. The caller displays it; the result is printed at the end.

use std::collections::VecDeque;
use std::fmt;

use render::output::number;
use render::terminal::{Colour, Terminal};
use wire::Duration;

use crate::progress::Progress;
use crate::second::{Bottleneck, Second, limit};

/// The lines; `title` is the URL, `lasts` the duration of the schedule.
pub fn lines(progress: &Progress, title: &str, lasts: Duration, terminal: Terminal) -> Vec<String> {
    let width = terminal.width.unwrap_or(WIDTH).min(WIDTH);
    let sheet = TextLayout { width, terminal };
    let Progress { over, seconds, experienced, channels, failure_counts, connections, open } = progress;
    let none = Second::default();
    let last = seconds.back().unwrap_or(&none);
    let title: String = title.replace(char::is_control, "?").chars().take(width).collect();
    let mut lines = vec![terminal.bold(&title), sheet.time(*over, lasts)];
    let now = [last.responses, last.due].map(count);
    lines.push(sheet.line("responses", &format!("{} a second, {} due", now[0], now[1])));
    lines.push(sheet.graph("", seconds, |second| Some(second.responses as f64)));
    lines.push(sheet.line("latency, ms", &row(["50%", "99%", "99.9%"].map(str::to_owned))));
    for (name, of) in [("  service", experienced.as_ref()), ("  response", Some(&last.intended))] {
        let at = |share: f64| match of {
            Some(of) if !of.is_empty() => number::significant(of.value_at_quantile(share) as f64 / 1e6),
            Some(_) | None => "-".to_owned(),
        };
        lines.push(sheet.line(name, &row([0.5, 0.99, 0.999].map(at))));
    }
    let slow = |second: &Second| {
        (!second.intended.is_empty()).then(|| second.intended.value_at_quantile(0.99) as f64 / 1e6)
    };
    lines.push(sheet.graph("    99%", seconds, slow));
    lines.push(sheet.line("connections", &format!("{} open, {} opened", count(*open), count(*connections))));
    let total: u64 = channels.values().sum();
    let shares = channels.iter().filter(|(_, responses)| **responses > 0);
    let share = |responses: u64| format!("{:.1}%", 100.0 * responses as f64 / total as f64);
    let shares = shares.map(|(channel, responses)| format!("{} {}", channel.name(), share(*responses)));
    lines.extend(sheet.list("channels", &format!("{}:", count(total)), shares));
    let failed: u64 = failure_counts.values().sum();
    if failed > 0 {
        let kinds = failure_counts.iter().filter(|(_, failures)| **failures > 0);
        let kinds = kinds.map(|(kind, failures)| format!("{} {}", count(*failures), kind.name()));
        lines.extend(sheet.list("failed", &format!("{}:", count(failed)), kinds));
    }
    lines.extend(sheet.limits(seconds));
    lines
}

/// Maximum line width, however wide the terminal.
const WIDTH: usize = 80;
/// Width of a label.
const LABEL: usize = 13;
/// Width of a number in a row.
const CELL: usize = 8;
/// Width of the scale after a graph.
const SCALE: usize = 11;
/// Column heights of a graph.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn count(count: u64) -> String {
    number::count(count as f64)
}

fn row(cells: [String; 3]) -> String {
    cells.map(|cell| format!("{cell:>CELL$}")).concat()
}

/// Layout of the lines.
#[derive(Clone, Copy)]
struct TextLayout {
    width: usize,
    terminal: Terminal,
}

impl TextLayout {
    fn line(self, label: &str, text: &str) -> String {
        let text: String = text.trim_end().chars().take(self.buffer()).collect();
        self.labelled(label, &text)
    }

    /// A line whose text is known to fit: escape sequences in it take no width.
    fn labelled(self, label: &str, text: &str) -> String {
        let label = if text.is_empty() { label.to_owned() } else { format!("{label:LABEL$}") };
        let label: String = label.chars().take(self.width).collect();
        self.terminal.dim(&label) + text
    }

    /// Width beside a label, in columns.
    fn buffer(self) -> usize {
        self.width.saturating_sub(LABEL)
    }

    /// Width of a graph, in columns.
    fn graph_width(self) -> usize {
        self.buffer().saturating_sub(SCALE)
    }

    /// Elapsed and remaining time of the plan.
    fn time(self, over: u64, lasts: Duration) -> String {
        let lasts = lasts.as_nanos().div_ceil(1_000_000_000);
        let reported = match lasts.saturating_sub(over) {
            0 => "waiting for the last".to_owned(),
            left => format!("{} left", Clock(left)),
        };
        let label = format!("{} of {}", Clock(over), Clock(lasts));
        let buffer = self.buffer().saturating_sub(reported.chars().count() + 1);
        let done = usize::try_from(buffer as u64 * over.min(lasts) / lasts.max(1)).unwrap_or(buffer);
        let bar = "━".repeat(done) + &self.terminal.dim(&"─".repeat(buffer.saturating_sub(done)));
        if buffer == 0 {
            return reported.chars().take(self.width).collect();
        }
        format!("{label:LABEL$}{bar} {reported}")
    }

    /// The newest seconds, from zero to their maximum; blank where there is no value.
    fn graph(
        self,
        label: &str,
        seconds: &VecDeque<Second>,
        value: impl Fn(&Second) -> Option<f64>,
    ) -> String {
        let values: Vec<f64> = self.newest(seconds).map(|second| value(second).unwrap_or(0.0)).collect();
        let max = values.iter().copied().fold(0.0, f64::max);
        let bar = |value: &f64| {
            let height = (value / max * BARS.len() as f64).ceil();
            // From 1 to 8, or blank: without a maximum there is no share.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let index = height.clamp(0.0, BARS.len() as f64) as usize;
            index.checked_sub(1).map_or(' ', |index| BARS[index])
        };
        let bars: String = values.iter().map(bar).collect();
        let scale = if max > 0.0 { format!(" to {}", number::significant(max)) } else { String::new() };
        self.line(label, &(bars + &scale))
    }

    fn newest(self, seconds: &VecDeque<Second>) -> impl Iterator<Item = &Second> {
        seconds.range(seconds.len().saturating_sub(self.graph_width())..)
    }

    /// Words in a list, on as many lines as needed.
    fn list(self, label: &str, first: &str, words: impl Iterator<Item = String>) -> Vec<String> {
        let (mut lines, mut line) = (Vec::new(), first.to_owned());
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let word = if words.peek().is_some() { word + "," } else { word };
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > self.buffer() {
                lines.push(std::mem::take(&mut line));
            }
            line = if line.is_empty() { word } else { format!("{line} {word}") };
        }
        lines.push(line);
        let labels = [label].into_iter().chain(std::iter::repeat(""));
        lines.iter().zip(labels).map(|(line, label)| self.line(label, line)).collect()
    }

    /// The bottleneck of each second, and the number of seconds for each.
    fn limits(self, seconds: &VecDeque<Second>) -> Vec<String> {
        let limits: Vec<Bottleneck> = self.newest(seconds).map(limit).collect();
        let letters = limits.iter().map(|limit| {
            let (letter, colour) = match limit {
                Bottleneck::Nothing => return self.terminal.dim("·"),
                Bottleneck::Server => ("s", Colour::Yellow),
                Bottleneck::Network => ("n", Colour::Magenta),
                Bottleneck::Generator => ("g", Colour::Red),
            };
            self.terminal.coloured(colour, letter)
        });
        let line = self.labelled("bottleneck", &letters.collect::<String>());
        let named = Bottleneck::ALL.into_iter().rev().filter_map(|limit| {
            let count = limits.iter().filter(|other| **other == limit).count();
            (count > 0).then(|| format!("{} in {count}", limit.name()))
        });
        [vec![line], self.list("", "", named)].concat()
    }
}

/// Seconds as clock time: `7 s`, `1:05`, `1:00:00`.
struct Clock(u64);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(seconds) = self;
        match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
            (0, 0, seconds) => write!(f, "{seconds} s"),
            (0, minutes, seconds) => write!(f, "{minutes}:{seconds:02}"),
            (hours, minutes, seconds) => write!(f, "{hours}:{minutes:02}:{seconds:02}"),
        }
    }
}

/// Escape sequences and text that write `lines` over those on the screen, which a narrowed terminal has wrapped.
pub fn overwrite(line_widths: &[usize], width: Option<usize>, height: usize, lines: &[String]) -> String {
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
pub fn columns(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::record::{Channel, FailureReason};

    use super::*;

    fn progress(seconds: u64) -> Progress {
        let second = |number: u64| {
            let (responses, millis) = (900 + number * 7 % 300, 1 + number * number % 23);
            let due = if number % 9 == 7 { 2 * responses } else { responses };
            let late = if number % 11 == 5 { responses / 2 } else { 0 };
            let dropped = u64::from(number % 13 == 8);
            let mut second = Second { due, late, responses, dropped, ..Second::default() };
            second.intended.record(millis * 1_000_000).unwrap();
            second
        };
        let seconds: VecDeque<Second> = (0..seconds).map(second).collect();
        Progress {
            over: seconds.len() as u64,
            experienced: seconds.back().map(|second| second.intended.clone()),
            seconds,
            channels: BTreeMap::from([(Channel::Udp, 9_123), (Channel::TcpOpened, 877)]),
            failure_counts: FailureReason::ALL.into_iter().zip(1_000..).collect(),
            connections: 104,
            open: 100,
        }
    }

    const URL: &str = "http://127.0.0.1:3000/api";
    const LASTS: Duration = Duration::from_secs(120);

    fn plain(width: usize) -> Terminal {
        Terminal { width: Some(width), colour: false }
    }

    #[test]
    fn a_load_is_shown_in_a_few_lines() {
        let expected = [
            URL,
            "30 s of 2:00 ━━━━━━━━━━━━━━─────────────────────────────────────────── 1:30 left",
            "responses    1,103 a second, 1,103 due",
            "             ▇▇▇▇▇▇▇▇▇▇████████████████████ to 1,100",
            "latency, ms       50%     99%   99.9%",
            "  service        14.0    14.0    14.0",
            "  response       14.0    14.0    14.0",
            "    99%      ▁▁▃▅█▂▆▂█▆▄▃▃▄▆█▂▆▂█▅▃▁▁▁▃▅█▂▆ to 19.0",
            "connections  100 open, 104 opened",
            "channels     10,000: udp 91.2%, tcp-opened 8.8%",
            "failed       7,021: 1,000 refused, 1,001 closed, 1,002 garbage, 1,003 status,",
            "             1,004 size, 1,005 timeout, 1,006 exhausted",
            "bottleneck   ·····g·sn·······g····n···s·g··",
            "             generator in 3, network in 2, server in 2, nothing in 23",
        ];
        assert_eq!(lines(&progress(30), URL, LASTS, plain(80)), expected);
    }

    #[test]
    fn a_narrow_terminal_shows_every_line() {
        let expected = [
            URL,
            "30 s of 2:00 ━━━━───────────── 1:30 left",
            "responses    1,103 a second, 1,103 due",
            "             ████████████████ to 1,100",
            "latency, ms       50%     99%   99.9%",
            "  service        14.0    14.0    14.0",
            "  response       14.0    14.0    14.0",
            "    99%      ▆█▂▆▂█▅▃▁▁▁▃▅█▂▆ to 19.0",
            "connections  100 open, 104 opened",
            "channels     10,000: udp 91.2%,",
            "             tcp-opened 8.8%",
            "failed       7,021: 1,000 refused,",
            "             1,001 closed,",
            "             1,002 garbage,",
            "             1,003 status, 1,004 size,",
            "             1,005 timeout,",
            "             1,006 exhausted",
            "bottleneck   ··g····n···s·g··",
            "             generator in 2,",
            "             network in 1, server in 1,",
            "             nothing in 12",
        ];
        assert_eq!(lines(&progress(30), URL, LASTS, plain(40)), expected);
    }

    #[test]
    fn lines_fit_the_terminal_and_colour_changes_no_text() {
        for (width, over) in (0..100).zip([0, 1, 30, 200].into_iter().cycle()) {
            let text = lines(&progress(over), URL, LASTS, plain(width));
            for line in &text {
                assert!(line.chars().count() <= width, "{width}: `{line}`");
            }
            let coloured = lines(&progress(over), URL, LASTS, Terminal { width: Some(width), colour: true });
            let bare = coloured.join("\n").split('\x1b').fold(String::new(), |bare, part| {
                match part.split_once('m') {
                    Some((code, rest)) if code.starts_with('[') => bare + rest,
                    Some(_) | None => bare + part,
                }
            });
            assert_eq!(bare, text.join("\n"));
        }
    }

    #[test]
    fn without_responses_no_nan_is_shown() {
        let shown = lines(&Progress::default(), URL, Duration::ZERO, plain(80)).join("\n");
        assert!(!shown.contains("NaN") && !shown.contains("inf"), "{shown}");
    }

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
