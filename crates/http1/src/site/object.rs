//! One object of a site: what it is, what validates it, and its body in every coding that there is of it.
//!
//! Not a file: nothing is read here.

use std::sync::Arc;

use crate::content::{AcceptedCodings, Coding, encoded, is_text};
use crate::message::{Validator, Version};

/// One object of a site of one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is found: a path that begins with `/`.
    pub path: String,
    /// Its media type, as in `Content-Type`.
    pub content_type: String,
    /// All of it.
    pub body: Arc<[u8]>,
}

/// When bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Never: every body is sent as it is.
    #[default]
    None,
    /// Once, in every coding available, before any request (`papers/w3c#compression`).
    Beforehand,
    /// For each response, in the client's preferred coding.
    WhileAsked,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) path: String,
    pub(super) content_type: Arc<str>,
    /// As it is.
    pub(super) body: Arc<[u8]>,
    /// Smaller than that, if compressed beforehand.
    coded: Vec<(Coding, Arc<[u8]>)>,
    /// Entity tag of the unencoded body, quotes included; empty if responses have no validators.
    pub(super) entity_tag: Option<String>,
    compression: Compression,
}

/// Last modification of every object: the day of `papers/w3c`. There is no clock here.
pub(super) const LAST_MODIFIED: &str = "Tue, 24 Jun 1997 00:00:00 GMT";

impl Object {
    pub(super) fn new(path: String, content_type: &str, body: Arc<[u8]>) -> Self {
        let (coded, compression) = (Vec::new(), Compression::None);
        Self { path, content_type: content_type.into(), body, coded, entity_tag: None, compression }
    }

    /// The same, compressed so, if its kind is worth the work: pictures are compressed already.
    pub(super) fn compressed(self, compression: Compression, codings: &[Coding]) -> Self {
        let compression = if is_text(&self.content_type) { compression } else { Compression::None };
        let coded = match compression {
            Compression::None | Compression::WhileAsked => Vec::new(),
            Compression::Beforehand => {
                let all = codings.iter().copied().filter(|coding| *coding != Coding::Identity);
                let coded = all.map(|coding| (coding, encoded(coding, &self.body).into()));
                coded.filter(|(_, coded): &(_, Arc<[u8]>)| coded.len() < self.body.len()).collect()
            }
        };
        Self { coded, compression, ..self }
    }

    /// Whether what is sent depends on what the client takes.
    pub(super) const fn varies(&self) -> bool {
        !matches!(self.compression, Compression::None)
    }

    /// The body in what a client that takes these likes best, and the coding that is. Who takes nothing that
    /// there is, not even the body as it is, gets it as it is all the same (RFC 9110, section 12.5.3).
    pub(super) fn body_for(&self, accepted: &AcceptedCodings) -> (Coding, Arc<[u8]>) {
        let plain = (Coding::Identity, self.body.clone());
        match self.compression {
            Compression::None => plain,
            Compression::Beforehand => {
                let sizes = self.coded.iter().map(|(coding, body)| (*coding, body.len()));
                let best = accepted.best([(Coding::Identity, self.body.len())].into_iter().chain(sizes));
                let found = self.coded.iter().find(|(coding, _)| Some(*coding) == best);
                found.cloned().unwrap_or(plain)
            }
            Compression::WhileAsked => {
                let places = SMALLEST_FIRST.into_iter().enumerate().map(|(place, coding)| (coding, place));
                let best = accepted.best(places);
                let coding = best.unwrap_or(Coding::Identity);
                let body: Arc<[u8]> = encoded(coding, &self.body).into();
                if body.len() < self.body.len() { (coding, body) } else { plain }
            }
        }
    }

    /// The tag of the body in this coding: bodies that differ have tags that differ (RFC 9110, section 8.8.3.3).
    pub(super) fn tag(&self, coding: Coding) -> Option<String> {
        let tag = self.entity_tag.as_deref()?;
        Some(match coding {
            Coding::Identity => tag.to_owned(),
            Coding::Deflate | Coding::Gzip | Coding::Brotli | Coding::Zstd => {
                format!("{}-{}\"", tag.trim_end_matches('"'), coding.name())
            }
        })
    }

    /// Returns the validator for a client that speaks this version: HTTP/1.0 has no entity tags.
    pub(super) fn validator(&self, version: Version, coding: Coding) -> Option<Validator> {
        let tag = self.tag(coding)?;
        Some(match version {
            Version::Http10 => Validator::LastModified(LAST_MODIFIED.to_owned()),
            Version::Http11 => Validator::EntityTag(tag),
        })
    }
}

/// The usual order of sizes: compressing four times to choose is too costly.
const SMALLEST_FIRST: [Coding; 5] =
    [Coding::Brotli, Coding::Zstd, Coding::Deflate, Coding::Gzip, Coding::Identity];
