//! One entry of a HAR: a request and its response, as Chromium, Firefox, Safari and WebPageTest write them.
//!
//! Numbers may have a decimal point, sizes may be -1 or missing, and bodies may be in base64. The format is
//! not validated: unused members are ignored.

use http1::content::{Coding, encoded, is_text};
use http1::message::Method;
use http1::message::field::is_token;
use serde::de::IgnoredAny;

use super::links::{self, DocumentHint};
use super::named::{self, Named};
use super::phases::Phases;
use super::place::{Place, line_starts};
use super::raw::{Call, Content, Initiator, Number, Raw, Response, Text, field};
use crate::file::MAX_METHOD_BYTES;
use crate::{Page, Priority};

/// Parts of an entry that are used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// Id of its page.
    pub(super) page: Option<String>,
    /// `None` for a URL of another scheme than http or https: those can be as long as a body.
    pub(super) url: Option<String>,
    /// First characters of a URL of another scheme; empty for http and https.
    pub(super) label: String,
    pub(super) is_websocket: bool,
    pub(super) method: Method,
    /// Size of the request's headers, where it is known.
    pub(super) request: Option<u64>,
    /// Size of the request's body.
    pub(super) request_body: u64,
    /// Size of the response's headers, where it is known.
    pub(super) response: Option<u64>,
    pub(super) status: i64,
    pub(super) is_cached: bool,
    /// Size of the decoded body, where it is known.
    pub(super) size: Option<u64>,
    /// The body, if it is requested and present.
    pub(super) body: Option<Vec<u8>>,
    /// Starts of the lines of an HTML document whose text is present.
    pub(super) lines: Vec<u32>,
    /// Resource hints of its field `Link`, and of its text.
    pub(super) hints: Vec<DocumentHint>,
    /// Addresses in its text, of a document or a style sheet.
    pub(super) named: Vec<Named>,
    /// Size of its text after compression, if that is requested.
    pub(super) compressed: Option<u64>,
    /// Protocol of the response in lower case, such as `h2` or `http/1.1`; empty where it is unknown.
    pub(super) protocol: String,
    /// Target of a redirect.
    pub(super) redirect: Option<String>,
    /// Address of the server.
    pub(super) address: Option<String>,
    /// Id of the connection.
    pub(super) connection: Option<String>,
    pub(super) clues: Clues,
    pub(super) phases: Phases,
    transferred: Option<u64>,
    mime: String,
}

/// Members that reveal the cause and the weight of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clues {
    /// URLs of the initiator: the nearest script first, then its callers.
    pub(super) initiators: Vec<String>,
    /// Place in the first of them at which the element stands that is the cause.
    pub(super) place: Option<Place>,
    /// Whether the request has cookies.
    pub(super) has_cookies: bool,
    /// Field `Referer`.
    pub(super) referer: Option<String>,
    /// Whether `Alt-Svc` offers HTTP/3.
    pub(super) offers_http3: bool,
    /// Program that the field `Server` names, without its version.
    pub(super) software: Option<String>,
    pub(super) priority: Option<String>,
    /// Priority of the element that names it, where none is recorded.
    pub(super) priority_of_element: Option<Priority>,
    /// Whether the initiator is not recorded, but the text that names it.
    pub(super) is_named: bool,
    /// Chromium's type in lower case, or empty.
    pub(super) resource_type: String,
    pub(super) is_render_blocking: Option<bool>,
}

impl Entry {
    /// Reads an entry without its body.
    pub(super) fn of_sizes(json: &str) -> serde_json::Result<Self> {
        let mut entry = serde_json::from_str::<Raw<IgnoredAny>>(json)
            .and_then(|raw| Self::of(raw, |_, _| None).checked())?;
        let has_style = entry.mime() == "text/css" && entry.clues.initiators.is_empty();
        if has_style || entry.mime() == "text/html" {
            let body = Self::with_body(json)?.body;
            entry.read_text(body.as_deref().unwrap_or_default());
        }
        Ok(entry)
    }

    /// Reads an entry.
    pub(super) fn with_body(json: &str) -> serde_json::Result<Self> {
        let body = |Text(text): Text, encoding: Option<&str>| match encoding {
            Some("base64") => base64(&text),
            Some(_) | None => Some(text),
        };
        serde_json::from_str::<Raw<Text>>(json).and_then(|raw| Self::of(raw, body).checked())
    }

    /// The entry, unless a body of it is larger than any object.
    fn checked(self) -> serde_json::Result<Self> {
        let largest = self.on_wire().max(self.request_body);
        if largest > Page::MAX_OBJECT_BYTES.get() {
            let reason = format!("a body of {largest} bytes, more than 1 TiB");
            return Err(serde::de::Error::custom(reason));
        }
        Ok(self)
    }

