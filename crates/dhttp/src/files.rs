//! A handler that serves the files below a directory, and nothing outside it.
//!
//! A target is decoded once, and the kernel confines lookups to the directory whatever links it has (`openat2`,
//! `RESOLVE_BENEATH`). Small files are cached as ready responses; larger ones are sent by the kernel (`papers/w3c`, which
//! advises mapped files above 8 KB). Not a proxy and not an application: only files are served.

mod path;
mod response;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use http1::content::{AcceptedCodings, Coding};
use http1::message::Fields;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use wire::{Duration, Time};

use crate::deferred::Reply;
use crate::handler::{Body, Handler, Outcome, Request, Response};
use response::{FileRequest, FileResponse, conditioned};

/// Handler that serves the files below a directory.
#[derive(Clone, Debug)]
pub struct Files {
    root: Arc<OwnedFd>,
    /// Cached files, by the codings that the client accepts, and by path.
    cached: BTreeMap<Codings, BTreeMap<String, CachedFile>>,
    kept_bytes: u64,
    kept_open: usize,
}

#[derive(Clone, Debug)]
struct CachedFile {
    found: FileResponse,
    checked: Time,
}

/// Which of the [`PRECOMPRESSED`] codings a client accepts.
type Codings = [bool; 3];

/// Codings of precompressed files, the smallest first, with the suffix of their names.
const PRECOMPRESSED: [(Coding, &str); 3] =
    [(Coding::Brotli, ".br"), (Coding::Zstd, ".zst"), (Coding::Gzip, ".gz")];

/// Files up to this size are cached in memory; larger ones are sent by the kernel from its page cache.
const SMALL: u64 = 8_192;
/// Maximum bytes that one thread caches.
const MAX_CACHED_BYTES: u64 = 64 << 20;
/// Maximum number of larger files that one thread keeps open.
const MAX_CACHED_OPEN: usize = 64;
/// Age after which a cache entry is revalidated.
const FRESH: Duration = Duration::from_secs(1);

impl Files {
    /// Serves the files below this directory.
    ///
    /// # Errors
    /// The system's error if it is not a directory, or cannot be opened.
    pub fn below(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Arc::new(rustix::fs::open(root, flags, Mode::empty())?);
        Ok(Self { root, cached: BTreeMap::new(), kept_bytes: 0, kept_open: 0 })
    }

    fn show_from<T>(
        &mut self,
        now: Time,
        path: &str,
        request: &Request<'_>,
        to: impl FnOnce(Outcome<'_>) -> T,
    ) -> T {
        let requested = FileRequest::of(request);
        let codings = requested.codings.map_or([false; 3], readable);
        let cached = self.cached.get(&codings).and_then(|paths| paths.get(path));
        if let Some(cached) = cached.filter(|cached| now.since(cached.checked) < FRESH) {
            return respond_with(conditioned(&cached.found, request, &requested), to);
        }
        match self.look(path, codings) {
            Ok(found) => {
                let response = conditioned(&found, request, &requested).into_owned();
                self.keep(now, codings, path, found);
                to(Outcome::Owned(response.into()))
            }
            Err(status) => to(Outcome::Owned(refusal(status).into())),
        }
    }

    /// Looks up the file, a precompressed one, or a directory's index or redirect.
    fn look(&self, path: &str, codings: Codings) -> Result<FileResponse, u16> {
        if path.is_empty() || path.ends_with('/') {
            return self.look(&format!("{path}index.html"), codings);
        }
        let file = self.open(path)?;
        let metadata = file.metadata().map_err(|error| status(&error))?;
        if metadata.is_dir() {
            return Ok(FileResponse::moved(path));
        }
        if !metadata.is_file() {
            return Err(403);
        }
        let beside =
            PRECOMPRESSED.iter().zip(codings).filter(|(_, can)| *can).find_map(|((coding, suffix), _)| {
                let file = self.open(&format!("{path}{suffix}")).ok()?;
                let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
                Some((Some(*coding), file, metadata))
            });
        let varies = PRECOMPRESSED.iter().any(|(_, suffix)| self.open(&format!("{path}{suffix}")).is_ok());
        let (coding, file, metadata) = beside.unwrap_or((None, file, metadata));
        let body = match metadata.len() {
            ..=SMALL => Body::Whole(read(&file, metadata.len()).map_err(|error| status(&error))?),
            length => Body::File { file: Arc::new(file), offset: 0, length },
        };
        let (seconds, nanos) = (metadata.mtime(), metadata.mtime_nsec());
        Ok(FileResponse::file(path, coding, varies, (seconds, nanos), body))
    }

    fn open(&self, path: &str) -> Result<File, u16> {
        // Does not block: a FIFO in the directory must not stall a thread.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&*self.root, path, flags, Mode::empty(), resolve) {
            Ok(file) => Ok(File::from(file)),
            Err(error) => Err(status(&error.into())),
        }
    }

