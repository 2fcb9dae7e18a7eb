//! Responses stored in memory, up to a number of bytes; unused ones are evicted first.
//!
//! Eviction follows SIEVE (Zhang and others, NSDI 2024). A pointer, there called the hand, moves from the oldest to the
//! newest. It passes over those that were requested since it last passed, and evicts the first that was not. A look-up moves
//! nothing, which makes it cheap, and one scan of everything (a robot's) evicts little. `http1::cache` decides what may be
//! served.

use std::hash::Hasher as _;
use std::sync::Mutex;

use http1::cache::ParsedRequest;
use http1::cache::vary::suits;
use siphasher::sip::SipHasher13;

use super::record::Record;
use dhttp::handler::Body;

/// A store that many threads share.
#[derive(Debug)]
pub(super) struct Memory {
    secret: (u64, u64),
    shards: Vec<Mutex<Shard>>,
}

/// Stored response, as a look-up returns it.
#[derive(Clone, Debug)]
pub(super) struct CacheEntry {
    pub(super) record: Record,
    /// Its body, if it is too long for the record.
    pub(super) large: Option<Body>,
}

/// Number of shards; with this many, threads seldom contend for a lock.
const SHARDS: usize = 16;
/// Maximum number of responses to one address that differ in their choice (`Vary`).
const MAX_CHOICES: usize = 32;

impl Memory {
    /// Creates a store of this capacity; `secret` is random, so that clients cannot construct colliding keys.
    pub(super) fn new(bytes: u64, secret: [u8; 16]) -> Self {
        let (first_key, second_key) = secret.split_at(8);
        let number = |half: &[u8]| half.first_chunk().map_or(0, |half| u64::from_be_bytes(*half));
        let max = bytes / SHARDS as u64;
        Self {
            secret: (number(first_key), number(second_key)),
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(max))).collect(),
        }
    }

    /// Returns the stored response for this key that matches this request.
    pub(super) fn find(&self, key: &[u8], request: &ParsedRequest<'_>) -> Option<CacheEntry> {
        let hash = self.hash(key);
        self.shard(hash)?.lock().ok()?.find(tag(hash), key, request)
    }

    /// Does the same for a request without cache directives and a response without `Vary`; also returns a number that
    /// identifies the key.
    pub(super) fn find_plain(&self, key: &[u8]) -> Option<(u64, CacheEntry)> {
        let hash = self.hash(key);
        let cached_body = self.shard(hash)?.lock().ok()?.find_where(tag(hash), key, <[u8]>::is_empty)?;
        Some((hash, cached_body))
    }

    /// Stores a response, and replaces the one for the same requests.
    pub(super) fn keep(&self, cached_body: CacheEntry) {
        let hash = self.hash(cached_body.record.key());
        if let Some(Ok(mut shard)) = self.shard(hash).map(Mutex::lock) {
            shard.keep(tag(hash), cached_body);
        }
    }

    /// Drops everything stored for this key.
    pub(super) fn drop_all(&self, key: &[u8]) {
        let hash = self.hash(key);
        if let Some(Ok(mut shard)) = self.shard(hash).map(Mutex::lock) {
            shard.drop_all(tag(hash), key);
        }
    }

    /// Changes the capacity; the excess is evicted immediately.
    pub(super) fn resize(&self, bytes: u64) {
        for shard in &self.shards {
            if let Ok(mut shard) = shard.lock() {
                shard.resize(bytes / SHARDS as u64);
            }
        }
    }

    /// Returns the number of responses, and of their bytes.
    pub(super) fn size(&self) -> (u64, u64) {
        let sizes =
            self.shards.iter().filter_map(|shard| shard.lock().ok().map(|shard| (shard.count, shard.bytes)));
        sizes.fold((0, 0), |(count, bytes), (shard_count, shard_bytes)| {
            (count + shard_count, bytes + shard_bytes)
        })
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        hasher.write(key);
        hasher.finish()
    }

    fn shard(&self, hash: u64) -> Option<&Mutex<Shard>> {
        self.shards.get(usize::try_from(hash >> 32).unwrap_or(0) % SHARDS)
    }
}

/// Returns the part of a hash that a slot stores.
#[expect(clippy::cast_possible_truncation, reason = "half of the hash suffices")]
const fn tag(hash: u64) -> u32 {
    hash as u32
}

/// A shard of the store: an array of slots, indexed by a hash table with chains, and listed by age.
#[derive(Debug)]
struct Shard {
    max: u64,
    bytes: u64,
    count: u64,
    /// First slot of each chain; the length is a power of two.
    table: Vec<u32>,
    slots: Vec<Slot>,
    /// First empty slot; they are chained.
    empty: u32,
    newest: u32,
    oldest: u32,
    clock_hand: u32,
}