    fn of<T>(mut raw: Raw<T>, body: impl FnOnce(T, Option<&str>) -> Option<Vec<u8>>) -> Self {
        let clues = Clues::of(&mut raw);
        let hints = field(raw.response.headers.as_deref(), "link").map(links::of_field).unwrap_or_default();
        let phases = Phases::of(raw.started.as_deref(), raw.time.0, raw.timings.0);
        let transferred = transferred(&raw.response);
        let Raw { pageref, request, response, from_cache, connection, socket, .. } = raw;
        let is_of_safari = raw.fetch_type.as_deref().map(is_local_fetch);
        let is_local = [
            raw.via_service_worker.0,
            response.from_disk_cache.0,
            response.from_service_worker.0,
            is_of_safari,
        ];
        let protocol = [raw.protocol.0, response.version.0, request.version.0].into_iter().flatten();
        let protocol = protocol.map(|name| name.to_ascii_lowercase()).find(|name| is_protocol(name));
        // Firefox writes entries from its cache without a protocol, a time, or phases.
        let has_no_exchange = raw.timings.is_some() && protocol.is_none() && phases.is_empty();
        let Content { size, compression: _, mime_type, encoding, text } = response.content;
        let is_websocket = ["ws:", "wss:"].iter().any(|scheme| request.url.starts_with(scheme));
        let url = normalized(request.url);
        Self {
            page: pageref,
            label: if address(&url).is_some() { String::new() } else { label(&url) },
            is_websocket,
            url: Some(url).filter(|url| address(url).is_some()),
            method: request.method.0.map_or(Method::Get, method),
            request: Number::known(request.headers_size).filter(|size| *size > 0),
            request_body: Number::known(request.body_size.0).unwrap_or(0),
            response: Number::known(response.headers_size).filter(|size| *size > 0),
            status: response.status.map_or(0, |Number(status)| status),
            is_cached: from_cache.is_some() || is_local.contains(&Some(true)) || has_no_exchange,
            size: Number::known(size),
            body: text.and_then(|text| body(text, encoding.as_deref())),
            lines: Vec::new(),
            hints,
            named: Vec::new(),
            compressed: None,
            protocol: protocol.unwrap_or_default(),
            redirect: response.redirect.0.filter(|url| !url.is_empty()).map(normalized),
            address: raw.server_address.0.or(raw.ip_address.0).filter(|address| !address.is_empty()),
            connection: connection.0.or(socket.0).map(|id| id.0).filter(|id| !id.is_empty() && id != "0"),
            clues,
            phases,
            transferred,
            mime: mime_type.unwrap_or_default(),
        }
    }

    /// The entry with the compressed size of its text in place of the body.
    pub(super) fn compressed(mut self, coding: Coding) -> Self {
        let is_text = is_text(&self.mime());
        let text = self.body.as_deref().filter(|body| is_text && !body.is_empty());
        let compressed = text.map(|text| encoded(coding, text).len() as u64);
        if let Some(body) = self.body.take() {
            self.read_text(&body);
        }
        Self { body: None, compressed, ..self }
    }

    /// Notes where the lines of a document's text begin, its hints, and what it or a style sheet names.
    fn read_text(&mut self, text: &[u8]) {
        match self.mime().as_str() {
            "text/html" => {
                self.lines = line_starts(text);
                self.hints.extend(links::of_text(text));
                self.named = named::in_document(text, &self.lines);
            }
            "text/css" => self.named = named::in_style_sheet(text),
            _ => {}
        }
    }

