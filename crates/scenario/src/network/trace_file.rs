//! Recorded delivery opportunities of a path, in mahimahi's format: one per line, in milliseconds.
//!
//! This crate opens no files. A specification has the files' names ([`Traces::named`]); [`Spec::read_traces`] adds their
//! contents, which [`read`] parses. Until then the path is invalid.
//!
//! [`Spec::read_traces`]: crate::Spec::read_traces

use std::fmt;
use std::sync::Arc;

use quantity::ValueError;
use wire::Rate;
use wire::link::{DeliverySchedule, ScheduleError};

use super::{HEADERS, Network};

/// Delivery opportunities in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// From the client to the server.
    pub up: TraceFile,
    /// From the server to the client.
    pub down: TraceFile,
}

/// A file, and its contents once it has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Name of the file.
    pub name: String,
    /// Its delivery opportunities.
    pub schedule: Option<Arc<DeliverySchedule>>,
}

/// A kbit/s, in thousandths of a bit per second.
const KBIT: u128 = 1_000_000;

/// Maximum size of a trace, in bytes.
pub const MAX_FILE_BYTES: u64 = 100_000_000;

/// Reads a trace: a time in milliseconds per line, ascending. Empty lines and those that begin with `#` are skipped.
///
/// # Errors
/// The first invalid line; or a list of times that is no schedule.
pub fn read(bytes: &[u8]) -> Result<DeliverySchedule, TraceError> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(TraceError::TooLarge);
    }
    let mut times = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let time =
            std::str::from_utf8(line).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let time = time.and_then(|text| text.parse().ok());
        let invalid = || TraceError::Line { number: index + 1, text: excerpt(line) };
        let time: u32 = time.ok_or_else(invalid)?;
        if times.last().is_some_and(|last| *last > time) {
            return Err(TraceError::NotAscending { number: index + 1 });
        }
        if times.len() >= DeliverySchedule::MAX_OPPORTUNITIES {
            return Err(TraceError::Schedule(ScheduleError::TooMany));
        }
        times.push(time);
    }
    DeliverySchedule::new(times).map_err(TraceError::Schedule)
}

fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(20).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Reason why a file is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Above [`MAX_FILE_BYTES`].
    #[error("larger than {} MB; cut the recording", MAX_FILE_BYTES / 1_000_000)]
    TooLarge,
    /// A line that is not a number of milliseconds below 2^32.
    #[error(
        "line {number}: \"{text}\" is not a time in whole milliseconds; a trace has one per line, as mahimahi's"
    )]
    Line {
        /// Number of the line, from 1.
        number: usize,
        /// Its first characters.
        text: String,
    },
    /// A line with a time before the previous one.
    #[error("line {number}: its time is before that of the previous one; sort the lines")]
    NotAscending {
        /// Number of the line, from 1.
        number: usize,
    },
    /// A list of times that is no schedule.
    #[error("{0}")]
    Schedule(ScheduleError),
}

impl Traces {
    /// Parses the names of the files: `up.trace,down.trace`, or one for both directions.
    ///
    /// # Errors
    /// A text that names no file, or more than two.
    pub fn named(text: &str) -> Result<Self, ValueError> {
        let (up, down) = text.split_once(',').unwrap_or((text, text));
        if up.is_empty() || down.is_empty() || down.contains(',') {
            let example = "one file for both directions, or two: up.trace,down.trace";
            return Err(ValueError::NotA { what: "a network trace", given: text.to_owned(), example });
        }
        let file = |name: &str| TraceFile { name: name.to_owned(), schedule: None };
        Ok(Self { up: file(up), down: file(down) })
    }

    /// Adds the contents of the files, which `read` returns by name.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<E>(
        &mut self,
        read: &mut impl FnMut(&str) -> Result<Arc<DeliverySchedule>, E>,
    ) -> Result<(), E> {
        let Self { up, down } = self;
        for file in [up, down] {
            file.schedule = Some(read(&file.name)?);
        }
        Ok(())
    }

    /// Whether both are of the same files.
    pub(crate) fn has_names_of(&self, other: &Self) -> bool {
        (&self.up.name, &self.down.name) == (&other.up.name, &other.down.name)
    }

    /// Name of a file that has not been read.
    pub(super) fn unread(&self) -> Option<&str> {
        let unread = [&self.up, &self.down].into_iter().find(|file| file.schedule.is_none());
        unread.map(|file| file.name.as_str())
    }
}

impl fmt::Display for Traces {
    /// Formats the notation of [`Traces::named`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { up, down } = self;
        if up.name == down.name { f.write_str(&up.name) } else { write!(f, "{},{}", up.name, down.name) }
    }
}

