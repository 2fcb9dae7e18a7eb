//! A client: one thread with its sockets and its state machine; each request has an [`Exchange`], blocking or async.
//!
//! DHTTP opens no connection: there is one UDP port for requests, and one TCP port that servers connect to. Requests
//! to servers not known to speak DHTTP go over plain HTTP, and so does what DHTTP cannot carry. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | `exchange` | events of one request |
//! | `known_servers` | servers known to speak DHTTP, and their tokens |
//! | `known_servers_file` | their file |
//! | `driver` | the thread: datagrams, connections of servers, timers |
//! | `plain` | plain HTTP over a connection of its own |
//! | `race` | plain HTTP raced against the first request to a server |
//! | `note` | events for `-v` |
//!
//! Not a browser: it follows no redirects and has no cache.

mod driver;
mod exchange;
mod known_servers;
mod known_servers_file;
mod note;
mod plain;
mod race;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use dhttp_proto::address::is_global;
use dhttp_proto::client::ConnectionId;
use dhttp_proto::{ClientConfig as Machine, Id};
use http1::message::{Fields, Method, RequestHead, Version};
use rustix::event::{EventfdFlags, eventfd};
use wire::Duration;

use crate::Url;
use crate::fields::copy;
use crate::own_address::is_own;
use driver::Driver;
use exchange::Sink;
use known_servers::StoredToken;
use linux::clock::calendar;
use race::Race;

pub use exchange::{Event, Exchange, Via};
pub use known_servers::{DamagedLine, KnownServers};
pub use known_servers_file::{DamagedFile, ServersFile};
pub use note::Note;

/// Configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// DHTTP.
    pub dhttp: Machine,
    /// Range of UDP and TCP ports to bind, as a firewall admits them. `None`: any.
    pub ports: Option<RangeInclusive<u16>>,
    /// Timeout of a plain HTTP connection, for its handshake and for data.
    pub timeout: Duration,
    /// Whether to send requests to non-global addresses, or to this host's own.
    pub reaches_private: bool,
    /// Whether plain HTTP races the first request to a server. HTTP begins after one round trip, if the client has no token
    /// and no response yet. Not with servers on this host.
    pub races: bool,
}

impl ClientConfig {
    /// Returns the configuration for the public Internet.
    pub fn internet() -> Self {
        Self {
            dhttp: Machine::internet(),
            ports: None,
            timeout: Duration::from_secs(30),
            reaches_private: true,
            races: true,
        }
    }

    /// Whether requests are sent to a server at this address. Where only global addresses are allowed, the kernel reports which
    /// addresses are this host's own.
    pub fn reaches(&self, server: IpAddr) -> bool {
        self.reaches_private || (is_global(server) && !is_own(server))
    }

    /// Returns the paper's configuration: resends after 5 and 10 seconds, responses from any source, and no race.
    pub fn paper() -> Self {
        Self { dhttp: Machine::paper(), races: false, ..Self::internet() }
    }
}

/// Callback for everything that is sent and received.
pub type Observer = Arc<dyn Fn(&Note) + Send + Sync>;

