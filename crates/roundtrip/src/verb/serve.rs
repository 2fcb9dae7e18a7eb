//! `roundtrip serve`: the files below a folder, or what another server answers, over DHTTP and plain HTTP on one port.
//!
//! SIGTERM and SIGINT end it once what was begun is finished; SIGHUP reads the configuration and opens the log again.

use std::sync::{Arc, Mutex};

use dhttp::Server;
use dhttp::counters::Counters;
use nix::sys::signal::{SigSet, Signal};
use tokio::runtime::Runtime;

use crate::cli::dhttp::Serve;
use crate::failure::Failure;
use crate::serve::served::Served;
use crate::serve::{metrics, settings::Settings};

/// Serves until a signal ends it.
pub fn run(flags: &Serve) -> Result<(), Failure> {
    crate::serve::tracing::begin(flags.operation.trace);
    let settings = Settings::read(flags)?;
    let config = settings.config()?;
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    // Before there are threads, so that only this one hears them.
    signals.thread_block().map_err(|error| Failure::Network(format!("cannot wait for signals: {error}")))?;
    // Its threads work only for another server's answers.
    let runtime =
        Runtime::new().map_err(|error| Failure::Network(format!("cannot start threads: {error}")))?;
    let served = Served::open(settings.source(), &runtime)?;
    if flags.operation.check {
        return crate::output::to_stdout(&format!("{}\n", settings.sentence(settings.listen)));
    }
    let listen = settings.listen;
    // What is served now, for whoever counts: another after a reload.
    let current = Arc::new(Mutex::new(served.clone()));
    let server = Server::start(listen, config, served, settings.log()?).map_err(|error| {
        Failure::Network(format!("cannot listen at {listen}: {error}; choose another address with --listen"))
    })?;
    if let Some(address) = settings.metrics {
        let counters = server.counters();
        let current = Arc::clone(&current);
        metrics::serve(address, move || {
            let of_source = current.lock().map_or_else(|_| String::new(), |served| served.metrics());
            Counters::text(&counters) + &of_source
        })?;
    }
    eprintln!("roundtrip: {}", settings.sentence(server.address()));
    loop {
        match signals.wait() {
            Ok(Signal::SIGHUP) => reload(&server, flags, &runtime, &current),
            Ok(_) => break,
            Err(error) => return Err(Failure::Network(format!("cannot wait for signals: {error}"))),
        }
    }
    eprintln!("roundtrip: finishing what was begun");
    server.stop();
    Ok(())
}

/// What cannot be read leaves everything as it is: a slip in a file must not end a server.
fn reload(server: &Server<Served>, flags: &Serve, runtime: &Runtime, current: &Mutex<Served>) {
    let read = Settings::read(flags)
        .and_then(|settings| Ok((Served::open(settings.source(), runtime)?, settings.log()?)));
    match read {
        Ok((served, log)) => {
            if let Ok(mut current) = current.lock() {
                *current = served.clone();
            }
            server.reload(served, log);
            eprintln!(
                "roundtrip: read the configuration again; an address or a profile that has changed takes a restart"
            );
        }
        Err(failure) => eprintln!("roundtrip: {failure}; everything stays as it was"),
    }
}
