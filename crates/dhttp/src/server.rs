//! A server: threads, each with sockets on the shared port, a state machine and a clone of the handler.
//!
//! The kernel spreads datagrams and connections over the threads by their addresses (`SO_REUSEPORT`). One client is therefore
//! served by one thread, and nothing is locked. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | `config` | configuration of a server |
//! | `worker` | one thread: waits for events, and dispatches them |
//! | `datagrams` | requests by UDP, and their responses |
//! | `deferred_requests` | requests whose responses are deferred |
//! | `opened_connections` | connections to clients |
//! | `clients` | limits of one client and of all |
//! | `eviction` | the connection that is closed for a newcomer |
//! | `plain` | connections of clients: HTTP/1.1 |
//! | `queue` | send queue of a connection: bytes and parts of files |
//! | `date_header` | header section of a response |
//! | `keys` | keys of tokens, the same in every thread |
//!
//! Not the choice of a channel: that is [`dhttp_proto::server`].

mod clients;
mod config;
mod datagrams;
mod date_header;
mod deferred_requests;
mod eviction;
mod keys;
mod opened_connections;
mod plain;
pub mod queue;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::batch;
use crate::counters::Counters;
use crate::descriptors;
use crate::handler::Handler;
use crate::log::Log;
use crate::random;
use crate::readiness::Waker;
use crate::socket;
use clients::Clients;
use dhttp_proto::server::SharedLimits;
use keys::Keys;
use linux::clock::Clock;
use worker::{Sockets, Worker};

pub use clients::ClientLimits;
pub use config::ServerConfig;

/// A running server, until it is stopped or dropped.
#[derive(Debug)]
pub struct Server<H: Handler> {
    address: SocketAddr,
    shared: Arc<Shared<H>>,
    counters: Vec<Arc<Counters>>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared with the threads.
#[derive(Debug)]
struct Shared<H> {
    stop: AtomicBool,
    /// Incremented with every change of `live`.
    version: AtomicU64,
    live: Mutex<LiveConfig<H>>,
    wakers: Vec<Waker>,
    clients: Arc<Clients>,
    /// Limits of responses by UDP, without and with a token.
    limits: Option<SharedLimits>,
}

#[derive(Clone, Debug)]
struct LiveConfig<H> {
    handler: H,
    log: Option<Arc<Log>>,
}

impl<H: Handler> Server<H> {
    /// Binds UDP and TCP to one port and begins to serve. With port 0 the system chooses one.
    ///
    /// # Errors
    /// The system's error for a socket; the address may be in use by another server.
    pub fn start(
        address: SocketAddr,
        config: ServerConfig,
        handler: H,
        log: Option<Arc<Log>>,
    ) -> io::Result<Self> {
        let count = config.threads.max(1);
        let config = ServerConfig { accepted: accepted(&config), ..config };
        let mut sockets = vec![Sockets::bind_first(address, &config)?];
        let address = sockets.first().map_or(Ok(address), |first| first.udp.local_addr())?;
        for _ in 1..count {
            sockets.push(Sockets::bind(address, &config)?);
        }
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            version: AtomicU64::new(0),
            live: Mutex::new(LiveConfig { handler, log }),
            wakers: (0..count).map(|_| Waker::new()).collect::<Result<_, _>>()?,
            clients: Clients::new(config.clients, config.accepted),
            limits: SharedLimits::new(&config.dhttp, random::bytes()?),
        });
        descriptors::grow_table();
        let keys = Keys::draw()?;
        let clock = Clock::start();
        let counters: Vec<_> = (0..count).map(|_| Arc::new(Counters::default())).collect();
        let mut server = Self { address, shared, counters, threads: Vec::new() };
        for (index, sockets) in sockets.into_iter().enumerate() {
            let shared = Arc::clone(&server.shared);
            let counters = Arc::clone(server.counters.get(index).unwrap_or(&Arc::default()));
            let mut worker = Worker::new(index, clock, sockets, config, keys, shared, counters)?;
            let thread = thread::Builder::new().name(format!("dhttp-{index}"));
            server.threads.push(thread.spawn(move || worker.run())?);
        }
        tracing::info!(%address, threads = count, "serving");
        Ok(server)
    }

    /// Returns the address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its counters in Prometheus' text format.
    pub fn metrics(&self) -> String {
        Counters::text(&self.counters)
    }

    /// Returns the counters of its threads, for other readers.
    pub fn counters(&self) -> Vec<Arc<Counters>> {
        self.counters.clone()
    }

    /// Replaces the handler and the log for all later responses. No connection is lost.
    pub fn reload(&self, handler: H, log: Option<Arc<Log>>) {
        if let Ok(mut live) = self.shared.live.lock() {
            *live = LiveConfig { handler, log };
        }
        self.shared.version.fetch_add(1, Ordering::Release);
        self.shared.wake();
        tracing::info!(address = %self.address, "another handler from now on");
    }

    /// Accepts no more requests, finishes pending ones (for at most [`ServerConfig::grace`]), and stops.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if !self.threads.is_empty() {
            tracing::info!(address = %self.address, "shutting down after pending requests");
        }
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it already.
            let _ = thread.join();
        }
    }
}

impl<H: Handler> Drop for Server<H> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Maximum number of client connections. A quarter of the descriptors is reserved for everything else: datagrams, files,
/// origins, connections to clients.
fn accepted(config: &ServerConfig) -> usize {
    let descriptors = usize::try_from(descriptors::limit_now() / 4 * 3).unwrap_or(usize::MAX);
    config.accepted.min(descriptors).max(1)
}

impl<H> Shared<H> {
    fn wake(&self) {
        self.wakers.iter().for_each(Waker::wake);
    }
}

/// Longer than a process that is being started keeps the descriptors of its parent, unless the host is busy.
const COPY_TIME: Duration = Duration::from_millis(2);
/// Attempts to bind.
const BINDS: usize = 64;

impl Sockets {
    /// Binds the first pair of sockets. If the system chooses the port, UDP and TCP must agree on it.
    fn bind_first(address: SocketAddr, config: &ServerConfig) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..BINDS {
            // Not shared yet: another server on this port is a configuration error.
            let chosen = socket::udp(address, false).and_then(|probe| probe.local_addr());
            match chosen.and_then(|chosen| Self::bind(chosen, config)) {
                Ok(sockets) => return Ok(sockets),
                Err(error) if address.port() != 0 && error.kind() != io::ErrorKind::AddrInUse => {
                    return Err(error);
                }
                Err(error) => last = error,
            }
            // A process that another thread is starting has a copy of the probe until it executes its program.
            thread::park_timeout(COPY_TIME);
        }
        Err(last)
    }

    fn bind(address: SocketAddr, config: &ServerConfig) -> io::Result<Self> {
        let listener = socket::tcp(address, true, false)?;
        socket::limit_unsent(&listener);
        let udp = socket::udp(address, true)?;
        batch::prepare(&udp);
        if config.intercepts {
            socket::divert_to_socket(&udp)?;
        }
        Ok(Self { udp, listener, fast_open: config.fast_open })
    }
}
