//! The hosts of a recording: their names, protocols and addresses, and their distance and server time, estimated.
//!
//! - Round trip: the shortest handshake of TCP with the host, or with a host of the same address; or the shortest time from
//!   a request to its first byte, if that is less: both contain a round trip, and a browser that is busy makes both longer.
//!   It counts beyond the shortest of all hosts, which is the scenario's network, and where it differs by more than two messages
//!   keep the client's threads. A host without a handshake counts as near.
//! - Server time: the time until the first byte, less that round trip, and less the time in which other responses arrived:
//!   the link may have been theirs. Of a host the lower quartile, because responses that come together wait for each other in
//!   the server and in the client. Documents, data and requests that are not GET have times of their own, because a program
//!   makes their responses; and so do files that take clearly longer than their host's.

use std::collections::BTreeMap;

use http1::message::Method;
use wire::Duration;

use super::entry::Entry;
use super::phases::Phases;
use super::timeline::Item;
use crate::{Hints, Host, Kind, OfferedProtocols, Page};

/// A URL's scheme, host with its port, and path with query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) is_https: bool,
    pub(super) host: String,
    pub(super) path: String,
}

/// Hosts of a page, in order of their first request.
#[derive(Debug, Default)]
pub(super) struct Origins {
    hosts: Vec<Origin>,
    by_name: BTreeMap<(bool, String), usize>,
}

#[derive(Debug)]
struct Origin {
    is_https: bool,
    name: String,
    /// Whether HTTP/1, HTTP/2 and HTTP/3 were used or offered.
    used: [bool; 3],
    address: Option<String>,
    /// Program that the field `Server` names.
    software: Option<String>,
    /// Shortest handshake of TCP.
    connect: Option<Duration>,
    /// Shortest handshake of TCP, perhaps with TLS.
    connect_with_tls: Option<Duration>,
    /// Shortest time from a request to its first byte.
    exchange: Option<Duration>,
    /// Longest lookup of its name: requests that began later waited for the rest of it.
    lookup: Duration,
}

/// Name of a host that a URL lacks.
const NAMELESS: &str = "unnamed";

impl Address {
    /// Splits an http or https URL; letters of the host are lower case, and the scheme's port is left out.
    pub(super) fn of(url: &str) -> Option<Self> {
        let (is_https, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let host = host.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
        let port = if is_https { ":443" } else { ":80" };
        let host: String = host.strip_suffix(port).unwrap_or(&host).chars().take(MAX_NAME_CHARS).collect();
        let host = host.replace(|letter: char| letter.is_control() || letter.is_whitespace(), "?");
        let slash = if path.starts_with('/') { "" } else { "/" };
        let path: String = slash.chars().chain(path.chars()).take(MAX_PATH_CHARS).collect();
        let path = path.replace(|letter: char| letter.is_control() || letter == ' ', "?");
        Some(Self { is_https, host: if host.is_empty() { NAMELESS.to_owned() } else { host }, path })
    }
}

/// Maximum length of a host's name: that of DNS, with a port.
const MAX_NAME_CHARS: usize = 260;
/// Maximum length of a path that is stored.
const MAX_PATH_CHARS: usize = 2_000;

impl Origins {
    /// Index of the host of an entry, added if it is new; `None` beyond the maximum number of hosts.
    pub(super) fn index(&mut self, address: &Address, entry: &Entry) -> Option<usize> {
        let key = (address.is_https, address.host.clone());
        let index = match self.by_name.get(&key) {
            Some(index) => *index,
            None if self.hosts.len() >= Page::MAX_HOSTS => return None,
            None => {
                let (is_https, name) = key.clone();
                self.hosts.push(Origin::new(is_https, name));
                self.by_name.insert(key, self.hosts.len() - 1);
                self.hosts.len() - 1
            }
        };
        self.hosts[index].observe(entry);
        Some(index)
    }

    /// Index of a host that is known.
    pub(super) fn known(&self, address: &Address) -> Option<usize> {
        self.by_name.get(&(address.is_https, address.host.clone())).copied()
    }

    /// Number of hosts.
    pub(super) const fn len(&self) -> usize {
        self.hosts.len()
    }

    /// The page's hosts, with the round trip of each; and the number of hosts whose round trip is unknown. `client_time` is the
    /// time of the client's threads for each message.
    pub(super) fn finish(
        self,
        items: &[Item],
        client_time: Option<Duration>,
    ) -> (Vec<Host>, Vec<Duration>, usize) {
        let both_schemes: Vec<bool> = self
            .hosts
            .iter()
            .map(|host| self.by_name.contains_key(&(!host.is_https, host.name.clone())))
            .collect();
        let rtts = self.round_trips();
        let base = rtts.iter().flatten().min().copied().unwrap_or_default();
        let unknown = rtts.iter().filter(|rtt| rtt.is_none()).count();
        let near = base + client_time.unwrap_or_default() * 2;
        let is_far = |rtt: &Duration| *rtt > near;
        let rtts: Vec<Duration> = rtts.into_iter().map(|rtt| rtt.filter(is_far).unwrap_or(base)).collect();
        let groups = self.address_groups(items);
        let usual = usual_server_times(items, &server_times(items, &rtts), self.hosts.len());
        let hosts =
            self.hosts.into_iter().zip(both_schemes).enumerate().map(|(index, (origin, both))| Host {
                // A host of both schemes is two origins; the port tells them apart.
                name: if both && !origin.is_https {
                    format!("{}:80", origin.name)
                } else {
                    origin.name.clone()
                },
                address_group: groups[index],
                extra_rtt: rtts[index].saturating_sub(base),
                lookup: origin.lookup,
                processing: usual[index],
                protocols: origin.protocols(),
                certificate_chain: None,
                software: origin.software,
                hints: Hints::NONE,
            });
        (hosts.collect(), rtts, unknown)
    }

