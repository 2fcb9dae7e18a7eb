//! Content of a server: the files below a directory, or another server's responses.

use std::fmt;
use std::path::PathBuf;

use dhttp::{Files, Handler, Outcome, Reply, Request, Url};
use dhttp_proxy::origin::OriginBody;
use dhttp_proxy::service_handler::{ServiceHandler, service_handler};
use dhttp_proxy::{Cache, CacheConfig, Origin};
use http1::cache::targeted::CDN_CACHE_CONTROL;
use tokio::runtime::Runtime;
use wire::Time;

use crate::failure::{Failure, shown};

/// Description of a source of responses.
#[derive(Clone, Debug)]
pub enum Source {
    /// A directory.
    Directory(PathBuf),
    /// Another HTTP server, with the forwarded request fields.
    Origin(Url, ClientInformation),
}

/// Information about clients for the other server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientInformation {
    /// Only the requested host. Its responses are cached in up to `memory` bytes.
    Nothing {
        /// Size of the cache in bytes; 0 for none.
        memory: u64,
    },
    /// The client's address, too.
    Clients,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => f.write_str(&shown(directory)),
            Self::Origin(url, _) => write!(f, "responses of http://{}/", url.authority()),
        }
    }
}

/// Source of responses.
#[derive(Clone, Debug)]
pub enum ResponseSource {
    /// A directory.
    Files(Files),
    /// Another HTTP server: a client for its content, and one for its metrics.
    Origin(Box<ServiceHandler<Origin, OriginBody>>, Box<Origin>),
    /// Another HTTP server, with a cache for small responses.
    Cached(Box<Cache<Origin>>, Box<Origin>),
}

/// Maximum size of a cached response, in bytes: a larger one goes over a connection, which costs more than the request.
const SMALL: u64 = 8 << 10;

impl ResponseSource {
    /// Opens a source. The runtime runs requests to another server.
    pub fn open(source: &Source, runtime: &Runtime) -> Result<Self, Failure> {
        match source {
            Source::Directory(directory) => {
                let files = Files::below(directory);
                files.map(Self::Files).map_err(|error| Failure::Read { path: directory.clone(), error })
            }
            Source::Origin(url, information) => {
                let _inside = runtime.enter();
                let origin = Origin::new(url).map_err(|error| Failure::Network(error.to_string()))?;
                let handle = runtime.handle().clone();
                // A response to a forwarded client address may be specific to that client, and is not cached.
                let (origin, memory) = match information {
                    ClientInformation::Nothing { memory } => (origin, *memory),
                    ClientInformation::Clients => (origin.reporting_clients(), 0),
                };
                if memory == 0 {
                    return Ok(Self::Origin(
                        Box::new(service_handler(origin.clone(), handle)),
                        Box::new(origin),
                    ));
                }
                let targets = vec![CDN_CACHE_CONTROL.to_owned()];
                let config = CacheConfig {
                    memory,
                    largest: SMALL,
                    is_sparing: true,
                    targets,
                    ..CacheConfig::default()
                };
                let cache = Cache::new(origin.clone(), config, handle);
                let cache = cache.map_err(|error| Failure::Network(error.to_string()))?;
                Ok(Self::Cached(Box::new(cache), Box::new(origin)))
            }
        }
    }

    /// Metrics of the source, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        match self {
            Self::Files(_) => String::new(),
            Self::Origin(_, origin) => origin.metrics()(),
            Self::Cached(cache, origin) => cache.metrics()() + &origin.metrics()(),
        }
    }
}

impl Handler for ResponseSource {
    fn takes_bodies(&self) -> bool {
        match self {
            Self::Files(files) => files.takes_bodies(),
            Self::Origin(..) | Self::Cached(..) => true,
        }
    }

    fn respond(&mut self, now: Time, request: &Request<'_>) -> Reply {
        match self {
            Self::Files(files) => files.respond(now, request),
            Self::Origin(origin, _) => origin.respond(now, request),
            Self::Cached(cache, _) => cache.respond(now, request),
        }
    }

    fn respond_with<T>(&mut self, now: Time, request: &Request<'_>, to: impl FnOnce(Outcome<'_>) -> T) -> T {
        match self {
            Self::Files(files) => files.respond_with(now, request, to),
            Self::Origin(origin, _) => origin.respond_with(now, request, to),
            Self::Cached(cache, _) => cache.respond_with(now, request, to),
        }
    }
}
