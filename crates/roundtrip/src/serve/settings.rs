//! Settings of `roundtrip serve`: flags, and a TOML file with defaults for them.
//!
//! ```toml
//! folder = "/srv/www"          # or: origin = "http://127.0.0.1:3000"
//! forwarded = false            # with an origin alone
//! memory = "16MiB"             # so is this
//! listen = "192.0.2.1:80"
//! profile = "internet"
//! without = ["more-connections"]
//! metrics = "127.0.0.1:9100"
//! access-log = "/var/log/roundtrip.log"
//! threads = 4
//! reach-private = false
//! ```

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dhttp::ServerConfig;
use dhttp::log::Log;
use dhttp_proto::Extension;
use dhttp_proto::address::is_private;
use quantity::names::{self, Quoted};

use crate::cli::dhttp::{Profile, Serve};
use crate::failure::Failure;
use crate::serve::cache_storage::size;
use crate::serve::layers::layered;
use crate::serve::limits::{fetch_limits, limited};
use crate::serve::response_source::{ClientInformation, Source};
use dhttp_proxy::FetchLimits;
use dhttp_proxy::confinement::Paths;

/// Settings of a server.
#[derive(Debug)]
pub struct Settings {
    /// Flags and file.
    pub read: Serve,
    source: Source,
    /// Listening address, by UDP and TCP.
    pub listen: SocketAddr,
    profile: Profile,
    /// Extensions of the paper, switched on or off.
    extensions: BTreeMap<Extension, bool>,
    /// Address of the Prometheus metrics.
    pub metrics: Option<SocketAddr>,
    access_log: Option<PathBuf>,
    threads: Option<usize>,
    limit: Vec<String>,
    reach_private: bool,
    force: bool,
}

/// Flags whose changed values need a restart.
pub const RESTART: &[&str] = &[
    "listen",
    "profile",
    "with",
    "without",
    "threads",
    "limit",
    "reach-private",
    "metrics",
    "early-connection",
];

impl Settings {
    /// Reads the settings of flags, and of the file that they name.
    pub fn read(flags: &Serve) -> Result<Self, Failure> {
        let read = layered(flags, flags.operation.config.as_deref())?;
        let Serve {
            folder,
            origin,
            early_connection,
            forwarded,
            memory,
            listen,
            profile,
            extensions,
            operation,
            threads,
            limit,
            reach_private,
            force,
        } = read.clone();
        let memory = memory.map(|text| size("memory", &text)).transpose()?;
        let of_origins =
            [("forwarded", forwarded), ("early-connection", early_connection), ("memory", memory.is_some())];
        let unfit =
            of_origins.into_iter().find(|(_, is_set)| *is_set && folder.is_some() && origin.is_none());
        if let Some((flag, _)) = unfit {
            let remedy = "name an origin with --origin, or leave it out";
            return Err(Failure::Value(format!("--{flag}: not for files; {remedy}")));
        }
        let source = match (folder, origin) {
            (None, Some(_)) if forwarded && memory.is_some_and(|memory| memory > 0) => {
                return Err(Failure::Value(
                    "--memory: responses are not shared between clients with --forwarded; leave one out"
                        .to_owned(),
                ));
            }
            (Some(folder), None) => Source::Directory(folder),
            (None, Some(origin)) => Source::Origin(
                origin.parse().map_err(Failure::of_flag("origin"))?,
                if forwarded {
                    ClientInformation::Clients
                } else {
                    ClientInformation::Nothing { memory: memory.unwrap_or(DEFAULT_CACHE_BYTES) }
                },
            ),
            (Some(_), Some(_)) => {
                return Err(Failure::Value(
                    "--origin: serve either a directory or an origin; leave one out".to_owned(),
                ));
            }
            (None, None) => {
                return Err(Failure::Value(
                    "nothing to serve; name a directory, as in: roundtrip serve www, or an origin with --origin"
                        .to_owned(),
                ));
            }
        };
        Ok(Self {
            read,
            source,
            listen: address("listen", listen.as_deref().unwrap_or(DEFAULT_LISTEN))?,
            profile: profile.unwrap_or(Profile::Internet),
            extensions: named_extensions(&extensions.with, &extensions.without)?,
            metrics: operation.metrics.map(|text| address("metrics", &text)).transpose()?,
            access_log: operation.access_log,
            threads: threads.as_deref().map(thread_count).transpose()?,
            limit,
            reach_private,
            force,
        })
    }

