//! Object stores and the Web: the objects that a URL names, and the stores' errors, each in a sentence.
//!
//! Not the bytes of an object: [`object`](super::object) fetches those. Credentials come from the environment, by the
//! names that the stores' own tools use (`AWS_ACCESS_KEY_ID`, `GOOGLE_APPLICATION_CREDENTIALS`,
//! `AZURE_STORAGE_ACCOUNT_NAME` and similar); so does another endpoint for S3 (`AWS_ENDPOINT_URL`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, Error, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::runtime::{Builder, Runtime};

use crate::glob::fits;

/// Every store that was used so far.
#[derive(Debug)]
pub struct Stores {
    runtime: Arc<Runtime>,
    /// By scheme and host.
    known: BTreeMap<String, Arc<Store>>,
}

/// A bucket, a container, or a server.
#[derive(Debug)]
pub struct Store {
    /// The runtime that runs its requests.
    pub runtime: Arc<Runtime>,
    /// The client.
    pub store: Arc<dyn ObjectStore>,
    /// Prefix of its objects' URLs: `s3://bucket`.
    origin: String,
    kind: StoreKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreKind {
    Aws,
    Azure,
    Google,
    Web,
}

/// Threads of the runtime; apart from waiting they only decrypt.
const THREADS: usize = 2;
/// Maximum number of retries, and their time limit.
const RETRIES: usize = 3;
const RETRY_FOR: Duration = Duration::from_secs(30);

impl Stores {
    /// An empty set.
    ///
    /// # Errors
    /// When the system cannot start threads.
    pub fn new() -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start threads to fetch with: {error}"))?;
        // An error means that a provider was installed before, which is sufficient.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self { runtime: Arc::new(runtime), known: BTreeMap::new() })
    }

    /// The store of a URL, and the objects that it names there: one object, all objects below it, or all that match it if it has `*` or `?` in it.
    ///
    /// # Errors
    /// The reason why nothing can be fetched there, in a sentence.
    pub fn find(&mut self, address: &str) -> Result<(Arc<Store>, Vec<ObjectMeta>), String> {
        let url = StoreUrl::of(address)?;
        let store = self.store(&url).map_err(|error| format!("{address}: {error}"))?;
        let found = store.find(&url).map_err(|error| format!("{address}: {error}"))?;
        if found.is_empty() {
            return Err(format!("{address}: no such object, and none below it; name a log"));
        }
        Ok((store, found))
    }

    fn store(&mut self, url: &StoreUrl) -> Result<Arc<Store>, String> {
        if let Some(known) = self.known.get(&url.origin) {
            return Ok(Arc::clone(known));
        }
        let store = url.kind.connect(&url.origin).map_err(|error| reason(&error, url.kind))?;
        let store = Arc::new(Store {
            runtime: Arc::clone(&self.runtime),
            store,
            origin: url.origin.clone(),
            kind: url.kind,
        });
        self.known.insert(url.origin.clone(), Arc::clone(&store));
        Ok(store)
    }
}

/// The parts of a URL.
struct StoreUrl {
    kind: StoreKind,
    origin: String,
    key: String,
}

impl StoreUrl {
    fn of(address: &str) -> Result<Self, String> {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let kind = match scheme {
            "s3" | "s3a" => StoreKind::Aws,
            "gs" => StoreKind::Google,
            "az" | "abfs" | "abfss" => StoreKind::Azure,
            "http" | "https" => StoreKind::Web,
            _ => {
                return Err(format!(
                    "{address}: unsupported scheme `{scheme}`; use s3, gs, az, abfs, http or https, or pipe it in"
                ));
            }
        };
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(format!("{address}: the bucket is missing; write {scheme}://BUCKET/NAME"));
        }
        if kind == StoreKind::Web && key.contains(['*', '?', '#']) {
            return Err(format!(
                "{address}: addresses with a pattern or a query are not fetched from the Web; \
                 pipe it in: curl -sS '{address}' | roundtrip connections -"
            ));
        }
        Ok(Self { kind, origin: format!("{scheme}://{host}"), key: key.to_owned() })
    }

    fn is_pattern(&self) -> bool {
        self.key.contains(['*', '?'])
    }
}

impl StoreKind {
    /// A client for the store; nothing is sent yet.
    fn connect(self, origin: &str) -> Result<Arc<dyn ObjectStore>, Error> {
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_FOR, ..RetryConfig::default() };
        Ok(match self {
            Self::Aws => {
                let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
                    .iter()
                    .find_map(|name| std::env::var(name).ok());
                let mut builder = AmazonS3Builder::from_env().with_url(origin).with_retry(retry);
                // An endpoint URL without TLS is the user's choice.
                if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
                    builder = builder.with_allow_http(true);
                }
                Arc::new(builder.build()?)
            }
            Self::Azure => {
                let mut builder = MicrosoftAzureBuilder::from_env().with_url(origin).with_retry(retry);
                let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
                if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
                    builder = builder.with_allow_http(true);
                }
                Arc::new(builder.build()?)
            }
            Self::Google => {
                Arc::new(GoogleCloudStorageBuilder::from_env().with_url(origin).with_retry(retry).build()?)
            }
            Self::Web => {
                let options = ClientOptions::new().with_allow_http(origin.starts_with("http://"));
                let builder = HttpBuilder::new().with_url(origin).with_client_options(options);
                Arc::new(builder.with_retry(retry).build()?)
            }
        })
    }
}

