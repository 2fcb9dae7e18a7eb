//! One entry of a HAR: a request and its response, as Chromium, Firefox and Safari write them.
//!
//! Numbers may have a decimal point, sizes may be -1 or missing, and bodies may be in base64. The format is
//! not validated: unused members are ignored.

use std::fmt;

use serde::de::{IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};

/// Parts of an entry that are used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// Id of its page.
    pub(super) page: Option<String>,
    /// `None` for a URL of another scheme than http or https: those can be as long as a body.
    pub(super) url: Option<String>,
    /// Size of the request's headers, where it is known.
    pub(super) request: Option<u64>,
    pub(super) status: i64,
    pub(super) is_cached: bool,
    /// Size of the decoded body, where it is known.
    pub(super) size: Option<u64>,
    /// The body, if it is requested and present.
    pub(super) body: Option<Vec<u8>>,
    transferred: Option<u64>,
    mime: String,
}

impl Entry {
    /// Reads an entry without its body.
    pub(super) fn of_sizes(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str::<Raw<IgnoredAny>>(json).map(|raw| Self::of(raw, |_, _| None))
    }

    /// Reads an entry.
    pub(super) fn with_body(json: &str) -> serde_json::Result<Self> {
        let body = |Text(text): Text, encoding: Option<&str>| match encoding {
            Some("base64") => base64(&text),
            Some(_) | None => Some(text),
        };
        serde_json::from_str::<Raw<Text>>(json).map(|raw| Self::of(raw, body))
    }

    fn of<T>(raw: Raw<T>, body: impl FnOnce(T, Option<&str>) -> Option<Vec<u8>>) -> Self {
        let Raw { pageref, request, response, from_cache } = raw;
        let Response { status, headers_size, body_size, content, transfer_size } = response;
        let Content { size, compression, mime_type, encoding, text } = content;
        let decoded = Number::known(size);
        let header_bytes = Number::known(headers_size).unwrap_or(0);
        let transferred_body =
            Number::known(transfer_size).filter(|all| *all > 0).map(|all| all.saturating_sub(header_bytes));
        // Where the size of the headers is unknown (HTTP/2), headers and body together are an upper bound of
        // the body.
        let from_transfer = transferred_body
            .map(|body| decoded.filter(|_| header_bytes == 0).map_or(body, |size| body.min(size)));
        let from_compression =
            decoded.map(|size| size.saturating_sub(Number::known(compression).unwrap_or(0)));
        Self {
            page: pageref,
            url: Some(request.url).filter(|url| address(url).is_some()),
            request: Number::known(request.headers_size),
            status: status.map_or(0, |Number(status)| status),
            is_cached: from_cache.is_some(),
            size: decoded,
            body: text.and_then(|text| body(text, encoding.as_deref())),
            transferred: Number::known(body_size)
                .filter(|size| *size > 0)
                .or(from_transfer)
                .or(from_compression),
            mime: mime_type.unwrap_or_default(),
        }
    }

    /// Size of the body as transferred, as the browser reports it. Otherwise headers and body less the
    /// headers, or the decoded size less the bytes that decoding added.
    pub(super) fn on_wire(&self) -> u64 {
        self.transferred.unwrap_or(0)
    }

    /// Whether its body came over the network: not from the cache, not a 304, not blocked.
    pub(super) const fn is_transferred(&self) -> bool {
        !self.is_cached && self.status != 304 && self.status > 0
    }

    /// The media type without its parameters.
    pub(super) fn mime(&self) -> String {
        self.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

/// Host and path of an http or https URL; the path without its first slash, a directory's with `index.html`.
pub(super) fn address(url: &str) -> Option<(&str, String)> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_directory = path.is_empty() || path.ends_with('/');
    Some((host, format!("{path}{}", if is_directory { "index.html" } else { "" })))
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"), expecting = "an entry")]
struct Raw<T> {
    pageref: Option<String>,
    request: Request,
    response: Response<T>,
    /// Chromium's: the cache that it came from.
    #[serde(rename = "_fromCache")]
    from_cache: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(expecting = "a request")]
struct Request {
    url: String,
    #[serde(rename = "headersSize")]
    headers_size: Option<Number>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"), expecting = "a response")]
struct Response<T> {
    status: Option<Number>,
    #[serde(rename = "headersSize")]
    headers_size: Option<Number>,
    /// Transferred size; -1 where the browser does not know it.
    #[serde(rename = "bodySize")]
    body_size: Option<Number>,
    #[serde(default)]
    content: Content<T>,
    /// Chromium's: headers and body as transferred.
    #[serde(rename = "_transferSize")]
    transfer_size: Option<Number>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"), expecting = "a content")]
struct Content<T> {
    /// Size after decoding.
    size: Option<Number>,
    /// Bytes that decoding added.
    compression: Option<Number>,
    #[serde(rename = "mimeType")]
    mime_type: Option<String>,
    encoding: Option<String>,
    text: Option<T>,
}

impl<T> Default for Content<T> {
    fn default() -> Self {
        Self { size: None, compression: None, mime_type: None, encoding: None, text: None }
    }
}

/// A whole number, which some browsers write with a decimal point.
struct Number(i64);

impl Number {
    /// The number, unless it is -1, which means unknown.
    fn known(number: Option<Self>) -> Option<u64> {
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
struct Text(Vec<u8>);

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

/// Decodes base64 (RFC 4648, section 4); spaces and line endings are skipped.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0);
    for letter in text.iter().filter(|letter| !letter.is_ascii_whitespace() && **letter != b'=') {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_le_bytes()[0]);
        }
    }
    Some(bytes)
}
