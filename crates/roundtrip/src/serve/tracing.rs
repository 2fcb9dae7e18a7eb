//! What goes on in a server, a gateway, a cache or a router's helper besides answers, as lines on standard error.
//!
//! Not the access log, and not the counters. Datagrams are in neither: at their rate a line for each would cost more than the
//! answer.

use tracing_subscriber::filter::LevelFilter;

use crate::cli::dhttp::TraceLevel;

/// From now on lines of this level and above are written; of none, if none was asked for.
pub fn begin(level: Option<TraceLevel>) {
    let most = match level {
        None => return,
        Some(TraceLevel::Warn) => LevelFilter::WARN,
        Some(TraceLevel::Info) => LevelFilter::INFO,
        Some(TraceLevel::Debug) => LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt().with_max_level(most).with_writer(std::io::stderr).with_ansi(false).init();
}
