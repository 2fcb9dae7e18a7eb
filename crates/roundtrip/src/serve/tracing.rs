//! Event log on standard error, of a server, a gateway, a cache or a NAT helper.
//!
//! Datagrams are not logged: at their rate a line for each would cost more than the response.

use tracing_subscriber::filter::LevelFilter;

use crate::cli::dhttp::TraceLevel;

/// Enables output of this level and above; disables it without a level.
pub fn begin(level: Option<TraceLevel>) {
    let max_level = match level {
        None => return,
        Some(TraceLevel::Warn) => LevelFilter::WARN,
        Some(TraceLevel::Info) => LevelFilter::INFO,
        Some(TraceLevel::Debug) => LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt().with_max_level(max_level).with_writer(std::io::stderr).with_ansi(false).init();
}
