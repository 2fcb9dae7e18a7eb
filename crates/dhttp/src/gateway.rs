//! A gateway: a local proxy by which programs that know only HTTP use DHTTP (`papers/dhttp#section-iv-a`).
//!
//! Requests of proxies flow in, on connections; they are asked by DHTTP where a server is known to speak it, and by
//! plain HTTP on kept connections where not; answers flow back as they come, never held back whole. Read in this
//! order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | `browser` | one connection of a program, and what becomes of its requests |
//! | `kept` | what it keeps, if it was told to |
//! | `own` | what the gateway says of itself |
//! | `reply` | an answer, framed for that connection |
//! | `upload` | a request's body on its way to a server |
//! | `upstream` | asking a server by plain HTTP, and the connections that are kept for it |
//! | `chunked` | bodies whose length is not known beforehand |
//! | `tunnel` | bytes both ways, untouched |
//! | `incoming` | what has come on a connection and is not read yet |
//! | `counters` | what it tells of itself |
//!
//! A thread a connection: those of one computer's programs are few. It decides nothing about the messages: that is
//! [`proto::gateway`], and [`mod@crate::cache`] for what is kept.

mod browser;
mod chunked;
pub mod counters;
mod incoming;
mod kept;
mod own;
mod reply;
mod tunnel;
mod upload;
mod upstream;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::dhttp::Prefix;
use socket2::SockRef;

use crate::cache::passing::Keeper;
use crate::client::{Known, Watch};
use crate::clock::Clock;
use crate::log::Log;
use crate::{CacheConfig, Client, ClientConfig, random, socket};
use counters::Counters;
use upstream::Pool;

/// How a gateway behaves.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// How it asks servers.
    pub client: ClientConfig,
    /// How long a program's connection may be idle between requests.
    pub idle: Duration,
    /// How long one side may be silent in the middle of a message.
    pub patience: Duration,
    /// Connections of programs at a time; more are told to come again.
    pub connections: usize,
    /// Who may use it; empty: whoever reaches it.
    pub allowed: Vec<Prefix>,
    /// How answers are kept, if they are to be.
    pub cache: Option<CacheConfig>,
}

impl GatewayConfig {
    /// For the programs of one computer.
    pub const fn new(client: ClientConfig) -> Self {
        Self {
            client,
            idle: Duration::from_secs(120),
            patience: Duration::from_secs(60),
            connections: 1_024,
            allowed: Vec::new(),
            cache: None,
        }
    }
}