impl Store {
    /// An object's URL.
    pub fn address(&self, path: &Path) -> String {
        format!("{}/{path}", self.origin)
    }

    /// The reason of a failure, in a sentence.
    pub fn reason(&self, error: &Error) -> String {
        reason(error, self.kind)
    }

    fn find(&self, url: &StoreUrl) -> Result<Vec<ObjectMeta>, String> {
        let reported = |error: Error| self.reason(&error);
        let path = match self.kind {
            StoreKind::Web => Path::from_url_path(&url.key),
            StoreKind::Aws | StoreKind::Azure | StoreKind::Google => {
                Path::parse(url.key.trim_end_matches('/'))
            }
        };
        let path = path.map_err(|error| reported(error.into()))?;
        if url.is_pattern() {
            let fitting = self.below(&fixed(&url.key)).map_err(reported)?.into_iter();
            return Ok(fitting.filter(|meta| fits_parts(&url.key, meta.location.as_ref())).collect());
        }
        // A bucket, and a key that ends in a slash, is not an object.
        if self.kind == StoreKind::Web || !(url.key.is_empty() || url.key.ends_with('/')) {
            match self.runtime.block_on(self.store.head(&path)) {
                Ok(meta) => return Ok(vec![meta]),
                Err(Error::NotFound { .. }) if self.kind != StoreKind::Web => {}
                Err(error) => return Err(reported(error)),
            }
        }
        self.below(&path).map_err(reported)
    }

    /// Every non-empty object below a path, sorted by name.
    fn below(&self, path: &Path) -> Result<Vec<ObjectMeta>, Error> {
        let listed = self.store.list(Some(path)).try_filter(|meta| std::future::ready(meta.size > 0));
        let mut found: Vec<ObjectMeta> = self.runtime.block_on(listed.try_collect())?;
        found.sort_by(|one, other| one.location.cmp(&other.location));
        Ok(found)
    }
}

/// The longest prefix of a pattern without wildcards, as a directory.
fn fixed(pattern: &str) -> Path {
    let parts = pattern.split('/').take_while(|part| !part.contains(['*', '?']));
    parts.filter(|part| !part.is_empty()).collect()
}

/// Whether a name has as many components as a pattern, and each matches.
fn fits_parts(pattern: &str, name: &str) -> bool {
    let (mut patterns, mut names) = (pattern.split('/').filter(|part| !part.is_empty()), name.split('/'));
    loop {
        match (patterns.next(), names.next()) {
            (Some(pattern), Some(name)) if fits(pattern.as_bytes(), name.as_bytes()) => {}
            (None, None) => return true,
            (Some(_) | None, _) => return false,
        }
    }
}

/// The error in a sentence, with the remedy where there is one.
fn reason(error: &Error, kind: StoreKind) -> String {
    let refused = || format!("the object store denies access; {}", kind.credentials());
    match error {
        Error::NotFound { .. } => "no such object; name another".to_owned(),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => refused(),
        Error::Precondition { .. } => "it was changed while it was read; read it again".to_owned(),
        Error::NotSupported { .. } if kind == StoreKind::Web => {
            "the server does not serve ranges; download it and pipe it in".to_owned()
        }
        // The store's error type is not exhaustive: other errors keep their own text.
        _ => match innermost(error) {
            // A refused listing is recognisable only by its text.
            text if text.contains("401 Unauthorized") || text.contains("403 Forbidden") => refused(),
            text => format!("cannot be fetched: {}", in_one_line(&text)),
        },
    }
}

impl StoreKind {
    fn credentials(self) -> &'static str {
        match self {
            Self::Aws => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true if it is public"
            }
            Self::Azure => "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
            Self::Google => "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account",
            Self::Web => "download it with your credentials, and pipe it in",
        }
    }
}

/// The innermost source of an error: an unknown name, a refused connection.
fn innermost(error: &Error) -> String {
    let mut error: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Some servers send a page with an error: its beginning is enough.
fn in_one_line(text: &str) -> String {
    const MAX_MESSAGE_CHARS: usize = 240;
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_component_by_component() {
        let cases = [
            ("logs/*.gz", "logs/a.gz", true),
            ("logs/*.gz", "logs/old/a.gz", false),
            ("logs/2026-*/??.log", "logs/2026-11/21.log", true),
            ("logs/*", "logs", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(fits_parts(pattern, name), expected, "{pattern} {name}");
        }
        assert_eq!(fixed("logs/2026/*/x.log").as_ref(), "logs/2026");
        assert_eq!(fixed("*.log").as_ref(), "");
    }
}
