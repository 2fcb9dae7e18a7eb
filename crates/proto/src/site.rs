//! A site of given sizes: an application that answers from memory, the same bytes every time.
//!
//! Not real content: nobody can look at these objects, and they do not compress. What they have in common with
//! a page of the papers is their number and their sizes (`papers/heidemann-model#workloads`).

use std::sync::Arc;

use wire::{Bytes, Seed};

use crate::http::{Fields, Method, RequestHead};
use crate::server::{Response, ResponseBody};

/// Objects by path: the first is `/0`, a document; the others `/1` and so on, images.
#[derive(Clone, Debug)]
pub struct Site {
    objects: Vec<Arc<[u8]>>,
}

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
        Some(Self { objects: sizes.iter().enumerate().map(object).collect::<Option<_>>()? })
    }

    /// Where an object is found.
    pub fn path(index: usize) -> String {
        format!("/{index}")
    }

    /// The answer to a request: 200, 404 for a path that is not there, 405 for a method other than GET and HEAD.
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
        let content_type: &[u8] = if index == 0 { b"text/html" } else { b"image/gif" };
        let mut fields = Fields::new();
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