    /// Shortest handshake of each host, or of another host of the same address.
    fn round_trips(&self) -> Vec<Option<Duration>> {
        let mut by_address: BTreeMap<&str, Duration> = BTreeMap::new();
        for host in &self.hosts {
            if let (Some(address), Some(rtt)) = (&host.address, host.round_trip()) {
                by_address.entry(address).and_modify(|least| *least = (*least).min(rtt)).or_insert(rtt);
            }
        }
        let shared = |address: &String| by_address.get(address.as_str()).copied();
        let round_trip = |host: &Origin| host.round_trip().or_else(|| host.address.as_ref().and_then(shared));
        self.hosts.iter().map(round_trip).collect()
    }

    /// Groups of hosts that one connection serves: by a recorded connection of several hosts, or by an address and a
    /// domain in common, which share a certificate in practice.
    fn address_groups(&self, items: &[Item]) -> Vec<Option<u32>> {
        let mut by_key: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for item in items.iter().filter(|item| item.local.is_none()) {
            if let Some(connection) = item.entry.connection.as_deref() {
                by_key.entry(("connection", connection)).or_default().push(item.host);
            }
        }
        for (index, origin) in self.hosts.iter().enumerate() {
            if let Some(address) = origin.address.as_deref() {
                by_key.entry((address, domain(&origin.name))).or_default().push(index);
            }
        }
        let mut roots: Vec<usize> = (0..self.hosts.len()).collect();
        for members in by_key.values() {
            let multiplexed = members.iter().filter(|index| self.hosts[**index].protocols().http2);
            let members: Vec<usize> = multiplexed.copied().collect();
            for pair in members.windows(2) {
                let (one, other) = (root(&roots, pair[0]), root(&roots, pair[1]));
                roots[one.max(other)] = one.min(other);
            }
        }
        let root_of: Vec<usize> = (0..roots.len()).map(|index| root(&roots, index)).collect();
        let is_shared = |of: usize| root_of.iter().filter(|root| **root == of).count() > 1;
        let number = |of: usize| u32::try_from(of).ok();
        root_of.iter().map(|of| is_shared(*of).then(|| number(*of)).flatten()).collect()
    }
}

fn root(roots: &[usize], mut index: usize) -> usize {
    while roots[index] != index {
        index = roots[index];
    }
    index
}

/// The last two labels of a name, without its port.
fn domain(name: &str) -> &str {
    let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
    let dots = name.rmatch_indices('.').nth(1);
    dots.map_or(name, |(at, _)| name.get(at + 1..).unwrap_or(name))
}

fn least(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

impl Origin {
    fn new(is_https: bool, name: String) -> Self {
        let (used, address, software) = ([false; 3], None, None);
        let (connect, connect_with_tls, exchange, lookup) = Default::default();
        Self { is_https, name, used, address, software, connect, connect_with_tls, exchange, lookup }
    }

    fn observe(&mut self, entry: &Entry) {
        let version = match entry.protocol.as_str() {
            "" => None,
            name if name.starts_with("h3") || name.contains("quic") || name.starts_with("http/3") => Some(2),
            name if name.starts_with("h2") || name.starts_with("http/2") || name.starts_with("spdy") => {
                Some(1)
            }
            _ => Some(0),
        };
        if let Some(version) = version {
            self.used[version] = true;
        }
        self.used[2] |= entry.clues.offers_http3 && version.is_some();
        if self.address.is_none() {
            self.address = entry.address.clone();
        }
        if self.software.is_none() {
            self.software = entry.clues.software.clone();
        }
        let Phases { dns, connect, exchange, has_tls, .. } = entry.phases;
        self.lookup = self.lookup.max(dns.unwrap_or_default());
        let handshake = match has_tls || !self.is_https {
            true => &mut self.connect,
            false => &mut self.connect_with_tls,
        };
        *handshake = least(*handshake, connect);
        self.exchange = least(self.exchange, exchange);
    }

    fn round_trip(&self) -> Option<Duration> {
        least(self.connect, self.connect_with_tls).and_then(|connect| least(Some(connect), self.exchange))
    }

    /// A host of which no version is recorded offers what the scenario asks for.
    fn protocols(&self) -> OfferedProtocols {
        let [http1, http2, http3] = self.used;
        match (self.is_https, http1 || http2 || http3) {
            (false, _) => OfferedProtocols::PLAINTEXT,
            (true, false) => OfferedProtocols::ALL,
            // A server of HTTP/3 offers HTTP/2 to clients that cannot use UDP.
            (true, true) => OfferedProtocols { tls: true, http2: http2 || http3, http3 },
        }
    }
}

/// Lower quartile of each host's server times: of its files, or of all responses if it has no files.
fn usual_server_times(items: &[Item], times: &[Option<Duration>], hosts: usize) -> Vec<Duration> {
    let mut by_host: Vec<[Vec<Duration>; 2]> = (0..hosts).map(|_| [Vec::new(), Vec::new()]).collect();
    for (item, time) in items.iter().zip(times).filter(|(item, _)| item.local.is_none()) {
        by_host[item.host][usize::from(is_made_by_a_program(item))].extend(*time);
    }
    let quartile = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() / 4).copied()
    };
    by_host
        .into_iter()
        .map(|[files, programs]| quartile(files).or_else(|| quartile(programs)).unwrap_or_default())
        .collect()
}