#[derive(Debug)]
struct Slot {
    record: Option<Record>,
    large: Option<Box<Body>>,
    tag: u32,
    /// Next slot in its chain; of an empty slot, the next empty one.
    next: u32,
    newer: u32,
    older: u32,
    /// Whether it was requested since the hand last passed.
    is_visited: bool,
}

/// No slot.
const NONE: u32 = u32::MAX;
/// Bytes of a response beyond its record: its slot, its part of the table, and the allocator's overhead.
const OVERHEAD_BYTES: u64 = 96;

impl Shard {
    const fn new(max: u64) -> Self {
        Self {
            max,
            bytes: 0,
            count: 0,
            table: Vec::new(),
            slots: Vec::new(),
            empty: NONE,
            newest: NONE,
            oldest: NONE,
            clock_hand: NONE,
        }
    }

    fn find(&mut self, tag: u32, key: &[u8], request: &ParsedRequest<'_>) -> Option<CacheEntry> {
        self.find_where(tag, key, |choice| suits(choice, request))
    }

    fn find_where(&mut self, tag: u32, key: &[u8], is_for: impl Fn(&[u8]) -> bool) -> Option<CacheEntry> {
        let mut at = self.first(tag);
        while let Some(slot) = self.slots.get_mut(at as usize) {
            if let Some(record) = slot.record.as_ref().filter(|_| slot.tag == tag)
                && record.key() == key
                && is_for(record.choice())
            {
                slot.is_visited = true;
                return Some(CacheEntry { record: record.clone(), large: slot.large.as_deref().cloned() });
            }
            at = slot.next;
        }
        None
    }

    fn keep(&mut self, tag: u32, cached_body: CacheEntry) {
        let CacheEntry { record, large } = cached_body;
        let size = weight(&record, large.as_ref());
        self.drop_where(tag, record.key(), MAX_CHOICES - 1, |choice| choice == record.choice());
        if size > self.max {
            return;
        }
        while self.bytes + size > self.max && self.evict() {}
        self.grow_table();
        let large = large.map(Box::new);
        let (next, older) = (self.first(tag), self.newest);
        let slot = Slot { record: Some(record), large, tag, next, newer: NONE, older, is_visited: false };
        let at = self.allocate_slot(slot);
        if let Some(newest) = self.slots.get_mut(self.newest as usize) {
            newest.newer = at;
        } else {
            self.oldest = at;
        }
        self.newest = at;
        let bucket = self.bucket(tag);
        if let Some(first) = self.table.get_mut(bucket) {
            *first = at;
        }
        self.bytes += size;
        self.count += 1;
    }

    fn drop_all(&mut self, tag: u32, key: &[u8]) {
        self.drop_where(tag, key, 0, |_| true);
    }

    /// Drops the responses for a key whose choice matches, and of the others all but the newest `max`.
    fn drop_where(&mut self, tag: u32, key: &[u8], max: usize, is_dropped: impl Fn(&[u8]) -> bool) {
        let (mut at, mut others) = (self.first(tag), 0);
        while let Some(slot) = self.slots.get(at as usize) {
            let (slot_index, next) = (at, slot.next);
            if let Some(record) = slot.record.as_ref().filter(|record| slot.tag == tag && record.key() == key)
            {
                others += 1;
                if is_dropped(record.choice()) || others > max {
                    self.remove(slot_index);
                }
            }
            at = next;
        }
    }

    fn resize(&mut self, max: u64) {
        self.max = max;
        while self.bytes > self.max && self.evict() {}
    }

    /// Evicts the slot that the hand finds; `false` if the shard is empty.
    fn evict(&mut self) -> bool {
        loop {
            if self.clock_hand == NONE {
                self.clock_hand = self.oldest;
            }
            let Some(slot) = self.slots.get_mut(self.clock_hand as usize) else { return false };
            if !slot.is_visited {
                let at = self.clock_hand;
                self.remove(at);
                return true;
            }
            slot.is_visited = false;
            self.clock_hand = slot.newer;
        }
    }