/// A gateway that runs, until it is told to stop or is dropped.
pub struct Gateway {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the threads have in common.
struct Shared {
    /// Another after a reload.
    ways: Mutex<Ways>,
    watch: Option<Watch>,
    pool: Pool,
    /// As long as it runs: what is kept is not lost with a reload.
    keeper: Option<Arc<Keeper>>,
    clock: Clock,
    address: SocketAddr,
    /// In `Via`, so that a request that comes round again is known.
    name: String,
    counters: Counters,
    log: Mutex<Option<Arc<Log>>>,
    stop: AtomicBool,
    /// The connections there are, and whether a request is under way.
    open: Mutex<BTreeMap<u64, Open>>,
    closed: Condvar,
}

/// How it behaves, and what asks by DHTTP.
#[derive(Clone)]
struct Ways {
    config: Arc<GatewayConfig>,
    client: Arc<Client>,
}

struct Open {
    stream: Arc<TcpStream>,
    is_busy: bool,
}

impl Gateway {
    /// Binds the port and begins. `known` are servers that speak DHTTP; `watch` is told what is sent and received.
    ///
    /// # Errors
    /// What the system said to the sockets; the address may be in use. Or what is wrong with the file in which answers are
    /// to be kept.
    pub fn start(
        address: SocketAddr,
        config: GatewayConfig,
        known: Known,
        watch: Option<Watch>,
        log: Option<Arc<Log>>,
    ) -> io::Result<Self> {
        let listener = socket::tcp(address, false, false)?;
        // The others of this crate wait in an epoll; this one waits in `accept`.
        listener.set_nonblocking(false)?;
        let address = listener.local_addr()?;
        let number = u32::from_be_bytes(random::bytes()?);
        let client = Client::start(config.client.clone(), known, watch.clone())?;
        let keeper = config.cache.as_ref().map(Keeper::new).transpose()?;
        let shared = Arc::new(Shared {
            ways: Mutex::new(Ways { config: Arc::new(config), client: Arc::new(client) }),
            watch,
            pool: Pool::default(),
            keeper: keeper.map(Arc::new),
            clock: Clock::start(),
            address,
            name: format!("roundtrip-{number:08x}"),
            counters: Counters::default(),
            log: Mutex::new(log),
            stop: AtomicBool::new(false),
            open: Mutex::default(),
            closed: Condvar::new(),
        });
        let listener = Arc::new(listener);
        let (accepting, listening) = (Arc::clone(&shared), Arc::clone(&listener));
        let thread = thread::Builder::new().name("gateway".to_owned());
        let thread = thread.spawn(move || accept(&accepting, &listening))?;
        tracing::info!(%address, "a gateway");
        Ok(Self { address, listener, shared, thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The servers that are known to speak DHTTP by now.
    pub fn known(&self) -> Known {
        self.shared.client().known()
    }

    /// Reads what it has counted, in Prometheus' text format, whenever it is called.
    pub fn metrics(&self) -> impl Fn() -> String + Send + 'static + use<> {
        let shared = Arc::clone(&self.shared);
        move || {
            let kept = shared.keeper.as_ref().map(|keeper| keeper.metrics());
            shared.counters.metrics() + &kept.unwrap_or_default()
        }
    }

    /// From now on it behaves so, and answers are written to another log. What is under way goes on as it began.
    ///
    /// # Errors
    /// What the system said to other ports, if there are to be others; then nothing has changed.
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
            Ways { config: Arc::new(config), client };
        if let Ok(mut said) = self.shared.log.lock() {
            *said = log;
        }
        Ok(())
    }

    /// Takes no more requests, finishes those that were begun (for `grace` at most), and ends.
    pub fn stop(mut self, grace: Duration) {
        self.end(grace);
    }

    fn end(&mut self, grace: Duration) {
        self.shared.stop.store(true, Ordering::Release);
        // Wakes the one who accepts, from wherever; if that fails, nobody accepts any more.
        let _ = SockRef::from(&*self.listener).shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        let Ok(open) = self.shared.open.lock() else { return };
        for one in open.values().filter(|one| !one.is_busy) {
            let _ = one.stream.shutdown(Shutdown::Both);
        }
        let waited = self.shared.closed.wait_timeout_while(open, grace, |open| !open.is_empty());
        if let Ok((open, _)) = waited {
            for one in open.values() {
                let _ = one.stream.shutdown(Shutdown::Both);
            }
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

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut number = 0;
    while !shared.stop.load(Ordering::Acquire) {
        let Ok((stream, peer)) = listener.accept() else {
            // Out of descriptors, most likely: a connection that ends makes room.
            shared.wait_for_room();
            continue;
        };
        number += 1;
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        if !shared.allows(peer.ip()) {
            continue;
        }
        let stream = Arc::new(stream);
        if !shared.enter(number, &stream) {
            reply::turn_away(&stream);
            continue;
        }
        let serving = Arc::clone(shared);
        let thread = thread::Builder::new().name("gateway-connection".to_owned());
        let spawned = thread.spawn(move || {
            browser::serve(&serving, number, &stream, peer);
            serving.leave(number);
        });
        if spawned.is_err() {
            shared.leave(number);
        }
    }
}

impl Shared {
    fn allows(&self, peer: IpAddr) -> bool {
        let config = self.config();
        let allowed = &config.allowed;
        allowed.is_empty() || allowed.iter().any(|prefix| prefix.contains(peer))
    }

    /// `false`: there are too many already.
    fn enter(&self, number: u64, stream: &Arc<TcpStream>) -> bool {
        let Ok(mut open) = self.open.lock() else { return false };
        let has_room = open.len() < self.config().connections;
        if has_room {
            open.insert(number, Open { stream: Arc::clone(stream), is_busy: false });
        }
        has_room
    }

    fn leave(&self, number: u64) {
        if let Ok(mut open) = self.open.lock() {
            open.remove(&number);
        }
        self.closed.notify_all();
    }

    /// Says whether a request is under way; `false` if none may begin any more.
    fn set_busy(&self, number: u64, is_busy: bool) -> bool {
        if let Ok(mut open) = self.open.lock()
            && let Some(one) = open.get_mut(&number)
        {
            one.is_busy = is_busy;
        }
        !self.stop.load(Ordering::Acquire)
    }

    /// What is so now.
    fn ways(&self) -> Ways {
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

    fn wait_for_room(&self) {
        if let Ok(open) = self.open.lock() {
            let _ = self.closed.wait_timeout(open, Duration::from_millis(100));
        }
    }
}
