//! Known findings: a JSON file under version control, one line each, sorted, so that a change is a short diff.
//!
//! It holds no addresses and no times: both differ from run to run.

use std::collections::BTreeSet;
use std::io::{self, Read};

use diagnose::{Cause, Side};
use quantity::names;
use serde_json::Value;

use super::{Key, PortClass};

/// A set of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline(BTreeSet<Key>);

/// Version of the file's format.
const VERSION: u64 = 1;
/// Maximum size of a file, in bytes; each of some ten thousand lines has about a hundred.
const MAX_BYTES: u64 = 1 << 20;

impl Baseline {
    /// Creates a baseline with these keys.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The system's error, or the fault in the file.
    pub fn read(file: impl Read) -> Result<Self, BaselineError> {
        let mut text = String::new();
        // One byte more than the limit shows that a file is too large.
        let mut file = file.take(MAX_BYTES + 1);
        file.read_to_string(&mut text).map_err(BaselineError::Io)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(BaselineError::TooLarge);
        }
        Self::parse(&text)
    }

    /// Reads the contents of a file.
    ///
    /// # Errors
    /// The fault in the text.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| BaselineError::Json(error.to_string()))?;
        if value["roundtrip_baseline"] != VERSION {
            return Err(BaselineError::Version);
        }
        let findings = value["findings"].as_array().ok_or(BaselineError::Version)?;
        let keys = findings.iter().enumerate().map(|(index, finding)| {
            key(finding).map_err(|what| BaselineError::Finding { number: index + 1, what })
        });
        keys.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the contents of a file.
    pub fn text(&self) -> String {
        let line = |Key { cause, side, port }: &Key| {
            format!("    {{\"cause\": \"{}\", \"side\": \"{side}\", \"port\": \"{port}\"}}", cause.name())
        };
        let lines: Vec<String> = self.0.iter().map(line).collect();
        let list = if lines.is_empty() { String::new() } else { format!("\n{}\n  ", lines.join(",\n")) };
        format!("{{\n  \"roundtrip_baseline\": {VERSION},\n  \"findings\": [{list}]\n}}\n")
    }

    /// Returns whether it contains a key.
    pub fn contains(&self, key: &Key) -> bool {
        self.0.contains(key)
    }

    /// Returns whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the keys of another baseline.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

fn key(finding: &Value) -> Result<Key, String> {
    let text = |name: &str| finding[name].as_str().ok_or_else(|| format!("no text `{name}`"));
    let cause = names::find("cause", text("cause")?, &Cause::ALL, Cause::name);
    let side = names::find("side", text("side")?, &[Side::Client, Side::Server], side_name);
    let port = match text("port")? {
        "ephemeral" => PortClass::Ephemeral,
        number => PortClass::of(number.parse().map_err(|_| "`port` is neither a port nor `ephemeral`")?),
    };
    Ok(Key {
        cause: cause.map_err(|unknown| unknown.to_string())?,
        side: side.map_err(|unknown| unknown.to_string())?,
        port,
    })
}

const fn side_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// Reason why a file is not a valid baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The system's error.
    #[error(transparent)]
    Io(io::Error),
    /// More than 1 MiB.
    #[error("more than {MAX_BYTES} bytes; write it with --write-baseline")]
    TooLarge,
    /// Not JSON.
    #[error("not JSON ({0}); write it with --write-baseline")]
    Json(String),
    /// Another kind or version of file.
    #[error("not a baseline of version {VERSION}; write it with --write-baseline")]
    Version,
    /// One of its findings is invalid.
    #[error("finding {number}: {what}")]
    Finding {
        /// Its position, from 1.
        number: usize,
        /// The fault.
        what: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_read_as_it_was_written() {
        let key = |cause, side, port| Key { cause, side, port: PortClass::of(port) };
        let keys = [
            key(Cause::NagleDelayedAck, Side::Server, 8_080),
            key(Cause::ServerThink, Side::Server, 50_000),
            key(Cause::ServerThink, Side::Server, 40_000),
        ];
        for keys in [&keys[..], &[]] {
            let baseline = Baseline::new(keys.iter().copied());
            assert_eq!(Baseline::parse(&baseline.text()).unwrap(), baseline);
        }
        let text = Baseline::new(keys).text();
        assert_eq!(text.matches("\"cause\"").count(), 2, "ephemeral ports are one: {text}");
    }

    #[test]
    fn wrong_files_are_refused_with_a_sentence() {
        let finding = |finding: &str| format!("{{\"roundtrip_baseline\": 1, \"findings\": [{finding}]}}");
        let reported = |text: &str| Baseline::parse(text).unwrap_err().to_string();
        for (text, message) in [
            (String::new(), "not JSON"),
            ("[1]".to_owned(), "not a baseline of version 1"),
            ("{\"roundtrip_baseline\": 2, \"findings\": []}".to_owned(), "not a baseline of version 1"),
            (finding("7"), "finding 1: no text `cause`"),
            (finding("{\"cause\": \"nagel\", \"side\": \"server\", \"port\": \"80\"}"), "did you mean"),
            (finding("{\"cause\": \"nagle\", \"side\": \"serve\", \"port\": \"80\"}"), "did you mean"),
            (finding("{\"cause\": \"nagle\", \"side\": \"server\", \"port\": \"http\"}"), "neither a port"),
        ] {
            assert!(reported(&text).contains(message), "{text}: {}", reported(&text));
        }
    }
}