    /// Removes a slot from its chain and the list, and empties it.
    fn remove(&mut self, at: u32) {
        let empty = self.empty;
        let Some(slot) = self.slots.get_mut(at as usize) else { return };
        let (tag, next, newer, older) = (slot.tag, slot.next, slot.newer, slot.older);
        let Some(record) = slot.record.take() else { return };
        self.bytes -= weight(&record, slot.large.take().as_deref());
        self.count -= 1;
        slot.next = empty;
        self.empty = at;
        if self.clock_hand == at {
            self.clock_hand = newer;
        }
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
        let bucket = self.bucket(tag);
        match self.table.get_mut(bucket) {
            Some(first) if *first == at => *first = next,
            Some(first) => {
                let mut predecessor = *first;
                while let Some(slot) = self.slots.get_mut(predecessor as usize) {
                    if slot.next == at {
                        slot.next = next;
                        break;
                    }
                    predecessor = slot.next;
                }
            }
            None => {}
        }
    }

    /// Stores a slot in an empty one, or appends it.
    fn allocate_slot(&mut self, slot: Slot) -> u32 {
        let at = self.empty;
        if let Some(empty_slot) = self.slots.get_mut(at as usize) {
            self.empty = empty_slot.next;
            *empty_slot = slot;
            return at;
        }
        if self.slots.len() == self.slots.capacity() {
            // Grows by an eighth instead of doubling: reserved memory counts, too.
            self.slots.reserve_exact(self.slots.len() / 8 + 16);
        }
        self.slots.push(slot);
        u32::try_from(self.slots.len() - 1).unwrap_or(NONE)
    }

    /// Grows the hash table, to at least one chain for every two slots.
    fn grow_table(&mut self) {
        if self.slots.len() < self.table.len() * 2 {
            return;
        }
        let chains = (self.table.len() * 2).max(16);
        self.table = vec![NONE; chains];
        // The newest comes first in its chain: of several that match, it is the one to serve (RFC 9111, section 4.1).
        let mut at = self.oldest;
        while let Some((tag, newer)) = self.slots.get(at as usize).map(|slot| (slot.tag, slot.newer)) {
            let bucket = self.bucket(tag);
            if let (Some(first), Some(slot)) = (self.table.get_mut(bucket), self.slots.get_mut(at as usize)) {
                slot.next = std::mem::replace(first, at);
            }
            at = newer;
        }
    }

    fn first(&self, tag: u32) -> u32 {
        self.table.get(self.bucket(tag)).copied().unwrap_or(NONE)
    }

    const fn bucket(&self, tag: u32) -> usize {
        tag as usize & self.table.len().wrapping_sub(1)
    }
}

