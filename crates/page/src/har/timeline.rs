//! The entries of one page in order of their starts, with their types and moments.

use wire::Duration;

use super::entry::Entry;
use super::phases::MAX_TIME;
use crate::{Kind, Priority};

/// An entry of a page.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) entry: Entry,
    /// Index of its host; 0 if it has none.
    pub(super) host: usize,
    /// Path with query, or the first characters of another URL.
    pub(super) path: String,
    pub(super) kind: Kind,
    /// Reason why it took no network.
    pub(super) local: Option<LocalReason>,
    /// Start, from the start of the page; `None` where none is recorded.
    pub(super) start: Option<Duration>,
}

/// Reason why an entry took no network, or none that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LocalReason {
    /// From the browser's cache, or a service worker.
    Cache,
    /// A URL of another scheme, such as `data:`, `blob:`, `about:`, `chrome-extension:`.
    Scheme,
    /// Blocked, aborted, or failed: status 0.
    NoResponse,
}

impl Item {
    /// Moment at which its request has been sent.
    pub(super) fn begun(&self) -> Duration {
        self.start.unwrap_or_default() + self.entry.phases.before_wait
    }

    /// Moment of the response's first byte.
    pub(super) fn first_byte(&self) -> Duration {
        self.start.unwrap_or_default() + self.entry.phases.first_byte
    }

    /// Moment of the last byte.
    pub(super) fn end(&self) -> Duration {
        self.start.unwrap_or_default() + self.entry.phases.end
    }

    /// Whether its request shared a connection with others: HTTP/2 or HTTP/3.
    pub(super) fn is_multiplexed(&self) -> bool {
        ["h2", "http/2", "h3", "http/3"].iter().any(|name| self.entry.protocol.starts_with(name))
    }

    /// Size of its body on the wire, compressed if that is requested and smaller; at least 1 byte.
    pub(super) fn size(&self) -> u64 {
        match self.recorded_size() {
            0 => 1,
            size => self.entry.compressed.map_or(size, |compressed| compressed.clamp(1, size)),
        }
    }

    /// Size of its body on the wire as recorded.
    pub(super) fn recorded_size(&self) -> u64 {
        if self.local.is_none() && self.entry.is_transferred() { self.entry.on_wire() } else { 0 }
    }

    /// Priority as recorded, otherwise as Chromium's for the element, or for the type.
    pub(super) fn priority(&self) -> Priority {
        match self.entry.clues.priority.as_deref() {
            Some("VeryHigh" | "Highest") => Priority::Highest,
            // Safari has three, in lower case.
            Some("High" | "high") => Priority::High,
            Some("Medium" | "medium") => Priority::Medium,
            Some("Low" | "low") => Priority::Low,
            Some("VeryLow" | "Lowest" | "Idle") => Priority::Lowest,
            _ => self.entry.clues.priority_of_element.unwrap_or(match self.kind {
                Kind::Document | Kind::StyleSheet | Kind::Font => Priority::Highest,
                Kind::Script | Kind::Data => Priority::High,
                Kind::Image | Kind::Media | Kind::Other => Priority::Low,
            }),
        }
    }

    /// Whether its priority is more than a guess from its type.
    pub(super) fn has_known_priority(&self) -> bool {
        self.entry.clues.priority.is_some() || self.entry.clues.priority_of_element.is_some()
    }

    /// Whether nothing is painted before it has arrived: as recorded, otherwise by type and priority.
    pub(super) fn is_render_blocking(&self, is_root: bool) -> bool {
        if self.local.is_some() {
            return false;
        }
        let is_urgent = self.priority() == Priority::Highest;
        // Chromium gives scripts that the parser waits for the priority High, and the others Low.
        let is_awaited = self.has_known_priority() && self.priority() >= Priority::High;
        self.entry.clues.is_render_blocking.unwrap_or(match self.kind {
            Kind::Document => is_root,
            Kind::StyleSheet => is_urgent,
            Kind::Script => is_awaited,
            Kind::Font | Kind::Image | Kind::Media | Kind::Data | Kind::Other => false,
        })
    }

