//! Discovery in the page's first object while it arrives: bytes of its body in, paths of embedded objects
//! out.
//!
//! [`super::Robot`] decides about the discovered objects.

use std::collections::BTreeSet;

use wire::Bytes;

use http1::content::{Coding, DecodeFault, Decoder};
use http1::message::{Limits, ResponseHead};
use page::html::Discovery;

use super::plan::{EmbeddedObjects, Plan};

/// A document that is being received.
#[derive(Debug)]
pub(super) struct Document {
    host: String,
    path: String,
    limits: Limits,
    decoder: Result<Decoder, DecodeFault>,
    discovery: Discovery,
    /// Paths that are fetched already, or will be.
    known: BTreeSet<String>,
    max: usize,
}

/// References of a document on `host`, with the number of body bytes after which a robot discovers each. For
/// a caller that plans a page in advance. Paths are in document order.
///
/// # Errors
/// A body that cannot be decoded.
pub fn named_at(
    host: &str,
    path: &str,
    coding: Coding,
    body: &[u8],
) -> Result<Vec<(String, Bytes)>, DecodeFault> {
    let mut decoder = Decoder::new(coding, &Limits::default());
    let mut discovery = Discovery::new(host, path);
    let (mut known, mut references) = (BTreeSet::new(), Vec::new());
    for (position, byte) in (1_u64..).zip(body) {
        decoder.take(std::slice::from_ref(byte), |html| {
            discovery.take(html, |path| {
                if known.insert(path.clone()) {
                    references.push((path, Bytes::new(position)));
                }
            });
        })?;
    }
    decoder.end().map(|()| references)
}

impl Document {
    /// The plan's document, if objects are to be discovered in it.
    pub(super) fn of(plan: &Plan) -> Option<Self> {
        let max = match plan.embedded {
            EmbeddedObjects::Planned => return None,
            EmbeddedObjects::Discovered { max } => max,
        };
        let path = plan.objects.get(plan.begins_at)?.path.clone();
        Some(Self {
            decoder: Ok(Decoder::new(Coding::Identity, &plan.limits)),
            discovery: Discovery::new(&plan.host, &path),
            known: plan.objects.iter().skip(plan.begins_at).map(|object| object.path.clone()).collect(),
            host: plan.host.clone(),
            path,
            limits: plan.limits,
            max,
        })
    }

    /// Begins the body.
    pub(super) fn begin(&mut self, head: &ResponseHead) {
        self.decoder = Coding::of(&head.fields).map(|coding| Decoder::new(coding, &self.limits));
        self.discovery = Discovery::new(&self.host, &self.path);
    }

    /// Paths that these bytes reference for the first time, in order.
    pub(super) fn take(&mut self, part: &[u8]) -> Vec<String> {
        let Self { host: _, path: _, limits: _, decoder, discovery, known, max } = self;
        let mut new_paths = Vec::new();
        let Ok(inner) = decoder else { return new_paths };
        let read = inner.take(part, |html| {
            discovery.take(html, |path| {
                // One more than the maximum, to know that there are more.
                if known.len() <= *max && known.insert(path.clone()) {
                    new_paths.push(path);
                }
            });
        });
        if let Err(fault) = read {
            *decoder = Err(fault);
        }
        new_paths
    }

    /// Ends the body; returns its decoding error.
    pub(super) fn end(&mut self) -> Option<DecodeFault> {
        match &mut self.decoder {
            Ok(decoder) => decoder.end().err(),
            Err(fault) => Some(*fault),
        }
    }

    /// Maximum number of objects.
    pub(super) const fn max(&self) -> usize {
        self.max
    }
}
