//! A site of given sizes or of given objects: an application that responds from memory, the same bytes every time.
//!
//! With sizes alone the contents are random: they cannot be displayed, and do not compress. They have the number and the sizes
//! of the objects of a page in the papers (`papers/heidemann-model#workloads`).

mod object;

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::{Bytes, Seed};

use crate::content::{AcceptedCodings, Coding};
use crate::message::range::{self, RequestedRange};
use crate::message::validator::is_unchanged;
use crate::message::{Fields, Method, RequestHead, Validator, Version};
use crate::server::{Response, ResponseBody};
use object::{LAST_MODIFIED, Object};

pub use object::{Compression, File};

/// Objects by path. Without paths of their own, the first is `/0`, a document; the others are `/1` and so on, images. Clones
/// share them.
#[derive(Clone, Debug)]
pub struct Site {
    objects: Arc<Vec<Object>>,
    paths: Arc<BTreeMap<String, usize>>,
}

impl Site {
    /// Creates a site with one object of each size. The bytes depend on the seed, the object's index and its size.
    ///
    /// `None` if an object exceeds this host's address space.
    pub fn new(sizes: &[Bytes], seed: Seed) -> Option<Self> {
        let object = |(index, size): (usize, &Bytes)| {
            let size = usize::try_from(size.get()).ok()?;
            let mut random = seed.stream("site", index as u64);
            let mut body = vec![0; size];
            for word in body.chunks_mut(8) {
                word.copy_from_slice(&random.next_u64().to_le_bytes()[..word.len()]);
            }
            Some(body.into())
        };
        let objects: Option<Vec<_>> = sizes.iter().enumerate().map(object).collect();
        Some(Self::of(objects?))
    }

    /// Creates a site of these objects.
    pub fn of(objects: Vec<Arc<[u8]>>) -> Self {
        let file = |(index, body)| {
            let content_type = if index == 0 { "text/html" } else { "image/gif" };
            File { path: Self::path(index), content_type: content_type.to_owned(), body }
        };
        Self::of_files(objects.into_iter().enumerate().map(file))
    }

    /// Creates a site of objects with paths of their own; the last of equal paths counts.
    pub fn of_files(files: impl IntoIterator<Item = File>) -> Self {
        let (mut objects, mut paths) = (Vec::new(), BTreeMap::new());
        for File { path, content_type, body } in files {
            paths.insert(path.clone(), objects.len());
            objects.push(Object::new(path, &content_type, body));
        }
        Self { objects: Arc::new(objects), paths: Arc::new(paths) }
    }

    /// Returns every unencoded object, in the order given.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.objects.iter().map(|object| &object.body)
    }

    /// Returns every unencoded object with its path, in the same order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Arc<[u8]>)> {
        self.objects.iter().map(|object| (object.path.as_str(), &object.body))
    }

    /// Returns the same site, with an entity tag in each response to HTTP/1.1, and to HTTP/1.0, which has no entity
    /// tags, a date. The tags depend on the same values as the bytes.
    #[must_use]
    pub fn with_validators(mut self, seed: Seed) -> Self {
        for (index, object) in Arc::make_mut(&mut self.objects).iter_mut().enumerate() {
            let random = seed.stream("entity tag", index as u64).next_u64();
            object.entity_tag = Some(format!("\"{:016x}\"", random.wrapping_add(object.body.len() as u64)));
        }
        self
    }

    /// Returns the same site, with text compressed for clients that accept one of these codings.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression, codings: &[Coding]) -> Self {
        let objects = Arc::unwrap_or_clone(self.objects).into_iter();
        self.objects = Arc::new(objects.map(|object| object.compressed(compression, codings)).collect());
        self
    }

    /// Returns the validator of an object for a client that speaks this version and accepts these codings. `None` if
    /// the site has no validators, or no such object.
    pub fn validator(&self, index: usize, version: Version, accepted: &AcceptedCodings) -> Option<Validator> {
        let object = self.objects.get(index)?;
        let (coding, _) = object.body_for(accepted);
        object.validator(version, coding)
    }

    /// Returns the path of an object without a path of its own.
    pub fn path(index: usize) -> String {
        format!("/{index}")
    }

    /// Returns the response to a request: 200, 206 for a part of an object, or 304 for an unchanged one. Errors
    /// are 404 for an unknown path, 405 for a method other than GET and HEAD, and 416 for a part beyond the end.
    pub fn respond(&self, request: &RequestHead) -> Response {
        match &request.method {
            Method::Get | Method::Head => {}
            Method::Options | Method::Other(_) => return Response::empty(405),
        }
        let object = self.paths.get(&request.target).and_then(|index| self.objects.get(*index));
        object.map_or_else(|| Response::empty(404), |object| respond(object, request))
    }
}

