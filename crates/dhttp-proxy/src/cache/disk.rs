//! Responses stored on disk in addition to memory: an embedded database (redb) that stays consistent after a kill or a power
//! cut.
//!
//! A separate thread writes, with many responses in one commit; look-ups read what is committed. A caller that drops a response
//! waits until the deletion is committed. The oldest are evicted first. A failed or full disk is reported once, and the
//! cache continues from memory. `http1::cache` decides what may be served.

use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use http1::cache::ParsedRequest;
use http1::cache::vary::suits;
use redb::{Database, Error, ReadableDatabase, ReadableTable, Table, TableDefinition};
use siphasher::sip::SipHasher13;

use super::memory::CacheEntry;
use super::record::Record;
use dhttp::handler::Body;

/// By key and choice ([`storage_key`]): the sequence number ([`NUMBER`]), a [`checksum`] of the rest, and a [`Record`] followed by a
/// longer body.
const RESPONSES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("answers");
/// Keys of responses, by their sequence numbers.
const ORDER: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("order");
/// Total bytes of the values of the responses, in one row.
const BYTES: TableDefinition<'_, (), u64> = TableDefinition::new("bytes");
/// Bytes of the sequence number before a record, of the checksum behind that, and of the record's length.
const NUMBER: usize = 8;
const CHECKSUM: usize = 8;
const LENGTH: usize = 4;

/// Maximum number of pending writes; further responses are stored in memory alone.
const MAX_QUEUED_JOBS: usize = 1_024;
/// Maximum number of jobs in one commit.
const BATCH: usize = 256;

/// A store on disk.
#[derive(Debug)]
pub(super) struct Disk {
    /// `Some` until it is dropped.
    database: Option<Arc<Database>>,
    jobs: SyncSender<Job>,
    /// Capacity in bytes of responses.
    max: Arc<AtomicU64>,
    /// Whether the disk has failed: nothing is read or written any more.
    is_off: Arc<AtomicBool>,
}

/// Job of the thread.
enum Job {
    Keep(CacheEntry),
    /// Drops all responses of a key, then notifies the caller.
    Drop(Vec<u8>, SyncSender<()>),
}

impl Disk {
    /// Opens a file, or creates it. `report` receives the sentence if the disk fails later.
    ///
    /// # Errors
    /// The file's error, in a sentence.
    pub(super) fn open(path: &Path, max: u64, report: fn(&str)) -> io::Result<Self> {
        let display_path = path.display().to_string();
        let failed =
            |error: Error| io::Error::other(format!("cannot store responses in {display_path}: {error}"));
        let max = Arc::new(AtomicU64::new(max));
        let (database, mut writer) = match opened(path, &max) {
            Ok(opened) => opened,
            Err(DatabaseError::Other(error)) => return Err(failed(error)),
            // A file of another program, passed by mistake, is left unchanged.
            Err(DatabaseError::Damaged(reason)) if !is_store(path) => {
                return Err(io::Error::other(format!(
                    "cannot store responses in {display_path}: {reason}; it is not a store"
                )));
            }
            Err(DatabaseError::Damaged(reason)) => {
                let moved_to = set_aside(path)?;
                report(&format!(
                    "{display_path} is damaged ({reason}); moved to {}, and replaced by an empty one",
                    moved_to.display()
                ));
                opened(path, &max).map_err(|failure| match failure {
                    DatabaseError::Other(error) => failed(error),
                    DatabaseError::Damaged(reason) => {
                        io::Error::other(format!("cannot store responses in {display_path}: {reason}"))
                    }
                })?
            }
        };
        let (jobs, queue) = sync_channel(MAX_QUEUED_JOBS);
        let is_off = Arc::new(AtomicBool::new(false));
        let writer_is_off = Arc::clone(&is_off);
        thread::Builder::new().name("cache-disk".to_owned()).spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(|| writer.run(&queue, &writer_is_off)));
            let reason = match ended {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it is damaged".to_owned(),
            };
            writer_is_off.store(true, Ordering::Release);
            report(&format!(
                "cannot write to {display_path}: {reason}; responses are stored in memory only from now on"
            ));
        })?;
        Ok(Self { database: Some(database), jobs, max, is_off })
    }

    /// Returns the stored response for this key that matches this request.
    pub(super) fn find(&self, key: &[u8], request: &ParsedRequest<'_>) -> Option<CacheEntry> {
        if self.is_off.load(Ordering::Acquire) {
            return None;
        }
        // Unreadable entries count as missing; after a panic the store is not used any more.
        let look = AssertUnwindSafe(|| self.look(key, request).ok().flatten());
        catch_unwind(look).unwrap_or_else(|_| {
            self.is_off.store(true, Ordering::Release);
            None
        })
    }

    fn look(&self, key: &[u8], request: &ParsedRequest<'_>) -> Result<Option<CacheEntry>, Error> {
        let Some(database) = &self.database else { return Ok(None) };
        let table = database.begin_read()?.open_table(RESPONSES)?;
        let (mut newest, mut best) = (0, None);
        for row in table.range(storage_key(key, &[]).as_slice()..)? {
            let (stored_key, value) = row?;
            if !is_of(stored_key.value(), key) {
                break;
            }
            let (value, number) = (value.value(), sequence_number(value.value()));
            if best.is_some() && number < newest {
                continue;
            }
            let entry = read(value);
            if let Some(entry) = entry.filter(|entry| suits(entry.record.choice(), request)) {
                (newest, best) = (number, Some(entry));
            }
        }
        Ok(best)
    }

    /// Queues a response for the writer.
    pub(super) fn keep(&self, entry: CacheEntry) {
        // If the queue is full, this one is skipped.
        let _ = self.jobs.try_send(Job::Keep(entry));
    }

    /// Changes the capacity; the excess is evicted at the next write.
    pub(super) fn resize(&self, max: u64) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// Drops all responses of a key; returns once they are gone.
    pub(super) fn drop_all(&self, key: &[u8]) {
        let (report, reported) = sync_channel(1);
        // If the writer has ended, there is no reader either.
        if self.jobs.send(Job::Drop(key.to_vec(), report)).is_ok() {
            let _ = reported.recv();
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A damaged store may panic when it is closed; the file is set aside when it is opened next.
        let database = self.database.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
    }
}

