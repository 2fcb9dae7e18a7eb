//! A helper on a router: takes requests of DHTTP on their way, rewrites the port inside, and lets their answers in
//! (`papers/dhttp#section-iv-c`, and IV-D).
//!
//! Requests are diverted to it by rules of the kernel's (TPROXY); it sends them on from a port of the router's own, or,
//! as a firewall, from the client's. A datagram that answers is passed back as from the one who sent it; a connection is
//! let in and translated by the kernel, for which a hole was opened when the request went out. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | `rules` | the rules, and holes as elements of them |
//! | `driver` | the thread: datagrams in and out |
//! | `sockets` | sockets that send as somebody else |
//! | `counters` | what it tells of itself |
//!
//! It decides nothing: [`dhttp_proto::translator`] does. One is for IPv4 or for IPv6, whose rules the kernel keeps apart.

pub mod counters;
mod driver;
mod rules;
mod sockets;

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dhttp_proto::TranslatorConfig;
use rustix::event::{EventfdFlags, eventfd};

use crate::nft::{Family, Rules, RulesError};
use counters::Counters;
use dhttp::log::Log;
use driver::Driver;

pub use rules::LET_IN;

/// Configuration of a helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatConfig {
    /// The network interface behind which clients are.
    pub inside: String,
    /// The one behind which servers are.
    pub outside: String,
    /// Address family of the packets it sees; for the other there may be a second helper.
    pub family: Family,
    /// The UDP port of servers.
    pub port: u16,
    /// Configuration of the translator.
    pub translator: TranslatorConfig,
    /// Whether a connection must begin with the id of a request.
    pub by_id: bool,
    /// A firewall that itself lets nothing else in that is new.
    pub closed: bool,
}

impl NatConfig {
    /// The rules that it would install.
    pub fn rules(&self) -> Rules {
        rules::rules(self)
    }
}

/// Takes away what one that was killed has left; whether there was anything.
///
/// # Errors
/// If the programs for it are missing or may not be used.
pub fn clean(family: Family) -> Result<bool, RulesError> {
    rules::empty(family).clean()
}

/// A helper that runs, until it is told to stop or is dropped. Then its rules are gone; connections that it has let in
/// go on.
pub struct Nat {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    counters: Counters,
    log: Mutex<Option<Arc<Log>>>,
    stop: AtomicBool,
    change: Mutex<Option<Change>>,
    waker: OwnedFd,
}

/// The programs that change the rules take no longer.
const CHANGED: Duration = Duration::from_secs(30);

/// New configuration, and the sender of its result.
type Change = (NatConfig, Sender<Result<(), NatError>>);

impl Nat {
    /// Binds the port, installs the rules and begins.
    ///
    /// # Errors
    /// The missing part; then nothing is left behind.
    pub fn start(config: &NatConfig, log: Option<Arc<Log>>) -> Result<Self, NatError> {
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        let shared = Arc::new(Shared {
            counters: Counters::default(),
            log: Mutex::new(log),
            stop: AtomicBool::new(false),
            change: Mutex::new(None),
            waker,
        });
        let driver = Driver::new(config, Arc::clone(&shared), None)?;
        let installed = config.rules().install()?;
        let thread = thread::Builder::new().name("nat".to_owned()).spawn(move || driver.run(installed))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Reads what it has counted, in Prometheus' text format, whenever it is called.
    pub fn metrics(&self) -> impl Fn() -> String + Send + 'static + use<> {
        let shared = Arc::clone(&self.shared);
        move || Counters::text(&[&shared.counters])
    }

    /// From now on it works so, and writes to another log. The rules are exchanged in one step; if they are others,
    /// requests that wait for an answer are sent again by their clients, and connections that were let in go on. So it is
    /// if somebody has taken the table away.
    ///
    /// # Errors
    /// The part that is missing, or was refused; then everything is as it was.
    pub fn reload(&self, config: NatConfig, log: Option<Arc<Log>>) -> Result<(), NatError> {
        let (tell, reported) = mpsc::channel();
        if let Ok(mut change) = self.shared.change.lock() {
            *change = Some((config, tell));
        }
        self.shared.wake();
        // A thread that has ended takes no change, and tells nothing.
        reported.recv_timeout(CHANGED).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if let Ok(mut reported) = self.shared.log.lock() {
            *reported = log;
        }
        Ok(())
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn wake(&self) {
        // If it is full, the thread has been woken already.
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
    }

    fn change(&self) -> Option<Change> {
        // The number only says that something is to be looked at.
        let _ = rustix::io::read(&self.waker, &mut [0_u8; 8]);
        self.change.lock().ok()?.take()
    }
}

/// Why there is no helper.
#[derive(Debug)]
pub enum NatError {
    /// Its rules.
    Rules(RulesError),
    /// It is to be one for others than it was.
    Family,
    /// Its UDP port.
    Port(u16, io::Error),
    /// Anything else that the system refused.
    System(io::Error),
}

impl From<RulesError> for NatError {
    fn from(error: RulesError) -> Self {
        Self::Rules(error)
    }
}

impl From<io::Error> for NatError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl fmt::Display for NatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules(error) => error.fmt(f),
            Self::Family => {
                f.write_str("ipv6: whether it is for IPv6 cannot change while it runs; start it anew")
            }
            Self::Port(port, error) if error.kind() == io::ErrorKind::AddrInUse => write!(
                f,
                "UDP port {port} is in use on this machine; end the program that has it, or move it to one address"
            ),
            Self::Port(port, error) => {
                write!(f, "cannot take requests for UDP port {port}: {error}; run as root")
            }
            Self::System(error) => write!(f, "the system refused: {error}; run as root"),
        }
    }
}

impl Error for NatError {}
