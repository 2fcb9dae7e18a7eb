//! One object of a store, read from its beginning: pieces are fetched concurrently, ahead of the reader.
//!
//! Not the listing of objects ([`store`](super::store)). A small first piece is fetched alone, so that examining the
//! beginnings of many logs does not fetch the rest.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use object_store::{GetOptions, GetRange, ObjectMeta};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::store::{Store, Stores};

/// An object.
#[derive(Clone)]
pub struct Object {
    store: Arc<Store>,
    meta: ObjectMeta,
}

/// Bytes of the first fetch: more than the format detection examines, compressed or not.
const FIRST: u64 = 256 << 10;
/// Bytes of each later fetch.
const PIECE: u64 = 4 << 20;
/// Maximum number of pieces in flight.
const AHEAD: usize = 4;

impl Object {
    /// Objects that a URL names.
    ///
    /// # Errors
    /// As [`Stores::find`].
    pub fn named(stores: &mut Stores, address: &str) -> Result<Vec<Self>, String> {
        let (store, found) = stores.find(address)?;
        Ok(found.into_iter().map(|meta| Self { store: Arc::clone(&store), meta }).collect())
    }

    /// Its URL.
    pub fn name(&self) -> String {
        self.store.address(&self.meta.location)
    }

    /// Its bytes, from the first.
    pub fn open(&self) -> impl Read + Send + 'static {
        ObjectReader { object: self.clone(), requested: 0, in_flight: VecDeque::new(), current: Bytes::new() }
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.meta.size
    }

    /// The runtime that runs requests to the store.
    pub fn runtime(&self) -> &Handle {
        self.store.runtime.handle()
    }

    /// Fetches a range of it.
    ///
    /// # Errors
    /// The store's error, in a sentence.
    pub async fn piece(self, range: Range<u64>) -> io::Result<Bytes> {
        // A weak tag never matches (RFC 9110, section 13.1.1).
        let tag = self.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: tag,
            ..GetOptions::default()
        };
        let fetched = async { self.store.store.get_opts(&self.meta.location, options).await?.bytes().await };
        let bytes = fetched.await.map_err(|error| io::Error::other(self.store.reason(&error)))?;
        match bytes.len() as u64 == range.end - range.start {
            true => Ok(bytes),
            false => Err(io::Error::other("it was changed while it was read; read it again")),
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// An object that is being fetched.
struct ObjectReader {
    object: Object,
    /// Offset up to which pieces were requested.
    requested: u64,
    in_flight: VecDeque<JoinHandle<io::Result<Bytes>>>,
    current: Bytes,
}

impl ObjectReader {
    /// Requests pieces up to the limit in flight.
    fn send_request(&mut self) {
        let (capacity, length) = match self.requested {
            0 => (1, FIRST),
            _ => (AHEAD, PIECE),
        };
        while self.in_flight.len() < capacity && self.requested < self.object.bytes() {
            let from = self.requested;
            self.requested = self.object.bytes().min(from + length);
            let piece = self.object.clone().piece(from..self.requested);
            self.in_flight.push_back(self.object.runtime().spawn(piece));
        }
    }
}

impl Read for ObjectReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.current.has_remaining() && !into.is_empty() {
            self.send_request();
            let Some(next) = self.in_flight.pop_front() else { return Ok(0) };
            self.current = self.object.runtime().block_on(next).map_err(io::Error::other)??;
        }
        let length = self.current.len().min(into.len());
        self.current.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        self.in_flight.iter().for_each(JoinHandle::abort);
    }
}
