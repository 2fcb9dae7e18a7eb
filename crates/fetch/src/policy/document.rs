//! Discovery in the page's first object while it arrives: bytes of its body in, paths of embedded objects
//! out. Where the body is known in advance, their number is enough.
//!
//! [`super::Policy`] decides about the discovered objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::Bytes;

use http1::content::{Coding, DecodeFault, Decoder};
use http1::message::{Limits, RequestHead, ResponseHead};
use http1::server::{Response, ResponseBody};

use super::parts::Portion;
use page::html::Discovery;

use crate::plan::{EmbeddedObjects, Plan, Reference};

/// A document that is being received.
#[derive(Debug)]
pub(super) struct Document {
    source: References,
    /// Paths that are fetched already, or will be.
    known: BTreeSet<String>,
    max: usize,
}

/// Source of a document's references.
#[derive(Debug)]
enum References {
    /// Its contents.
    Parsed(Box<Parser>),
    /// A list of them in order, of which this number has been reached.
    Listed(Arc<[Reference]>, usize),
}

/// Parser of a document's contents.
#[derive(Debug)]
struct Parser {
    host: String,
    path: String,
    limits: Limits,
    decoder: Result<Decoder, DecodeFault>,
    discovery: Discovery,
}

/// References of a document on `host`, with the number of body bytes after which a client discovers each. For
/// a caller that plans a page in advance. Paths are in document order.
///
/// # Errors
/// A body that cannot be decoded.
pub fn named_at(host: &str, path: &str, coding: Coding, body: &[u8]) -> Result<Vec<Reference>, DecodeFault> {
    let mut decoder = Decoder::new(coding, &Limits::default());
    let mut discovery = Discovery::new(host, path);
    let (mut known, mut references) = (BTreeSet::new(), Vec::new());
    for (position, byte) in (1_u64..).zip(body) {
        decoder.take(std::slice::from_ref(byte), |html| {
            discovery.take(html, |path| {
                if known.insert(path.clone()) {
                    references.push(Reference { path, named_at: Bytes::new(position) });
                }
            });
        })?;
    }
    decoder.end().map(|()| references)
}

impl Plan {
    /// Lists the references of the page's document, given the server's response to its request, so that no run has to
    /// parse it. A response that is no complete document is left to the runs.
    pub fn list_references(&mut self, respond: impl FnOnce(&RequestHead) -> Response) {
        let EmbeddedObjects::Discovered { max } = self.embedded else { return };
        // With this defect a client misses some bytes of the document.
        if self.ignores_body_with_headers {
            return;
        }
        let Some(document) = self.objects.get(self.begins_at) else { return };
        let Some(host) = self.origins.get(document.origin) else { return };
        let Ok(head) = self.request(document, &Portion::Whole) else { return };
        let Response { status: 200..300, fields, body: ResponseBody::Whole(body) } = respond(&head) else {
            return;
        };
        let references = Coding::of(&fields).and_then(|coding| named_at(host, &document.path, coding, &body));
        if let Ok(references) = references {
            self.embedded = EmbeddedObjects::Listed { references: references.into(), max };
        }
    }
}

impl Document {
    /// The plan's document, if objects are to be discovered in it.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let document = plan.objects.get(plan.begins_at)?;
        let (max, source) = match &plan.embedded {
            EmbeddedObjects::Planned => return None,
            EmbeddedObjects::Discovered { max } => {
                let host = plan.origins.get(document.origin)?;
                (*max, References::Parsed(Box::new(Parser::new(host, &document.path, plan.limits))))
            }
            EmbeddedObjects::Listed { references, max } => {
                (*max, References::Listed(Arc::clone(references), 0))
            }
        };
        let known = plan.objects.iter().skip(plan.begins_at).map(|object| object.path.clone()).collect();
        Some(Self { source, known, max })
    }

    /// Whether it needs the contents, and not only their length.
    pub(super) const fn reads_contents(&self) -> bool {
        match self.source {
            References::Parsed(_) => true,
            References::Listed(..) => false,
        }
    }

    /// Begins the body.
    pub(super) fn begin(&mut self, head: &ResponseHead) {
        match &mut self.source {
            References::Parsed(parser) => parser.begin(head),
            References::Listed(_, reached) => *reached = 0,
        }
    }

    /// Paths that are referenced for the first time in these bytes, with which `received` have arrived, in order.
    pub(super) fn take(&mut self, part: &[u8], received: Bytes) -> Vec<String> {
        let Self { source, known, max } = self;
        let mut new_paths = Vec::new();
        let mut visit = |path: &str| {
            // One more than the maximum, to know that there are more.
            if known.len() <= *max && !known.contains(path) {
                known.insert(path.to_owned());
                new_paths.push(path.to_owned());
            }
        };
        match source {
            References::Parsed(parser) => parser.take(part, visit),
            References::Listed(references, reached) => {
                let rest = references.get(*reached..).unwrap_or_default();
                let arrived = rest.iter().take_while(|reference| reference.named_at <= received);
                *reached += arrived.inspect(|reference| visit(&reference.path)).count();
            }
        }
        new_paths
    }

    /// Ends the body; returns its decoding error.
    pub(super) fn end(&mut self) -> Option<DecodeFault> {
        match &mut self.source {
            References::Parsed(parser) => parser.end(),
            References::Listed(..) => None,
        }
    }

    /// Maximum number of objects.
    pub(super) const fn max(&self) -> usize {
        self.max
    }
}

impl Parser {
    fn new(host: &str, path: &str, limits: Limits) -> Self {
        Self {
            decoder: Ok(Decoder::new(Coding::Identity, &limits)),
            discovery: Discovery::new(host, path),
            host: host.to_owned(),
            path: path.to_owned(),
            limits,
        }
    }

    fn begin(&mut self, head: &ResponseHead) {
        self.decoder = Coding::of(&head.fields).map(|coding| Decoder::new(coding, &self.limits));
        self.discovery = Discovery::new(&self.host, &self.path);
    }

    fn take(&mut self, part: &[u8], mut visit: impl FnMut(&str)) {
        let Ok(decoder) = &mut self.decoder else { return };
        let read = decoder.take(part, |html| self.discovery.take(html, |path| visit(&path)));
        if let Err(fault) = read {
            self.decoder = Err(fault);
        }
    }

    fn end(&mut self) -> Option<DecodeFault> {
        match &mut self.decoder {
            Ok(decoder) => decoder.end().err(),
            Err(fault) => Some(*fault),
        }
    }
}