/// Reason why a file cannot be used.
enum DatabaseError {
    /// Not a store, or an incomplete one.
    Damaged(String),
    /// Any other error: another process uses it, or the system refuses.
    Other(Error),
}

impl DatabaseError {
    fn of(error: Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        let is_damaged = match &error {
            Error::Io(error) => matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof),
            Error::Corrupted(_)
            | Error::RepairAborted
            | Error::UpgradeRequired(_)
            | Error::TableTypeMismatch { .. }
            | Error::TableIsMultimap(_)
            | Error::TypeDefinitionChanged { .. } => true,
            // The store's error type is non-exhaustive.
            _ => false,
        };
        if is_damaged { Self::Damaged(error.to_string()) } else { Self::Other(error) }
    }
}

/// Opens a store and checks it. A damaged one may panic, which is caught: it is not in use yet.
fn opened(path: &Path, max: &Arc<AtomicU64>) -> Result<(Arc<Database>, Writer), DatabaseError> {
    let open = || -> Result<_, Error> {
        let database = Arc::new(Database::create(path)?);
        let writer = Writer::new(Arc::clone(&database), Arc::clone(max))?;
        Ok((database, writer))
    };
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(opened) => opened.map_err(DatabaseError::of),
        Err(_) => Err(DatabaseError::Damaged("it cannot be read".to_owned())),
    }
}

/// Whether a file begins as a store does, apart from damage to some of these bytes.
fn is_store(path: &Path) -> bool {
    // Magic number (redb's design document, "Super-header").
    const MAGIC: [u8; 9] = *b"redb\x1A\x0A\xA9\x0D\x0A";
    let mut first = [0; MAGIC.len()];
    let is_read = std::fs::File::open(path).and_then(|file| file.read_exact_at(&mut first, 0)).is_ok();
    is_read && first.iter().zip(MAGIC).filter(|(byte, magic)| *byte == magic).count() > MAGIC.len() / 2
}

/// Renames a damaged file, and replaces one that was damaged before.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    let moved_to = PathBuf::from(name);
    std::fs::rename(path, &moved_to)?;
    Ok(moved_to)
}

/// Writer of the database.
struct Writer {
    database: Arc<Database>,
    max: Arc<AtomicU64>,
    bytes: u64,
    number: u64,
}

impl Writer {
    fn new(database: Arc<Database>, max: Arc<AtomicU64>) -> Result<Self, Error> {
        let begun = database.begin_write()?;
        let (bytes, number) = {
            begun.open_table(RESPONSES)?;
            let last = begun.open_table(ORDER)?.last()?.map_or(0, |(number, _)| number.value() + 1);
            let bytes = begun.open_table(BYTES)?.get(())?.map_or(0, |bytes| bytes.value());
            (bytes, last)
        };
        begun.commit()?;
        Ok(Self { database, max, bytes, number })
    }

