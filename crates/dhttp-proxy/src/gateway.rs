//! A gateway: a local proxy through which programs that know only HTTP use DHTTP (`papers/dhttp#section-iv-a`).
//!
//! Proxy requests flow in, on connections of programs. They are forwarded by DHTTP where a server is known to speak it, and
//! otherwise by plain HTTP on persistent connections. Responses flow back as they arrive, never buffered whole. Read in this
//! order:
//!
//! | module | contents |
//! | --- | --- |
//! | `stage`, `connection` | a request and its connection, and what is next for each |
//! | `pipeline` | the stages of a request, and the hand-overs between threads |
//! | `accept`, `slots` | connections of clients, and the limits of their number |
//! | `abort` | the end of an exchange for a newcomer's connection |
//! | `read_request` | one of them while it is watched: requests, timeouts |
//! | `check` | the request's limits and method, and the gateway's rules |
//! | `look_up` | the cache, if there is one |
//! | `connect`, `origins` | a server's channel: DHTTP, a pooled connection or a new one; a tunnel; the limit for one server |
//! | `send` | the request's header section and body |
//! | `receive`, `receive_datagram` | the response, in a thread and in the event loop |
//! | `write_response` | responses as clients get them, the gateway's own among them |
//! | `tunnel` | bytes in both directions, untouched |
//! | `event_loop`, `thread_pool` | the threads that watch connections, and those that may block |
//! | `completions` | connections that threads return to their event loop |
//! | `upstream`, `pool`, `dhttp_request` | a connection to a server by plain HTTP, where it comes from, and a request by DHTTP |
//! | `incoming`, `chunked` | bytes received and not read yet; bodies whose length is not known in advance |
//! | `counters` | counters for Prometheus |
//!
//! Messages are interpreted by [`http1::gateway`], and caching is decided by [`mod@crate::cache`].

mod abort;
mod accept;
mod check;
mod chunked;
mod completions;
mod connect;
mod connection;
pub mod counters;
mod dhttp_request;
mod event_loop;
mod incoming;
mod look_up;
mod origins;
mod pipeline;
mod pool;
mod read_request;
mod receive;
mod receive_datagram;
mod send;
mod slots;
mod stage;
mod thread_pool;
mod tunnel;
mod upstream;
mod write_response;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dhttp_proto::Prefix;
use dhttp_proto::shares::Shares;
use http1::message::RequestHead;

use crate::CacheConfig;
use crate::cache::streaming_fill::SharedCache;
use completions::Completions;
use counters::Counters;
use dhttp::client::{KnownServers, Observer};
use dhttp::handler::Request;
use dhttp::log::{Channel, Log};
use dhttp::{Client, ClientConfig, descriptors, random, socket};
use event_loop::EventLoop;
use linux::clock::{self, Clock};
use origins::Origins;
use pool::Pool;
use thread_pool::ThreadPool;

/// Configuration of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Configuration of its requests to servers.
    pub client: ClientConfig,
    /// Idle timeout of a client's connection between requests.
    pub idle: Duration,
    /// Timeout of one side in the middle of a message.
    pub timeout: Duration,
    /// Threads that watch connections; each closes idle ones of its own for newcomers. Those that may block are not counted.
    pub threads: usize,
    /// Maximum number of programs' connections; further ones get 503 with `Retry-After`.
    pub connections: usize,
    /// Maximum number of one client, an IPv4 address or an IPv6 /64, that is not this host; `None`: half of all.
    pub client_connections: Option<usize>,
    /// Maximum number of exchanges with one server; `None`: half of all connections.
    pub origin_exchanges: Option<usize>,
    /// Minimum bytes per second of a program's request body, after the first `timeout`; 0: any.
    pub min_upload_rate: u64,
    /// Clients that may use it; empty: all that can reach it.
    pub allowed: Vec<Prefix>,
    /// Allowed ports for `CONNECT`; `None`: any.
    pub connect_ports: Option<Vec<u16>>,
    /// Configuration of the cache, if there is one.
    pub cache: Option<CacheConfig>,
}

impl GatewayConfig {
    /// Returns the defaults for the programs of one computer.
    pub const fn new(client: ClientConfig) -> Self {
        Self {
            client,
            idle: Duration::from_secs(120),
            timeout: Duration::from_secs(60),
            threads: 1,
            connections: 1_024,
            client_connections: None,
            origin_exchanges: None,
            // As in Apache's `mod_reqtimeout`, and as for servers.
            min_upload_rate: 500,
            allowed: Vec::new(),
            connect_ports: None,
            cache: None,
        }
    }
}

/// A running gateway; it stops at [`Gateway::stop`], or when it is dropped.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by the threads.
struct Shared {
    /// Current configuration, replaced at a reload.
    live: Mutex<LiveConfig>,
    watch: Option<Observer>,
    pool: Pool,
    origins: Arc<Origins>,
    /// The cache, which survives reloads.
    cache: Option<Arc<SharedCache>>,
    clock: Clock,
    address: SocketAddr,
    /// Name in `Via`, by which the gateway detects loops.
    name: String,
    counters: Counters,
    log: Mutex<Option<Arc<Log>>>,
    stop: AtomicBool,
    /// Grace period for pending work at the shutdown.
    grace: Mutex<Duration>,
    /// Queues by which connections return to their event loops.
    completions: Vec<Arc<Completions>>,
    /// Numbers of clients' connections, in all event loops.
    clients: Arc<Mutex<Shares>>,
    threads: Arc<ThreadPool>,
}

