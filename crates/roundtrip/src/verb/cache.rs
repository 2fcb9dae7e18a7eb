//! `roundtrip cache`: a shared HTTP cache, in front of one origin server or intercepting on a router.
//!
//! SIGTERM and SIGINT stop it once pending requests are finished. SIGHUP reloads the configuration and reopens the log; cached
//! responses are retained.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dhttp::client::ServersFile;
use dhttp::counters::Counters;
use dhttp::log::Log;
use dhttp::{ClientConfig, Server, ServerConfig, Url};
use dhttp_proto::address::is_private;
use dhttp_proxy::cache::Upstream;
use dhttp_proxy::cache::forward_upstream::ForwardUpstream;
use dhttp_proxy::cache::rules::{Interception, rules};
use dhttp_proxy::nft::{Family, InstalledRules, Rules};
use dhttp_proxy::{Cache, CacheConfig, FetchLimits, Origin, fetches};
use http1::cache::targeted::CDN_CACHE_CONTROL;
use tokio::runtime::Runtime;

use crate::cli::cache::Cache as Flags;
use crate::failure::Failure;
use crate::output;
use crate::serve::layers::{Layer as _, layered, reloaded};
use crate::serve::limits::{fetch_limits, limited};
use crate::serve::settings::{address, interface_name, open_log, port_list, thread_count};
use crate::serve::signals::Signals;
use crate::serve::{cache_storage, known_servers, metrics, privileges};
use dhttp_proxy::confinement::Paths;

/// Flags whose changed values need a restart.
const RESTART: &[&str] =
    &["listen", "disk", "targets", "threads", "limit", "no-race", "reach-private", "metrics"];

/// Servers whose responses are cached.
enum CachedServers {
    /// This origin server.
    Origin(Url),
    /// All servers that receive requests at these ports from clients behind these interfaces.
    Intercepted(Vec<u16>, Vec<String>),
}

/// Settings.
struct Settings {
    /// Flags and file.
    read: Flags,
    cached: CachedServers,
    listen: SocketAddr,
    cache: CacheConfig,
    server: ServerConfig,
    fetches: FetchLimits,
    reaches_private: bool,
    metrics: Option<SocketAddr>,
    access_log: Option<PathBuf>,
}

impl Settings {
    /// Reads the flags, and the file that they name.
    fn read(flags: &Flags) -> Result<Self, Failure> {
        let read = layered(flags, flags.operation.config.as_deref())?;
        let Flags {
            origin,
            intercept,
            inside,
            print_rules: _,
            clean: _,
            listen,
            storage,
            operation,
            no_race: _,
            threads,
            limit,
            reach_private,
        } = read.clone();
        let (cached, default_listen) = match (origin, intercept) {
            (Some(origin), None) => {
                let url = origin.parse::<dhttp::Url>().map_err(Failure::of_flag("origin"))?;
                (CachedServers::Origin(url), "127.0.0.1:8080")
            }
            (None, Some(list)) => {
                let cached = CachedServers::Intercepted(
                    port_list("intercept", &list)?,
                    interfaces(inside.as_deref())?,
                );
                (cached, "0.0.0.0:3129")
            }
            (Some(_), Some(_)) => {
                return Err(Failure::Value("origin and intercept exclude each other; give one".to_owned()));
            }
            (None, None) => {
                return Err(Failure::Value(
                    "--origin: missing; name the server whose responses are cached, as in: roundtrip cache --origin \
                     http://127.0.0.1:3000"
                        .to_owned(),
                ));
            }
        };
        let listen = address("listen", listen.as_deref().unwrap_or(default_listen))?;
        if let CachedServers::Intercepted(ports, _) = &cached
            && (!listen.ip().is_unspecified() || ports.contains(&listen.port()))
        {
            return Err(Failure::Value(format!(
                "--listen: {listen} cannot receive intercepted requests; give 0.0.0.0, or [::] for IPv6, too, and \
                 a port that --intercept does not name, such as 0.0.0.0:3129"
            )));
        }
        // Only a cache in front of one server acts for that server.
        let default_targets: &[&str] = match cached {
            CachedServers::Origin(_) => &[CDN_CACHE_CONTROL],
            CachedServers::Intercepted(..) => &[],
        };
        let cache = cache_storage::config(storage, default_targets)?;
        let threads = threads.as_deref().map(thread_count).transpose()?;
        let server = ServerConfig::internet();
        let intercepts = matches!(cached, CachedServers::Intercepted(..));
        let server = ServerConfig { threads: threads.unwrap_or(server.threads), intercepts, ..server };
        let reaches = reach_private || is_private(listen.ip());
        let server = if reaches { server.reaching_anywhere() } else { server };
        let fetches = fetch_limits(&limit, !reaches)?;
        let server = limited(server, &limit)?;
        Ok(Self {
            read,
            cached,
            listen,
            cache,
            server,
            fetches,
            reaches_private: reaches,
            metrics: operation.metrics.map(|text| address("metrics", &text)).transpose()?,
            access_log: operation.access_log,
        })
    }

