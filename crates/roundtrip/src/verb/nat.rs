//! `roundtrip nat`: a helper on a router that translates addresses, or on a firewall.
//!
//! SIGTERM and SIGINT stop it and remove its rules; admitted connections continue. SIGHUP reloads the configuration and
//! reopens the log.
//!
//! ```toml
//! inside = "lan0"
//! outside = "wan0"
//! address = "198.51.100.1"
//! ports = "61000-65535"
//! firewall = false
//! ipv6 = false
//! closed = false
//! any-cache = false            # or: caches = "192.0.2.0/24"
//! by-id = false
//! server-port = 80
//! metrics = "127.0.0.1:9100"
//! access-log = "/var/log/roundtrip-nat.log"
//! ```

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use dhttp::log::Log;
use dhttp_proto::TranslatorConfig;
use dhttp_proto::client::Responders;
use dhttp_proto::translator::Translation;
use dhttp_proxy::confinement::Paths;
use dhttp_proxy::nat::PINHOLE_MARK;
use dhttp_proxy::nft::Family;
use dhttp_proxy::{Nat, NatConfig, NatError};
use nix::ifaddrs::getifaddrs;
use quantity::names::Quoted;

use crate::cli::dhttp::Nat as Flags;
use crate::failure::Failure;
use crate::serve::layers::{Layer as _, layered, reloaded};
use crate::serve::metrics;
use crate::serve::settings::{address, interface_name, open_log};
use crate::serve::signals::Signals;
use crate::serve::{networks, privileges};
use crate::verb::get::port_range;

/// Flags whose changed values need a restart.
const RESTART: &[&str] = &["metrics"];

/// Settings.
struct Settings {
    /// Flags and file.
    read: Flags,
    config: NatConfig,
    metrics: Option<SocketAddr>,
    access_log: Option<PathBuf>,
}

/// Runs until a signal ends it.
pub fn run(flags: &Flags) -> Result<(), Failure> {
    crate::serve::tracing::begin(flags.operation.trace);
    privileges::retain_capabilities(privileges::ROUTER);
    let refused = |error: dhttp_proxy::nft::RulesError| Failure::Network(error.to_string());
    if flags.clean {
        // Works even if the interfaces have changed since.
        let has_removed =
            dhttp_proxy::nat::clean(family(&layered(flags, flags.operation.config.as_deref())?))
                .map_err(refused)?;
        let message =
            if has_removed { "removed the rules of a killed helper\n" } else { "no rules to remove\n" };
        return crate::output::to_stdout(message);
    }
    let settings = Settings::read(flags)?;
    let rules = settings.config.rules();
    if flags.print_rules {
        return crate::output::to_stdout(&rules.text());
    }
    if flags.operation.check {
        rules.check().map_err(refused)?;
        return crate::output::to_stdout(&format!("{}\n", settings.sentence()));
    }
    let config = flags.operation.config.as_deref();
    let paths = Paths::new(config, settings.access_log.as_deref()).for_router();
    privileges::confine(&paths.listening(settings.metrics));
    let log = settings.log()?;
    let signals = Signals::block()?;
    let nat =
        Nat::start(&settings.config, log).map_err(|error: NatError| Failure::Network(error.to_string()))?;
    if let Some(address) = settings.metrics {
        metrics::serve(address, nat.metrics())?;
    }
    settings.warn();
    eprintln!("roundtrip: {}", settings.sentence());
    signals.wait_for_end(|| reload(&nat, flags, &settings.read))?;
    eprintln!("roundtrip: removing the rules; admitted connections continue");
    drop(nat);
    Ok(())
}

fn reload(nat: &Nat, flags: &Flags, running: &Flags) -> Result<String, Failure> {
    let settings = Settings::read(flags)?;
    let log = settings.log()?;
    nat.reload(settings.config.clone(), log).map_err(|error| Failure::Network(error.to_string()))?;
    settings.warn();
    Ok(reloaded(&running.changed(&settings.read, RESTART)))
}

