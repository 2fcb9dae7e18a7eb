//! A site of given sizes or of given objects: an application that answers from memory, the same bytes every time.
//!
//! Where only sizes are given, nothing is real content: nobody can look at these objects, and they do not compress.
//! What they have in common with a page of the papers is their number and their sizes
//! (`papers/heidemann-model#workloads`).

use std::sync::Arc;

use wire::{Bytes, Seed};

use crate::http::validator::is_unchanged;
use crate::http::{Fields, Method, RequestHead, Validator, Version};
use crate::server::{Response, ResponseBody};

/// Objects by path: the first is `/0`, a document; the others `/1` and so on, images.
#[derive(Clone, Debug)]
pub struct Site {
    objects: Vec<Arc<[u8]>>,
    /// Of each object; none if answers have no validators.
    entity_tags: Vec<String>,
}

/// When everything was last changed: the day of `papers/w3c`. There is no clock here.
const LAST_MODIFIED: &str = "Tue, 24 Jun 1997 00:00:00 GMT";

impl Site {
    /// A site with one object of each size. The bytes depend on the seed, the object's place and its size.
    ///
    /// `None` if an object does not fit in memory as this machine addresses it.
    pub fn new(sizes: &[Bytes], seed: Seed) -> Option<Self> {
        let object = |(index, size): (usize, &Bytes)| {
            let size = usize::try_from(size.get()).ok()?;
            let mut random = seed.stream("site", index as u64);
            let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
            Some(words.flatten().take(size).collect())
        };
        let objects = sizes.iter().enumerate().map(object).collect::<Option<_>>()?;
        Some(Self { objects, entity_tags: Vec::new() })
    }

    /// A site of these objects.
    pub const fn of(objects: Vec<Arc<[u8]>>) -> Self {
        Self { objects, entity_tags: Vec::new() }
    }

    /// Every object, in the order of their paths.
    pub fn objects(&self) -> &[Arc<[u8]>] {
        &self.objects
    }

    /// The same site, with an entity tag in each answer to HTTP/1.1, and to HTTP/1.0, which has no entity tags, a
    /// date. The tags depend on what the bytes depend on.
    pub fn with_validators(self, seed: Seed) -> Self {
        let tag = |(index, object): (usize, &Arc<[u8]>)| {
            let random = seed.stream("entity tag", index as u64).next_u64();
            format!("\"{:016x}\"", random.wrapping_add(object.len() as u64))
        };
        let entity_tags = self.objects.iter().enumerate().map(tag).collect();
        Self { objects: self.objects, entity_tags }
    }

    /// What a client that speaks this version kept of an object; `None` if the site gives no validators, or has no
    /// such object.
    pub fn validator(&self, index: usize, version: Version) -> Option<Validator> {
        let tag = self.entity_tags.get(index)?;
        Some(match version {
            Version::Http10 => Validator::LastModified(LAST_MODIFIED.to_owned()),
            Version::Http11 => Validator::EntityTag(tag.clone()),
        })
    }

    /// Where an object is found.
    pub fn path(index: usize) -> String {
        format!("/{index}")
    }

    /// The answer to a request: 200, 304 for what has not changed, 404 for a path that is not there, 405 for a method other than GET and HEAD.
    pub fn respond(&self, request: &RequestHead) -> Response {
        match &request.method {
            Method::Get | Method::Head => {}
            Method::Options | Method::Other(_) => return Response::empty(405),
        }
        let index = request.target.strip_prefix('/').and_then(|digits| digits.parse::<usize>().ok());
        let found = index.filter(|index| request.target == Self::path(*index));
        let Some((index, body)) = found.and_then(|index| Some((index, self.objects.get(index)?))) else {
            return Response::empty(404);
        };
        let mut fields = Fields::new();
        match self.validator(index, request.version) {
            Some(Validator::EntityTag(tag)) => fields.push_checked(b"ETag", tag.as_bytes()),
            Some(Validator::LastModified(date)) => fields.push_checked(b"Last-Modified", date.as_bytes()),
            None => {}
        }
        let tag = self.entity_tags.get(index);
        if tag.is_some_and(|tag| is_unchanged(&request.fields, tag, LAST_MODIFIED)) {
            return Response { fields, ..Response::empty(304) };
        }
        let content_type: &[u8] = if index == 0 { b"text/html" } else { b"image/gif" };
        fields.push_checked(b"Content-Type", content_type);
        Response { status: 200, fields, body: ResponseBody::Whole(body.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Version;

    fn respond(site: &Site, method: Method, target: &str) -> Response {
        let (target, version, fields) = (target.to_owned(), Version::Http11, Fields::new());
        site.respond(&RequestHead { method, target, version, fields })
    }

    #[test]
    fn objects_have_the_sizes_asked_for_and_the_same_bytes_every_time() {
        let sizes = [6_651, 0, 1_866].map(Bytes::new);
        let (site, again) =
            (Site::new(&sizes, Seed::new(7)).unwrap(), Site::new(&sizes, Seed::new(7)).unwrap());
        for (index, size) in sizes.into_iter().enumerate() {
            let response = respond(&site, Method::Get, &Site::path(index));
            assert_eq!(response, respond(&again, Method::Get, &Site::path(index)));
            let ResponseBody::Whole(body) = response.body else { panic!("not whole") };
            assert_eq!(body.len() as u64, size.get());
        }
        let other = Site::new(&sizes, Seed::new(8)).unwrap();
        assert_ne!(respond(&site, Method::Get, "/0"), respond(&other, Method::Get, "/0"));
    }

    #[test]
    fn what_has_not_changed_is_not_sent_again() {
        let sizes = [6_651, 0].map(Bytes::new);
        let plain = Site::new(&sizes, Seed::default()).unwrap();
        assert_eq!(plain.validator(0, Version::Http11), None);
        let site = plain.with_validators(Seed::default());
        for version in [Version::Http10, Version::Http11] {
            for (index, target) in ["/0", "/1"].into_iter().enumerate() {
                let ask = |fields| {
                    let (method, target) = (Method::Get, target.to_owned());
                    site.respond(&RequestHead { method, target, version, fields })
                };
                let mut kept = Fields::new();
                site.validator(index, version).unwrap().condition(&mut kept).unwrap();
                let (first, again) = (ask(Fields::new()), ask(kept));
                assert_eq!((first.status, again.status), (200, 304), "{version:?} {target}");
                assert_eq!(again.body, ResponseBody::Whole(Arc::from([])));
                assert_eq!(first.fields.iter().next(), again.fields.iter().next());
            }
        }
        let other =
            Site::new(&[Bytes::new(6_652)], Seed::default()).unwrap().with_validators(Seed::default());
        assert_ne!(other.validator(0, Version::Http11), site.validator(0, Version::Http11));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let site = Site::new(&[Bytes::new(1)], Seed::default()).unwrap();
        for target in ["/1", "/00", "/+0", "/0?", "0", "/", "*"] {
            assert_eq!(respond(&site, Method::Get, target).status, 404, "{target}");
        }
        assert_eq!(respond(&site, Method::Head, "/0").status, 200);
        assert_eq!(respond(&site, Method::Options, "/0").status, 405);
        assert_eq!(respond(&site, Method::Other("DELETE".to_owned()), "/0").status, 405);
    }
}
