//! `roundtrip nat`: a helper on a router that translates addresses, or on a firewall.
//!
//! SIGTERM and SIGINT end it and take its rules away; connections that were let in go on. SIGHUP reads the
//! configuration and opens the log again.
//!
//! ```toml
//! inside = "lan0"
//! outside = "wan0"
//! address = "198.51.100.1"
//! ports = "61000-65535"
//! firewall = false
//! closed = false
//! any-cache = false            # or: caches = "192.0.2.0/24"
//! by-id = false
//! server-port = 80
//! metrics = "127.0.0.1:9100"
//! access-log = "/var/log/roundtrip-nat.log"
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use dhttp::log::Log;
use dhttp::nat::LET_IN;
use dhttp::{Nat, NatConfig, NatError};
use nix::ifaddrs::getifaddrs;
use proto::dhttp::TranslatorConfig;
use proto::dhttp::client::Answerers;
use proto::dhttp::translator::Translation;
use scenario::names::Quoted;
use serde::Deserialize;

use crate::cli::dhttp::Nat as Flags;
use crate::failure::Failure;
use crate::serve::metrics;
use crate::serve::networks;
use crate::serve::settings::{address, open_log, read_file};
use crate::serve::signals::Signals;
use crate::verb::get::port_range;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    inside: Option<String>,
    outside: Option<String>,
    address: Option<String>,
    ports: Option<String>,
    firewall: Option<bool>,
    closed: Option<bool>,
    any_cache: Option<bool>,
    caches: Option<String>,
    by_id: Option<bool>,
    server_port: Option<u16>,
    metrics: Option<String>,
    access_log: Option<PathBuf>,
}

/// How to run.
struct Settings {
    config: NatConfig,
    metrics: Option<SocketAddr>,
    access_log: Option<PathBuf>,
}

/// Runs until a signal ends it.
pub fn run(flags: &Flags) -> Result<(), Failure> {
    crate::serve::tracing::begin(flags.operation.trace);
    let settings = Settings::read(flags)?;
    let rules = settings.config.rules();
    if flags.print_rules {
        return crate::output::to_stdout(&rules.text());
    }
    let refused = |error: dhttp::nft::RulesError| Failure::Network(error.to_string());
    if flags.clean {
        let said = if rules.clean().map_err(refused)? { "removed what was left" } else { "nothing was left" };
        return crate::output::to_stdout(&format!("{said}\n"));
    }
    if flags.operation.check {
        rules.check().map_err(refused)?;
        return crate::output::to_stdout(&format!("{}\n", settings.sentence()));
    }
    let log = settings.log()?;
    let signals = Signals::expect()?;
    let nat =
        Nat::start(&settings.config, log).map_err(|error: NatError| Failure::Network(error.to_string()))?;
    if let Some(address) = settings.metrics {
        metrics::serve(address, nat.metrics())?;
    }
    settings.warn();
    eprintln!("roundtrip: {}", settings.sentence());
    signals.until_the_end(|| reload(&nat, flags))?;
    eprintln!("roundtrip: taking the rules away; connections that were let in go on");
    drop(nat);
    Ok(())
}

fn reload(nat: &Nat, flags: &Flags) -> Result<&'static str, Failure> {
    let settings = Settings::read(flags)?;
    let log = settings.log()?;
    nat.reload(settings.config.clone(), log).map_err(|error| Failure::Network(error.to_string()))?;
    settings.warn();
    Ok("read the configuration again; an address of metrics that has changed takes a restart")
}

impl Settings {
    /// From flags, and from the file that they name.
    fn read(flags: &Flags) -> Result<Self, Failure> {
        let written: Written =
            flags.operation.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let inside = interface("inside", flags.inside.as_ref().or(written.inside.as_ref()))?;
        let outside = interface("outside", flags.outside.as_ref().or(written.outside.as_ref()))?;
        let is_firewall = flags.firewall || written.firewall.unwrap_or(false);
        let closed = flags.closed || written.closed.unwrap_or(false);
        let translation = if is_firewall {
            Translation::None
        } else if closed {
            return Err(Failure::Value("closed: only a firewall is closed; add firewall".to_owned()));
        } else {
            let appears = flags.address.as_ref().or(written.address.as_ref());
            let ports = flags.ports.as_ref().or(written.ports.as_ref());
            let ports = port_range(ports.map_or("61000-65535", |text| text))?;
            Translation::To(IpAddr::V4(appears_at(appears, &outside)?), ports)
        };
        let caches = flags.caches.as_ref().or(written.caches.as_ref());
        // Flags win: whoever asks for one of both does not get what the file says of the other.
        let is_any = flags.any_cache || (flags.caches.is_none() && written.any_cache.unwrap_or(false));
        let answerers = match caches {
            _ if is_any => Answerers::Anybody,
            Some(list) => networks::only(list)?,
            None => Answerers::Server,
        };
        let metrics = flags.operation.metrics.as_ref().or(written.metrics.as_ref());
        Ok(Self {
            config: NatConfig {
                inside,
                outside,
                port: flags.server_port.or(written.server_port).unwrap_or(80),
                translator: TranslatorConfig { answerers, ..TranslatorConfig::new(translation) },
                by_id: flags.by_id || written.by_id.unwrap_or(false),
                closed,
            },
            metrics: metrics.map(|text| address("metrics", text)).transpose()?,
            access_log: flags.operation.access_log.clone().or(written.access_log),
        })
    }

    fn log(&self) -> Result<Option<Arc<Log>>, Failure> {
        self.access_log.as_deref().map(open_log).transpose()
    }

    /// Says aloud what is open to more than the servers that were asked.
    fn warn(&self) {
        if self.config.translator.answerers == Answerers::Anybody {
            eprintln!(
                "roundtrip: WARNING: --any-cache lets anybody in who finds an open hole in time, not only the server that \
                 was asked"
            );
        }
    }

    fn sentence(&self) -> String {
        let NatConfig { inside, outside, port, translator, by_id: _, closed: _ } = &self.config;
        let how = match &translator.translation {
            Translation::To(address, ports) => {
                format!("appear at {address}, ports {}-{}", ports.start(), ports.end())
            }
            Translation::None => {
                format!("keep their addresses; connections that are let in have the mark {LET_IN:#x}")
            }
        };
        format!("clients on {inside} that ask port {port} of servers on {outside} {how}")
    }
}

fn interface(which: &str, name: Option<&String>) -> Result<String, Failure> {
    let name = name.ok_or_else(|| {
        Failure::Value(format!(
            "--{which}: name the network interface, as in: roundtrip nat --inside lan0 --outside wan0"
        ))
    })?;
    // As the kernel has it, and nothing that could end a string among the rules.
    let is_name = (1..16).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\/*".contains(&byte));
    if is_name {
        Ok(name.clone())
    } else {
        Err(Failure::Value(format!("--{which}: {} is no network interface; see: ip link", Quoted(name))))
    }
}

fn appears_at(address: Option<&String>, outside: &str) -> Result<Ipv4Addr, Failure> {
    if let Some(text) = address {
        return text.parse().map_err(|_| {
            Failure::Value(format!("--address: {} is no IPv4 address, such as 198.51.100.1", Quoted(text)))
        });
    }
    let all = getifaddrs().map_err(|error| Failure::Network(format!("cannot list addresses: {error}")))?;
    all.filter(|one| one.interface_name == outside)
        .find_map(|one| Some(one.address?.as_sockaddr_in()?.ip()))
        .ok_or_else(|| {
            Failure::Value(format!(
                "--outside: {outside} has no IPv4 address here; choose another interface, or give --address"
            ))
        })
}
