//! Limits of the work that a proxy does for its clients: fetches in progress, and temporary files, for each client and in
//! total.
//!
//! A client is an IPv4 address or an IPv6 /64, and larger networks have [shares](dhttp_proto::shares); all clients of unproved address
//! (`None`) together count as one. Clients' connections are limited by the server.
//!
//! When all fetches are in use, a newcomer takes the place of a recent one, so that quick responses come through however many
//! networks wait for slow ones. Most of the fetches are never ended for others: a slow origin, with more requests than it can
//! respond to, still completes them.

use std::collections::BTreeMap;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use dhttp::counters::{count_shared, counters};
use dhttp_proto::shares::{Network, ShareLimits, ShareRefusal, Shares};
use rustix::fs::fstatvfs;
use rustix::process::{Resource, getrlimit};

/// Limits of a process's fetches and temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Fetches in progress; at most a quarter of the descriptors. Default 4,096.
    pub fetches: u64,
    /// Fetches of one client. Default: an eighth of all.
    pub client_fetches: Option<u64>,
    /// Fetches from one of several origins, by address. Default: a quarter of all.
    pub origin_fetches: Option<u64>,
    /// Bytes in temporary files; at most half of their file system. Default 2 GiB.
    pub file_bytes: u64,
    /// Bytes in temporary files of one client. Default: an eighth of all.
    pub client_file_bytes: Option<u64>,
}

/// Default share of one client: one in this many of all fetches and bytes.
const CLIENT_SHARE: u64 = 8;
/// The same of one origin.
const ORIGIN_SHARE: u64 = 4;
/// Share of the fetches that may end for newcomers: one in this many, the most recent.
const RECENT_SHARE: usize = 8;

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            fetches: 4_096,
            client_fetches: None,
            origin_fetches: None,
            file_bytes: 2 << 30,
            client_file_bytes: None,
        }
    }
}

impl FetchLimits {
    /// Sets the limits of this process. The first call counts, before any request.
    pub fn install(self) {
        LIMITS.get_or_init(|| self);
    }

    /// Leaves only the limits on all clients together, for clients that share an address.
    #[must_use]
    pub fn for_all_clients_together(self) -> Self {
        Self { client_fetches: Some(u64::MAX), client_file_bytes: Some(u64::MAX), ..self }
    }

    fn of_process() -> Self {
        LIMITS.get().copied().unwrap_or_default()
    }

    /// Returns the maximum numbers of fetches: in total, and of a client. Those of unproved address have a share in any case.
    fn fetches(&self, client: Client) -> (u64, u64) {
        let share = (self.fetches / CLIENT_SHARE).max(1);
        let of_client = self.client_fetches.filter(|_| client.is_some()).unwrap_or(share);
        (self.fetches, of_client)
    }

    /// Returns the shares of origins: of one address, and of the networks that a provider may have.
    fn origins(&self) -> ShareLimits {
        let share = (self.fetches / ORIGIN_SHARE).max(1);
        let client = self.origin_fetches.unwrap_or(share);
        ShareLimits { total: self.fetches, client, has_networks: true }
    }

    /// Returns the maximum numbers of bytes in temporary files, likewise.
    fn file_bytes(&self, client: Client) -> (u64, u64) {
        let share = self.file_bytes / CLIENT_SHARE;
        let of_client = self.client_file_bytes.filter(|_| client.is_some()).unwrap_or(share);
        (self.file_bytes, of_client)
    }
}

counters! {
    /// Requests beyond the limits of fetches.
    fetches = "roundtrip_proxy_requests_refused_total{reason=\"fetches\"}", "Requests refused by a cache or for an origin (503, 502), by the limit.";
    /// Requests beyond the limit of one origin.
    origins = "roundtrip_proxy_requests_refused_total{reason=\"origin\"}", "";
    /// Fetches that ended for a newcomer's.
    evicted = "roundtrip_proxy_requests_refused_total{reason=\"newcomer\"}", "";
    /// Responses beyond the limits of temporary files.
    files = "roundtrip_proxy_requests_refused_total{reason=\"files\"}", "";
}

/// Renders the counters of this process in Prometheus' text format.
pub fn metrics() -> String {
    Counters::text(&[&*COUNTERS])
}

tokio::task_local! {
    static CLIENT: Client;
    static EVICTION: Arc<Eviction>;
}

/// Client of a fetch.
type Client = Option<IpAddr>;