/// Its configuration, and its DHTTP client.
#[derive(Clone)]
struct LiveConfig {
    config: Arc<GatewayConfig>,
    client: Arc<Client>,
}

impl Gateway {
    /// Binds the port and starts. `known` are servers that speak DHTTP; `watch` observes what is sent and received.
    ///
    /// # Errors
    /// The system's error for a socket; the address may be in use. Or the error of the cache's file on disk.
    pub fn start(
        address: SocketAddr,
        config: GatewayConfig,
        known: KnownServers,
        watch: Option<Observer>,
        log: Option<Arc<Log>>,
    ) -> io::Result<Self> {
        let listener = socket::tcp(address, false, false)?;
        socket::limit_unsent(&listener);
        let address = listener.local_addr()?;
        descriptors::grow_table();
        let number = u32::from_be_bytes(random::bytes()?);
        let client = Client::start(config.client.clone(), known, watch.clone())?;
        let cache = config.cache.as_ref().map(SharedCache::new).transpose()?;
        let count = config.threads.max(1);
        let completions = (0..count).map(|_| Completions::new().map(Arc::new)).collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared {
            live: Mutex::new(LiveConfig { config: Arc::new(config), client: Arc::new(client) }),
            watch,
            pool: Pool::default(),
            origins: Arc::default(),
            cache: cache.map(Arc::new),
            clock: Clock::start(),
            address,
            name: format!("roundtrip-{number:08x}"),
            counters: Counters::default(),
            log: Mutex::new(log),
            stop: AtomicBool::new(false),
            grace: Mutex::default(),
            completions,
            clients: Arc::default(),
            threads: Arc::default(),
        });
        let mut gateway = Self { address, shared, threads: Vec::new() };
        for completions in &gateway.shared.completions {
            let event_loop = EventLoop::new(&gateway.shared, completions, listener.try_clone()?)?;
            let thread = thread::Builder::new().name("gateway".to_owned());
            gateway.threads.push(thread.spawn(move || event_loop.run())?);
        }
        tracing::info!(%address, threads = count, "a gateway");
        Ok(gateway)
    }

    /// The address on which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the servers that are known to speak DHTTP by now.
    pub fn known(&self) -> KnownServers {
        self.shared.client().known()
    }

    /// Returns a function that renders its counters in Prometheus' text format.
    pub fn metrics(&self) -> impl Fn() -> String + Send + 'static + use<> {
        let shared = Arc::clone(&self.shared);
        move || {
            let stored = shared.cache.as_ref().map(|cache| cache.metrics());
            shared.counters.metrics() + &stored.unwrap_or_default()
        }
    }

    /// Applies a new configuration, and logs responses elsewhere. Pending requests continue as they began.
    ///
    /// # Errors
    /// The system's error for changed ports; then nothing has changed.
    pub fn reload(&self, config: GatewayConfig, log: Option<Arc<Log>>) -> io::Result<()> {
        let previous = self.shared.live();
        let client = if previous.config.client == config.client {
            previous.client
        } else {
            // The old client ends with its last pending request.
            let known = previous.client.known();
            Arc::new(Client::start(config.client.clone(), known, self.shared.watch.clone())?)
        };
        *self.shared.live.lock().unwrap_or_else(PoisonError::into_inner) =
            LiveConfig { config: Arc::new(config), client };
        if let Ok(mut reported) = self.shared.log.lock() {
            *reported = log;
        }
        Ok(())
    }

    /// Accepts no more requests, finishes pending ones (for at most `grace`), and stops.
    pub fn stop(mut self, grace: Duration) {
        self.end(grace);
    }

    fn end(&mut self, grace: Duration) {
        *self.shared.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
        self.shared.stop.store(true, Ordering::Release);
        self.shared.completions.iter().for_each(|completions| completions.wake());
        for thread in self.threads.drain(..) {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
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
    fn live(&self) -> LiveConfig {
        // A thread that panicked while it held the lock left no partial change.
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn config(&self) -> Arc<GatewayConfig> {
        self.live().config
    }

    fn client(&self) -> Arc<Client> {
        self.live().client
    }

    fn log(&self) -> Option<Arc<Log>> {
        self.log.lock().ok().and_then(|log| log.clone())
    }

    fn grace(&self) -> wire::Duration {
        let grace = *self.grace.lock().unwrap_or_else(PoisonError::into_inner);
        wire::Duration::from_nanos(u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX))
    }
}

fn log_response(log: &Log, peer: SocketAddr, head: &RequestHead, status: u16, bytes: u64, channel: Channel) {
    let second = clock::calendar().as_nanos() / 1_000_000_000;
    log.line(second, peer.ip(), &Request::of_connection(head, &[]), status, bytes, channel);
}