    /// Whether its request has no credentials: a font, or data, of another host than the document's, without cookies. The mode
    /// `same-origin` of credentials is the default of both (Fetch standard).
    pub(super) fn is_anonymous(&self, root: usize) -> bool {
        let is_of_script = matches!(self.entry.clues.resource_type.as_str(), "xhr" | "fetch");
        let is_cors = self.kind == Kind::Font || self.kind == Kind::Data && is_of_script;
        is_cors && self.local.is_none() && self.host != root && !self.entry.clues.has_cookies
    }

    /// Whether the event `load` waits for it: it ended before that, and HTML counts its type (the standard's
    /// "delay the load event").
    pub(super) fn counts_for_load(&self, load: Option<Duration>) -> bool {
        let is_detached = self.entry.is_websocket
            || matches!(
                self.entry.clues.resource_type.as_str(),
                "xhr"
                    | "fetch"
                    | "ping"
                    | "beacon"
                    | "websocket"
                    | "eventsource"
                    | "preflight"
                    | "cspviolationreport"
            );
        let is_before = |load| self.start.is_none() || self.end() <= load + SLACK;
        !is_detached && load.is_none_or(is_before)
    }
}

/// Resolution of the times in a recording: some browsers round to milliseconds.
pub(super) const SLACK: Duration = Duration::from_millis(1);

/// Reason why the entry took no network.
pub(super) fn local_reason(entry: &Entry) -> Option<LocalReason> {
    match entry {
        entry if entry.url.is_none() => Some(LocalReason::Scheme),
        entry if entry.is_cached => Some(LocalReason::Cache),
        entry if entry.status <= 0 => Some(LocalReason::NoResponse),
        _ => None,
    }
}

/// Type of the contents: Chromium's, otherwise by media type, otherwise by the path's suffix.
pub(super) fn kind(entry: &Entry, path: &str) -> Kind {
    match entry.clues.resource_type.as_str() {
        "document" => return Kind::Document,
        "stylesheet" => return Kind::StyleSheet,
        "script" => return Kind::Script,
        "font" => return Kind::Font,
        "image" => return Kind::Image,
        "media" => return Kind::Media,
        "xhr" | "fetch" | "eventsource" => return Kind::Data,
        _ => {}
    }
    let mime = entry.mime();
    match kind_of_mime(&mime) {
        Kind::Other => kind_of_mime(http1::content::media_type(path.split('?').next().unwrap_or_default())),
        kind => kind,
    }
}

fn kind_of_mime(mime: &str) -> Kind {
    let mime = mime.split(';').next().unwrap_or_default();
    match mime.split_once('/').unwrap_or_default() {
        ("text", "html") | ("application", "xhtml+xml") => Kind::Document,
        ("text", "css") => Kind::StyleSheet,
        ("text" | "application", "javascript" | "x-javascript" | "ecmascript") => Kind::Script,
        ("application", name) if name.contains("font") => Kind::Font,
        ("application", name) if name == "json" || name.ends_with("+json") => Kind::Data,
        ("font", _) => Kind::Font,
        ("image", _) => Kind::Image,
        ("audio" | "video", _) => Kind::Media,
        _ => Kind::Other,
    }
}

/// Moves each start to the start of the page, and sorts: entries without a start come last, in their order.
pub(super) fn arrange(items: &mut [Item], origin: Option<i64>) {
    for item in items.iter_mut() {
        let since = |start: i64| u64::try_from(start.saturating_sub(origin.unwrap_or(start))).unwrap_or(0);
        item.start = item.entry.phases.start.map(|start| Duration::from_nanos(since(start)).min(MAX_TIME));
    }
    items.sort_by_key(|item| (item.start.is_none(), item.start));
    if let Some(root) = items.iter().position(|item| item.local.is_none()) {
        items[..=root].rotate_right(1);
        if items[0].kind == Kind::Other {
            items[0].kind = Kind::Document;
        }
    }
}
