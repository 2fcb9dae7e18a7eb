//! `roundtrip gateway`: a proxy on this machine by which programs that know only HTTP use DHTTP.
//!
//! SIGTERM and SIGINT end it once what was begun is finished; SIGHUP reads the configuration and opens the log again.
//! Servers that said once that they speak DHTTP are remembered in the same file as those of `roundtrip get`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dhttp::ClientConfig;
use dhttp::client::Watch;
use dhttp::log::Log;
use dhttp_proto::{ClientConfig as MachineConfig, Prefix};
use dhttp_proxy::{CacheConfig, GatewayConfig};
use serde::Deserialize;

use crate::cli::dhttp::{Gateway, Profile};
use crate::failure::Failure;
use crate::serve::settings::{address, named_profile, open_log, port_list, read_file};
use crate::serve::signals::Signals;
use crate::serve::{keeping, known, metrics, networks, privileges};
use crate::verb::get::{port_range, show};

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    listen: Option<String>,
    ports: Option<String>,
    profile: Option<String>,
    caches: Option<String>,
    allow: Option<Vec<String>>,
    connect_ports: Option<String>,
    cache: Option<bool>,
    memory: Option<String>,
    disk: Option<PathBuf>,
    disk_size: Option<String>,
    targets: Option<String>,
    metrics: Option<String>,
    access_log: Option<PathBuf>,
}

/// So long it finishes what was begun.
const GRACE: Duration = Duration::from_secs(5);

/// Settings.
struct Settings {
    listen: SocketAddr,
    config: GatewayConfig,
    metrics: Option<SocketAddr>,
    access_log: Option<PathBuf>,
}

impl Settings {
    /// From flags, and from the file that they name.
    fn read(flags: &Gateway) -> Result<Self, Failure> {
        let written: Written =
            flags.operation.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let listen = flags.listen.as_ref().or(written.listen.as_ref());
        let listen = address("listen", listen.map_or("127.0.0.1:3128", |text| text))?;
        let allowed = allowed(flags, &written)?;
        if !is_loopback(listen) && allowed.is_empty() {
            return Err(Failure::Value(format!(
                "--listen: {listen} can be reached by others, who could use the gateway to hide; listen at a loopback \
                 address, or name those who may use it with --allow, such as 203.0.113.0/24"
            )));
        }
        let metrics = flags.operation.metrics.as_ref().or(written.metrics.as_ref());
        Ok(Self {
            listen,
            config: config(flags, &written, listen, allowed)?,
            metrics: metrics.map(|text| address("metrics", text)).transpose()?,
            access_log: flags.operation.access_log.clone().or(written.access_log),
        })
    }

    fn log(&self) -> Result<Option<Arc<Log>>, Failure> {
        self.access_log.as_deref().map(open_log).transpose()
    }
}

/// Runs until a signal ends it.
pub fn run(flags: &Gateway) -> Result<(), Failure> {
    crate::serve::tracing::begin(flags.operation.trace);
    privileges::keep(privileges::SERVER);
    let settings = Settings::read(flags)?;
    let (listen, log) = (settings.listen, settings.log()?);
    if flags.operation.check {
        return crate::output::to_stdout(&format!("{}\n", sentence(listen)));
    }
    let signals = Signals::expect()?;
    let watch: Option<Watch> = flags.verbose.then(|| Arc::new(show) as Watch);
    let before = known::load();
    let gateway = dhttp_proxy::Gateway::start(listen, settings.config, before.clone(), watch, log).map_err(
        |error| {
            // What a file for answers lacks is a sentence already, and no word of the system.
            Failure::Network(match error.raw_os_error() {
                Some(_) => {
                    format!("cannot listen at {listen}: {error}; choose another address with --listen")
                }
                None => error.to_string(),
            })
        },
    )?;
    if let Some(address) = settings.metrics {
        metrics::serve(address, gateway.metrics())?;
    }
    eprintln!("roundtrip: {}", sentence(gateway.address()));
    signals.until_the_end(|| {
        known::save(&before, &gateway.known());
        reload(&gateway, flags, listen)
    })?;
    known::save(&before, &gateway.known());
    eprintln!("roundtrip: finishing what was begun");
    gateway.stop(GRACE);
    Ok(())
}