impl Network {
    /// Sets the rates to the traces' mean rates of payload, for the formulas, which know only a constant one.
    pub(crate) fn set_mean_rates(&mut self) {
        let Some(Traces { up, down }) = &self.traces else { return };
        let mss = u128::from(self.mss.get());
        let payload = |rate: Rate| {
            let millibits = u128::from(rate.millibits_per_second()) * mss / (mss + u128::from(HEADERS));
            // A mean of a recording is not exact to the bit: whole kbit/s, where that leaves three digits.
            let step = if millibits >= 100 * KBIT { KBIT } else { 1 };
            u64::try_from(millibits / step * step).ok().and_then(Rate::from_millibits_per_second)
        };
        let mean = |file: &super::TraceFile| file.schedule.as_ref().map(|schedule| schedule.mean_rate());
        let (up, down) = (mean(up).and_then(payload), mean(down).and_then(payload));
        self.rate = down.unwrap_or(self.rate);
        self.rate_up = up.filter(|up| Some(*up) != down);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::spec::Key;

    #[test]
    fn reads_a_time_per_line() {
        let schedule = read(b"# Verizon\n0\n 4\r\n\n4\n10").unwrap();
        assert_eq!(schedule, DeliverySchedule::new(vec![0, 4, 4, 10]).unwrap());
    }

    #[test]
    fn rejects_files_that_are_no_trace_naming_the_line() {
        for (text, part) in [
            (&b""[..], "a rate of zero"),
            (b"0\n0\n", "end with a later time"),
            (b"1\n2.5\n", "line 2: \"2.5\""),
            (b"1\n-2\n", "line 2: \"-2\""),
            (b"+1\n", "line 1"),
            (b"1\n\n# a\n9\n8\n", "line 5: its time is before"),
            (b"4294967296\n", "line 1"),
            (b"86400001\n", "more than a day"),
            (b"\xff\xfe1\n", "line 1"),
        ] {
            let sentence = read(text).unwrap_err().to_string();
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn traces_take_the_place_of_the_rates_once_they_are_read() {
        let mut spec = Spec::default();
        for (key, value) in [("network", "4g"), ("network-trace", "up,down")] {
            spec.set(Key::named(key).unwrap(), value).unwrap();
        }
        let error = spec.plan(&crate::Defaults::laboratory()).unwrap_err().to_string();
        assert!(error.contains("up") && error.contains("has not been read"), "{error}");
        let read = |name: &str| {
            let times = if name == "up" { vec![2] } else { vec![1] };
            DeliverySchedule::new(times).map(Arc::new)
        };
        spec.read_traces(read).unwrap();
        let network = spec.plan(&crate::Defaults::laboratory()).unwrap().scenarios[0].network.clone();
        assert_eq!(network.name, "4g+network-trace=up,down");
        let mss = network.mss.get();
        assert_eq!(network.rate, Rate::from_bits_per_second(12_000 * mss / (mss + 40) * 1_000).unwrap());
        let links = network.links();
        assert_eq!((links.up.rate, links.down.rate, links.down.framing), (None, None, 0));
        assert_eq!(links.up.schedule.unwrap().period(), wire::Duration::from_millis(2));
        assert_eq!(links.down.delay, Network::named("4g").unwrap().links().down.delay);
    }

    #[test]
    fn rate_and_trace_together_are_refused() {
        for keys in [&[("rtt", "20ms"), ("rate", "1mbit")][..], &[("network", "4g"), ("rate-up", "1mbit")]] {
            let mut spec = Spec::default();
            for (key, value) in keys.iter().chain(&[("network-trace", "a")]) {
                spec.set(Key::named(key).unwrap(), value).unwrap();
            }
            spec.read_traces(|_| DeliverySchedule::new(vec![1]).map(Arc::new)).unwrap();
            let error = spec.plan(&crate::Defaults::laboratory()).unwrap_err().to_string();
            assert!(error.contains("give one of them"), "{error}");
        }
    }

    #[test]
    fn custom_network_takes_its_rate_from_the_trace() {
        let mut spec = Spec::default();
        for (key, value) in [("rtt", "20ms"), ("network-trace", "a")] {
            spec.set(Key::named(key).unwrap(), value).unwrap();
        }
        let text = spec.to_toml();
        assert_eq!(Spec::from_toml(&text, "a file").unwrap(), spec, "{text}");
        spec.read_traces(|_| DeliverySchedule::new(vec![1]).map(Arc::new)).unwrap();
        let network = &spec.plan(&crate::Defaults::laboratory()).unwrap().scenarios[0].network;
        assert_eq!((network.name.as_str(), network.rate_up), ("custom+network-trace=a", None));
        assert!(network.rate < Rate::from_bits_per_second(12_000_000).unwrap());
    }
}