fn respond(object: &Object, request: &RequestHead) -> Response {
    let (coding, body) = object.body_for(&AcceptedCodings::of(&request.fields));
    let mut fields = Fields::new();
    match object.validator(request.version, coding) {
        Some(Validator::EntityTag(tag)) => fields.push_checked(b"ETag", tag.as_bytes()),
        Some(Validator::LastModified(date)) => fields.push_checked(b"Last-Modified", date.as_bytes()),
        None => {}
    }
    if object.varies() {
        fields.push_checked(b"Vary", b"Accept-Encoding");
    }
    let tag = object.tag(coding);
    if tag.as_deref().is_some_and(|tag| is_unchanged(&request.fields, tag, LAST_MODIFIED)) {
        return Response { fields, ..Response::empty(304) };
    }
    // A type that is invalid in a field is left out.
    let _ = fields.push("Content-Type", &object.content_type);
    match coding {
        Coding::Identity => {}
        Coding::Deflate | Coding::Gzip | Coding::Brotli | Coding::Zstd => {
            fields.push_checked(b"Content-Encoding", coding.name().as_bytes());
        }
    }
    let length = body.len() as u64;
    match range::wanted(request, tag.as_deref(), LAST_MODIFIED, length) {
        RequestedRange::Whole => Response { status: 200, fields, body: ResponseBody::Whole(body) },
        RequestedRange::Part { first, last } => {
            let part = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let bytes = body.get(part(first)..=part(last)).unwrap_or_default();
            fields.push_checked(b"Content-Range", format!("bytes {first}-{last}/{length}").as_bytes());
            Response { status: 206, fields, body: ResponseBody::Whole(Arc::from(bytes)) }
        }
        RequestedRange::Nowhere => {
            let mut fields = Fields::new();
            fields.push_checked(b"Content-Range", format!("bytes */{length}").as_bytes());
            Response { fields, ..Response::empty(416) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Version;

    fn respond(site: &Site, method: Method, target: &str) -> Response {
        let (target, version, fields) = (target.to_owned(), Version::Http11, Fields::new());
        site.respond(&RequestHead { method, target, version, fields })
    }

    #[test]
    fn objects_have_the_given_sizes_and_the_same_bytes_every_time() {
        let sizes = [6_651, 0, 1_866].map(Bytes::new);
        let (site, same_site) =
            (Site::new(&sizes, Seed::new(7)).unwrap(), Site::new(&sizes, Seed::new(7)).unwrap());
        for (index, size) in sizes.into_iter().enumerate() {
            let response = respond(&site, Method::Get, &Site::path(index));
            assert_eq!(response, respond(&same_site, Method::Get, &Site::path(index)));
            let ResponseBody::Whole(body) = response.body else { panic!("not whole") };
            assert_eq!(body.len() as u64, size.get());
        }
        let other = Site::new(&sizes, Seed::new(8)).unwrap();
        assert_ne!(respond(&site, Method::Get, "/0"), respond(&other, Method::Get, "/0"));
    }

    #[test]
    fn unchanged_objects_are_not_sent() {
        let sizes = [6_651, 0].map(Bytes::new);
        let plain = Site::new(&sizes, Seed::default()).unwrap();
        let unencoded_request = AcceptedCodings::any_of(&[]);
        assert_eq!(plain.validator(0, Version::Http11, &unencoded_request), None);
        let site = plain.with_validators(Seed::default());
        for version in [Version::Http10, Version::Http11] {
            for (index, target) in ["/0", "/1"].into_iter().enumerate() {
                let respond = |fields| {
                    let (method, target) = (Method::Get, target.to_owned());
                    site.respond(&RequestHead { method, target, version, fields })
                };
                let mut stored = Fields::new();
                site.validator(index, version, &unencoded_request).unwrap().condition(&mut stored).unwrap();
                let (first, second) = (respond(Fields::new()), respond(stored));
                assert_eq!((first.status, second.status), (200, 304), "{version:?} {target}");
                assert_eq!(second.body, ResponseBody::Whole(Arc::from([])));
                assert_eq!(first.fields.iter().next(), second.fields.iter().next());
            }
        }
        let other =
            Site::new(&[Bytes::new(6_652)], Seed::default()).unwrap().with_validators(Seed::default());
        let tag = |site: &Site| site.validator(0, Version::Http11, &unencoded_request);
        assert_ne!(tag(&other), tag(&site));
    }

    #[test]
    fn range_of_the_same_object_gets_a_part() {
        let site = Site::of(vec![Arc::from(*b"0123456789")]).with_validators(Seed::default());
        let unencoded_request = AcceptedCodings::any_of(&[]);
        let Some(Validator::EntityTag(tag)) = site.validator(0, Version::Http11, &unencoded_request) else {
            panic!("no tag")
        };
        for (range, condition, status, content_range, body) in [
            ("bytes=2-4", None, 206, Some("bytes 2-4/10"), &b"234"[..]),
            ("bytes=-3", None, 206, Some("bytes 7-9/10"), b"789"),
            ("bytes=8-", Some(tag.as_str()), 206, Some("bytes 8-9/10"), b"89"),
            ("bytes=8-", Some("\"other\""), 200, None, b"0123456789"),
            ("bytes=10-", None, 416, Some("bytes */10"), b""),
            ("bytes=0-1,4-5", None, 200, None, b"0123456789"),
        ] {
            let mut fields = Fields::new();
            fields.push("Range", range).unwrap();
            condition.into_iter().for_each(|condition| fields.push("If-Range", condition).unwrap());
            let (method, target, version) = (Method::Get, "/0".to_owned(), Version::Http11);
            let response = site.respond(&RequestHead { method, target, version, fields });
            assert_eq!(response.status, status, "{range}");
            assert_eq!(response.fields.get("Content-Range"), content_range.map(str::as_bytes));
            assert_eq!(response.body, ResponseBody::Whole(Arc::from(body)));
        }
    }

    #[test]
    fn text_is_compressed_by_preference_with_its_own_tag() {
        let page = "<td>a table</td>\n".repeat(200);
        let objects = [page.as_bytes(), b"a picture"].map(Arc::from).to_vec();
        for compression in [Compression::Beforehand, Compression::OnTheFly] {
            let site = Site::of(objects.clone())
                .with_validators(Seed::default())
                .with_compression(compression, &Coding::ALL);
            let respond = |target: &str, accepted: &str, condition: Option<&[u8]>| {
                let mut fields = Fields::new();
                fields.push("Accept-Encoding", accepted).unwrap();
                condition.into_iter().for_each(|tag| fields.push_checked(b"If-None-Match", tag));
                let (method, target, version) = (Method::Get, target.to_owned(), Version::Http11);
                site.respond(&RequestHead { method, target, version, fields })
            };
            let mut tags = Vec::new();
            for coding in Coding::ALL {
                let response = respond("/0", coding.name(), None);
                let named = response.fields.get("Content-Encoding");
                assert_eq!(named, (coding != Coding::Identity).then_some(coding.name().as_bytes()));
                assert_eq!(response.fields.get("Vary"), Some(&b"Accept-Encoding"[..]));
                let ResponseBody::Whole(body) = &response.body else { panic!("not whole") };
                assert_eq!(body.len() < page.len(), coding != Coding::Identity);
                let tag = response.fields.get("ETag").unwrap();
                assert_eq!(respond("/0", coding.name(), Some(tag)).status, 304);
                assert_eq!(
                    respond("/0", "identity;q=0.5, compress", Some(tag)).status == 304,
                    coding == Coding::Identity
                );
                tags.push(tag.to_vec());
            }
            tags.dedup();
            assert_eq!(tags.len(), Coding::ALL.len());
            let image = respond("/1", "gzip", None);
            assert_eq!((image.fields.get("Content-Encoding"), image.fields.get("Vary")), (None, None));
        }
    }

    #[test]
    fn unknown_paths_get_404() {
        let site = Site::new(&[Bytes::new(1)], Seed::default()).unwrap();
        for target in ["/1", "/00", "/+0", "/0?", "0", "/", "*"] {
            assert_eq!(respond(&site, Method::Get, target).status, 404, "{target}");
        }
        assert_eq!(respond(&site, Method::Head, "/0").status, 200);
        assert_eq!(respond(&site, Method::Options, "/0").status, 405);
        assert_eq!(respond(&site, Method::Other("DELETE".to_owned()), "/0").status, 405);
    }
}
