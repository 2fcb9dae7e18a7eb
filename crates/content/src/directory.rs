//! A directory as a page: its document (`index.html`, where there is one) and the files that it names, in that order.
//! Where the first file is not HTML, every non-empty file is an object, sorted by path.
//!
//! Not a browser: references in style sheets and scripts are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use page::contents::{self, ReferencedFiles, file, named};
use scenario::Page;
use scenario::serving::MAX_PAGE_BYTES;
use wire::Bytes;

use crate::Error;

/// The page in a directory, named after it; its notes list the files of the directory that are left out.
pub fn page(directory: &Path) -> Result<Page, Error> {
    let found = all(directory)?;
    let Some((first, _)) = found.first() else { return Err(empty(directory)) };
    let mut left = MAX_PAGE_BYTES;
    let document = file(&relative_path(directory, first), whole(first, &mut left)?);
    let (page, notes) = if document.content_type.starts_with("text/html") {
        let paths: BTreeMap<String, &Path> =
            found.iter().map(|(path, _)| (relative_path(directory, path), path.as_path())).collect();
        let named = named(&relative_path(directory, first), &document.body, &paths.keys().cloned().collect());
        let notes = notes(directory, first, &named, paths.len());
        let mut bodies = BTreeMap::new();
        for (_, relative) in &named.files {
            if let (Some(path), false) = (paths.get(relative), bodies.contains_key(relative)) {
                bodies.insert(relative.clone(), Arc::from(whole(path, &mut left)?));
            }
        }
        (contents::page(&name(directory), document, named, &bodies), notes)
    } else {
        let others = found.iter().skip(1).filter(|(_, size)| *size > Bytes::ZERO);
        let others =
            others.map(|(path, _)| Ok(file(&relative_path(directory, path), whole(path, &mut left)?)));
        let files: Result<Vec<_>, Error> = std::iter::once(Ok(document)).chain(others).collect();
        (Page::real(&name(directory), files?), Vec::new())
    };
    let page = page.map_err(|error| Error::NotAPage { path: directory.to_owned(), error })?;
    Ok(Page { notes, ..page })
}

/// Notes on files of the directory that are not in the page, and on references of the page without a file.
fn notes(directory: &Path, document: &Path, named: &ReferencedFiles, files: usize) -> Vec<String> {
    let document = relative_path(directory, document).replace(char::is_control, "?");
    let ReferencedFiles { files: there, missing, is_cut } = named;
    let places: BTreeSet<&String> = there.iter().map(|(_, relative)| relative).collect();
    let fetched = places.len() + 1;
    let unnamed = files.saturating_sub(fetched);
    let mut notes = Vec::new();
    if unnamed > 0 {
        notes.push(format!(
            "fetched: {fetched} of {files} files; left out: {unnamed} that {document} does not reference"
        ));
    }
    if let Some(first) = missing.first() {
        let more = match missing.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        notes.push(format!(
            "{document} references {first}{more}, which the directory lacks: the response is 404"
        ));
    }
    if *is_cut {
        notes.push(format!(
            "{document} references more than {} objects; the others are left out",
            Page::MAX_OBJECTS
        ));
    }
    notes
}

/// The directory's non-empty files, at least one, in the order of the objects.
pub fn files(directory: &Path) -> Result<Vec<(PathBuf, Bytes)>, Error> {
    let mut files = all(directory)?;
    // Empty files have no bytes to send, and a page has no object of size 0.
    files.retain(|(_, size)| *size > Bytes::ZERO);
    if files.is_empty() { Err(empty(directory)) } else { Ok(files) }
}

/// The directory's files, `index.html` first.
fn all(directory: &Path) -> Result<Vec<(PathBuf, Bytes)>, Error> {
    let mut files = Vec::new();
    collect(directory, &mut files).map_err(|(path, error)| Error::Unreadable { path, error })?;
    files.sort_by_cached_key(|(path, _)| (path != &directory.join("index.html"), path.clone()));
    Ok(files)
}

fn empty(directory: &Path) -> Error {
    Error::Empty(directory.to_owned())
}

/// Every regular file below `directory`. Symbolic links are not followed, so that there are no cycles.
fn collect(directory: &Path, files: &mut Vec<(PathBuf, Bytes)>) -> Result<(), (PathBuf, io::Error)> {
    let at = |path: &Path| {
        let path = path.to_owned();
        |error| (path, error)
    };
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let path = entry.map_err(at(directory))?.path();
        let found = fs::symlink_metadata(&path).map_err(at(&path))?;
        if found.is_dir() {
            collect(&path, files)?;
        } else if found.is_file() {
            files.push((path, Bytes::new(found.len())));
        }
    }
    Ok(())
}

/// A file's path below the directory: `images/a.gif`.
fn relative_path(directory: &Path, path: &Path) -> String {
    let below = path.strip_prefix(directory).unwrap_or(path);
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// A file's bytes, if they fit into the bytes `left`.
fn whole(path: &Path, left: &mut Bytes) -> Result<Vec<u8>, Error> {
    let unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(left.get() + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let size = bytes.len() as u64;
    let too_large = || Error::TooLarge { path: path.to_owned(), remedy: "give sizes such as 6651+3883" };
    let rest = left.get().checked_sub(size).ok_or_else(too_large)?;
    *left = Bytes::new(rest);
    Ok(bytes)
}

/// The last component of the path, without control characters.
pub fn name(directory: &Path) -> String {
    let whole = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let name = whole.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy());
    name.replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, files: &[(&str, &[u8])]) -> Result<Page, Error> {
        let directory =
            std::env::temp_dir().join(format!("roundtrip-directory-{name}-{}", std::process::id()));
        for (relative, bytes) in files {
            let path = directory.join(relative);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let page = page(&directory);
        fs::remove_dir_all(&directory).unwrap();
        page
    }

    fn sizes(page: &Page) -> Vec<u64> {
        page.objects.iter().map(|object| object.size.get()).collect()
    }

    #[test]
    fn directory_is_its_document_and_the_files_it_names() {
        let html = b"<img src=images/b.png><img src='a.css'><img src=empty><img src=gone><p>never closed";
        let files: [(&str, &[u8]); 5] = [
            ("a.css", b"0123456789"),
            ("images/b.png", b"0123456789abcdefghij"),
            ("index.html", html),
            ("empty", b""),
            ("other.png", b"x"),
        ];
        let page = made("named", &files).unwrap();
        assert_eq!(sizes(&page), [html.len() as u64, 20, 10]);
        assert_eq!(page.contents.unwrap().files.len(), 4);
        let expected = [
            "fetched: 4 of 5 files; left out: 1 that index.html does not reference",
            "index.html references /gone, which the directory lacks: the response is 404",
        ];
        assert_eq!(page.notes, expected);
    }

    #[test]
    fn directory_without_a_document_is_all_its_files() {
        let page = made("plain", &[("b.gif", b"22"), ("a.gif", b"1"), ("c", b"")]).unwrap();
        assert_eq!((sizes(&page), page.notes), (vec![1, 2], Vec::new()));
        let refusal = made("empty", &[("index.html", b"")]).unwrap_err().to_string();
        assert!(refusal.contains("0 objects"), "{refusal}");
    }
}
