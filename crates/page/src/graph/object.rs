//! An object of a page: its host, its message sizes, its priority, and its discovery.

use std::fmt;

use http1::message::Method;
use wire::{Bytes, Duration};

/// An object with a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Index of its host in [`super::Page::hosts`].
    pub host: usize,
    /// Path with query, where known.
    pub path: Option<String>,
    /// Method of the request.
    pub method: Method,
    /// Type of the contents.
    pub kind: Kind,
    /// Priority of the request.
    pub priority: Priority,
    /// Size of the request's header section, where known.
    pub request_head: Option<Bytes>,
    /// Size of the response's header section, where known.
    pub response_head: Option<Bytes>,
    /// Size of the body, as stored; at least 1 byte.
    pub size: Bytes,
    /// Size of the body after deflate, where known.
    pub deflated: Option<Bytes>,
    /// Size of the request's body.
    pub request_body: Bytes,
    /// Time of the server for this response; `None`: the host's.
    pub processing: Option<Duration>,
    /// Time that it takes without the network, as from a cache or a `data:` URL; `None`: it is fetched. Engines fetch
    /// pages without such objects ([`super::Page::over_network`]).
    pub local: Option<Duration>,
    /// Whether nothing is painted before it has arrived.
    pub is_render_blocking: bool,
    /// Whether its request has no credentials. Browsers send such requests on connections of their own (Fetch standard,
    /// "obtain a connection").
    pub is_anonymous: bool,
    /// Whether the event `load` waits for it.
    pub counts_for_load: bool,
    /// Dependencies: the client knows the object when all of them are met.
    pub after: Vec<Dependency>,
}

/// A discovery edge: a moment of another object, and a delay after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Index of the other object.
    pub on: usize,
    /// The moment.
    pub at: Moment,
    /// Delay: the client's own work, such as running a script.
    pub plus: Duration,
}

/// A moment of an object's transfer, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Its request has been passed to a connection.
    Begun,
    /// This number of bytes of its body has arrived.
    Delivered(Bytes),
    /// It has arrived completely, or failed.
    Ended,
}

/// Type of an object's contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// HTML.
    Document,
    /// Style sheet.
    StyleSheet,
    /// Script.
    Script,
    /// Font.
    Font,
    /// Image.
    Image,
    /// Audio or video.
    Media,
    /// Data requested by a script.
    Data,
    /// Any other type, or an unknown one.
    #[default]
    Other,
}

impl Kind {
    /// A media type of this kind, as servers name it.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Document => "text/html",
            Self::StyleSheet => "text/css",
            Self::Script => "text/javascript",
            Self::Font => "font/woff2",
            Self::Image => "image/png",
            Self::Media => "video/mp4",
            Self::Data => "application/json",
            Self::Other => "application/octet-stream",
        }
    }
}

/// Priority of a request, in the five levels of Chromium (net/base/request_priority.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Prefetches.
    Lowest,
    /// Images outside the viewport.
    Low,
    /// The default.
    #[default]
    Medium,
    /// Scripts.
    High,
    /// Documents, style sheets, fonts.
    Highest,
}

impl Kind {
    /// Names, in files and results.
    pub const NAMES: [(Self, &str); 8] = [
        (Self::Document, "document"),
        (Self::StyleSheet, "style-sheet"),
        (Self::Script, "script"),
        (Self::Font, "font"),
        (Self::Image, "image"),
        (Self::Media, "media"),
        (Self::Data, "data"),
        (Self::Other, "other"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(self, &Self::NAMES)
    }
}

impl Priority {
    /// Names, in files and results.
    pub const NAMES: [(Self, &str); 5] = [
        (Self::Lowest, "lowest"),
        (Self::Low, "low"),
        (Self::Medium, "medium"),
        (Self::High, "high"),
        (Self::Highest, "highest"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(self, &Self::NAMES)
    }
}

fn name<T: PartialEq>(value: T, names: &[(T, &'static str)]) -> &'static str {
    names.iter().find(|(known, _)| *known == value).map_or("", |(_, name)| name)
}

impl Object {
    /// An object of which only the stored size is known.
    pub const fn sized(size: Bytes) -> Self {
        Self {
            host: 0,
            path: None,
            method: Method::Get,
            kind: Kind::Other,
            priority: Priority::Medium,
            request_head: None,
            response_head: None,
            size,
            deflated: None,
            request_body: Bytes::ZERO,
            processing: None,
            local: None,
            is_render_blocking: false,
            is_anonymous: false,
            counts_for_load: true,
            after: Vec::new(),
        }
    }

    /// Whether a browser holds its request back before the document's body: images, whose priority rises
    /// once they are laid out, and other objects below the priority of scripts that the parser waits for (third_party/blink,
    /// `ResourceLoadScheduler`).
    pub fn is_delayable(&self) -> bool {
        matches!(self.kind, Kind::Image | Kind::Media) || self.priority < Priority::High
    }

    /// An object of which the size after deflate is known, too.
    pub fn deflatable(size: Bytes, deflated: Bytes) -> Self {
        Self { deflated: Some(deflated), ..Self::sized(size) }
    }

    /// The object as sent by a server that has deflated it in advance.
    pub(super) fn as_deflated(&self) -> Self {
        Self { size: self.deflated.unwrap_or(self.size), deflated: None, ..self.clone() }
    }
}

impl Dependency {
    /// The end of an object.
    pub const fn on_end(on: usize) -> Self {
        Self { on, at: Moment::Ended, plus: Duration::ZERO }
    }
}

impl fmt::Display for Object {
    /// Notation of the command line: the size, and after a slash the size after deflate where known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.size.get())?;
        self.deflated.map_or(Ok(()), |deflated| write!(f, "/{}", deflated.get()))
    }
}