    fn keep(&mut self, now: Time, codings: Codings, path: &str, found: FileResponse) {
        let (bytes, open) = weight(path, &found);
        if self.kept_bytes + bytes > MAX_CACHED_BYTES || self.kept_open + open > MAX_CACHED_OPEN {
            self.cached.clear();
            (self.kept_bytes, self.kept_open) = (0, 0);
        }
        let cached = CachedFile { found, checked: now };
        let before = self.cached.entry(codings).or_default().insert(path.to_owned(), cached);
        let (less_bytes, less_open) = before.map_or((0, 0), |before| weight(path, &before.found));
        self.kept_bytes = self.kept_bytes + bytes - less_bytes;
        self.kept_open = self.kept_open + open - less_open;
    }
}

/// Cost of an entry: bytes, and open files.
fn weight(path: &str, found: &FileResponse) -> (u64, usize) {
    // Fields, and the tree's own overhead.
    let overhead = path.len() as u64 + 512;
    match &found.response.body {
        Body::Whole(bytes) => (bytes.len() as u64 + overhead, 0),
        Body::File { file: _, offset: _, length: _ } => (overhead, 1),
        Body::Described(_) => (overhead, 0),
    }
}

impl Handler for Files {
    fn takes_bodies(&self) -> bool {
        false
    }

    fn respond(&mut self, now: Time, request: &Request<'_>) -> Reply {
        self.respond_with(now, request, |shown| match shown {
            Outcome::Borrowed(response) => response.clone().into(),
            Outcome::Owned(reply) => reply,
        })
    }

    fn respond_with<T>(&mut self, now: Time, request: &Request<'_>, to: impl FnOnce(Outcome<'_>) -> T) -> T {
        if !matches!(request.method, "GET" | "HEAD") {
            return to(Outcome::Owned(not_allowed().into()));
        }
        match path::below_root(request.target) {
            Ok(path) => self.show_from(now, &path, request, to),
            Err(status) => to(Outcome::Owned(refusal(status).into())),
        }
    }
}

fn respond_with<T>(response: Cow<'_, Response>, to: impl FnOnce(Outcome<'_>) -> T) -> T {
    match response {
        Cow::Borrowed(response) => to(Outcome::Borrowed(response)),
        Cow::Owned(response) => to(Outcome::Owned(response.into())),
    }
}

fn readable(value: &[u8]) -> Codings {
    let mut fields = Fields::new();
    let added = std::str::from_utf8(value).is_ok_and(|value| fields.push("Accept-Encoding", value).is_ok());
    let accepted = AcceptedCodings::of(&fields);
    PRECOMPRESSED.map(|(coding, _)| added && accepted.weight(coding) > 0)
}

fn read(file: &File, length: u64) -> io::Result<Arc<[u8]>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.into())
}

/// Status for a system error. A file outside the directory counts as absent.
fn status(error: &io::Error) -> u16 {
    match error.kind() {
        io::ErrorKind::PermissionDenied => 403,
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) => 503,
        // The system's kinds are open-ended.
        _ => 404,
    }
}

fn refusal(status: u16) -> Response {
    Response::text(
        status,
        match status {
            400 => "400 Bad Request",
            403 => "403 Forbidden",
            503 => "503 Service Unavailable",
            _ => "404 Not Found",
        },
    )
}

fn not_allowed() -> Response {
    let mut response = Response::text(405, "405 Method Not Allowed");
    // Constant, and a valid field.
    let _ = Arc::make_mut(&mut response.fields).push("Allow", "GET, HEAD");
    response
}