    /// Files that a cache in front of an origin needs.
    fn paths(&self, config: Option<&Path>) -> Paths {
        let paths = Paths::new(config, self.access_log.as_deref()).for_requests();
        let paths = paths.listening([self.listen].into_iter().chain(self.metrics));
        let paths = match self.cached {
            CachedServers::Origin(_) => paths,
            CachedServers::Intercepted(..) => {
                let store = ServersFile::Interception.directory();
                store.iter().fold(paths.for_router(), |paths, directory| paths.write_below(directory))
            }
        };
        self.cache.disk.iter().fold(paths, |paths, (file, _)| paths.write_file(file))
    }

    fn log(&self) -> Result<Option<Arc<Log>>, Failure> {
        self.access_log.as_deref().map(open_log).transpose()
    }

    /// nftables rules for the address families that can reach this address: `[::]` takes both.
    fn rules(&self, listen: SocketAddr) -> Vec<Rules> {
        let CachedServers::Intercepted(ports, inside) = &self.cached else { return Vec::new() };
        let reaches_private = self.reaches_private;
        let interception = Interception { listen, ports, inside, reaches_private };
        match listen.is_ipv4() {
            true => vec![rules(Family::Ip, interception)],
            false => [Family::Ip, Family::Ip6].map(|family| rules(family, interception)).into(),
        }
    }

    fn sentence(&self, listen: SocketAddr) -> String {
        match &self.cached {
            CachedServers::Origin(url) => {
                let origin = url.authority();
                format!("caching responses of http://{origin}/, at http://{listen}/ and dhttp://{listen}/")
            }
            CachedServers::Intercepted(ports, inside) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                let (ports, inside) = (ports.join(", "), inside.join(", "));
                format!("intercepting DHTTP requests of {inside} to UDP {ports}, at {listen}")
            }
        }
    }
}