/// A client. Dropping it aborts its pending requests.
pub struct Client {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State shared with the thread.
pub(crate) struct Shared {
    /// Commands for the thread; `None` after it has stopped.
    commands: Mutex<Option<VecDeque<Command>>>,
    waker: OwnedFd,
    known: Mutex<KnownServers>,
    /// Bytes received from servers by plain HTTP since the thread last took them.
    received_bytes: Mutex<BTreeMap<IpAddr, usize>>,
    watch: Option<Observer>,
    config: ClientConfig,
}

enum Command {
    Request(Box<PendingRequest>),
    Cancel(Id),
    /// Read this connection again: the caller has taken its response.
    Resume(ConnectionId),
    /// Report the servers' tokens.
    Export(SyncSender<StoredTokens>),
    Stop,
}

/// The servers' tokens.
type StoredTokens = Vec<(SocketAddr, StoredToken)>;

/// A request to be sent.
#[derive(Clone)]
struct PendingRequest {
    id: Id,
    url: Url,
    server: SocketAddr,
    /// The same server's address for DHTTP.
    dhttp: SocketAddr,
    head: RequestHead,
    sink: Arc<Sink>,
    /// The race of plain HTTP against it, if there is one.
    race: Option<Arc<Race>>,
}

impl Client {
    /// Binds its ports. `known` lists servers that speak DHTTP; `watch` is called for everything sent and received. If `known`
    /// has tokens, the client binds the TCP port for which they were issued, if that is free.
    ///
    /// # Errors
    /// The system's error for a socket; all ports of the range may be in use.
    pub fn start(config: ClientConfig, known: KnownServers, watch: Option<Observer>) -> io::Result<Self> {
        let now = calendar().as_nanos() / 1_000_000_000;
        let tokens = known.tokens(now).map(|(server, stored)| (server, stored.clone())).collect();
        let shared = Arc::new(Shared {
            commands: Mutex::new(Some(VecDeque::new())),
            waker: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            known: Mutex::new(known),
            received_bytes: Mutex::default(),
            watch,
            config: config.clone(),
        });
        let mut driver = Driver::new(config.dhttp, config.ports, tokens, Arc::clone(&shared))?;
        let thread = thread::Builder::new().name("dhttp-client".to_owned()).spawn(move || driver.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// If the kernel gives no random bytes or no thread.
    pub fn get(&self, url: &Url) -> io::Result<Exchange> {
        self.request(Method::Get, url, &Fields::new())
    }

    /// Sends a request. `Host` is added; the other fields are the caller's.
    ///
    /// # Errors
    /// If the kernel gives no random bytes or no thread.
    pub fn request(&self, method: Method, url: &Url, fields: &Fields) -> io::Result<Exchange> {
        let id = Id::marked(crate::random::number()?);
        let sink = Arc::new(Sink::default());
        let exchange = Exchange::new(id, Arc::clone(&sink), Arc::clone(&self.shared));
        let head = head(method, url, fields);
        let (shared, url) = (Arc::clone(&self.shared), url.clone());
        match url.host.parse::<IpAddr>() {
            Ok(address) => shared.send_request(id, &url, SocketAddr::new(address, url.port), head, sink),
            // Name resolution blocks, so it has a thread of its own.
            Err(_) => {
                thread::Builder::new().spawn(move || match (&*url.host, url.port).to_socket_addrs() {
                    Ok(mut addresses) => match addresses.next() {
                        Some(address) => shared.send_request(id, &url, address, head, sink),
                        None => sink.fail(format!("{} has no address", url.host)),
                    },
                    Err(error) => sink.fail(format!("{} has no address: {error}", url.host)),
                })?;
            }
        }
        Ok(exchange)
    }

    /// Sends a request by DHTTP to the server at this address, whatever address the host's name has. The header section is sent
    /// as given, `Host` included.
    ///
    /// # Errors
    /// If the kernel gives no random bytes.
    pub fn request_at(&self, server: SocketAddr, head: RequestHead) -> io::Result<Exchange> {
        let id = Id::marked(crate::random::number()?);
        let sink = Arc::new(Sink::default());
        let exchange = Exchange::new(id, Arc::clone(&sink), Arc::clone(&self.shared));
        let (host, port, target) = (server.ip().to_string(), server.port(), head.target.clone());
        let url = Url { is_dhttp: true, is_by_tcp: false, host, port, target };
        self.shared.send_request(id, &url, server, head, sink);
        Ok(exchange)
    }

    /// Whether a request to this URL uses DHTTP: because of its scheme, its path, or an earlier `Alt-Svc`.
    pub fn speaks_dhttp(&self, url: &Url) -> bool {
        self.shared.dhttp_port(url).is_some()
    }

    /// Learns from `Alt-Svc` (RFC 7838) in a response that came over plain HTTP outside this client. `server` is a host, and its
    /// port unless that is 80.
    pub fn learn_from_response(&self, server: &str, fields: &Fields) {
        self.shared.learn_from_response(server, fields);
    }

    /// Records bytes received from a server by plain HTTP: a DHTTP response may be queued behind them.
    pub fn count_received_bytes(&self, server: IpAddr, bytes: usize) {
        self.shared.count_received_bytes(server, bytes);
    }

    /// Returns the servers known to speak DHTTP, and their tokens. It waits for the client's thread, at most a second.
    pub fn known(&self) -> KnownServers {
        let (sender, tokens) = sync_channel(1);
        self.shared.send_command(Command::Export(sender));
        let tokens = tokens.recv_timeout(std::time::Duration::from_secs(1));
        let mut known = self.shared.known.lock().map(|known| known.clone()).unwrap_or_default();
        // A thread that is busy, or has stopped, reports none.
        known.set_tokens(tokens.unwrap_or_default().into_iter());
        known
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.send_command(Command::Stop);
        // The last owner may be a task that the client's own thread has just woken: that thread then ends by itself.
        let is_other = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
        if let Some(thread) = self.thread.take().filter(is_other) {
            // A thread that panicked has reported it already.
            let _ = thread.join();
        }
    }
}

/// Returns the error for a server that must not be contacted.
pub fn unreached(server: SocketAddr) -> String {
    format!("{server} is a local or non-global address, not available to remote clients")
}

/// Maximum number of servers whose bytes are counted at a time, so that servers without requests use no memory.
const MAX_HEARD: usize = 64;

/// Error for pending requests after the thread has stopped.
const STOPPED: &str = "the client has been stopped";

impl Command {
    /// Fails the command: its caller gets an error.
    fn refuse(self) {
        match self {
            Self::Request(question) => question.sink.fail(STOPPED.to_owned()),
            Self::Cancel(_) | Self::Resume(_) | Self::Export(_) | Self::Stop => {}
        }
    }
}

impl Shared {
    fn send_request(
        self: &Arc<Self>,
        id: Id,
        url: &Url,
        server: SocketAddr,
        head: RequestHead,
        sink: Arc<Sink>,
    ) {
        if !self.config.reaches(server.ip()) {
            return sink.fail(unreached(server));
        }
        let port = self.dhttp_port(url);
        let dhttp = SocketAddr::new(server.ip(), port.unwrap_or(server.port()));
        let question = PendingRequest { id, url: url.clone(), server, dhttp, head, sink, race: None };
        match port {
            Some(_) => self.send_command(Command::Request(Box::new(question))),
            None => plain::send_request(self, question),
        }
    }

    /// Returns the port on which a server speaks DHTTP, if known: by the scheme, the path, or an earlier `Alt-Svc`.
    fn dhttp_port(&self, url: &Url) -> Option<u16> {
        if url.is_by_tcp {
            return None;
        }
        if url.is_dhttp || url.target.starts_with("/_dhttp_/") {
            return Some(url.port);
        }
        self.known.lock().ok().and_then(|known| known.port(&url.authority()))
    }

    /// Learns from the header section of a response over plain HTTP.
    fn learn_from_response(&self, server: &str, fields: &Fields) {
        if let Ok(mut known) = self.known.lock() {
            fields.all("Alt-Svc").for_each(|field| known.apply_alt_svc(server, field));
        }
    }

    /// The thread is not woken: it takes the counts when it needs them.
    fn count_received_bytes(&self, server: IpAddr, bytes: usize) {
        if let Ok(mut received_bytes) = self.received_bytes.lock()
            && (received_bytes.len() < MAX_HEARD || received_bytes.contains_key(&server))
        {
            let sum = received_bytes.entry(server).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }

    fn send_command(&self, command: Command) {
        let Ok(mut commands) = self.commands.lock() else { return command.refuse() };
        let Some(all) = &mut *commands else {
            drop(commands);
            return command.refuse();
        };
        let is_first = all.is_empty();
        all.push_back(command);
        drop(commands);
        // Otherwise the thread has been woken already, or is about to be; the same holds if the eventfd is full.
        if is_first {
            let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
        }
    }

    /// Refuses pending and all later commands.
    fn refuse_commands(&self) {
        let waiting = self.commands.lock().map(|mut commands| commands.take());
        waiting.ok().flatten().into_iter().flatten().for_each(Command::refuse);
    }

    fn note(&self, note: &Note) {
        if !note.is_of_a_datagram() {
            tracing::debug!("{note}");
        }
        if let Some(watch) = &self.watch {
            watch(note);
        }
    }
}

fn head(method: Method, url: &Url, more: &Fields) -> RequestHead {
    let mut fields = Fields::new();
    // A host that is not valid in a field is not valid in a `Url`.
    let _ = fields.push("Host", &url.authority());
    for (name, value) in more.iter() {
        copy(&mut fields, name, value);
    }
    RequestHead { method, target: url.target.clone(), version: Version::Http11, fields }
}