impl Settings {
    /// Reads the flags, and the file that they name.
    fn read(flags: &Flags) -> Result<Self, Failure> {
        let read = layered(flags, flags.operation.config.as_deref())?;
        let inside = interface("inside", read.inside.as_deref())?;
        let outside = interface("outside", read.outside.as_deref())?;
        let family = family(&read);
        let closed = read.closed;
        let translation = if read.firewall {
            Translation::None
        } else if closed {
            return Err(Failure::Value("closed: only for a firewall; add firewall".to_owned()));
        } else {
            let ports = port_range(read.ports.as_deref().unwrap_or("61000-65535"))?;
            Translation::To(translated_address(read.address.as_deref(), &outside, family)?, ports)
        };
        let responders = match &read.caches {
            _ if read.any_cache => Responders::AnyHost,
            Some(list) => networks::caches_in(list)?,
            None => Responders::Server,
        };
        let operation = &read.operation;
        Ok(Self {
            config: NatConfig {
                inside,
                outside,
                family,
                port: read.server_port.unwrap_or(80),
                translator: TranslatorConfig { responders, ..TranslatorConfig::new(translation) },
                by_id: read.by_id,
                closed,
            },
            metrics: operation.metrics.as_ref().map(|text| address("metrics", text)).transpose()?,
            access_log: operation.access_log.clone(),
            read,
        })
    }

    fn log(&self) -> Result<Option<Arc<Log>>, Failure> {
        self.access_log.as_deref().map(open_log).transpose()
    }

    /// Warns if hosts other than the requested servers are admitted.
    fn warn(&self) {
        if self.config.translator.responders == Responders::AnyHost {
            eprintln!(
                "roundtrip: WARNING: --any-cache admits any host that finds an open pinhole, not only the requested server"
            );
        }
    }

    fn sentence(&self) -> String {
        let NatConfig { inside, outside, family, port, translator, by_id: _, closed: _ } = &self.config;
        let version = match family {
            Family::Ip => "",
            Family::Ip6 => " by IPv6",
        };
        let translation = match &translator.translation {
            Translation::To(address, ports) => {
                format!("appear at {address}, ports {}-{}", ports.start(), ports.end())
            }
            Translation::None => {
                format!("keep their addresses; admitted connections have the mark {PINHOLE_MARK:#x}")
            }
        };
        format!(
            "clients on {inside} that send requests to port {port} of servers on {outside}{version} {translation}"
        )
    }
}

fn family(read: &Flags) -> Family {
    if read.ipv6 { Family::Ip6 } else { Family::Ip }
}

fn interface(flag: &str, name: Option<&str>) -> Result<String, Failure> {
    let name = name.ok_or_else(|| {
        Failure::Value(format!(
            "--{flag}: name the network interface, as in: roundtrip nat --inside lan0 --outside wan0"
        ))
    })?;
    interface_name(flag, name)
}

fn translated_address(address: Option<&str>, outside: &str, family: Family) -> Result<IpAddr, Failure> {
    let (kind, example) = match family {
        Family::Ip => ("IPv4", "198.51.100.1"),
        Family::Ip6 => ("IPv6", "2001:db8::1"),
    };
    if let Some(text) = address {
        let parsed = text.parse().ok().filter(|address| Family::of(*address) == family);
        return parsed.ok_or_else(|| {
            Failure::Value(format!("--address: {} is not an {kind} address, such as {example}", Quoted(text)))
        });
    }
    let all = getifaddrs().map_err(|error| Failure::Network(format!("cannot list addresses: {error}")))?;
    all.filter(|interface_address| interface_address.interface_name == outside)
        .filter_map(|interface_address| interface_address.address)
        .find_map(|address| match family {
            Family::Ip => Some(IpAddr::V4(address.as_sockaddr_in()?.ip())),
            // Link-local addresses are not reachable from outside.
            Family::Ip6 => {
                Some(address.as_sockaddr_in6()?.ip()).filter(|ip| !ip.is_unicast_link_local()).map(IpAddr::V6)
            }
        })
        .ok_or_else(|| {
            Failure::Value(format!(
                "--outside: {outside} has no {kind} address here; choose another interface, or give --address"
            ))
        })
}
