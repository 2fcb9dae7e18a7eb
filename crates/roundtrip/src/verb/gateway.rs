//! `roundtrip gateway`: a proxy on this host that lets HTTP programs use DHTTP.
//!
//! SIGTERM and SIGINT stop it once pending requests are finished; SIGHUP reloads the configuration and reopens the log.
//! Servers that are known to speak DHTTP are stored in the same file as those of `roundtrip get`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dhttp::ClientConfig;
use dhttp::client::{Observer, ServersFile};
use dhttp::log::Log;
use dhttp_proto::{ClientConfig as DhttpConfig, Prefix};
use dhttp_proxy::{CacheConfig, GatewayConfig};

use crate::cli::dhttp::{Gateway, Profile};
use crate::failure::Failure;
use crate::serve::layers::{Layer as _, layered, reloaded};
use crate::serve::limits::gateway_limited;
use crate::serve::settings::{address, open_log, port_list, thread_count};
use crate::serve::signals::Signals;
use crate::serve::{cache_storage, known_servers, metrics, networks, privileges};
use crate::verb::get::{port_range, show};
use dhttp_proxy::confinement::Paths;

/// Flags whose changed values need a restart.
const RESTART: &[&str] = &["threads", "cache", "memory", "disk", "disk-size", "targets", "metrics"];

/// Time to finish pending requests after a stop signal.
const GRACE: Duration = Duration::from_secs(5);

/// Settings.
struct Settings {
    /// Flags and file.
    read: Gateway,
    listen: SocketAddr,
    config: GatewayConfig,
    metrics: Option<SocketAddr>,
    access_log: Option<PathBuf>,
}

impl Settings {
    /// Reads the flags, and the file that they name.
    fn read(flags: &Gateway) -> Result<Self, Failure> {
        let read = layered(flags, flags.operation.config.as_deref())?;
        let listen = address("listen", read.listen.as_deref().unwrap_or("127.0.0.1:3128"))?;
        let allowed = networks::networks("allow", read.allow.iter().map(String::as_str))?;
        if !is_loopback(listen) && allowed.is_empty() {
            return Err(Failure::Value(format!(
                "--listen: {listen} is public, so other hosts could use the gateway; listen at a loopback address, or \
                 name the permitted clients with --allow, such as 203.0.113.0/24"
            )));
        }
        let operation = &read.operation;
        Ok(Self {
            listen,
            config: gateway_limited(config(&read, listen, allowed)?, &read.limit)?,
            metrics: operation.metrics.as_ref().map(|text| address("metrics", text)).transpose()?,
            access_log: operation.access_log.clone(),
            read,
        })
    }

    /// Returns the files that it needs: its own, those of name resolution, and the known servers.
    fn paths(&self, config: Option<&Path>) -> Paths {
        let paths = Paths::new(config, self.access_log.as_deref()).for_requests();
        let paths = paths.listening([self.listen].into_iter().chain(self.metrics));
        let disk = self.config.cache.as_ref().and_then(|cache| cache.disk.as_ref());
        let paths = disk.into_iter().fold(paths, |paths, (file, _)| paths.write_file(file));
        ServersFile::Programs
            .directory()
            .into_iter()
            .fold(paths, |paths, directory| paths.write_below(&directory))
    }

    fn log(&self) -> Result<Option<Arc<Log>>, Failure> {
        self.access_log.as_deref().map(open_log).transpose()
    }
}