    /// Size of the body as transferred, as the browser reports it. Otherwise headers and body less the
    /// headers, or the decoded size less the bytes that decoding added, or the field `Content-Length`.
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

impl Clues {
    fn of<T>(raw: &mut Raw<T>) -> Self {
        let mut initiators = Vec::new();
        let (line, column) = (raw.initiator_line.as_ref(), raw.initiator_column.as_ref());
        let mut place = Place::of_members(line, column, raw.initiator_type.as_deref());
        let mut add = |call: Call, initiators: &mut Vec<String>| {
            place = Place::of_call(&call).or(place);
            call.add_urls(initiators);
        };
        if let Some(detail) = raw.initiator_detail.take() {
            add(serde_json::from_str::<Call>(&detail).unwrap_or_default(), &mut initiators);
        }
        match raw.initiator.take() {
            Some(Initiator::Url(url)) if initiators.is_empty() && !url.is_empty() => initiators.push(url),
            Some(Initiator::Call(call)) => add(call, &mut initiators),
            Some(Initiator::Url(_)) | None => {}
        }
        let blocking = raw.render_blocking.as_deref();
        Self {
            initiators,
            place,
            has_cookies: field(raw.request.headers.as_deref(), "cookie").is_some(),
            referer: field(raw.request.headers.as_deref(), "referer").map(str::to_owned),
            software: field(raw.response.headers.as_deref(), "server").and_then(software),
            offers_http3: field(raw.response.headers.as_deref(), "alt-svc")
                .is_some_and(|offer| offer.contains("h3")),
            priority: raw.initial_priority.take().or(raw.priority.take()),
            priority_of_element: None,
            is_named: false,
            resource_type: raw.resource_type.take().unwrap_or_default().to_ascii_lowercase(),
            is_render_blocking: blocking.map(|blocking| blocking == "blocking"),
        }
    }
}

/// Size of the body as transferred.
fn transferred<T>(response: &Response<T>) -> Option<u64> {
    let Response { headers_size, body_size, content, transfer_size, headers, .. } = response;
    let known =
        |number: &Option<Number>| number.as_ref().and_then(|Number(number)| u64::try_from(*number).ok());
    let decoded = known(&content.size);
    let header_bytes = known(headers_size).unwrap_or(0);
    let transferred_body =
        known(transfer_size).filter(|all| *all > 0).map(|all| all.saturating_sub(header_bytes));
    // Where the size of the headers is unknown (HTTP/2), headers and body together are an upper bound of
    // the body.
    let from_transfer = transferred_body
        .map(|body| decoded.filter(|_| header_bytes == 0).map_or(body, |size| body.min(size)));
    let from_compression = decoded.map(|size| size.saturating_sub(known(&content.compression).unwrap_or(0)));
    let length = || field(headers.as_deref(), "content-length").and_then(|length| length.trim().parse().ok());
    known(body_size)
        .filter(|size| *size > 0)
        .or(from_transfer)
        .or(from_compression.filter(|size| *size > 0))
        .or_else(length)
}

/// Whether Safari's type of a fetch is one without network (WebKit, HARBuilder.js, `fetchType`).
fn is_local_fetch(fetch_type: &str) -> bool {
    matches!(fetch_type, "Memory Cache" | "Disk Cache" | "Service Worker" | "Inspector Override")
}

/// Whether this is the name of a version of HTTP: some tools leave it empty, or write other text there.
fn is_protocol(name: &str) -> bool {
    ["http", "h2", "h3", "spdy", "quic"].iter().any(|prefix| name.starts_with(prefix))
}

/// The method; GET in place of a text that a request line cannot have.
fn method(name: String) -> Method {
    let is_method = name.len() <= MAX_METHOD_BYTES && is_token(name.as_bytes());
    if is_method { Method::from_name(&name) } else { Method::Get }
}

/// The URL with its scheme in lower case. A WebSocket's handshake is a request of HTTP to the same host (RFC 6455,
/// section 4).
fn normalized(url: String) -> String {
    let Some((scheme, rest)) = url.split_once(':').filter(|(scheme, _)| scheme.len() <= MAX_SCHEME_BYTES)
    else {
        return url;
    };
    match scheme.to_ascii_lowercase().as_str() {
        "wss" => format!("https:{rest}"),
        "ws" => format!("http:{rest}"),
        lower if lower != scheme => format!("{lower}:{rest}"),
        _ => url,
    }
}

/// Length of the longest scheme that is rewritten.
const MAX_SCHEME_BYTES: usize = 5;

/// First characters of a URL, printable: `data:image/gif;base64,R0lG`.
fn label(url: &str) -> String {
    const MAX_LABEL_CHARS: usize = 40;
    url.chars().take(MAX_LABEL_CHARS).collect::<String>().replace(char::is_control, "?")
}

/// Host and path of an http or https URL; the path without its first slash, a directory's with `index.html`.
pub(super) fn address(url: &str) -> Option<(&str, String)> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_directory = path.is_empty() || path.ends_with('/');
    Some((host, format!("{path}{}", if is_directory { "index.html" } else { "" })))
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
/// Product that a field `Server` names first (RFC 9110, section 10.2.4).
fn software(value: &str) -> Option<String> {
    let product = value.trim().split(['/', ' ', '(']).next().unwrap_or_default();
    let is_token = product.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    (!product.is_empty() && product.len() <= MAX_SOFTWARE_BYTES && is_token).then(|| product.to_owned())
}

/// Length of a product's name beyond which it is none.
const MAX_SOFTWARE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::software;

    #[test]
    fn software_is_the_first_product_without_its_version() {
        let named = ["Caddy", " nginx/1.27.5 (Debian)", "Apache/2.4 PHP/8"].map(software);
        assert_eq!(named.each_ref().map(Option::as_deref), [Some("Caddy"), Some("nginx"), Some("Apache")]);
        for value in ["", "/1", "a\u{1b}[2J", "\u{202e}x", &"x".repeat(65)] {
            assert_eq!(software(value), None, "{value:?}");
        }
    }
}
