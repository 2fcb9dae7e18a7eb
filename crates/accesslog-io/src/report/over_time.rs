//! Connections over time as rows, for programs: the maximum in each minute that has a request, under the time-out
//! nearest to Apache's.

use accesslog::connections::Counts;
use wire::Bytes;

use render::output::csv;

/// One minute.
#[derive(Clone, Debug, PartialEq)]
pub struct Minute {
    /// Beginning of the minute, in seconds since 1970.
    pub minute_s: u64,
    /// `http` where every response goes by TCP, else `dhttp`.
    pub protocol: &'static str,
    /// The timeout, in seconds.
    pub timeout_s: f64,
    /// Maximum number of connections that a client opens.
    pub connections_per_client: u64,
    /// Responses of at least this size go by TCP; 0 for HTTP.
    pub threshold_bytes: u64,
    /// Maximum number of simultaneous connections in this minute.
    pub max_simultaneous: u64,
}

/// Names of the columns.
pub const COLUMNS: [&str; 6] =
    ["minute_s", "protocol", "timeout_s", "connections_per_client", "threshold_bytes", "max_simultaneous"];

/// The rows, by threshold, then by limit, then by time.
pub fn minutes(counts: &Counts) -> Vec<Minute> {
    let mut minutes = Vec::new();
    for stream in &counts.streams {
        for line in &stream.lines {
            minutes.extend(line.curve.minutes.iter().map(|(minute, max)| Minute {
                minute_s: minute * 60,
                protocol: if stream.threshold == Bytes::ZERO { "http" } else { "dhttp" },
                timeout_s: line.curve.timeout.as_secs_f64(),
                connections_per_client: line.limit as u64,
                threshold_bytes: stream.threshold.get(),
                max_simultaneous: *max,
            }));
        }
    }
    minutes
}

/// The rows as comma-separated values.
pub fn lines(minutes: &[Minute]) -> String {
    let cells = |minute: &Minute| {
        let Minute {
            minute_s,
            protocol,
            timeout_s,
            connections_per_client,
            threshold_bytes,
            max_simultaneous,
        } = minute;
        [
            minute_s.to_string(),
            (*protocol).to_owned(),
            timeout_s.to_string(),
            connections_per_client.to_string(),
            threshold_bytes.to_string(),
            max_simultaneous.to_string(),
        ]
    };
    csv::table(COLUMNS, minutes.iter().map(cells))
}
