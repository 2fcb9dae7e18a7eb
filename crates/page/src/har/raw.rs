//! The JSON of an entry: members by the names that browsers and tools write.
//!
//! A member that only refines the page is read loosely ([`Loose`]): of another type, it counts as missing.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::de::{DeserializeOwned, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"), expecting = "an entry")]
pub(super) struct Raw<T> {
    pub(super) pageref: Option<String>,
    pub(super) request: Request,
    pub(super) response: Response<T>,
    /// Chromium's: the cache that it came from.
    #[serde(rename = "_fromCache")]
    pub(super) from_cache: Option<IgnoredAny>,
    /// Chromium's: whether a service worker responded.
    #[serde(rename = "_fetchedViaServiceWorker", default)]
    pub(super) via_service_worker: Loose<bool>,
    /// Safari's: the network, or the cache that it came from.
    #[serde(rename = "_fetchType", default)]
    pub(super) fetch_type: Loose<String>,
    #[serde(rename = "startedDateTime", default)]
    pub(super) started: Loose<String>,
    #[serde(default)]
    pub(super) time: Loose<f64>,
    #[serde(default)]
    pub(super) timings: Loose<Timings>,
    /// Chromium's: an object; chrome-har's and WebPageTest's: a URL.
    #[serde(rename = "_initiator", default)]
    pub(super) initiator: Loose<Initiator>,
    /// chrome-har's: Chromium's object, as text.
    #[serde(rename = "_initiator_detail", default)]
    pub(super) initiator_detail: Loose<String>,
    /// chrome-har's and WebPageTest's: the line of the initiator, from 1, its column, and its type.
    #[serde(rename = "_initiator_line", default)]
    pub(super) initiator_line: Loose<Scalar>,
    #[serde(rename = "_initiator_column", default)]
    pub(super) initiator_column: Loose<Scalar>,
    #[serde(rename = "_initiator_type", default)]
    pub(super) initiator_type: Loose<String>,
    #[serde(rename = "_priority", default)]
    pub(super) priority: Loose<String>,
    /// chrome-har's: that of the request, before the page was laid out.
    #[serde(rename = "_initialPriority", default)]
    pub(super) initial_priority: Loose<String>,
    #[serde(rename = "_resourceType", default)]
    pub(super) resource_type: Loose<String>,
    /// WebPageTest's.
    #[serde(rename = "_renderBlocking", default)]
    pub(super) render_blocking: Loose<String>,
    /// WebPageTest's: the protocol, such as `HTTP/2`.
    #[serde(rename = "_protocol", default)]
    pub(super) protocol: Loose<String>,
    #[serde(default)]
    pub(super) connection: Loose<Scalar>,
    /// WebPageTest's.
    #[serde(rename = "_socket", default)]
    pub(super) socket: Loose<Scalar>,
    #[serde(rename = "serverIPAddress", default)]
    pub(super) server_address: Loose<String>,
    /// WebPageTest's.
    #[serde(rename = "_ip_addr", default)]
    pub(super) ip_address: Loose<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "a request")]
pub(super) struct Request {
    pub(super) url: String,
    #[serde(default)]
    pub(super) method: Loose<String>,
    #[serde(rename = "httpVersion", default)]
    pub(super) version: Loose<String>,
    #[serde(rename = "headersSize")]
    pub(super) headers_size: Option<Number>,
    #[serde(rename = "bodySize", default)]
    pub(super) body_size: Loose<Number>,
    #[serde(default)]
    pub(super) headers: Loose<Vec<Field>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"), expecting = "a response")]
pub(super) struct Response<T> {
    pub(super) status: Option<Number>,
    #[serde(rename = "httpVersion", default)]
    pub(super) version: Loose<String>,
    #[serde(rename = "redirectURL", default)]
    pub(super) redirect: Loose<String>,
    #[serde(rename = "headersSize")]
    pub(super) headers_size: Option<Number>,
    /// Transferred size; -1 where the browser does not know it.
    #[serde(rename = "bodySize")]
    pub(super) body_size: Option<Number>,
    #[serde(default)]
    pub(super) content: Content<T>,
    /// Chromium's: headers and body as transferred.
    #[serde(rename = "_transferSize")]
    pub(super) transfer_size: Option<Number>,
    /// chrome-har's.
    #[serde(rename = "fromDiskCache", default)]
    pub(super) from_disk_cache: Loose<bool>,
    /// chrome-har's.
    #[serde(rename = "fromServiceWorker", default)]
    pub(super) from_service_worker: Loose<bool>,
    #[serde(default)]
    pub(super) headers: Loose<Vec<Field>>,
}

/// A header field.
#[derive(Deserialize)]
pub(super) struct Field {
    name: String,
    value: String,
}

/// Durations in milliseconds; -1 or missing where they do not apply.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Timings {
    #[serde(default)]
    pub(super) blocked: Loose<f64>,
    #[serde(default)]
    pub(super) dns: Loose<f64>,
    #[serde(default)]
    pub(super) connect: Loose<f64>,
    #[serde(default)]
    pub(super) ssl: Loose<f64>,
    #[serde(default)]
    pub(super) send: Loose<f64>,
    #[serde(default)]
    pub(super) wait: Loose<f64>,
    #[serde(default)]
    pub(super) receive: Loose<f64>,
    /// chrome-har's: time in the browser's queue, before all others.
    #[serde(rename = "_queued", default)]
    pub(super) queued: Loose<f64>,
}

