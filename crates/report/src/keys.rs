//! Connections of TLS that a key log decrypts, and why it does not decrypt others.

use std::collections::BTreeMap;

use diagnose::{KeyUse, Unread};
use serde_json::{Value, json};

use trace::text::counted;

/// Use of a key log for the connections of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyReport {
    /// Number of connections that were read to their end.
    pub read: u64,
    /// Number of connections that were read in part, by the reason.
    pub partly: BTreeMap<Unread, u64>,
    /// Number of connections that were not read, by the reason.
    pub unread: BTreeMap<Unread, u64>,
}

impl KeyReport {
    /// Counts a connection.
    pub fn add(&mut self, used: KeyUse) {
        match used {
            KeyUse::Read => self.read += 1,
            KeyUse::Partly(reason) => *self.partly.entry(reason).or_default() += 1,
            KeyUse::Unread(reason) => *self.unread.entry(reason).or_default() += 1,
        }
    }

    /// Returns a sentence on all connections.
    pub fn sentence(&self) -> String {
        let Self { read, partly, unread } = self;
        let all = read + partly.values().chain(unread.values()).sum::<u64>();
        if all == 0 {
            return "the key log was not used: no connection of TLS was captured".to_owned();
        }
        let reasons = |counts: &BTreeMap<Unread, u64>| {
            let reasons = counts.iter().map(|(reason, count)| format!("{count} ({})", reason.text()));
            reasons.collect::<Vec<_>>().join(", ")
        };
        let mut sentence = format!("read with the key log: {read} of {}", counted(all, "connection"));
        if !partly.is_empty() {
            sentence += &format!("; in part: {}", reasons(partly));
        }
        if !unread.is_empty() {
            sentence += &format!("; by the sizes of records only: {}", reasons(unread));
        }
        if *read == 0 && partly.is_empty() && unread.keys().all(|reason| *reason == Unread::NotLogged) {
            sentence += "; give the key log that was written while these packets were captured";
        }
        sentence
    }

    /// Returns the fields of the JSON.
    pub fn json(&self) -> Value {
        let Self { read, partly, unread } = self;
        let reasons = |counts: &BTreeMap<Unread, u64>| -> Value {
            let counts = counts.iter();
            counts.map(|(reason, count)| json!({ "reason": reason.text(), "connections": count })).collect()
        };
        json!({ "read": read, "partly_read": reasons(partly), "not_read": reasons(unread) })
    }
}

/// Returns the use of a key log for one connection, for the JSON.
pub fn name(used: KeyUse) -> String {
    match used {
        KeyUse::Read => "read".to_owned(),
        KeyUse::Partly(reason) => format!("partly read: {}", reason.text()),
        KeyUse::Unread(reason) => format!("not read: {}", reason.text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(used: &[KeyUse]) -> KeyReport {
        let mut report = KeyReport::default();
        used.iter().for_each(|used| report.add(*used));
        report
    }

    #[test]
    fn sentence_counts_connections_by_reason() {
        let not_logged = KeyUse::Unread(Unread::NotLogged);
        let some = report(&[KeyUse::Read, KeyUse::Partly(Unread::RecordsMissing), not_logged, not_logged]);
        assert_eq!(
            some.sentence(),
            "read with the key log: 1 of 4 connections; in part: 1 (records were not captured); by the sizes of records only: 2 \
             (not in the key log)"
        );
        assert!(report(&[not_logged]).sentence().ends_with("while these packets were captured"));
        assert!(report(&[]).sentence().contains("no connection of TLS"));
    }
}