static LIMITS: OnceLock<FetchLimits> = OnceLock::new();
static COUNTERS: LazyLock<Counters> = LazyLock::new(Counters::default);
/// Fetches in progress.
static FETCHES: LazyLock<Mutex<Fetches>> = LazyLock::new(Mutex::default);
/// Temporary files.
static FILES: Mutex<Vec<SpillEntry>> = Mutex::new(Vec::new());

/// Fetches of clients at known addresses, and those of the others; and where they are from, if from one of several origins.
#[derive(Debug, Default)]
struct Fetches {
    shares: Shares,
    origins: Shares,
    of_unproved: u64,
    /// Those in progress, in order of their beginnings.
    running: BTreeMap<u64, (Client, Option<IpAddr>, Arc<Eviction>)>,
    next: u64,
}

/// Whether a fetch has ended for another.
#[derive(Debug, Default)]
struct Eviction {
    is_evicted: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Eviction {
    fn evict(&self) {
        self.is_evicted.store(true, Ordering::Release);
        if let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }

    fn poll(&self, context: &Context<'_>) -> bool {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        self.is_evicted.load(Ordering::Acquire)
    }
}

/// Runs the part of a fetch that waits for the origin; `None` if the fetch has ended for another.
pub(crate) async fn unless_evicted<T>(job: impl Future<Output = T>) -> Option<T> {
    let Ok(eviction) = EVICTION.try_with(Arc::clone) else { return Some(job.await) };
    let mut job = pin!(job);
    poll_fn(|context| match eviction.poll(context) {
        true => Poll::Ready(None),
        false => job.as_mut().poll(context).map(Some),
    })
    .await
}

impl Fetches {
    /// Counts another fetch.
    ///
    /// # Errors
    /// The counter of the limit that refuses it.
    fn take(
        &mut self,
        client: Client,
        origin: Option<IpAddr>,
        limits: FetchLimits,
    ) -> Result<(), &'static AtomicU64> {
        if let Some(origin) = origin {
            self.origins.take(origin, limits.origins()).map_err(|_| &COUNTERS.origins)?;
        }
        let taken = self.take_for(client, limits);
        if taken.is_none()
            && let Some(origin) = origin
        {
            self.origins.give_back(origin);
        }
        taken.ok_or(&COUNTERS.fetches)
    }

    fn take_for(&mut self, client: Client, limits: FetchLimits) -> Option<()> {
        let (total, of_client) = limits.fetches(client);
        let total = total.saturating_sub(self.of_unproved);
        match client {
            Some(address) => {
                let has_networks = of_client != u64::MAX;
                let limits = ShareLimits { total, client: of_client, has_networks };
                match self.shares.take(address, limits) {
                    // Not for one that its own share would refuse.
                    Err(ShareRefusal::Total)
                        if self.shares.check(address, ShareLimits { total: total + 1, ..limits }).is_ok() =>
                    {
                        self.evict_recent()?;
                        self.shares.take(address, limits).ok()
                    }
                    taken => taken.ok(),
                }
            }
            None => {
                let is_within = self.of_unproved < of_client && self.shares.total() < total;
                is_within.then(|| self.of_unproved += 1)
            }
        }
    }

    /// Ends the oldest of the recent fetches.
    fn evict_recent(&mut self) -> Option<()> {
        let recent = (self.running.len() / RECENT_SHARE).checked_sub(1)?;
        let number = *self.running.keys().rev().nth(recent)?;
        let (_, _, eviction) = self.end(number)?;
        count_shared(&COUNTERS.evicted);
        eviction.evict();
        Some(())
    }

    /// Registers a fetch that was taken; returns its number.
    fn begin(&mut self, client: Client, origin: Option<IpAddr>, eviction: &Arc<Eviction>) -> u64 {
        self.next += 1;
        self.running.insert(self.next, (client, origin, Arc::clone(eviction)));
        self.next
    }

    /// Gives back the fetch with this number, unless it was evicted.
    fn end(&mut self, number: u64) -> Option<(Client, Option<IpAddr>, Arc<Eviction>)> {
        let ended = self.running.remove(&number)?;
        self.give_back(ended.0, ended.1);
        Some(ended)
    }

    fn give_back(&mut self, client: Client, origin: Option<IpAddr>) {
        if let Some(origin) = origin {
            self.origins.give_back(origin);
        }
        match client {
            Some(address) => self.shares.give_back(address),
            None => self.of_unproved -= 1,
        }
    }
}

/// A fetch in progress; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Fetch {
    client: Client,
    number: u64,
    eviction: Arc<Eviction>,
}

