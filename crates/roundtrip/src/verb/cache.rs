//! `roundtrip cache`: what another server answers, kept as long as it may be, over DHTTP and plain HTTP on one port.
//!
//! SIGTERM and SIGINT end it once what was begun is finished; SIGHUP opens the log again, and nothing that is kept is lost.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use dhttp::counters::Counters;
use dhttp::log::Log;
use dhttp::{Cache, CacheConfig, Origin, Server, ServerConfig, Url};
use nix::sys::signal::{SigSet, Signal};
use scenario::names::Quoted;
use serde::Deserialize;
use tokio::runtime::Runtime;

use crate::cli::cache::Cache as Flags;
use crate::failure::Failure;
use crate::serve::metrics;
use crate::serve::settings::{address, is_private, open_log, read_file, thread_count};

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    origin: Option<String>,
    listen: Option<String>,
    memory: Option<String>,
    metrics: Option<String>,
    access_log: Option<PathBuf>,
    threads: Option<usize>,
    reach_private: Option<bool>,
}

/// How to run.
struct Settings {
    origin: Url,
    listen: SocketAddr,
    cache: CacheConfig,
    server: ServerConfig,
    metrics: Option<SocketAddr>,
    access_log: Option<PathBuf>,
}

impl Settings {
    /// From flags, and from the file that they name.
    fn read(flags: &Flags) -> Result<Self, Failure> {
        let written = flags.operation.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let Written { origin, listen, memory, metrics, access_log, threads, reach_private } = written;
        let Some(origin) = flags.origin.as_ref().or(origin.as_ref()) else {
            return Err(Failure::Value(
                "there is nobody to ask; name the server whose answers are kept, as in: roundtrip cache --origin \
                 http://127.0.0.1:3000"
                    .to_owned(),
            ));
        };
        let origin =
            origin.parse().map_err(|error: dhttp::UrlError| Failure::Value(format!("--origin: {error}")))?;
        let listen = flags.listen.as_ref().or(listen.as_ref());
        let listen = address("listen", listen.map_or("127.0.0.1:8080", |text| text))?;
        let usual = CacheConfig::default();
        let memory =
            flags.memory.as_ref().or(memory.as_ref()).map(|text| size("memory", text)).transpose()?;
        let threads = flags.threads.as_deref().map(thread_count).transpose()?.or(threads);
        let server = ServerConfig::internet();
        let server = ServerConfig { threads: threads.unwrap_or(server.threads), ..server };
        let reaches = flags.reach_private || reach_private.unwrap_or(false) || is_private(listen.ip());
        let metrics = flags.operation.metrics.as_ref().or(metrics.as_ref());
        Ok(Self {
            origin,
            listen,
            cache: CacheConfig { memory: memory.unwrap_or(usual.memory), ..usual },
            server: if reaches { server.reaching_anywhere() } else { server },
            metrics: metrics.map(|text| address("metrics", text)).transpose()?,
            access_log: flags.operation.access_log.clone().or(access_log),
        })
    }

    fn log(&self) -> Result<Option<Arc<Log>>, Failure> {
        self.access_log.as_deref().map(open_log).transpose()
    }

    fn sentence(&self, listen: SocketAddr) -> String {
        let origin = self.origin.authority();
        format!("keeping what http://{origin}/ answers, at http://{listen}/ and dhttp://{listen}/")
    }
}

/// Runs until a signal ends it.
pub fn run(flags: &Flags) -> Result<(), Failure> {
    let settings = Settings::read(flags)?;
    let (listen, log) = (settings.listen, settings.log()?);
    if flags.operation.check {
        return crate::output::to_stdout(&format!("{}\n", settings.sentence(listen)));
    }
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    // Before there are threads, so that only this one hears them.
    signals.thread_block().map_err(|error| Failure::Network(format!("cannot wait for signals: {error}")))?;
    let runtime =
        Runtime::new().map_err(|error| Failure::Network(format!("cannot start threads: {error}")))?;
    let cache = {
        let _inside = runtime.enter();
        Origin::new(&settings.origin)
            .and_then(|origin| Cache::new(origin, settings.cache.clone(), runtime.handle().clone()))
            .map_err(|error| Failure::Network(error.to_string()))?
    };
    let server = Server::start(listen, settings.server, cache.clone(), log).map_err(|error| {
        Failure::Network(format!("cannot listen at {listen}: {error}; choose another address with --listen"))
    })?;
    if let Some(address) = settings.metrics {
        let (counters, kept) = (server.counters(), cache.metrics());
        metrics::serve(address, move || Counters::text(&counters) + &kept())?;
    }
    eprintln!("roundtrip: {}", settings.sentence(server.address()));
    loop {
        match signals.wait() {
            Ok(Signal::SIGHUP) => reload(&server, flags, &cache),
            Ok(_) => break,
            Err(error) => return Err(Failure::Network(format!("cannot wait for signals: {error}"))),
        }
    }
    eprintln!("roundtrip: finishing what was begun");
    server.stop();
    Ok(())
}

/// What cannot be read leaves everything as it is: a slip in a file must not end a server.
fn reload(server: &Server<Cache<Origin>>, flags: &Flags, cache: &Cache<Origin>) {
    match Settings::read(flags).and_then(|settings| settings.log()) {
        Ok(log) => {
            server.reload(cache.clone(), log);
            eprintln!("roundtrip: opened the log again; anything else that has changed takes a restart");
        }
        Err(failure) => eprintln!("roundtrip: {failure}; everything stays as it was"),
    }
}

/// `64KiB`, `256MiB`, `2GiB`, or bytes.
fn size(what: &str, text: &str) -> Result<u64, Failure> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: Option<u64> = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    digits.parse().ok().zip(unit).and_then(|(number, unit): (u64, u64)| number.checked_mul(unit)).ok_or_else(
        || Failure::Value(format!("--{what}: {} is no size; give one such as 256MiB", Quoted(text))),
    )
}