/// Server time of each response that has one of its own.
pub(super) fn own_server_times(items: &[Item], rtts: &[Duration], hosts: &[Host]) -> Vec<Option<Duration>> {
    let own = |(item, time): (&Item, Option<Duration>)| {
        let usual = hosts.get(item.host).map_or(Duration::ZERO, |host| host.processing);
        time.filter(|time| is_made_by_a_program(item) || *time > usual + CLEARLY_LONGER)
    };
    items.iter().zip(server_times(items, rtts)).map(own).collect()
}

/// Difference from the host's time beyond which a file has a server time of its own: more than a browser's delays.
const CLEARLY_LONGER: Duration = Duration::from_millis(20);

/// Time until the first byte of each response, less the round trip, and the time in which others arrived.
fn server_times(items: &[Item], rtts: &[Duration]) -> Vec<Option<Duration>> {
    let arrivals = items.iter().filter(|item| item.local.is_none() && item.start.is_some());
    let busy = merged(arrivals.map(|item| (item.first_byte(), item.end())).collect());
    let time = |item: &Item| {
        let wait = item.entry.phases.wait?;
        let others = match item.start {
            Some(_) => overlap(&busy, item.begun(), item.first_byte()),
            None => Duration::ZERO,
        };
        Some(wait.saturating_sub(rtts[item.host]).saturating_sub(others))
    };
    items.iter().map(time).collect()
}

/// Intervals in order, with those that touch merged.
fn merged(mut intervals: Vec<(Duration, Duration)>) -> Vec<(Duration, Duration)> {
    intervals.sort_unstable();
    let mut merged: Vec<(Duration, Duration)> = Vec::new();
    for (from, to) in intervals {
        match merged.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            Some(_) | None => merged.push((from, to)),
        }
    }
    merged
}

/// Time between `from` and `to` that is within one of these intervals.
fn overlap(intervals: &[(Duration, Duration)], from: Duration, to: Duration) -> Duration {
    let first = intervals.partition_point(|(_, end)| *end <= from);
    let within = intervals.iter().skip(first).take_while(|(begin, _)| *begin < to);
    within.map(|(begin, end)| (*end).min(to) - (*begin).max(from)).sum()
}

fn is_made_by_a_program(item: &Item) -> bool {
    let is_redirect = (300..400).contains(&item.entry.status) && item.entry.status != 304;
    matches!(item.kind, Kind::Document | Kind::Data) || item.entry.method != Method::Get || is_redirect
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_port_only_where_it_is_not_the_scheme_s() {
        let address = |url: &str| Address::of(url).map(|found| (found.is_https, found.host, found.path));
        let expected = |is_https, host: &str, path: &str| Some((is_https, host.to_owned(), path.to_owned()));
        assert_eq!(address("https://WWW.a.org:443/b?c#d"), expected(true, "www.a.org", "/b?c"));
        assert_eq!(address("http://me:secret@a.org:8080"), expected(false, "a.org:8080", "/"));
        assert_eq!(address("http://a.org?x y"), expected(false, "a.org", "/?x?y"));
        assert_eq!(address("https:///x"), expected(true, NAMELESS, "/x"));
        assert_eq!(address("blob:https://a.org/1"), None);
    }

    #[test]
    fn time_of_other_responses_is_counted_once() {
        let ms = Duration::from_millis;
        let busy = merged(vec![(ms(50), ms(60)), (ms(10), ms(30)), (ms(20), ms(40))]);
        assert_eq!(busy, [(ms(10), ms(40)), (ms(50), ms(60))]);
        assert_eq!(
            [(0, 5), (0, 20), (15, 55), (40, 50)].map(|(a, b)| overlap(&busy, ms(a), ms(b))),
            [0, 10, 30, 0].map(ms)
        );
    }

    #[test]
    fn domains_are_the_last_two_labels() {
        assert_eq!(["a.b.org", "b.org:81", "localhost"].map(domain), ["b.org", "b.org", "localhost"]);
    }
}
