//! Recordings of pages with Chromium on a fast network, in a directory beside the table, so that pages can be predicted again.

use std::path::{Path, PathBuf};

use page::Page;
use scenario::{Network, Protocol};
use wire::{Bytes, Duration, Rate};

/// Visits that are recorded: the one whose event `load` is the median counts.
const VISITS: u32 = 3;

/// A page as read from its recording, which is made and kept if it does not exist.
pub(crate) fn recorded(number: u64, directory: &Path) -> Result<Page, String> {
    let file = file(number, directory);
    if let Ok(har) = std::fs::read(&file) {
        return read(&har);
    }
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let har = har(&crate::pages::page(number)?)?;
    std::fs::write(&file, &har).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    read(har.as_bytes())
}

fn file(number: u64, directory: &Path) -> PathBuf {
    directory.join(format!("page-{number}.har"))
}

/// A page as a user's recording is read.
pub(crate) fn read(har: &[u8]) -> Result<Page, String> {
    let pages = page::har::pages("recording", har).map_err(|error| error.to_string())?;
    pages.into_iter().next().map(Page::over_network).ok_or_else(|| "an empty recording".to_owned())
}

/// The network of recordings.
pub(crate) fn fast_network() -> Result<Network, String> {
    let rate = Rate::from_bits_per_second(1_000_000_000).ok_or("no rate")?;
    Ok(Network::new("fast".to_owned(), Duration::from_millis(2), rate, Bytes::new(1_460)))
}

/// A recording of a page over HTTP/2 at 1 Gbit/s and 2 ms.
pub(crate) fn har(page: &Page) -> Result<String, String> {
    let (runs, _) = crate::visits(page, fast_network()?, Protocol::Http2, VISITS)?;
    let mut visits: Vec<_> = runs.iter().filter_map(|run| run.browser.as_ref()).collect();
    visits.sort_by_key(|visit| visit.load);
    let median = visits.get(visits.len() / 2).ok_or("no recording")?;
    Ok(median.har.to_string())
}
