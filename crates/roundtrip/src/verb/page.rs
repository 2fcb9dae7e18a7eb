//! `roundtrip page`: a page as a graph.

use lab::page::{picture, rows, text};
use page::{Page, file as page_file};

use crate::cli::{self, PageFormat};
use crate::failure::Failure;
use crate::{file, page_source};

/// Prints the page, or each page of a recording.
pub fn run(arguments: &cli::Page) -> Result<(), Failure> {
    let cli::Page { page, what_if, format, plot } = arguments;
    file::check(plot)?;
    let pages = page_source::changed(page_source::pages(page, what_if)?, what_if)?;
    if let Some(path) = plot {
        file::write(path, picture(one(&pages, "--plot", page)?, SOURCE).as_bytes())?;
    }
    let printed = match format {
        PageFormat::Table => text(&pages, crate::terminal::of_stdout()),
        PageFormat::Json => render::output::json(&rows(&pages)),
        PageFormat::Toml => page_file::write(one(&pages, "--format toml", page)?),
    };
    crate::output::to_stdout(&printed)
}

/// Provenance of the picture.
const SOURCE: &str = concat!("roundtrip page, version ", env!("CARGO_PKG_VERSION"));

/// The only page of a recording.
fn one<'a>(pages: &'a [Page], flag: &str, given: &str) -> Result<&'a Page, Failure> {
    match pages {
        [page] => Ok(page),
        pages => {
            let (count, given) = (pages.len(), given.replace(char::is_control, "?"));
            Err(Failure::Value(format!("{flag}: {given} has {count} pages; name one, as {given}#1")))
        }
    }
}