    /// Writes until the sender is gone.
    fn run(&mut self, jobs: &Receiver<Job>, is_off: &AtomicBool) -> Result<(), Error> {
        while let Ok(first) = jobs.recv() {
            let mut reported = Vec::new();
            let begun = self.database.begin_write()?;
            let written = (|| -> Result<(), Error> {
                let (mut responses, mut order) = (begun.open_table(RESPONSES)?, begun.open_table(ORDER)?);
                let queued = std::iter::from_fn(|| jobs.try_recv().ok());
                for job in std::iter::once(first).chain(queued).take(BATCH) {
                    match job {
                        Job::Keep(entry) => self.keep(&mut responses, &mut order, &entry)?,
                        Job::Drop(key, report) => {
                            reported.push(report);
                            self.drop_all(&mut responses, &key)?;
                        }
                    }
                }
                begun.open_table(BYTES)?.insert((), self.bytes)?;
                Ok(())
            })();
            let committed = written.and_then(|()| begun.commit().map_err(Error::from));
            // Callers must not continue until the entries that they dropped are gone.
            is_off.store(committed.is_err(), Ordering::Release);
            drop(reported);
            committed?;
        }
        Ok(())
    }

    fn keep(
        &mut self,
        responses: &mut Table<'_, &[u8], &[u8]>,
        order: &mut Table<'_, u64, &[u8]>,
        entry: &CacheEntry,
    ) -> Result<(), Error> {
        let storage_key = storage_key(entry.record.key(), entry.record.choice());
        let value = written(self.number, entry)?;
        order.insert(self.number, storage_key.as_slice())?;
        self.number += 1;
        self.bytes += value.len() as u64;
        if let Some(replaced) = responses.insert(storage_key.as_slice(), value.as_slice())? {
            self.bytes = self.bytes.saturating_sub(replaced.value().len() as u64);
        }
        while self.bytes > self.max.load(Ordering::Relaxed) {
            let Some((number, storage_key)) = order.pop_first()? else { break };
            // Unless its key has been replaced since.
            let is_it = responses
                .get(storage_key.value())?
                .is_some_and(|value| sequence_number(value.value()) == number.value());
            if is_it && let Some(value) = responses.remove(storage_key.value())? {
                self.bytes = self.bytes.saturating_sub(value.value().len() as u64);
            }
        }
        Ok(())
    }

    fn drop_all(&mut self, responses: &mut Table<'_, &[u8], &[u8]>, key: &[u8]) -> Result<(), Error> {
        let mut storage_keys = Vec::new();
        for row in responses.range(storage_key(key, &[]).as_slice()..)? {
            let (stored_key, _) = row?;
            if !is_of(stored_key.value(), key) {
                break;
            }
            storage_keys.push(stored_key.value().to_vec());
        }
        for storage_key in storage_keys {
            if let Some(value) = responses.remove(storage_key.as_slice())? {
                self.bytes = self.bytes.saturating_sub(value.value().len() as u64);
            }
        }
        Ok(())
    }
}

/// Database key of a response: a zero byte separates key and choice, and occurs in no key.
fn storage_key(key: &[u8], choice: &[u8]) -> Vec<u8> {
    [key, &[0], choice].concat()
}

fn is_of(storage_key: &[u8], key: &[u8]) -> bool {
    storage_key.strip_prefix(key).is_some_and(|rest| rest.first() == Some(&0))
}

/// Encodes a response as it is stored.
fn written(number: u64, entry: &CacheEntry) -> Result<Vec<u8>, Error> {
    let record = entry.record.as_bytes();
    let mut value = number.to_be_bytes().to_vec();
    value.extend_from_slice(&[0; CHECKSUM]);
    value.extend_from_slice(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_be_bytes());
    value.extend_from_slice(record);
    match &entry.large {
        None | Some(Body::Described(_)) => {}
        Some(Body::Whole(bytes)) => value.extend_from_slice(bytes),
        Some(Body::File { file, offset, length }) => {
            let start = value.len();
            value.resize(start + usize::try_from(*length).unwrap_or(0), 0);
            if let Some(buffer) = value.get_mut(start..) {
                file.read_exact_at(buffer, *offset).map_err(Error::Io)?;
            }
        }
    }
    let checksum = value.get(NUMBER + CHECKSUM..).map(checksum).unwrap_or_default();
    if let Some(buffer) = value.get_mut(NUMBER..NUMBER + CHECKSUM) {
        buffer.copy_from_slice(&checksum);
    }
    Ok(value)
}

/// Detects damage: the store checks its own pages, but not the values in them.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    SipHasher13::new().hash(bytes).to_be_bytes()
}

fn sequence_number(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |number| u64::from_be_bytes(*number))
}

fn read(value: &[u8]) -> Option<CacheEntry> {
    let (expected, rest) = value.get(NUMBER..)?.split_first_chunk::<CHECKSUM>()?;
    if *expected != checksum(rest) {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<LENGTH>()?;
    let (record, body) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let large = (!body.is_empty()).then(|| Body::Whole(body.into()));
    Some(CacheEntry { record: Record::from_bytes(record)?, large })
}
