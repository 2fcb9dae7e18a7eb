//! One object of a site: its type, its validators, and its body in every available coding.
//!
//! Nothing is read from disk here.

use std::sync::Arc;

use crate::content::{AcceptedCodings, Coding, encoded, is_text};
use crate::message::{Validator, Version};

/// Input for one object of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// URL path that begins with `/`.
    pub path: String,
    /// Media type, as in `Content-Type`.
    pub content_type: String,
    /// The whole body.
    pub body: Arc<[u8]>,
}

/// When bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Never: every body is sent unencoded.
    #[default]
    None,
    /// Once, in every coding available, before any request (`papers/w3c#compression`).
    Beforehand,
    /// For each response, in the client's preferred coding.
    OnTheFly,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) path: String,
    pub(super) content_type: Arc<str>,
    /// Unencoded body.
    pub(super) body: Arc<[u8]>,
    /// Encoded bodies, if compressed beforehand and smaller.
    coded: Vec<(Coding, Arc<[u8]>)>,
    /// Entity tag of the unencoded body, quotes included; `None` if responses have no validators.
    pub(super) entity_tag: Option<String>,
    compression: Compression,
}

/// Last modification of every object: the date of `papers/w3c`. There is no clock here.
pub(super) const LAST_MODIFIED: &str = "Tue, 24 Jun 1997 00:00:00 GMT";

impl Object {
    pub(super) fn new(path: String, content_type: &str, body: Arc<[u8]>) -> Self {
        let (coded, compression) = (Vec::new(), Compression::None);
        Self { path, content_type: content_type.into(), body, coded, entity_tag: None, compression }
    }

    /// Compresses the body if the media type benefits: images are compressed already.
    pub(super) fn compressed(self, compression: Compression, codings: &[Coding]) -> Self {
        let compression = if is_text(&self.content_type) { compression } else { Compression::None };
        let coded = match compression {
            Compression::None | Compression::OnTheFly => Vec::new(),
            Compression::Beforehand => {
                let all = codings.iter().copied().filter(|coding| *coding != Coding::Identity);
                let coded = all.map(|coding| (coding, encoded(coding, &self.body).into()));
                coded.filter(|(_, coded): &(_, Arc<[u8]>)| coded.len() < self.body.len()).collect()
            }
        };
        Self { coded, compression, ..self }
    }

    /// Whether the response depends on the codings that the client accepts.
    pub(super) const fn varies(&self) -> bool {
        !matches!(self.compression, Compression::None)
    }

    /// Returns the body in the coding that the client prefers, and that coding. A client that accepts no available coding, not
    /// even `identity`, still gets the unencoded body (RFC 9110, section 12.5.3).
    pub(super) fn body_for(&self, accepted: &AcceptedCodings) -> (Coding, Arc<[u8]>) {
        let plain = (Coding::Identity, self.body.clone());
        match self.compression {
            Compression::None => plain,
            Compression::Beforehand => {
                let sizes = self.coded.iter().map(|(coding, body)| (*coding, body.len()));
                let best = accepted.best([(Coding::Identity, self.body.len())].into_iter().chain(sizes));
                let encoded_body = self.coded.iter().find(|(coding, _)| Some(*coding) == best);
                encoded_body.cloned().unwrap_or(plain)
            }
            Compression::OnTheFly => {
                let ranks = SMALLEST_FIRST.into_iter().enumerate().map(|(rank, coding)| (coding, rank));
                let best = accepted.best(ranks);
                let coding = best.unwrap_or(Coding::Identity);
                let body: Arc<[u8]> = encoded(coding, &self.body).into();
                if body.len() < self.body.len() { (coding, body) } else { plain }
            }
        }
    }

    /// Returns the tag of the body in this coding: different bodies have different tags (RFC 9110, section 8.8.3.3).
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

/// Usual order of sizes: compressing four times to choose is too costly.
const SMALLEST_FIRST: [Coding; 5] =
    [Coding::Brotli, Coding::Zstd, Coding::Deflate, Coding::Gzip, Coding::Identity];
