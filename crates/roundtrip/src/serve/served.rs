//! What a server serves: the files below a folder, or what another server answers.
//!
//! Not which of them: that is in `settings`.

use std::fmt;
use std::path::PathBuf;

use dhttp::{Files, Handler, Reply, Request, Shown, Url};
use dhttp_proxy::hosted::{Hosted, hosted};
use dhttp_proxy::origin::OriginBody;
use dhttp_proxy::{Cache, CacheConfig, Origin};
use http1::cache::targeted::CDN_CACHE_CONTROL;
use tokio::runtime::Runtime;
use wire::Time;

use crate::failure::{Failure, shown};

/// Where answers come from, in words.
#[derive(Clone, Debug)]
pub enum Source {
    /// A folder.
    Folder(PathBuf),
    /// Another HTTP server, and what it is told.
    Origin(Url, Tells),
}

/// What another server is told of those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Which host they asked. Of its answers so many bytes are kept.
    Nothing {
        /// 0: none.
        memory: u64,
    },
    /// Where they are, too.
    Clients,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => f.write_str(&shown(folder)),
            Self::Origin(url, _) => write!(f, "what http://{}/ answers", url.authority()),
        }
    }
}

/// Where answers come from.
#[derive(Clone, Debug)]
pub enum Served {
    /// A folder.
    Files(Files),
    /// Another HTTP server: what asks it, and the same to ask how it is.
    Origin(Box<Hosted<Origin, OriginBody>>, Box<Origin>),
    /// The same, and small answers of its are kept as long as they say.
    Kept(Box<Cache<Origin>>, Box<Origin>),
}

/// No longer answer is kept, in bytes: what is larger than this goes by a connection, whose cost is more than the asking.
const SMALL: u64 = 8 << 10;

impl Served {
    /// Opens it. Another server is asked from that runtime.
    pub fn open(source: &Source, runtime: &Runtime) -> Result<Self, Failure> {
        match source {
            Source::Folder(folder) => {
                let files = Files::below(folder);
                files.map(Self::Files).map_err(|error| Failure::Read { path: folder.clone(), error })
            }
            Source::Origin(url, tells) => {
                let _inside = runtime.enter();
                let origin = Origin::new(url).map_err(|error| Failure::Network(error.to_string()))?;
                let handle = runtime.handle().clone();
                // What it is told of one client may be in its answer, which then is for nobody else.
                let (origin, memory) = match tells {
                    Tells::Nothing { memory } => (origin, *memory),
                    Tells::Clients => (origin.telling_clients(), 0),
                };
                if memory == 0 {
                    return Ok(Self::Origin(Box::new(hosted(origin.clone(), handle)), Box::new(origin)));
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
                Ok(Self::Kept(Box::new(cache), Box::new(origin)))
            }
        }
    }

    /// What is counted of where answers come from, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        match self {
            Self::Files(_) => String::new(),
            Self::Origin(_, origin) => origin.metrics()(),
            Self::Kept(cache, origin) => cache.metrics()() + &origin.metrics()(),
        }
    }
}

impl Handler for Served {
    fn answer(&mut self, now: Time, request: &Request<'_>) -> Reply {
        match self {
            Self::Files(files) => files.answer(now, request),
            Self::Origin(origin, _) => origin.answer(now, request),
            Self::Kept(cache, _) => cache.answer(now, request),
        }
    }

    fn show<T>(&mut self, now: Time, request: &Request<'_>, to: impl FnOnce(Shown<'_>) -> T) -> T {
        match self {
            Self::Files(files) => files.show(now, request, to),
            Self::Origin(origin, _) => origin.show(now, request, to),
            Self::Kept(cache, _) => cache.show(now, request, to),
        }
    }
}
