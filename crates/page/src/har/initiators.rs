//! Initiators that are not recorded: the documents and style sheets whose texts name an object.
//!
//! Firefox, Safari and drivers of browsers record no initiators and no priorities, but texts. An element's place in a document, and
//! whether its parser waits for a script, are the same whoever records them (the HTML standard, "the script element").

use std::collections::BTreeMap;

use super::discovery::resolved;
use super::named::Named;
use super::parser::without_fragment;
use super::timeline::Item;
use crate::Kind;

/// Gives the entries without a recorded initiator the document or style sheet that names them.
pub(super) fn find_unrecorded(items: &mut [Item]) {
    let mut named: BTreeMap<String, (usize, Named)> = BTreeMap::new();
    for kind in [Kind::Document, Kind::StyleSheet] {
        for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| item.kind == kind) {
            let base = item.entry.url.clone().unwrap_or_default();
            for one in std::mem::take(&mut item.entry.named) {
                named.entry(resolved(&base, &one.target)).or_insert((index, one));
            }
        }
    }
    let urls: Vec<Option<String>> = items.iter().map(|item| item.entry.url.clone()).collect();
    for (index, item) in items.iter_mut().enumerate().skip(1) {
        let clues = &mut item.entry.clues;
        let url = item.entry.url.as_deref().map(without_fragment).unwrap_or_default();
        let Some((by, named)) = named.get(url).filter(|(by, _)| *by != index) else { continue };
        if let Some(by) = urls[*by].clone().filter(|_| clues.initiators.is_empty()) {
            clues.initiators.push(by);
            clues.place = named.place;
            clues.is_named = true;
        }
        if clues.priority.is_none() {
            clues.priority_of_element = named.priority;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages;
    use super::super::test_archive::{Recorded, archive};
    use crate::Priority;

    #[test]
    fn without_recorded_initiators_the_text_that_names_an_object_made_it_known() {
        let with = |kind: &str, text: &str, url| {
            let content = format!(r#""content":{{"size":1000,"mimeType":"{kind}","text":"{text:<1000}"}},"#);
            (content, url)
        };
        let (document, url) =
            with("text/html", "<link rel=stylesheet href=s/a.css><script src=b.js></script>", "https://h/x/");
        let (style_sheet, sheet_url) =
            with("text/css", ".x{background:url(../c.png)}", "https://h/x/s/a.css");
        let all = [
            Recorded { response: &document, ..Recorded::at(0, url) }.json(),
            Recorded { response: &style_sheet, ..Recorded::at(210, sheet_url) }.json(),
            Recorded::at(211, "https://h/x/b.js").json(),
            Recorded::at(700, "https://h/x/c.png").json(),
        ];
        let page = pages("visit", archive(&all).as_bytes()).unwrap().remove(0);
        let waits: Vec<Vec<usize>> =
            page.objects.iter().map(|object| object.after.iter().map(|after| after.on).collect()).collect();
        assert_eq!(waits, [vec![], vec![0, 0], vec![0, 0], vec![1, 2]]);
        assert_eq!(page.objects[2].priority, Priority::High);
        assert!(page.objects[2].is_render_blocking);
        let notes = page.notes.join("\n");
        assert!(
            notes.contains("3 by the texts that name them (2 at their place in the document)"),
            "{notes}"
        );
    }
}
