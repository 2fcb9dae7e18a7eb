//! A helper on a router: intercepts DHTTP requests, rewrites the port inside, and lets their responses in
//! (`papers/dhttp#section-iv-c`, and IV-D).
//!
//! Kernel rules (TPROXY) divert requests to it; it forwards them from a port of the router's own, or, as a firewall, from the
//! client's. A response by datagram is passed back with the server's source address. A connection is let in and translated by
//! the kernel, through a pinhole that was opened when the request left. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | `rules` | the rules, and pinholes as elements of them |
//! | `driver` | the thread: datagrams in and out |
//! | `sockets` | sockets that send from other hosts' addresses |
//! | `counters` | counters for Prometheus |
//!
//! All decisions are [`dhttp_proto::translator`]'s. One helper is for IPv4 or for IPv6, whose rules the kernel keeps separate.

pub mod counters;
mod driver;
mod rules;
mod sockets;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dhttp_proto::TranslatorConfig;

use crate::nft::{Family, Rules, RulesError};
use counters::Counters;
use dhttp::log::Log;
use dhttp::readiness::Waker;
use driver::Driver;

pub use rules::PINHOLE_MARK;

/// Configuration of a helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatConfig {
    /// Network interface behind which clients are.
    pub inside: String,
    /// Network interface behind which servers are.
    pub outside: String,
    /// Address family of its packets; a second helper may serve the other.
    pub family: Family,
    /// UDP port of servers.
    pub port: u16,
    /// Configuration of the translator.
    pub translator: TranslatorConfig,
    /// Whether a connection must begin with the id of a request.
    pub by_id: bool,
    /// Whether it is a firewall that otherwise lets no new connection in.
    pub closed: bool,
}

impl NatConfig {
    /// Returns the rules that it would install.
    pub fn rules(&self) -> Rules {
        rules::rules(self)
    }
}

/// Removes the rules of a killed helper; returns whether there were any.
///
/// # Errors
/// If the required programs are missing or not permitted.
pub fn clean(family: Family) -> Result<bool, RulesError> {
    rules::empty(family).clean()
}

/// A running helper, until it is stopped or dropped. Then its rules are removed; connections that it has let in
/// continue.
pub struct Nat {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    counters: Counters,
    log: Mutex<Option<Arc<Log>>>,
    stop: AtomicBool,
    change: Mutex<Option<Change>>,
    waker: Waker,
}

/// Timeout of a change of the rules.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// New configuration, and the sender of its result.
type Change = (NatConfig, Sender<Result<(), NatError>>);

impl Nat {
    /// Binds the port, installs the rules and starts.
    ///
    /// # Errors
    /// The missing part; then nothing stays installed.
    pub fn start(config: &NatConfig, log: Option<Arc<Log>>) -> Result<Self, NatError> {
        let shared = Arc::new(Shared {
            counters: Counters::default(),
            log: Mutex::new(log),
            stop: AtomicBool::new(false),
            change: Mutex::new(None),
            waker: Waker::new()?,
        });
        let driver = Driver::new(config, Arc::clone(&shared), None)?;
        let installed = config.rules().install()?;
        let thread = thread::Builder::new().name("nat".to_owned()).spawn(move || driver.run(installed))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns a function that renders its counters in Prometheus' text format.
    pub fn metrics(&self) -> impl Fn() -> String + Send + 'static + use<> {
        let shared = Arc::clone(&self.shared);
        move || Counters::text(&[&shared.counters])
    }

    /// Applies a new configuration, and logs elsewhere. Changed rules are replaced atomically: clients resend requests that
    /// await a response, and connections that were let in continue. The same happens if the table has been removed.
    ///
    /// # Errors
    /// The part that is missing, or was refused; then nothing has changed.
    pub fn reload(&self, config: NatConfig, log: Option<Arc<Log>>) -> Result<(), NatError> {
        let (result_sender, result) = mpsc::channel();
        if let Ok(mut change) = self.shared.change.lock() {
            *change = Some((config, result_sender));
        }
        self.shared.waker.wake();
        // If the thread has ended, this times out.
        result.recv_timeout(CHANGE_TIMEOUT).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if let Ok(mut current_log) = self.shared.log.lock() {
            *current_log = log;
        }
        Ok(())
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn change(&self) -> Option<Change> {
        self.waker.clear();
        self.change.lock().ok()?.take()
    }
}

/// Reason why a helper could not start or change.
#[derive(Debug, thiserror::Error)]
pub enum NatError {
    /// An error of its rules.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The address family cannot change.
    #[error("ipv6: cannot change on a reload; restart the helper")]
    Family,
    /// An error of its UDP port.
    #[error("{}", port_refused(*.0, .1))]
    Port(u16, io::Error),
    /// Any other error of the system.
    #[error("the system refused: {0}; run as root")]
    System(#[from] io::Error),
}

fn port_refused(port: u16, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::AddrInUse {
        return format!(
            "UDP port {port} is in use on this host; stop the program that uses it, or bind it to one address"
        );
    }
    format!("cannot receive requests to UDP port {port}: {error}; run as root")
}