/// Runs until a signal ends it.
pub fn run(flags: &Gateway) -> Result<(), Failure> {
    crate::serve::tracing::begin(flags.operation.trace);
    privileges::retain_capabilities(privileges::SERVER);
    let settings = Settings::read(flags)?;
    let (listen, log) = (settings.listen, settings.log()?);
    if flags.operation.check {
        return crate::output::to_stdout(&format!("{}\n", sentence(listen)));
    }
    privileges::confine(&settings.paths(flags.operation.config.as_deref()));
    let signals = Signals::block()?;
    let observer: Option<Observer> = flags.verbose.then(|| Arc::new(show) as Observer);
    let known = known_servers::load(ServersFile::Programs);
    let gateway = dhttp_proxy::Gateway::start(listen, settings.config, known.clone(), observer, log)
        .map_err(|error| {
            // An error of the storage file has no OS error number, and is already a complete sentence.
            Failure::Network(match error.raw_os_error() {
                Some(_) => {
                    format!("cannot listen at {listen}: {error}; choose another address with --listen")
                }
                None => error.to_string(),
            })
        })?;
    if let Some(address) = settings.metrics {
        metrics::serve(address, gateway.metrics())?;
    }
    eprintln!("roundtrip: {}", sentence(gateway.address()));
    signals.wait_for_end(|| {
        ServersFile::Programs.save(&known, &gateway.known());
        reload(&gateway, flags, &settings.read, listen)
    })?;
    ServersFile::Programs.save(&known, &gateway.known());
    eprintln!("roundtrip: finishing pending requests");
    gateway.stop(GRACE);
    Ok(())
}

fn reload(
    gateway: &dhttp_proxy::Gateway,
    flags: &Gateway,
    running: &Gateway,
    listen: SocketAddr,
) -> Result<String, Failure> {
    let settings = Settings::read(flags)?;
    // Permitted clients and reachable addresses were derived from that address.
    if settings.listen != listen {
        return Err(Failure::Value(format!("--listen: a change from {listen} requires a restart")));
    }
    let log = settings.log()?;
    let reloaded_ports = gateway.reload(settings.config, log);
    reloaded_ports.map_err(|error| Failure::Network(format!("cannot listen at other ports: {error}")))?;
    Ok(reloaded(&running.changed(&settings.read, RESTART)))
}

/// Builds the configuration; a gateway for other hosts reaches no address of this host or site.
fn config(read: &Gateway, listen: SocketAddr, allowed: Vec<Prefix>) -> Result<GatewayConfig, Failure> {
    let client = match read.profile.unwrap_or(Profile::Internet) {
        Profile::Internet => ClientConfig::internet(),
        Profile::Paper => ClientConfig::paper(),
    };
    let ports = read.ports.as_deref().map(port_range).transpose()?;
    let caches = read.caches.as_deref().map(networks::caches).transpose()?;
    let dhttp = DhttpConfig { responders: caches.unwrap_or(client.dhttp.responders), ..client.dhttp };
    let reaches_private = read.force || is_loopback(listen);
    let races = client.races && !read.no_race;
    let client = ClientConfig { dhttp, ports, reaches_private, races, ..client };
    let cache = cache(read)?;
    let connect_ports = match read.connect_ports.as_deref() {
        Some("any") => None,
        Some(text) => Some(port_list("connect-ports", text)?),
        // RFC 9110, section 9.3.6: tunnels are for known ports only.
        None if reaches_private => None,
        None => Some(vec![443]),
    };
    let threads = read.threads.as_deref().map_or(Ok(1), thread_count)?;
    Ok(GatewayConfig { threads, allowed, cache, connect_ports, ..GatewayConfig::new(client) })
}

/// Whether only programs on this host can reach this address.
fn is_loopback(listen: SocketAddr) -> bool {
    listen.ip().to_canonical().is_loopback()
}

/// Cache settings, if caching is on.
fn cache(read: &Gateway) -> Result<Option<CacheConfig>, Failure> {
    if read.cache {
        return cache_storage::config(read.storage.clone(), &[]).map(Some);
    }
    match cache_storage::first_given(&read.storage) {
        Some(name) => Err(Failure::Value(format!("{name}: no cache; add --cache, or leave it out"))),
        None => Ok(None),
    }
}

fn sentence(listen: SocketAddr) -> String {
    format!("HTTP proxy at http://{listen}/; browsers use http://{listen}/proxy.pac")
}
