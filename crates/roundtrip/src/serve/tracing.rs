//! Events of a server, a gateway, a cache or a NAT helper other than responses, as lines on standard error.
//!
//! Neither the access log nor the metrics. Datagrams are in neither: at their rate a line for each would cost more than
//! the response.

use tracing_subscriber::filter::LevelFilter;

use crate::cli::dhttp::TraceLevel;

/// Enables output of this level and above; disables it without a level.
pub fn begin(level: Option<TraceLevel>) {
    let most = match level {
        None => return,
        Some(TraceLevel::Warn) => LevelFilter::WARN,
        Some(TraceLevel::Info) => LevelFilter::INFO,
        Some(TraceLevel::Debug) => LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt().with_max_level(most).with_writer(std::io::stderr).with_ansi(false).init();
}
