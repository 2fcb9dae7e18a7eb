//! Filter of a diagnosis: connections, causes, and a time.

use diagnose::{Cause, FlowReport};
use quantity::ValueError;
use quantity::names::{self, UnknownName};
use wire::{Duration, Time};

/// The default filter selects everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Parts of `client:port server:port`, of which at least one must match.
    pub flows: Vec<String>,
    /// Causes, of which at least one must match.
    pub causes: Vec<Cause>,
    /// Select only events later than this after the first packet.
    pub since: Option<Duration>,
    /// Select only connections that were captured from their opening on.
    pub is_whole: bool,
}

impl Filter {
    /// Parses a filter from parts of connections, names of causes, and a duration.
    ///
    /// # Errors
    /// An unknown cause, or an invalid duration.
    pub fn new(flows: &[String], causes: &[String], since: Option<&str>) -> Result<Self, FilterError> {
        let known =
            |name: &String| names::find("cause", name, &Cause::ALL, Cause::name).map_err(FilterError::Cause);
        let causes = causes.iter().map(known).collect::<Result<_, _>>()?;
        let since = since.map(quantity::offset).transpose();
        let since = since.map_err(FilterError::Since)?;
        Ok(Self { flows: flows.to_vec(), causes, since, is_whole: false })
    }

    /// Returns the earliest selected time, in a capture that began at `started`.
    pub fn from(&self, started: Time) -> Time {
        self.since.map_or(Time::ZERO, |since| started + since)
    }

    /// Returns whether a connection of a capture that began at `started` is selected, whatever its causes.
    pub fn selects(&self, flow: &FlowReport, started: Time) -> bool {
        let is_named = || {
            let name = format!("{} {}", flow.client, flow.server);
            self.flows.iter().any(|part| name.contains(part.as_str()))
        };
        let is_late = flow.started + flow.elapsed >= self.from(started);
        is_late && (flow.is_whole || !self.is_whole) && (self.flows.is_empty() || is_named())
    }

    /// Returns whether a connection has one of the selected causes.
    pub fn has_cause(&self, flow: &FlowReport) -> bool {
        self.causes.is_empty() || flow.counts.iter().any(|count| self.causes.contains(&count.cause))
    }

    /// Removes findings that are not selected.
    pub fn narrow(&self, flow: &mut FlowReport) {
        if !self.causes.is_empty() {
            flow.findings.retain(|finding| self.causes.contains(&finding.cause));
            flow.counts.retain(|count| self.causes.contains(&count.cause));
        }
    }
}

/// Reason why texts are not a valid [`Filter`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Unknown cause.
    #[error("{0}")]
    Cause(UnknownName),
    /// Not a duration.
    #[error("{0}")]
    Since(ValueError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_selected_hours_after_the_first_packet() {
        let since = |text| Filter::new(&[], &[], Some(text)).map(|filter| filter.since);
        assert_eq!(since("30h"), Ok(Some(Duration::from_secs(30 * 3_600))));
        assert!(since("9000h").unwrap_err().to_string().contains("8760h"));
    }
}