fn weight(record: &Record, large: Option<&Body>) -> u64 {
    record.len() as u64 + OVERHEAD_BYTES + large.map_or(0, Body::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http1::cache::{Choice, Policy, Times};
    use http1::message::{Fields, ResponseHead, Version};
    use std::collections::BTreeMap;
    use wire::Time;

    fn record(key: &[u8], lines: &[(&str, &str)], body: &[u8]) -> Record {
        varying("Foo", key, lines, body)
    }

    fn varying(vary: &str, key: &[u8], lines: &[(&str, &str)], body: &[u8]) -> Record {
        let mut fields = Fields::new();
        fields.push("Cache-Control", "max-age=60").unwrap();
        fields.push("Vary", vary).unwrap();
        let head = ResponseHead { version: Version::Http11, status: 200, fields };
        let requested = requested(lines);
        let times = Times { requested: Time::ZERO, received_at: Time::ZERO, calendar: Time::ZERO };
        let policy = Policy::of(&requested, &head, times, &[]).unwrap();
        let choice = Choice::of(&requested, &head.fields).unwrap();
        let fields = head.fields.as_lines();
        Record::new(super::super::record::RecordParts {
            key,
            choice: &choice,
            policy,
            status: 200,
            fields,
            body,
        })
    }

    fn requested<'a>(lines: &[(&'a str, &'a str)]) -> ParsedRequest<'a> {
        ParsedRequest::new("GET", lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }

    fn cached_body(memory: &Memory, key: &[u8]) -> Option<Vec<u8>> {
        memory.find(key, &requested(&[])).map(|cached_body| cached_body.record.body().to_vec())
    }

    #[test]
    fn response_is_found_by_its_key_and_vary_key() {
        let memory = Memory::new(1 << 20, [7; 16]);
        for (value, body) in [("1", b"one"), ("2", b"two"), ("2", b"2nd")] {
            memory.keep(CacheEntry { record: record(b"k", &[("Foo", value)], body), large: None });
        }
        let body = |value: &str| {
            let cached_body = memory.find(b"k", &requested(&[("Foo", value)]))?;
            Some(String::from_utf8(cached_body.record.body().to_vec()).unwrap())
        };
        assert_eq!(body("1").as_deref(), Some("one"));
        assert_eq!(body("2").as_deref(), Some("2nd"));
        assert_eq!(body("3"), None);
        assert_eq!(memory.size().0, 2);
        memory.drop_all(b"k");
        assert_eq!((body("1"), memory.size()), (None, (0, 0)));
    }

    #[test]
    fn of_several_matches_the_newest_is_returned_also_after_the_table_has_grown() {
        let memory = Memory::new(1 << 30, [7; 16]);
        let all = |value: &str| {
            let lines = [("Foo", value)];
            memory.find(b"k", &requested(&lines)).map(|cached_body| cached_body.record.body().to_vec())
        };
        let fill = |name: &str| {
            for number in 0..2_000 {
                let key = format!("{name}{number}").into_bytes();
                memory.keep(CacheEntry { record: record(&key, &[], b""), large: None });
            }
        };
        // Two that differ in their choice, and both match; emptied slots are reused first.
        memory.keep(CacheEntry { record: record(b"before", &[], b""), large: None });
        memory.keep(CacheEntry { record: record(b"k", &[("Foo", "1")], b"chosen"), large: None });
        memory.drop_all(b"before");
        memory.keep(CacheEntry { record: varying("", b"k", &[], b"for all"), large: None });
        assert_eq!(all("1").as_deref(), Some(&b"for all"[..]));
        fill("a");
        assert_eq!(all("1").as_deref(), Some(&b"for all"[..]));
        memory.keep(CacheEntry { record: record(b"k", &[("Foo", "1")], b"newer"), large: None });
        fill("b");
        assert_eq!(all("1").as_deref(), Some(&b"newer"[..]));
    }

    #[test]
    fn one_address_does_not_fill_the_store_with_choices() {
        let memory = Memory::new(1 << 30, [7; 16]);
        for value in 0..1_000 {
            let value = value.to_string();
            memory.keep(CacheEntry { record: record(b"k", &[("Foo", &value)], b""), large: None });
        }
        assert_eq!(memory.size().0, MAX_CHOICES as u64);
        assert!(memory.find(b"k", &requested(&[("Foo", "999")])).is_some());
    }

    #[test]
    fn used_responses_survive_eviction() {
        let mut shard = Shard::new(100 * (weight(&record(b"0000", &[], &[0; 100]), None)));
        let key = |number: u32| format!("{number:04}").into_bytes();
        let keep = |shard: &mut Shard, number| {
            shard.keep(number, CacheEntry { record: record(&key(number), &[], &[0; 100]), large: None });
        };
        for number in 0..100 {
            keep(&mut shard, number);
        }
        for number in 0..10 {
            assert!(shard.find(number, &key(number), &requested(&[])).is_some());
        }
        for number in 100..190 {
            keep(&mut shard, number);
        }
        assert_eq!(shard.count, 100);
        let is_stored =
            |shard: &mut Shard, number| shard.find(number, &key(number), &requested(&[])).is_some();
        assert!((0..10).all(|number| is_stored(&mut shard, number)));
        assert!((10..100).all(|number| !is_stored(&mut shard, number)));
    }

    #[test]
    fn smaller_store_drops_the_excess_immediately() {
        let memory = Memory::new(1 << 20, [7; 16]);
        let keep = |number: u32| {
            let key = format!("{number:04}").into_bytes();
            memory.keep(CacheEntry { record: record(&key, &[], &[0; 1_000]), large: None });
        };
        (0..500).for_each(keep);
        assert_eq!(memory.size().0, 500);
        memory.resize(64 << 10);
        let (count, bytes) = memory.size();
        assert!(count > 0 && bytes <= 64 << 10, "{count} {bytes}");
        memory.resize(1 << 20);
        (500..1_000).for_each(keep);
        assert_eq!(memory.size().0, count + 500);
    }

    #[test]
    fn a_store_is_a_map_with_eviction() {
        let memory = Memory::new(64 << 10, [3; 16]);
        let mut oracle: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = format!("key-{}", (random >> 33) % 700).into_bytes();
            match (random >> 60) % 4 {
                0 => {
                    let body = vec![b'x'; usize::try_from((random >> 20) % 200).unwrap()];
                    memory.keep(CacheEntry { record: record(&key, &[], &body), large: None });
                    oracle.insert(key, body);
                }
                1 if random.is_multiple_of(16) => {
                    memory.drop_all(&key);
                    oracle.remove(&key);
                }
                _ => {
                    if let Some(body) = cached_body(&memory, &key) {
                        assert_eq!(oracle.get(&key), Some(&body));
                    }
                }
            }
            assert!(memory.size().1 <= 64 << 10);
        }
        assert!(memory.size().0 > 100);
    }
}
