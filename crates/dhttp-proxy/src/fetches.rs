//! Limits of the work that a proxy does for its clients: fetches in progress, and temporary files, for each client and in
//! total.
//!
//! A client is an IPv4 address or an IPv6 /64; all clients of unproved address (`None`) together count as one. Clients'
//! connections are limited by the server.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::fstatvfs;
use rustix::process::{Resource, getrlimit};

/// Maximum number of fetches in total; at most a quarter of the descriptors.
const MAX_FETCHES: u64 = 4_096;
/// Maximum share of one client: one in this many of all fetches and bytes.
const CLIENT_SHARE: u64 = 8;
/// Bytes in temporary files, in total; at most half of their file system.
const MAX_SPILLED_BYTES: u64 = 2 << 30;

tokio::task_local! {
    static CLIENT: Client;
}

/// Client of a fetch.
type Client = Option<IpAddr>;

/// Fetches in progress.
static FETCHES: Mutex<BTreeMap<Client, u64>> = Mutex::new(BTreeMap::new());
/// Temporary files.
static FILES: Mutex<Vec<SpillEntry>> = Mutex::new(Vec::new());

/// A fetch in progress; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Fetch {
    client: Client,
}

impl Fetch {
    /// Counts another fetch; `None` if the client, or all together, have as many as they may.
    pub(crate) fn begin(client: Client) -> Option<Self> {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::within(client, (descriptors / 4).min(MAX_FETCHES))
    }

    fn within(client: Client, most: u64) -> Option<Self> {
        let client = client.map(site);
        let mut fetches = FETCHES.lock().unwrap_or_else(PoisonError::into_inner);
        let its = fetches.get(&client).copied().unwrap_or(0);
        if its >= (most / CLIENT_SHARE).max(1) || fetches.values().sum::<u64>() >= most {
            return None;
        }
        fetches.insert(client, its + 1);
        Some(Self { client })
    }

    /// Runs the fetch; its temporary files count as its client's.
    pub(crate) async fn run<T>(self, job: impl Future<Output = T>) -> T {
        CLIENT.scope(self.client, job).await
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        let mut fetches = FETCHES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(its) = fetches.get_mut(&self.client) {
            *its -= 1;
            if *its == 0 {
                fetches.remove(&self.client);
            }
        }
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
        self.grow_within(bytes, half.min(MAX_SPILLED_BYTES))
    }

    fn grow_within(&self, bytes: u64, most: u64) -> io::Result<()> {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|spilled| spilled.file.strong_count() > 0);
        let sum = |of: &dyn Fn(&SpillEntry) -> bool| -> u64 {
            files.iter().filter(|one| of(one)).map(|one| one.bytes.load(Ordering::Relaxed)).sum()
        };
        let client = files.iter().find(|one| Arc::ptr_eq(&one.bytes, &self.bytes)).map(|one| one.client);
        let its = sum(&|one| Some(one.client) == client);
        if its + bytes > most / CLIENT_SHARE || sum(&|_| true) + bytes > most {
            let why = "no room for more temporary files of responses; retry when others have been read";
            return Err(io::Error::new(ErrorKind::QuotaExceeded, why));
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the prefix of an address that counts as one client: /32, or /64 of IPv6.
pub(crate) fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_an_eighth_of_all_fetches_until_it_gives_them_back() {
        let client = |text: &str| Some(text.parse().unwrap());
        let begin = |text: &str| Fetch::within(client(text), 32);
        let mut its: Vec<Fetch> = std::iter::from_fn(|| begin("2001:db8:77::1")).collect();
        assert_eq!(its.len(), 4);
        assert!(begin("2001:db8:77::ffff:1").is_none(), "the same /64");
        let other = begin("2001:db8:77:1::1");
        assert!(other.is_some());
        its.pop();
        assert!(begin("2001:db8:77::2").is_some());
        drop((its, other));
        let all: Vec<Fetch> = (0..40).filter_map(|n| begin(&format!("192.0.2.{n}"))).collect();
        assert!(all.len() <= 32 && begin("198.51.100.1").is_none(), "{}", all.len());
    }

    #[test]
    fn temporary_files_count_while_they_are_held() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let spilled = |client: &str, bytes| {
            let client = Some(client.parse().unwrap());
            runtime.block_on(CLIENT.scope(client, async move {
                let spill = Spill::new().unwrap();
                spill.grow_within(bytes, 8_000).map(|()| spill.file)
            }))
        };
        let first = spilled("203.0.113.1", 900).unwrap();
        assert_eq!(spilled("203.0.113.1", 200).unwrap_err().kind(), ErrorKind::QuotaExceeded);
        assert!(spilled("203.0.113.2", 200).is_ok());
        drop(first);
        assert!(spilled("203.0.113.1", 1_000).is_ok());
    }
}
