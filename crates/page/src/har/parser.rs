//! Waits of a document's parser: it stops at a script until that and the style sheets before it have arrived (the HTML standard,
//! "prepare the script element").
//!
//! On a fast network it waits for little, and that does not show in the times; on a slower one, what a script makes known comes after
//! the slowest style sheet before the script.

use std::collections::BTreeMap;

use super::place::Place;
use super::timeline::Item;
use crate::{Kind, Priority};

/// Scripts and style sheets that the parsers of documents wait for, by the document's URL, in order of their places.
#[derive(Debug, Default)]
pub(super) struct Awaited<'a>(BTreeMap<&'a str, Vec<(Place, usize)>>);

impl<'a> Awaited<'a> {
    pub(super) fn new(items: &'a [Item]) -> Self {
        let mut awaited = Self::default();
        for (index, item) in items.iter().enumerate() {
            if let Some((place, document)) = position(item).filter(|_| is_awaited(item)) {
                awaited.0.entry(document).or_default().push((place, index));
            }
        }
        awaited.0.values_mut().for_each(|places| places.sort_unstable());
        awaited
    }

    /// Scripts and style sheets that a script waits for before it runs: those before it in its document, if the parser waits for it.
    pub(super) fn before_script(&self, index: usize, item: &'a Item) -> &[(Place, usize)] {
        let Some((place, document)) = position(item) else { return &[] };
        let places = self.0.get(document).map_or(&[][..], Vec::as_slice);
        match places.binary_search(&(place, index)) {
            Ok(at) if item.kind == Kind::Script => &places[..at],
            _ => &[],
        }
    }

    /// Scripts and style sheets that rendering waits for, before anything that a style sheet of the document names is requested: all.
    pub(super) fn before_rendering(&self, style_sheet: &Item) -> &[(Place, usize)] {
        let document = style_sheet.entry.clues.initiators.first().map(|url| without_fragment(url));
        document.and_then(|document| self.0.get(document)).map_or(&[], Vec::as_slice)
    }

    /// The last script that the parser waited for before this place.
    pub(super) fn script_before(
        &self,
        document: &str,
        place: Place,
        items: &[Item],
    ) -> Option<(Place, usize)> {
        let places = self.0.get(document)?;
        let before = places.iter().take_while(|(other, _)| *other < place);
        before.filter(|(_, index)| items[*index].kind == Kind::Script).last().copied()
    }
}

/// Place of an item, and the URL of its document.
fn position(item: &Item) -> Option<(Place, &str)> {
    let document = item.entry.clues.initiators.first()?;
    Some((item.entry.clues.place?, without_fragment(document)))
}

/// Chromium gives scripts that the parser does not wait for the priority Low.
fn is_awaited(item: &Item) -> bool {
    match item.kind {
        Kind::StyleSheet => item.is_render_blocking(false),
        Kind::Script => {
            item.local.is_none() && item.has_known_priority() && item.priority() >= Priority::Medium
        }
        Kind::Document | Kind::Font | Kind::Image | Kind::Media | Kind::Data | Kind::Other => false,
    }
}

pub(super) fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or_default()
}