impl Fetch {
    /// Counts another fetch, from `origin` if it is one of several; `None` if the client, the origin, or all together have
    /// as many as they may.
    pub(crate) fn begin(client: Client, origin: Option<SocketAddr>) -> Option<Self> {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limits = FetchLimits::of_process();
        let limits = FetchLimits { fetches: limits.fetches.min(descriptors / 4), ..limits };
        let fetch = Self::within(client, origin.map(|origin| origin.ip()), limits);
        fetch.map_err(count_shared).ok()
    }

    fn within(
        client: Client,
        origin: Option<IpAddr>,
        limits: FetchLimits,
    ) -> Result<Self, &'static AtomicU64> {
        let client = client.map(site);
        let mut fetches = FETCHES.lock().unwrap_or_else(PoisonError::into_inner);
        fetches.take(client, origin, limits)?;
        let eviction = Arc::default();
        Ok(Self { client, number: fetches.begin(client, origin, &eviction), eviction })
    }

    /// Runs the fetch; its temporary files count as its client's.
    pub(crate) async fn run<T>(self, job: impl Future<Output = T>) -> T {
        CLIENT.scope(self.client, EVICTION.scope(Arc::clone(&self.eviction), job)).await
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        FETCHES.lock().unwrap_or_else(PoisonError::into_inner).end(self.number);
    }
}

/// A temporary file without a name, removed with its last handle.
#[derive(Debug)]
pub(crate) struct Spill {
    pub(crate) file: Arc<File>,
    bytes: Arc<AtomicU64>,
}

#[derive(Debug)]
struct SpillEntry {
    file: Weak<File>,
    client: Client,
    bytes: Arc<AtomicU64>,
}