/// Runs until a signal ends it.
pub fn run(flags: &Flags) -> Result<(), Failure> {
    crate::serve::tracing::begin(flags.operation.trace);
    if flags.clean {
        let listen = SocketAddr::from(([0; 4], 0));
        let any_interception = Interception { listen, ports: &[], inside: &[], reaches_private: false };
        let [four, six] = [Family::Ip, Family::Ip6].map(|family| rules(family, any_interception));
        let has_removed = four.clean().map_err(|error| Failure::Network(error.to_string()))?;
        // A kernel without IPv6 has no such rules.
        let has_removed = six.clean().unwrap_or(false) || has_removed;
        return output::to_stdout(if has_removed { "removed the rules\n" } else { "no rules to remove\n" });
    }
    let settings = Settings::read(flags)?;
    privileges::retain_capabilities(match settings.cached {
        CachedServers::Origin(_) => privileges::SERVER,
        CachedServers::Intercepted(..) => privileges::ROUTER,
    });
    let listen = settings.listen;
    if flags.print_rules {
        return output::to_stdout(&settings.rules(listen).iter().map(Rules::text).collect::<String>());
    }
    if flags.operation.check {
        return output::to_stdout(&format!("{}\n", settings.sentence(listen)));
    }
    dhttp::port_holder::check(listen).map_err(Failure::Network)?;
    privileges::confine(&settings.paths(flags.operation.config.as_deref()));
    let signals = Signals::block()?;
    let runtime =
        Runtime::new().map_err(|error| Failure::Network(format!("cannot start threads: {error}")))?;
    match &settings.cached {
        CachedServers::Origin(_) => serve(flags, &settings, &runtime, &signals, |cached| match cached {
            CachedServers::Origin(url) => {
                let _inside = runtime.enter();
                Origin::new(url).map_err(network)
            }
            CachedServers::Intercepted(..) => Err(restart_required()),
        }),
        CachedServers::Intercepted(..) => {
            let (reaches_private, races) = (settings.reaches_private, !settings.read.no_race);
            let client = ClientConfig { reaches_private, races, ..ClientConfig::internet() };
            let known = known_servers::load(ServersFile::Interception);
            let forwarder = ForwardUpstream::start(client, known.clone(), None).map_err(network)?;
            let save = || ServersFile::Interception.save(&known, &forwarder.known());
            serve(flags, &settings, &runtime, &signals, |cached| match cached {
                CachedServers::Origin(_) => Err(restart_required()),
                CachedServers::Intercepted(..) => {
                    save();
                    Ok(forwarder.clone())
                }
            })?;
            save();
            Ok(())
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn network(error: io::Error) -> Failure {
    Failure::Network(error.to_string())
}

fn restart_required() -> Failure {
    Failure::Value("origin and intercept: a change from one to the other requires a restart".to_owned())
}

/// Runs the server, which forwards requests to the result of `upstream`.
fn serve<U: Upstream>(
    flags: &Flags,
    settings: &Settings,
    runtime: &Runtime,
    signals: &Signals,
    upstream: impl Fn(&CachedServers) -> Result<U, Failure>,
) -> Result<(), Failure> {
    let (listen, log) = (settings.listen, settings.log()?);
    settings.fetches.install();
    let cache = Cache::new(upstream(&settings.cached)?, settings.cache.clone(), runtime.handle().clone());
    let cache = cache.map_err(network)?;
    let server = Server::start(listen, settings.server, cache.clone(), log).map_err(|error| {
        let remedy = match settings.cached {
            CachedServers::Origin(_) => "choose another address with --listen",
            CachedServers::Intercepted(..) => "choose another address with --listen, and run as root",
        };
        Failure::Network(format!("cannot listen at {listen}: {error}; {remedy}"))
    })?;
    if let Some(address) = settings.metrics {
        let (counters, retained) = (server.counters(), cache.metrics());
        metrics::serve(address, move || Counters::text(&counters) + &retained() + &fetches::metrics())?;
    }
    // Rules are installed after the server listens. If one family's rules are refused, the other's are removed.
    let installed: Result<Vec<_>, _> = settings.rules(listen).into_iter().map(Rules::install).collect();
    let mut installed = installed.map_err(|error| Failure::Network(error.to_string()))?;
    eprintln!("roundtrip: {}", settings.sentence(server.address()));
    signals.wait_for_end(|| {
        let (new_settings, upstream, log) = reload(flags, listen, &mut installed, &upstream)?;
        cache.resize(&new_settings.cache);
        server.reload(cache.before(upstream), log);
        Ok(reloaded(&settings.read.changed(&new_settings.read, RESTART)))
    })?;
    eprintln!("roundtrip: finishing pending requests");
    // From now on requests are no longer intercepted.
    drop(installed);
    server.stop();
    Ok(())
}

/// Reloads the configuration; an error changes nothing.
fn reload<U>(
    flags: &Flags,
    listen: SocketAddr,
    installed: &mut [InstalledRules],
    upstream: &impl Fn(&CachedServers) -> Result<U, Failure>,
) -> Result<(Settings, U, Option<Arc<Log>>), Failure> {
    let settings = Settings::read(flags)?;
    let (upstream, log) = (upstream(&settings.cached)?, settings.log()?);
    // All or none: ports of the two families must come from one configuration.
    let replaced = InstalledRules::replace_all(installed, settings.rules(listen));
    replaced.map_err(|error| Failure::Network(error.to_string()))?;
    Ok((settings, upstream, log))
}

/// Parses a list such as `lan0,guest0`.
fn interfaces(list: Option<&str>) -> Result<Vec<String>, Failure> {
    let list = list.ok_or_else(|| {
        Failure::Value(
            "--inside: name the network interfaces of the clients, so that hosts outside this router's firewall are not \
             served; as in: roundtrip cache --intercept 80 --inside lan0"
                .to_owned(),
        )
    })?;
    list.split(',').map(|name| interface_name("inside", name.trim())).collect()
}
