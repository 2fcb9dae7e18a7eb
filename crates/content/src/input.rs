//! A page's files: from a directory, a recording, or a generated site.
//!
//! [`crate::directory`] needs sizes only; here everything is read, up to a limit.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use memchr::memmem;
use scenario::Site;
use wire::Seed;

use crate::Error;
use crate::directory;
use crate::make::{self, Progress, Source};
use crate::{Content, recording};

/// Maximum size of all of a page's files together, in bytes.
const MAX_PAGE_BYTES: u64 = 256 << 20;

/// The page that `text` names: a directory, a recording, or a site as `roundtrip site` makes it; with images also at a
/// quality, if one is given.
pub fn read(text: &str, seed: Seed, quality: Option<u8>, progress: &Progress<'_>) -> Result<Content, Error> {
    let path = Path::new(text);
    let is_recording = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("har"));
    let (name, sources, left_out) = if path.is_dir() {
        let (sources, left_out) = referenced(of_directory(path)?);
        (directory::name(path), sources, left_out)
    } else if is_recording {
        let (sources, left_out) = of_recording(path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().replace(char::is_control, "?");
        (name, sources, left_out)
    } else {
        let site = Site::named(text).map_err(|unknown| Error::NoInput { path: path.to_owned(), unknown })?;
        let files = site.files(seed).into_iter().map(|file| Source::of(file.path, file.contents));
        (site.name().to_owned(), files.collect(), Vec::new())
    };
    Ok(Content { name, files: make::files(sources, quality, progress), left_out })
}

fn of_directory(path: &Path) -> Result<Vec<Source>, Error> {
    let mut files = Vec::new();
    let mut left = MAX_PAGE_BYTES;
    for (file, _) in directory::files(path)? {
        let bytes = whole(&file, left)?;
        left = left.saturating_sub(bytes.len() as u64);
        let below = file.strip_prefix(path).unwrap_or(&file);
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        files.push(Source::of(parts.join("/").replace(char::is_control, "?"), bytes));
    }
    Ok(files)
}

/// The files that a page may fetch: the document, and those whose names occur in one of its texts. Other files of the
/// directory do not belong to the page, as for `simulate --page`.
fn referenced(sources: Vec<Source>) -> (Vec<Source>, Vec<String>) {
    let is_html = |source: &Source| matches!(source.ending.to_ascii_lowercase().as_str(), "html" | "htm");
    if !sources.first().is_some_and(is_html) {
        return (sources, Vec::new());
    }
    let texts: Vec<&Source> = sources.iter().filter(|source| source.is_text()).collect();
    let is_named = |source: &Source| {
        let name = source.path.rsplit('/').next().unwrap_or_default().as_bytes();
        texts.iter().any(|text| text.path != source.path && memmem::find(&text.bytes, name).is_some())
    };
    let stored: Vec<bool> =
        sources.iter().enumerate().map(|(index, source)| index == 0 || is_named(source)).collect();
    let (all, fetched) = (sources.len(), stored.iter().filter(|stored| **stored).count());
    let mut names =
        sources.iter().zip(&stored).filter(|(_, stored)| !**stored).map(|(source, _)| &source.path);
    let first = names.next().cloned();
    let files =
        sources.into_iter().zip(stored).filter_map(|(source, stored)| stored.then_some(source)).collect();
    let note = first.map(|first| {
        let left_out = all - fetched;
        let more = if left_out > 1 { format!("{first} and {} more", left_out - 1) } else { first };
        format!("fetched: {fetched} of {all} files; left out: {more}, which no file of the page references")
    });
    (files, note.into_iter().collect())
}

fn of_recording(path: &Path) -> Result<recording::Files, Error> {
    let bytes = whole(&path.to_path_buf(), MAX_PAGE_BYTES)?;
    recording::read(bytes.as_slice()).map_err(|reason| Error::Recording { path: path.to_owned(), reason })
}

/// A file's bytes, up to `max`.
fn whole(path: &PathBuf, max: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |error| Error::Unreadable { path: path.clone(), error };
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(unreadable)?.take(max + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max {
        return Err(Error::TooLarge { path: path.clone(), remedy: "name a directory with a single page" });
    }
    Ok(bytes)
}