impl Spill {
    /// Creates one.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn new() -> io::Result<Self> {
        let (file, bytes) = (Arc::new(tempfile::tempfile()?), Arc::default());
        let client = CLIENT.try_with(|client| *client).unwrap_or_default();
        let spilled = SpillEntry { file: Arc::downgrade(&file), client, bytes: Arc::clone(&bytes) };
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|spilled| spilled.file.strong_count() > 0);
        files.push(spilled);
        Ok(Self { file, bytes })
    }

    /// Counts this many more bytes.
    ///
    /// # Errors
    /// If the client's files, or all, would be too large.
    pub(crate) fn grow(&self, bytes: u64) -> io::Result<()> {
        let system = fstatvfs(&self.file)?;
        let half = system.f_blocks.saturating_mul(system.f_frsize) / 2;
        let limits = FetchLimits::of_process();
        self.grow_within(bytes, FetchLimits { file_bytes: limits.file_bytes.min(half), ..limits })
    }

    fn grow_within(&self, bytes: u64, limits: FetchLimits) -> io::Result<()> {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|spilled| spilled.file.strong_count() > 0);
        let sum = |is_counted: &dyn Fn(&SpillEntry) -> bool| -> u64 {
            files.iter().filter(|file| is_counted(file)).map(|file| file.bytes.load(Ordering::Relaxed)).sum()
        };
        let own = files.iter().find(|file| Arc::ptr_eq(&file.bytes, &self.bytes));
        let client = own.and_then(|own| own.client);
        let (total, of_client) = limits.file_bytes(client);
        if sum(&|file| file.client == client) + bytes > of_client || sum(&|_| true) + bytes > total {
            count_shared(&COUNTERS.files);
            let reason = "temporary files for responses are full; retry later";
            return Err(io::Error::new(ErrorKind::QuotaExceeded, reason));
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the prefix of an address that counts as one client: /32, or /64 of IPv6.
pub(crate) fn site(address: IpAddr) -> IpAddr {
    Network::client(address).first()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_an_eighth_of_all_fetches_until_it_gives_them_back() {
        let client = |text: &str| Some(text.parse().unwrap());
        let limits = FetchLimits { fetches: 32, ..FetchLimits::default() };
        let begin = |text: &str| Fetch::within(client(text), None, limits).ok();
        let mut its: Vec<Fetch> = std::iter::from_fn(|| begin("2001:db8:77::1")).collect();
        assert_eq!(its.len(), 4);
        assert!(begin("2001:db8:77::ffff:1").is_none(), "the same /64");
        let other = begin("2001:db8:77:1::1");
        assert!(other.is_some());
        its.pop();
        assert!(begin("2001:db8:77::2").is_some());
        drop((its, other));
        let all: Vec<Fetch> = (0..32).filter_map(|n| begin(&format!("192.{n}.2.1"))).collect();
        assert_eq!(all.len(), 32);
        // A newcomer ends the oldest of the four most recent; a client that has its share, two, does not.
        let newcomers = [(); 2].map(|()| begin("198.51.100.1").unwrap());
        assert!(begin("198.51.100.1").is_none());
        let is_evicted = |fetch: &Fetch| fetch.eviction.is_evicted.load(Ordering::Acquire);
        let evicted: Vec<usize> = (0..32).filter(|index| is_evicted(&all[*index])).collect();
        assert_eq!(evicted, [28, 29]);
        drop((all, newcomers));
        assert_eq!(FETCHES.lock().unwrap().shares.total(), 0, "each is given back once");
    }

    #[test]
    fn an_evicted_fetch_ends_and_others_complete() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let eviction = Arc::new(Eviction::default());
        let completed = EVICTION.scope(Arc::clone(&eviction), unless_evicted(async { 7 }));
        assert_eq!(runtime.block_on(completed), Some(7));
        eviction.evict();
        let waiting = EVICTION.scope(Arc::clone(&eviction), unless_evicted(std::future::pending::<()>()));
        let ended = runtime.block_on(waiting);
        assert_eq!(ended, None);
    }

    /// A fetch of a slow path costs its client nothing, so the total must not be had for many addresses of one site.
    #[test]
    fn a_site_with_many_networks_leaves_fetches_to_others() {
        let mut fetches = Fetches::default();
        let mut take =
            |text: String| fetches.take(Some(text.parse().unwrap()), None, FetchLimits::default()).is_ok();
        let taken = (0..5_200).filter(|n| take(format!("2a0f:3:0:1{:02x}::7", n % 256))).count();
        assert_eq!(taken, 768, "three sixteenths of 4,096");
        let others = (0..60).filter(|n| take(format!("2a0f:4:0:{n:x}::1"))).count();
        assert_eq!(others, 60);
    }

    /// Clients in ten thousand networks, each below its own limit, request slow paths of one server, or of a network of them.
    #[test]
    fn slow_origins_leave_fetches_to_others_however_many_clients_request_them() {
        let mut fetches = Fetches::default();
        let mut take = |number: u32, origin: String| {
            let client = std::net::Ipv4Addr::from_bits(0x0b00_0001 + (number << 8)).into();
            fetches.take(Some(client), Some(origin.parse().unwrap()), FetchLimits::default()).is_ok()
        };
        let slow = (0..10_000).filter(|number| take(*number, "198.51.100.1".to_owned())).count();
        assert_eq!(slow, 1_024, "a quarter of 4,096");
        let slow = (0..10_000).filter(|number| take(*number, format!("198.51.100.{}", number % 200))).count();
        assert_eq!(slow, 0, "the same network");
        let slow = (0..10_000).filter(|number| take(*number, format!("198.51.{}.1", number % 200))).count();
        assert!((900..=1_024).contains(&slow), "half of all for a /16: {slow}");
        let others = (20_000..20_060).filter(|number| take(*number, "203.0.113.9".to_owned())).count();
        assert_eq!(others, 60);
    }

    #[test]
    fn clients_behind_one_address_have_the_total_and_clients_without_a_token_a_share() {
        let limits = FetchLimits { fetches: 64, ..FetchLimits::default() }.for_all_clients_together();
        let client = Some("198.51.100.7".parse().unwrap());
        assert_eq!((limits.fetches(client), limits.fetches(None)), ((64, u64::MAX), (64, 8)));
        assert_eq!(limits.file_bytes(client), (2 << 30, u64::MAX));
        assert_eq!(limits.file_bytes(None), (2 << 30, 256 << 20));
    }

    #[test]
    fn temporary_files_count_while_they_are_held() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let spilled = |client: &str, bytes| {
            let client = Some(client.parse().unwrap());
            runtime.block_on(CLIENT.scope(client, async move {
                let spill = Spill::new().unwrap();
                let limits = FetchLimits { file_bytes: 8_000, ..FetchLimits::default() };
                spill.grow_within(bytes, limits).map(|()| spill.file)
            }))
        };
        let first = spilled("203.0.113.1", 900).unwrap();
        assert_eq!(spilled("203.0.113.1", 200).unwrap_err().kind(), ErrorKind::QuotaExceeded);
        assert!(spilled("203.0.113.2", 200).is_ok());
        drop(first);
        assert!(spilled("203.0.113.1", 1_000).is_ok());
    }
}
