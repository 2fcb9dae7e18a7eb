//! A gateway: a local proxy by which programs that know only HTTP use DHTTP (`papers/dhttp#section-iv-a`).
//!
//! Requests of proxies flow in, on connections; they are asked by DHTTP where a server is known to speak it, and by
//! plain HTTP on kept connections where not; answers flow back as they come, never held back whole. Read in this
//! order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | `front` | the thread that watches all connections of programs |
//! | `waiting` | one of them while nobody asks for anything in its name; what is kept is given there |
//! | `asking` | what was asked in its name, and comes in one datagram |
//! | `hands` | threads for whatever must be waited for |
//! | `browser` | a request in the hands of such a thread, and what becomes of it |
//! | `kept` | keeping what passes, if it was told to |
//! | `own` | what the gateway says of itself |
//! | `reply` | an answer, framed for that connection |
//! | `upload` | a request's body on its way to a server |
//! | `upstream` | asking a server by plain HTTP, and the connections that are kept for it |
//! | `chunked` | bodies whose length is not known beforehand |
//! | `tunnel` | bytes both ways, untouched |
//! | `incoming` | what has come on a connection and is not read yet |
//! | `counters` | what it tells of itself |
//!
//! A thread for each request that must be waited for, and one for all else. It decides nothing about the messages: that
//! is [`http1::gateway`], and [`mod@crate::cache`] for what is kept.

mod blocking_exchange;
mod cached_reply;
mod chunked;
pub mod counters;
mod event_loop;
mod incoming;
mod own_responses;
mod pending_request;
mod reply;
mod thread_pool;
mod tunnel;
mod upload;
mod upstream;
mod watched_connection;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dhttp_proto::Prefix;

use crate::CacheConfig;
use crate::cache::streaming_fill::SharedCache;
use counters::Counters;
use dhttp::client::{KnownServers, Observer};
use dhttp::clock::Clock;
use dhttp::log::Log;
use dhttp::{Client, ClientConfig, descriptors, random, socket};
use event_loop::{Completions, EventLoop};
use thread_pool::ThreadPool;
use upstream::Pool;

/// Configuration of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Configuration of its requests to servers.
    pub client: ClientConfig,
    /// Idle timeout of a client's connection between requests.
    pub idle: Duration,
    /// Timeout of one side in the middle of a message.
    pub timeout: Duration,
    /// Connections of programs at a time; more are told to come again.
    pub connections: usize,
    /// Those of one client, an IPv4 address or an IPv6 /64, that is not this host; `None`: half of all.
    pub client_connections: Option<usize>,
    /// Bytes per second that a program must send of a body, after its first `patience`; 0: any.
    pub min_upload_rate: u64,
    /// Clients that may use it; empty: all that reach it.
    pub allowed: Vec<Prefix>,
    /// Ports to which `CONNECT` leads; `None`: any.
    pub connect_ports: Option<Vec<u16>>,
    /// Configuration of the cache, if there is one.
    pub cache: Option<CacheConfig>,
}

impl GatewayConfig {
    /// For the programs of one computer.
    pub const fn new(client: ClientConfig) -> Self {
        Self {
            client,
            idle: Duration::from_secs(120),
            timeout: Duration::from_secs(60),
            connections: 1_024,
            client_connections: None,
            // Apache's `mod_reqtimeout`, as for servers.
            min_upload_rate: 500,
            allowed: Vec::new(),
            connect_ports: None,
            cache: None,
        }
    }
}

/// A gateway that runs, until it is told to stop or is dropped.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the threads.
struct Shared {
    /// Another after a reload.
    ways: Mutex<LiveConfig>,
    watch: Option<Observer>,
    pool: Pool,
    /// As long as it runs: what is kept is not lost with a reload.
    keeper: Option<Arc<SharedCache>>,
    clock: Clock,
    address: SocketAddr,
    /// In `Via`, so that a request that comes round again is known.
    name: String,
    counters: Counters,
    log: Mutex<Option<Arc<Log>>>,
    stop: AtomicBool,
    /// Grace period for pending work then.
    grace: Mutex<Duration>,
    /// Where connections come back to.
    desk: Completions,
    hands: Arc<ThreadPool>,
}