fn reload(
    gateway: &dhttp_proxy::Gateway,
    flags: &Gateway,
    listen: SocketAddr,
) -> Result<&'static str, Failure> {
    let settings = Settings::read(flags)?;
    // Who may use it, and to reach what, was judged by that address.
    if settings.listen != listen {
        return Err(Failure::Value(format!("--listen: a change from {listen} takes a restart")));
    }
    let log = settings.log()?;
    let reloaded = gateway.reload(settings.config, log);
    reloaded.map_err(|error| Failure::Network(format!("cannot listen at other ports: {error}")))?;
    Ok("read the configuration again; an address of metrics or a cache that has changed takes a restart")
}

/// Configuration in which a gateway for other hosts reaches no address of this host or site.
fn config(
    flags: &Gateway,
    written: &Written,
    listen: SocketAddr,
    allowed: Vec<Prefix>,
) -> Result<GatewayConfig, Failure> {
    let profile = match (flags.profile, &written.profile) {
        (Some(profile), _) => profile,
        (None, Some(name)) => named_profile(name)?,
        (None, None) => Profile::Internet,
    };
    let client = match profile {
        Profile::Internet => ClientConfig::internet(),
        Profile::Paper => ClientConfig::paper(),
    };
    let ports = flags.ports.as_ref().or(written.ports.as_ref());
    let ports = ports.map(|text| port_range(text)).transpose()?;
    let caches = flags.caches.as_ref().or(written.caches.as_ref());
    let caches = caches.map(|text| networks::caches(text)).transpose()?;
    let dhttp = MachineConfig { answerers: caches.unwrap_or(client.dhttp.answerers), ..client.dhttp };
    let reaches_private = flags.force || is_loopback(listen);
    let client = ClientConfig { dhttp, ports, reaches_private, ..client };
    let cache = cache(flags, written)?;
    let connect_ports = match flags.connect_ports.as_ref().or(written.connect_ports.as_ref()) {
        Some(text) if text == "any" => None,
        Some(text) => Some(port_list("connect-ports", text)?),
        // RFC 9110, section 9.3.6: tunnels are for known ports only.
        None if reaches_private => None,
        None => Some(vec![443]),
    };
    Ok(GatewayConfig { allowed, cache, connect_ports, ..GatewayConfig::new(client) })
}

/// Whether only programs of this machine can reach it.
fn is_loopback(listen: SocketAddr) -> bool {
    listen.ip().to_canonical().is_loopback()
}

/// Cache settings, if caching is on.
fn cache(flags: &Gateway, written: &Written) -> Result<Option<CacheConfig>, Failure> {
    let Written { memory, disk, disk_size, targets, .. } = written;
    let kept = keeping::Written {
        memory: memory.clone(),
        disk: disk.clone(),
        disk_size: disk_size.clone(),
        targets: targets.clone(),
    };
    if flags.cache || written.cache.unwrap_or(false) {
        return keeping::config(&flags.keeping, kept, &[]).map(Some);
    }
    match keeping::said(&flags.keeping, &kept) {
        Some(name) => Err(Failure::Value(format!("{name}: no cache; add --cache, or leave it out"))),
        None => Ok(None),
    }
}

fn allowed(flags: &Gateway, written: &Written) -> Result<Vec<Prefix>, Failure> {
    let texts =
        if flags.allow.is_empty() { written.allow.as_deref().unwrap_or_default() } else { &flags.allow };
    networks::networks("allow", texts.iter().map(String::as_str))
}

fn sentence(listen: SocketAddr) -> String {
    format!("a proxy for http at http://{listen}/; browsers take http://{listen}/proxy.pac")
}
