//! Pages from the command line: a name, sizes, a directory, a recording or a page in TOML.
//!
//! `page` parses the contents. This module reads the files, and adds the flag's name to errors.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use content::directory;
use http1::content::Coding;
use page::what_if::Change;
use page::{Page, file, har, text};
use quantity::names::Listing;
use wire::Duration;

use crate::cli::flags::WhatIfFlags;
use crate::failure::{Failure, shown};

/// The pages that a text names: one, or each page of a HAR. `None` if it is not a path of a form that is read here.
///
/// `flag` is the culprit of errors: `--page: `, or empty.
pub fn from_files(given: &str, flag: &str, what_if: &WhatIfFlags) -> Result<Option<Vec<Page>>, Failure> {
    let coding = what_if.compress.as_deref().map(coding).transpose()?;
    if let Some((path, number)) = har_path(given) {
        return read_har(path, number, flag, coding).map(Some);
    }
    if coding.is_some() {
        let reason = "the page has no recorded text; give a FILE.har, or for a directory --client-codings";
        return Err(Failure::Value(format!("--compress: {reason}")));
    }
    if has_suffix(given, ".toml") {
        return read_toml(Path::new(given), flag).map(|page| Some(vec![page]));
    }
    if is_directory(given) {
        return directory::page(Path::new(given))
            .map(|page| Some(vec![page]))
            .map_err(|error| page_error(error, flag));
    }
    Ok(None)
}

/// The same, with names and sizes.
pub fn pages(given: &str, what_if: &WhatIfFlags) -> Result<Vec<Page>, Failure> {
    match from_files(given, "", what_if)? {
        Some(pages) => Ok(pages),
        None => text::page(given).map(|page| vec![page]).map_err(|error| Failure::Value(error.to_string())),
    }
}

/// The pages with the changes that flags ask for.
pub fn changed(pages: Vec<Page>, flags: &WhatIfFlags) -> Result<Vec<Page>, Failure> {
    let changes = changes(flags)?;
    let page = |page: Page| {
        changes.iter().try_fold(page, |page, change| {
            page.changed(std::slice::from_ref(change)).map_err(Failure::of_flag(change.name()))
        })
    };
    pages.into_iter().map(page).collect()
}

/// The changes that flags ask for, in order.
fn changes(flags: &WhatIfFlags) -> Result<Vec<Change>, Failure> {
    let WhatIfFlags { without, block, server_time, host_rtt, compress: _, preconnect, .. } = flags;
    let mut changes: Vec<Change> = without.iter().cloned().map(Change::WithoutHost).collect();
    changes.extend(block.iter().cloned().map(Change::Block));
    let server_time = server_time.iter().map(|given| timed("server-time", Change::ServerTime, given));
    let host_rtt = host_rtt.iter().map(|given| timed("host-rtt", Change::HostRtt, given));
    changes.extend(server_time.chain(host_rtt).collect::<Result<Vec<_>, _>>()?);
    changes.extend(preconnect.iter().cloned().map(Change::Preconnect));
    changes.extend(flags.merge_hosts.then_some(Change::MergeHosts));
    changes.extend(flags.no_think.then_some(Change::NoThink));
    Ok(changes)
}

/// Whether any change is asked for.
pub fn has_changes(flags: &WhatIfFlags) -> bool {
    flags.compress.is_some() || changes(flags).map_or(true, |changes| !changes.is_empty())
}

/// The coding of this name.
fn coding(name: &str) -> Result<Coding, Failure> {
    let known = Coding::named(name.as_bytes()).filter(|coding| *coding != Coding::Identity);
    known.ok_or_else(|| {
        let quoted = quantity::names::Quoted(name);
        Failure::Value(format!("--compress: unknown coding {quoted}; known: br, gzip, zstd, deflate"))
    })
}

/// The change by a flag's `www.example.com=20ms`.
fn timed(flag: &str, change: fn(String, Duration) -> Change, given: &str) -> Result<Change, Failure> {
    let refused = |reason: String| Failure::Value(format!("--{flag}: {reason}"));
    let Some((host, time)) = given.rsplit_once('=') else {
        let quoted = quantity::names::Quoted(given);
        return Err(refused(format!("{quoted} has no time; give HOST=TIME, such as www.example.com=20ms")));
    };
    let time = quantity::duration(time).map_err(|error| refused(error.to_string()))?;
    Ok(change(host.to_owned(), time))
}

/// Adds the flag to errors of a directory that is not a page.
fn page_error(error: content::Error, flag: &str) -> Failure {
    match error {
        content::Error::NotAPage { .. } | content::Error::TooLarge { .. } => {
            Failure::Value(format!("{flag}{error}"))
        }
        error => error.into(),
    }
}

/// Whether the text is a directory. Names of pages take precedence over directories.
fn is_directory(given: &str) -> bool {
    Page::listings().all(|Listing { name, .. }| name != given) && Path::new(given).is_dir()
}

fn has_suffix(given: &str, suffix: &str) -> bool {
    given.len() > suffix.len() && given.to_ascii_lowercase().ends_with(suffix)
}

/// A path of a recording, perhaps compressed, and the number of one of its pages: `visit.har`, `trace.json.gz#2`.
fn har_path(given: &str) -> Option<(&Path, Option<usize>)> {
    if har::is_named(given) {
        return Some((Path::new(given), None));
    }
    let (path, number) = given.rsplit_once('#')?;
    let number = number.parse().ok().filter(|_| har::is_named(path))?;
    Some((Path::new(path), Some(number)))
}

/// Reads the pages of a recording, or one of them.
fn read_har(
    path: &Path,
    number: Option<usize>,
    flag: &str,
    coding: Option<Coding>,
) -> Result<Vec<Page>, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let bytes = unpack::unpacked(file).map_err(unreadable)?.take(MAX_HAR_BYTES);
    let name = path.file_name().map_or_else(String::new, |name| har::page_name(&name.to_string_lossy()));
    let refused = |reason: String| Failure::Value(format!("{flag}{}: {reason}", shown(path)));
    let pages = match coding {
        None => har::pages(&name, bytes),
        Some(coding) => {
            let name = format!("{name}+compress={}", coding.name());
            har::compressed_pages(&name, coding, bytes)
        }
    };
    let mut pages = pages.map_err(|error| refused(error.to_string()))?;
    let Some(number) = number else { return Ok(pages) };
    let count = pages.len();
    match number.checked_sub(1).filter(|index| *index < count) {
        Some(index) => Ok(vec![pages.swap_remove(index)]),
        None => Err(refused(format!("it has no page {number}; give 1 to {count}"))),
    }
}

/// Maximum size of a HAR file with bodies, in bytes. A truncated file no longer parses as HAR.
const MAX_HAR_BYTES: u64 = 1 << 30;

/// Reads a page in TOML.
fn read_toml(path: &Path, flag: &str) -> Result<Page, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(file::MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    file::read(&name.replace(char::is_control, "?"), &text)
        .map_err(|error| Failure::Value(format!("{flag}{}: {error}", shown(path))))
}
