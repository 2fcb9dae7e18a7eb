//! Event log on standard error, of a server, a gateway, a cache or a NAT helper.
//!
//! Datagrams are not logged: at their rate a line for each would cost more than the response.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::dhttp::TraceLevel;

/// Enables output of this level and above; without a level, of changes that an operator must know of
/// ([`dhttp_proxy::OPERATION`]).
pub fn begin(level: Option<TraceLevel>) {
    let max_level = match level {
        None => {
            let only = Targets::new().with_target(dhttp_proxy::OPERATION, LevelFilter::INFO);
            return tracing_subscriber::fmt()
                .log_internal_errors(false)
                .with_writer(std::io::stderr)
                .with_ansi(false)
                .finish()
                .with(only)
                .init();
        }
        Some(TraceLevel::Warn) => LevelFilter::WARN,
        Some(TraceLevel::Info) => LevelFilter::INFO,
        Some(TraceLevel::Debug) => LevelFilter::DEBUG,
    };
    // Errors of the log are not reported on stderr, which may be the closed pipe that caused them: that would panic.
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).log_internal_errors(false);
    log.with_max_level(max_level).with_ansi(false).init();
}