/// The cause of a request.
pub(super) enum Initiator {
    /// A URL.
    Url(String),
    /// Chromium's object.
    Call(Call),
}

impl<'de> Deserialize<'de> for Initiator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let url = serde_json::from_str(json.get()).map(Self::Url);
        url.or_else(|_| serde_json::from_str(json.get()).map(Self::Call)).map_err(serde::de::Error::custom)
    }
}

/// Chromium's initiator: a document, or the stack of a script.
#[derive(Default, Deserialize)]
pub(super) struct Call {
    /// `parser`, `script`, and others.
    #[serde(rename = "type", default)]
    pub(super) kind: Loose<String>,
    #[serde(default)]
    url: Loose<String>,
    /// Line in it, from 0.
    #[serde(rename = "lineNumber", default)]
    pub(super) line: Loose<f64>,
    #[serde(rename = "columnNumber", default)]
    pub(super) column: Loose<f64>,
    #[serde(default)]
    stack: Loose<Stack>,
}

/// A script's stack, and the one that scheduled it.
#[derive(Deserialize)]
struct Stack {
    #[serde(rename = "callFrames", default)]
    frames: Loose<Vec<Frame>>,
    #[serde(default)]
    parent: Option<Box<Stack>>,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    url: Loose<String>,
}

impl Call {
    /// Adds the URLs to `urls`, the nearest first, each once.
    pub(super) fn add_urls(self, urls: &mut Vec<String>) {
        let Self { url, mut stack, .. } = self;
        let mut found: Vec<String> = url.0.into_iter().collect();
        while let Some(Stack { frames, parent }) = stack.0 {
            found.extend(frames.0.into_iter().flatten().filter_map(|frame| frame.url.0));
            stack = Loose(parent.map(|parent| *parent));
        }
        for url in found {
            if !url.is_empty() && !urls.contains(&url) && urls.len() < MAX_INITIATORS {
                urls.push(url);
            }
        }
    }
}

/// Maximum number of initiators of one request; deeper callers are further in the past.
const MAX_INITIATORS: usize = 8;

/// Value of the first field of this name.
pub(super) fn field<'a>(fields: Option<&'a [Field]>, name: &str) -> Option<&'a str> {
    let is_it = |field: &&Field| field.name.eq_ignore_ascii_case(name);
    fields?.iter().find(is_it).map(|field| field.value.as_str())
}

#[derive(Deserialize)]
#[serde(expecting = "a content")]
pub(super) struct Content<T> {
    /// Size after decoding.
    pub(super) size: Option<Number>,
    /// Bytes that decoding added.
    pub(super) compression: Option<Number>,
    #[serde(rename = "mimeType")]
    pub(super) mime_type: Option<String>,
    pub(super) encoding: Option<String>,
    pub(super) text: Option<T>,
}

impl<T> Default for Content<T> {
    fn default() -> Self {
        Self { size: None, compression: None, mime_type: None, encoding: None, text: None }
    }
}

/// A member that only refines the page: of another type, it counts as missing. One type for all of them, where a function for each
/// field (`deserialize_with`) would be compiled for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loose<T>(pub(super) Option<T>);

impl<T> Default for Loose<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for Loose<T> {
    type Target = Option<T>;
    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T> DerefMut for Loose<T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        &mut self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(json.get()).ok()))
    }
}

/// A text or a number, as text.
pub(super) struct Scalar(pub(super) String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Text(String),
            Number(i64),
        }
        Any::deserialize(deserializer).map(|any| match any {
            Any::Text(text) => Self(text),
            Any::Number(number) => Self(number.to_string()),
        })
    }
}

/// A whole number, which some browsers write with a decimal point.
pub(super) struct Number(pub(super) i64);

impl Number {
    /// The number, unless it is -1, which means unknown.
    pub(super) fn known(number: Option<Self>) -> Option<u64> {
        number.and_then(|Self(number)| u64::try_from(number).ok())
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number(i64::try_from(number).unwrap_or(i64::MAX)))
            }
            #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, as the others here do")]
            fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number as i64))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A string that may contain unpaired surrogates, as scripts can and serde_json refuses; they are replaced.
pub(super) struct Text(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
                Ok(Text(String::from_utf8_lossy(bytes).into_owned().into_bytes()))
            }
        }
        deserializer.deserialize_bytes(Any)
    }
}
