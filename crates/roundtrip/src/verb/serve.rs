//! `roundtrip serve`: files, or responses of another server, over DHTTP and plain HTTP on one port.
//!
//! SIGTERM and SIGINT stop it once pending requests are finished; SIGHUP reloads the configuration and reopens the log.

use std::sync::{Arc, Mutex};

use dhttp::Server;
use dhttp::counters::Counters;
use tokio::runtime::Runtime;

use crate::cli::dhttp::Serve;
use crate::failure::Failure;
use crate::serve::layers::{Layer as _, reloaded};
use crate::serve::response_source::ResponseSource;
use crate::serve::settings::{RESTART, Settings};
use crate::serve::signals::Signals;
use crate::serve::{metrics, privileges};

/// Serves until a signal ends it.
pub fn run(flags: &Serve) -> Result<(), Failure> {
    crate::serve::tracing::begin(flags.operation.trace);
    privileges::retain_capabilities(privileges::SERVER);
    let settings = Settings::read(flags)?;
    let config = settings.config()?;
    if !flags.operation.check {
        dhttp::port_holder::check(settings.listen).map_err(Failure::Network)?;
    }
    privileges::confine(&settings.paths(flags.operation.config.as_deref()));
    let signals = Signals::block()?;
    // Runs requests to another server.
    let runtime =
        Runtime::new().map_err(|error| Failure::Network(format!("cannot start threads: {error}")))?;
    let source = ResponseSource::open(settings.source(), &runtime)?;
    if flags.operation.check {
        return crate::output::to_stdout(&format!("{}\n", settings.sentence(settings.listen)));
    }
    let listen = settings.listen;
    settings.fetches()?.install();
    // The current source of responses, for the metrics; a reload replaces it.
    let current = Arc::new(Mutex::new(source.clone()));
    let server = Server::start(listen, config, source, settings.log()?).map_err(|error| {
        Failure::Network(format!("cannot listen at {listen}: {error}; choose another address with --listen"))
    })?;
    if let Some(address) = settings.metrics {
        let counters = server.counters();
        let current = Arc::clone(&current);
        metrics::serve(address, move || {
            let source_metrics = current.lock().map_or_else(|_| String::new(), |source| source.metrics());
            Counters::text(&counters) + &source_metrics + &dhttp_proxy::fetches::metrics()
        })?;
    }
    eprintln!("roundtrip: {}", settings.sentence(server.address()));
    signals.wait_for_end(|| reload(&server, flags, &settings, &runtime, &current))?;
    eprintln!("roundtrip: finishing pending requests");
    server.stop();
    Ok(())
}

fn reload(
    server: &Server<ResponseSource>,
    flags: &Serve,
    running: &Settings,
    runtime: &Runtime,
    current: &Mutex<ResponseSource>,
) -> Result<String, Failure> {
    let settings = Settings::read(flags)?;
    let (source, log) = (ResponseSource::open(settings.source(), runtime)?, settings.log()?);
    if let Ok(mut current) = current.lock() {
        *current = source.clone();
    }
    server.reload(source, log);
    Ok(reloaded(&running.read.changed(&settings.read, RESTART)))
}
