//! Every metric of an outcome, with its name and unit. Output with columns takes them from here.

use crate::Outcome;
use crate::setting::{self, Setting};
use crate::waterfall::Wait;

/// A metric of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Time of the page.
    Elapsed,
    /// Time over the minimum's.
    Overhead,
    /// Round trips without useful transmission.
    RoundTrips,
    /// Packets that the client sent.
    PacketsUp,
    /// Packets that the server sent.
    PacketsDown,
    /// Payload of TCP or UDP, both directions.
    Payload,
    /// Share of headers in all bytes.
    HeaderShare,
    /// Connections opened.
    Connections,
    /// Number of runs for the means.
    Runs,
    /// Standard deviation of the time.
    Deviation,
    /// Time of the load event.
    Load,
    /// Share of the critical path of the first run that waited for this.
    CriticalPath(Wait),
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Bytes.
    Bytes,
    /// Percent.
    Percent,
    /// A ratio of two times.
    Ratio,
    /// A mean of counts.
    Count,
    /// A whole number.
    Whole,
}

impl Metric {
    /// Every metric of every row, in the order of rows.
    pub const ALL: [Self; 11] = [
        Self::Elapsed,
        Self::Overhead,
        Self::RoundTrips,
        Self::PacketsUp,
        Self::PacketsDown,
        Self::Payload,
        Self::HeaderShare,
        Self::Connections,
        Self::Runs,
        Self::Deviation,
        Self::Load,
    ];

    /// The metrics of rows with these settings: those of every row, and where a page is a graph, the shares of its critical path.
    pub fn of_rows(settings: &[Setting]) -> impl Iterator<Item = Self> + Clone + use<> {
        let waits: &[Wait] = if setting::have_graphs(settings) { &Wait::ALL } else { &[] };
        Self::ALL.into_iter().chain(waits.iter().copied().map(Self::CriticalPath))
    }

    /// Key in JSON, and heading in CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elapsed => "elapsed_ms",
            Self::Overhead => "overhead",
            Self::RoundTrips => "round_trips",
            Self::PacketsUp => "packets_up",
            Self::PacketsDown => "packets_down",
            Self::Payload => "payload_bytes",
            Self::HeaderShare => "overhead_percent",
            Self::Connections => "connections",
            Self::Runs => "runs",
            Self::Deviation => "elapsed_ms_stddev",
            Self::Load => "load_ms",
            Self::CriticalPath(Wait::Think) => "critical_path_think_percent",
            Self::CriticalPath(Wait::Queue) => "critical_path_queue_percent",
            Self::CriticalPath(Wait::Dns) => "critical_path_dns_percent",
            Self::CriticalPath(Wait::Connect) => "critical_path_connect_percent",
            Self::CriticalPath(Wait::Tls) => "critical_path_tls_percent",
            Self::CriticalPath(Wait::Request) => "critical_path_request_percent",
            Self::CriticalPath(Wait::Server) => "critical_path_server_percent",
            Self::CriticalPath(Wait::Blocked) => "critical_path_blocked_percent",
            Self::CriticalPath(Wait::Transfer) => "critical_path_transfer_percent",
        }
    }

    /// Meaning, as a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Elapsed => {
                "Time from the first packet of the first request to the last byte of the last response; the mean over the \
                 runs."
            }
            Self::Overhead => {
                "`elapsed_ms` over that of the protocol `minimum` in the same scenario, by the model."
            }
            Self::RoundTrips => "Round trips without useful transmission.",
            Self::PacketsUp => "Packets the client sent.",
            Self::PacketsDown => "Packets the server sent.",
            Self::Payload => "Payload of TCP or UDP, both directions.",
            Self::HeaderShare => {
                "Share of headers in all bytes: 40 x packets / (payload + 40 x packets), in percent (W3C note)."
            }
            Self::Connections => "Connections opened.",
            Self::Runs => "Number of runs for the means.",
            Self::Deviation => {
                "The standard deviation of `elapsed_ms` over the runs; null for fewer than two."
            }
            Self::Load => {
                "Time of the load event, where it is not the end of the last object: the last byte of what it waits for, and the \
                 client's recorded work from there."
            }
            Self::CriticalPath(wait) => wait.meaning(),
        }
    }

    /// Unit of its values.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Elapsed | Self::Deviation | Self::Load => Unit::Milliseconds,
            Self::Overhead => Unit::Ratio,
            Self::RoundTrips | Self::PacketsUp | Self::PacketsDown | Self::Connections => Unit::Count,
            Self::Payload => Unit::Bytes,
            Self::HeaderShare | Self::CriticalPath(_) => Unit::Percent,
            Self::Runs => Unit::Whole,
        }
    }

    /// Value in an outcome; `None` where the engine does not know it.
    pub fn value(self, outcome: &Outcome) -> Option<f64> {
        let metrics = &outcome.metrics;
        match self {
            Self::Elapsed => metrics.elapsed_ms,
            Self::Overhead => outcome.overhead,
            Self::RoundTrips => metrics.round_trips,
            Self::PacketsUp => metrics.packets_up,
            Self::PacketsDown => metrics.packets_down,
            Self::Payload => metrics.payload_bytes,
            Self::HeaderShare => metrics.overhead_percent(),
            Self::Connections => metrics.connections,
            Self::Runs => Some(f64::from(metrics.runs)),
            Self::Deviation => metrics.elapsed_ms_stddev,
            Self::Load => metrics.load_ms,
            Self::CriticalPath(wait) => outcome.waterfall.as_ref().map(|waterfall| waterfall.share(wait)),
        }
    }
}