/// Its configuration, and its DHTTP client.
#[derive(Clone)]
struct LiveConfig {
    config: Arc<GatewayConfig>,
    client: Arc<Client>,
}

impl Gateway {
    /// Binds the port and begins. `known` are servers that speak DHTTP; `watch` is told what is sent and received.
    ///
    /// # Errors
    /// The system's error for a socket; the address may be in use. Or the fault of the file in which responses are
    /// to be kept.
    pub fn start(
        address: SocketAddr,
        config: GatewayConfig,
        known: KnownServers,
        watch: Option<Observer>,
        log: Option<Arc<Log>>,
    ) -> io::Result<Self> {
        let listener = socket::tcp(address, false, false)?;
        let address = listener.local_addr()?;
        descriptors::make_room();
        let number = u32::from_be_bytes(random::bytes()?);
        let client = Client::start(config.client.clone(), known, watch.clone())?;
        let keeper = config.cache.as_ref().map(SharedCache::new).transpose()?;
        let shared = Arc::new(Shared {
            ways: Mutex::new(LiveConfig { config: Arc::new(config), client: Arc::new(client) }),
            watch,
            pool: Pool::default(),
            keeper: keeper.map(Arc::new),
            clock: Clock::start(),
            address,
            name: format!("roundtrip-{number:08x}"),
            counters: Counters::default(),
            log: Mutex::new(log),
            stop: AtomicBool::new(false),
            grace: Mutex::default(),
            desk: Completions::new()?,
            hands: Arc::default(),
        });
        let front = EventLoop::new(&shared, listener)?;
        let thread = thread::Builder::new().name("gateway".to_owned()).spawn(move || front.run())?;
        tracing::info!(%address, "a gateway");
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The servers that are known to speak DHTTP by now.
    pub fn known(&self) -> KnownServers {
        self.shared.client().known()
    }

    /// Reads what it has counted, in Prometheus' text format, whenever it is called.
    pub fn metrics(&self) -> impl Fn() -> String + Send + 'static + use<> {
        let shared = Arc::clone(&self.shared);
        move || {
            let stored = shared.keeper.as_ref().map(|keeper| keeper.metrics());
            shared.counters.metrics() + &stored.unwrap_or_default()
        }
    }

    /// From now on it behaves so, and answers are written to another log. What is under way goes on as it began.
    ///
    /// # Errors
    /// The system's error for other ports, if there are to be others; then nothing has changed.
    pub fn reload(&self, config: GatewayConfig, log: Option<Arc<Log>>) -> io::Result<()> {
        let before = self.shared.ways();
        let client = if before.config.client == config.client {
            before.client
        } else {
            // The old one ends with the last request that it was asked.
            let known = before.client.known();
            Arc::new(Client::start(config.client.clone(), known, self.shared.watch.clone())?)
        };
        *self.shared.ways.lock().unwrap_or_else(PoisonError::into_inner) =
            LiveConfig { config: Arc::new(config), client };
        if let Ok(mut reported) = self.shared.log.lock() {
            *reported = log;
        }
        Ok(())
    }

    /// Takes no more requests, finishes those that were begun (for `grace` at most), and ends.
    pub fn stop(mut self, grace: Duration) {
        self.end(grace);
    }

    fn end(&mut self, grace: Duration) {
        *self.shared.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
        self.shared.stop.store(true, Ordering::Release);
        self.shared.desk.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end(Duration::ZERO);
        }
    }
}

impl Shared {
    fn allows(&self, peer: IpAddr) -> bool {
        let config = self.config();
        let allowed = &config.allowed;
        allowed.is_empty() || allowed.iter().any(|prefix| prefix.contains(peer))
    }

    /// Returns the current configuration and client.
    fn ways(&self) -> LiveConfig {
        // A thread that panicked while it held the lock changed nothing by halves.
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn config(&self) -> Arc<GatewayConfig> {
        self.ways().config
    }

    fn client(&self) -> Arc<Client> {
        self.ways().client
    }

    fn log(&self) -> Option<Arc<Log>> {
        self.log.lock().ok().and_then(|log| log.clone())
    }

    fn grace(&self) -> wire::Duration {
        let grace = *self.grace.lock().unwrap_or_else(PoisonError::into_inner);
        wire::Duration::from_nanos(u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX))
    }
}
