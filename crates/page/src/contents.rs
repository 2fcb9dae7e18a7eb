//! Real contents of a page: files, the document first. If it is HTML, it references the others, and a client
//! discovers them there.
//!
//! No directory is read here. The caller has the files' paths resolved ([`named`]), and builds a page from
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http1::content::{Coding, encoded, is_text, media_type};
use http1::site::File;
use wire::Bytes;

use crate::html::Discovery;
use crate::html::address::{path_of, site_path};
use crate::{Host, Object, Page, PageError};

/// Real contents of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The document, and the files that it references in order, including empty ones; at least one.
    pub files: Vec<File>,
}

impl Contents {
    /// Whether its document is HTML.
    pub fn is_html(&self) -> bool {
        self.files.first().is_some_and(|document| document.content_type.starts_with("text/html"))
    }
}

impl Page {
    /// A page with these files, the document first.
    ///
    /// # Errors
    /// Only empty files, or too many.
    pub fn real(name: &str, files: Vec<File>) -> Result<Self, PageError> {
        let objects = files.iter().filter(|file| !file.body.is_empty()).map(object).collect();
        let page = Self::new(name, objects)?;
        Ok(Self { contents: Some(Arc::new(Contents { files })), ..page })
    }
}

/// The object's size, and for text its size after deflate, if that is smaller.
fn object(file: &File) -> Object {
    let size = Bytes::new(file.body.len() as u64);
    let deflated = is_text(&file.content_type).then(|| encoded(Coding::Deflate, &file.body).len() as u64);
    let deflated = deflated.map(Bytes::new).filter(|deflated| *deflated < size);
    Object { deflated, ..Object::sized(size) }
}

/// A file at this path below the root: `images/a.gif`.
pub fn file(relative: &str, body: Vec<u8>) -> File {
    File { path: path_of(relative), content_type: media_type(relative).to_owned(), body: body.into() }
}

/// Files that a document references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferencedFiles {
    /// Existing files, in order: the requested path, and the file's path. A file may have several URLs.
    pub files: Vec<(String, String)>,
    /// Requested paths without a file.
    pub missing: Vec<String>,
    /// Whether it references more objects than the maximum of a page; the others are ignored.
    pub is_cut: bool,
}

/// Resolves the references of the document at `document` against the files at these paths.
pub fn named(document: &str, html: &[u8], existing_paths: &BTreeSet<String>) -> ReferencedFiles {
    let mut discovery = Discovery::new(Host::UNNAMED, &path_of(document));
    let mut known = BTreeSet::from([path_of(document)]);
    let mut named = ReferencedFiles::default();
    discovery.take(html, |path| {
        if known.contains(&path) {
            return;
        }
        if known.len() >= Page::MAX_OBJECTS {
            named.is_cut = true;
            return;
        }
        match site_path(&path).filter(|relative| existing_paths.contains(relative)) {
            Some(relative) => named.files.push((path.clone(), relative)),
            None => named.missing.push(path.clone()),
        }
        known.insert(path);
    });
    named
}

/// The page of a document and the files it references, each file once in memory however many URLs it has.
///
/// # Errors
/// As [`Page::real`].
pub fn page(
    name: &str,
    document: File,
    named: ReferencedFiles,
    bodies: &BTreeMap<String, Arc<[u8]>>,
) -> Result<Page, PageError> {
    let others = named.files.into_iter().filter_map(|(path, relative)| {
        let body = bodies.get(&relative)?.clone();
        Some(File { path, content_type: media_type(&relative).to_owned(), body })
    });
    Page::real(name, std::iter::once(document).chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(existing_paths: &[&str]) -> BTreeSet<String> {
        existing_paths.iter().map(|relative| (*relative).to_owned()).collect()
    }

    #[test]
    fn references_are_resolved_once_each_and_in_document_order() {
        let html =
            b"<img src=b.gif><img src='a%20b.gif'><img src=b.gif><link rel=stylesheet href='/x.css?v=3'>\
                     <img src=gone.gif><img src=http://elsewhere/b.gif><img src=index.html>";
        let references =
            named("dir/index.html", html, &paths(&["dir/b.gif", "dir/a b.gif", "x.css", "dir/unnamed"]));
        let files: Vec<(&str, &str)> =
            references.files.iter().map(|(path, relative)| (path.as_str(), relative.as_str())).collect();
        let expected =
            [("/dir/b.gif", "dir/b.gif"), ("/dir/a%20b.gif", "dir/a b.gif"), ("/x.css?v=3", "x.css")];
        assert_eq!(files, expected);
        assert_eq!((references.missing, references.is_cut), (vec!["/dir/gone.gif".to_owned()], false));
    }

    #[test]
    fn references_beyond_the_maximum_of_a_page_are_ignored() {
        let html: String = (0..12_000).map(|index| format!("<img src={index}>")).collect();
        let references = named("index.html", html.as_bytes(), &BTreeSet::new());
        assert_eq!((references.missing.len(), references.is_cut), (Page::MAX_OBJECTS - 1, true));
    }

    #[test]
    fn real_page_has_the_sizes_of_its_files_without_empty_ones() {
        let files = vec![
            file("index.html", b"<p>".repeat(500)),
            file("a.css", b"<p>".repeat(100)),
            file("empty.gif", Vec::new()),
            file("a.gif", vec![0; 900]),
        ];
        let page = Page::real("directory", files).unwrap();
        let sizes: Vec<u64> = page.objects.iter().map(|object| object.size.get()).collect();
        assert_eq!(sizes, [1_500, 300, 900]);
        let deflated: Vec<bool> = page.objects.iter().map(|object| object.deflated.is_some()).collect();
        assert_eq!(deflated, [true, true, false]);
        let contents = page.contents.unwrap();
        assert_eq!((contents.files.len(), contents.is_html()), (4, true));
        assert!(Page::real("empty", vec![file("index.html", Vec::new())]).is_err());
    }
}
