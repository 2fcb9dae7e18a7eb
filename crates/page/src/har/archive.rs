//! The file around the entries: parsed in one pass, one entry in memory at a time.
//!
//! An entry that is valid JSON, but not valid HAR, is counted and skipped; invalid JSON ends the reading.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};

use http1::content::Coding;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use wire::Duration;

use super::entry::Entry;
use super::left_out::UnparsedEntries;
use super::phases::{millis, nanos_since_1970};
use super::raw::Loose;
use super::trace_events::Events;
use super::{HarError, MAX_ENTRIES};

/// Whether bodies are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bodies {
    Retained,
    /// Read to compress those of text, and to keep their sizes alone.
    Compressed(Coding),
    Skipped,
}

/// Parts of a file that are used.
#[derive(Debug, Default)]
pub(super) struct Archive {
    /// Pages in order.
    pub(super) pages: Vec<RecordedPage>,
    pub(super) entries: Vec<Entry>,
    pub(super) odd: UnparsedEntries,
}

pub(super) fn read(from: impl Read, bodies: Bodies) -> Result<Archive, HarError> {
    let malformed = |error: String| HarError::Malformed(error.replace(char::is_control, "?"));
    let from = without_mark(from).map_err(|error| malformed(error.to_string()))?;
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(from));
    let archive = Recording(bodies).deserialize(&mut json);
    archive.and_then(|archive| json.end().map(|()| archive)).map_err(|error| {
        let error = error.to_string();
        if error.contains(TOO_MANY) { HarError::TooMany { max: MAX_ENTRIES } } else { malformed(error) }
    })
}

/// Skips a byte order mark, which some tools put before UTF-8.
fn without_mark(mut from: impl Read) -> io::Result<impl Read> {
    let mut first = Vec::new();
    from.by_ref().take(MARK.len() as u64).read_to_end(&mut first)?;
    if first == MARK {
        first.clear();
    }
    Ok(Cursor::new(first).chain(from))
}

const MARK: &[u8] = "\u{feff}".as_bytes();
pub(super) const TOO_MANY: &str = "too many entries";

/// The whole file: an object with a `log`, or with events of a trace; or a list of such events. The last one counts if there are
/// several.
struct Recording(Bodies);

impl<'de> DeserializeSeed<'de> for Recording {
    type Value = Archive;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Archive, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Recording {
    type Value = Archive;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a log")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Archive, A::Error> {
        let mut archive = None;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "log" => archive = Some(map.next_value_seed(Log(self.0))?),
                "traceEvents" => archive = Some(map.next_value_seed(Events)?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        archive.ok_or_else(|| serde::de::Error::missing_field("log"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Archive, A::Error> {
        Events.visit_seq(list)
    }
}

/// The members below `log`.
#[derive(Clone, Copy)]
struct Log(Bodies);

impl<'de> DeserializeSeed<'de> for Log {
    type Value = Archive;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Archive, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Log {
    type Value = Archive;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with entries")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Archive, A::Error> {
        let (mut archive, mut pages) = (None, Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "entries" => archive = Some(map.next_value_seed(Entries(self.0))?),
                "pages" => pages = map.next_value::<Pages>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let archive = archive.ok_or_else(|| serde::de::Error::missing_field("entries"))?;
        Ok(Archive { pages, ..archive })
    }
}

struct Entries(Bodies);

impl<'de> DeserializeSeed<'de> for Entries {
    type Value = Archive;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Archive, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = Archive;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Archive, A::Error> {
        let mut archive = Archive::default();
        while let Some(json) = list.next_element::<Box<RawValue>>()? {
            let number = archive.entries.len() + archive.odd.count + 1;
            if number > MAX_ENTRIES {
                return Err(serde::de::Error::custom(TOO_MANY));
            }
            let entry = match self.0 {
                Bodies::Retained => Entry::with_body(json.get()),
                Bodies::Compressed(coding) => {
                    Entry::with_body(json.get()).map(|entry| entry.compressed(coding))
                }
                Bodies::Skipped => Entry::of_sizes(json.get()),
            };
            match entry {
                Ok(entry) => archive.entries.push(entry),
                Err(error) => archive.odd.add(number, &error),
            }
        }
        Ok(archive)
    }
}

impl UnparsedEntries {
    pub(super) fn add(&mut self, number: usize, error: &serde_json::Error) {
        self.count += 1;
        if self.count == 1 {
            self.first = format!("number {number}: {error}").replace(char::is_control, "?");
        }
    }
}

/// A page of the recording. A member of another type counts as missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RecordedPage {
    pub(super) id: Option<String>,
    /// Start, in nanoseconds since 1970.
    pub(super) start: Option<i64>,
    /// Events `DOMContentLoaded` and `load`, from the start.
    pub(super) content_loaded: Option<Duration>,
    pub(super) load: Option<Duration>,
}

/// The list of pages.
struct Pages(Vec<RecordedPage>);

impl<'de> Deserialize<'de> for Pages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pages = Vec::<Box<RawValue>>::deserialize(deserializer)?;
        Ok(Self(pages.iter().take(MAX_ENTRIES).map(|page| RecordedPage::of(page.get())).collect()))
    }
}

impl RecordedPage {
    fn of(json: &str) -> Self {
        #[derive(Default, Deserialize)]
        struct Page {
            #[serde(default)]
            id: Loose<String>,
            #[serde(rename = "startedDateTime", default)]
            started: Loose<String>,
            #[serde(rename = "pageTimings", default)]
            timings: Loose<PageTimings>,
        }
        #[derive(Default, Deserialize)]
        struct PageTimings {
            #[serde(rename = "onContentLoad", default)]
            content_loaded: Loose<f64>,
            #[serde(rename = "onLoad", default)]
            load: Loose<f64>,
        }
        let Page { id, started, timings } = serde_json::from_str(json).unwrap_or_default();
        let PageTimings { content_loaded, load } = timings.0.unwrap_or_default();
        let event = |time: Option<f64>| time.and_then(millis).filter(|time| *time > Duration::ZERO);
        let start = started.as_deref().and_then(nanos_since_1970);
        Self { id: id.0, start, content_loaded: event(content_loaded.0), load: event(load.0) }
    }
}