    /// Builds the configuration of the server.
    pub fn config(&self) -> Result<ServerConfig, Failure> {
        let config = match self.profile {
            Profile::Internet => ServerConfig::internet(),
            Profile::Paper if self.force || is_private(self.listen.ip()) => ServerConfig::paper(),
            Profile::Paper => {
                return Err(Failure::Value(format!(
                    "--profile: paper trusts every source address, and {} is public, so attackers could use it as an \
                     amplifier; listen at a loopback or private address, or add --force",
                    self.listen
                )));
            }
        };
        let threads = self.threads.unwrap_or(config.threads);
        let mut dhttp = config.dhttp;
        for (extension, is_on) in &self.extensions {
            dhttp = dhttp.with(*extension, *is_on);
        }
        dhttp.opens_early = self.read.early_connection;
        let config = ServerConfig { threads, dhttp, ..config };
        limited(if self.reaches_private() { config.reaching_anywhere() } else { config }, &self.limit)
    }

    /// Builds the limits of fetches from the origin.
    pub fn fetches(&self) -> Result<FetchLimits, Failure> {
        fetch_limits(&self.limit, !self.reaches_private())
    }

    const fn reaches_private(&self) -> bool {
        self.reach_private || is_private(self.listen.ip())
    }

    /// Source of responses.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Opens the access log.
    pub fn log(&self) -> Result<Option<Arc<Log>>, Failure> {
        let Some(path) = &self.access_log else { return Ok(None) };
        open_log(path).map(Some)
    }

    /// Files that the server needs, with the configuration file of these flags.
    pub fn paths(&self, config: Option<&Path>) -> Paths {
        let paths = Paths::new(config, self.access_log.as_deref());
        let paths = paths.listening([self.listen].into_iter().chain(self.metrics));
        match &self.source {
            Source::Directory(folder) => paths.read_below(folder),
            Source::Origin(..) => paths.for_requests(),
        }
    }

    /// Sentence about the running server.
    pub fn sentence(&self, listen: SocketAddr) -> String {
        let profile = match self.profile {
            Profile::Internet => "internet",
            Profile::Paper => "paper",
        };
        let source = &self.source;
        let extensions = self.extensions.iter().map(|(extension, is_on)| {
            let switch = if *is_on { "with" } else { "without" };
            format!(", {switch} {extension}")
        });
        let extensions: String = extensions.collect();
        format!(
            "serving {source} at http://{listen}/ and dhttp://{listen}/ with the {profile} profile{extensions}"
        )
    }
}

/// Opens a log that appends to a file, or writes to standard output.
pub fn open_log(path: &Path) -> Result<Arc<Log>, Failure> {
    if path == Path::new("-") {
        return Ok(Arc::new(Log::new(Box::new(io::stdout()))));
    }
    let file = OpenOptions::new().append(true).create(true).open(path);
    let file = file.map_err(|error| Failure::Write { path: path.to_owned(), error })?;
    Ok(Arc::new(Log::new(Box::new(file))))
}

const DEFAULT_LISTEN: &str = "127.0.0.1:8080";
/// Default bytes of another server's responses to cache.
const DEFAULT_CACHE_BYTES: u64 = 16 << 20;

/// Parses extensions of the paper by name, switched on or off.
pub fn named_extensions(with: &[String], without: &[String]) -> Result<BTreeMap<Extension, bool>, Failure> {
    let mut extensions = BTreeMap::new();
    for (name, is_on) in with.iter().map(|name| (name, true)).chain(without.iter().map(|name| (name, false)))
    {
        let extension = names::find("extension", name, &Extension::ALL, Extension::name)
            .map_err(|unknown| Failure::Value(unknown.to_string()))?;
        if extensions.insert(extension, is_on) == Some(!is_on) {
            return Err(Failure::Value(format!("{extension}: both switched on and off; choose one")));
        }
    }
    Ok(extensions)
}

/// Parses an address with a port; an error names the flag.
pub fn address(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::Value(format!(
            "{flag}: {} is not an address with a port; give one such as {DEFAULT_LISTEN}",
            Quoted(text)
        ))
    })
}

/// Parses a number of threads.
pub fn thread_count(text: &str) -> Result<usize, Failure> {
    text.parse()
        .ok()
        .filter(|count| (1..=1_024).contains(count))
        .ok_or_else(|| Failure::Value(format!("--threads: {} is out of range; give 1 to 1024", Quoted(text))))
}

/// Parses a list such as `80,8080`.
pub fn port_list(flag: &str, text: &str) -> Result<Vec<u16>, Failure> {
    let ports: Option<Vec<u16>> =
        text.split(',').map(|port| port.trim().parse().ok().filter(|port| *port > 0)).collect();
    ports.ok_or_else(|| {
        Failure::Value(format!("--{flag}: {} is not a list of ports; pass one such as 80,8080", Quoted(text)))
    })
}

/// Checks the name of a network interface: valid for the kernel, without characters that end a string of nftables.
pub fn interface_name(flag: &str, name: &str) -> Result<String, Failure> {
    let is_name = (1..16).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\/*".contains(&byte));
    match is_name {
        true => Ok(name.to_owned()),
        false => Err(Failure::Value(format!(
            "--{flag}: {} is not a network interface; see: ip link",
            Quoted(name)
        ))),
    }
}
