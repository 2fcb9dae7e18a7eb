//! Filter of a diagnosis: connections, causes, and a time.

use std::fmt;

use diagnose::{Cause, FlowReport};
use quantity::ValueError;
use quantity::names::{self, UnknownName};
use wire::{Duration, Time};

/// Nothing set wants everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Parts of `client:port server:port`; any of them.
    pub flows: Vec<String>,
    /// Any of them.
    pub causes: Vec<Cause>,
    /// Only what happened later than this after the first packet.
    pub since: Option<Duration>,
    /// Only connections that were captured from their opening on.
    pub is_whole: bool,
}

impl Filter {
    /// From texts: parts of connections, names of causes, a duration.
    ///
    /// # Errors
    /// An unknown cause, or an invalid duration.
    pub fn new(flows: &[String], causes: &[String], since: Option<&str>) -> Result<Self, FilterError> {
        let known =
            |name: &String| names::find("cause", name, &Cause::ALL, Cause::name).map_err(FilterError::Cause);
        let causes = causes.iter().map(known).collect::<Result<_, _>>()?;
        let since = since.map(quantity::duration).transpose();
        let since = since.map_err(FilterError::Since)?;
        Ok(Self { flows: flows.to_vec(), causes, since, is_whole: false })
    }

    /// From when on anything is asked for, in a capture that began at `started`.
    pub fn from(&self, started: Time) -> Time {
        self.since.map_or(Time::ZERO, |since| started + since)
    }

    /// Whether a connection of a capture that began at `started` is asked for.
    pub fn wants(&self, flow: &FlowReport, started: Time) -> bool {
        let name = format!("{} {}", flow.client, flow.server);
        let has_cause = flow.counts.iter().any(|count| self.causes.contains(&count.cause));
        let is_late = flow.started + flow.elapsed >= self.from(started);
        is_late
            && (flow.is_whole || !self.is_whole)
            && (self.flows.is_empty() || self.flows.iter().any(|part| name.contains(part.as_str())))
            && (self.causes.is_empty() || has_cause)
    }

    /// Leaves out findings that are not asked for.
    pub fn narrow(&self, flow: &mut FlowReport) {
        if !self.causes.is_empty() {
            flow.findings.retain(|finding| self.causes.contains(&finding.cause));
            flow.counts.retain(|count| self.causes.contains(&count.cause));
        }
    }
}

/// Why texts are no [`Filter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// There is no such cause.
    Cause(UnknownName),
    /// Not a duration.
    Since(ValueError),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cause(unknown) => unknown.fmt(f),
            Self::Since(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FilterError {}
