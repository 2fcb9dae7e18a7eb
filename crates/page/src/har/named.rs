//! Addresses that the texts of documents and style sheets name.

use memchr::memmem;

use super::place::Place;
use crate::Priority;
use crate::html::positions::{TagPosition, tags};

/// An address in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Perhaps relative.
    pub(super) target: String,
    /// End of the element in a document.
    pub(super) place: Option<Place>,
    /// Priority that Chromium gives to such an element, where its type alone does not tell.
    pub(super) priority: Option<Priority>,
}

/// Addresses whose elements a browser requests without being asked, by element and attribute.
const REQUESTED: [(&str, &str); 11] = [
    ("audio", "src"),
    ("embed", "src"),
    ("frame", "src"),
    ("iframe", "src"),
    ("img", "src"),
    ("input", "src"),
    ("link", "href"),
    ("object", "data"),
    ("script", "src"),
    ("source", "src"),
    ("video", "poster"),
];
/// Elements that may list the same image in several sizes.
const WITH_ALTERNATIVES: [&str; 2] = ["img", "source"];
/// Maximum number of addresses of a text.
const MAX_NAMED: usize = 10_000;

/// Addresses of a document, whose lines start at `lines`.
pub(super) fn in_document(html: &[u8], lines: &[u32]) -> Vec<Named> {
    let mut is_after_image = false;
    let mut all = Vec::new();
    for tag in tags(html).into_iter().filter(|tag| !tag.is_end()) {
        let place = Place::at(tag.whole.end, lines);
        let priority = priority(html, &tag, is_after_image);
        let named = |target: String| Named { target, place, priority };
        is_after_image |= tag.is(html, "img");
        let requested = REQUESTED.iter().filter(|(element, _)| tag.is(html, element));
        all.extend(requested.filter_map(|(_, attribute)| tag.attribute(html, attribute)).map(named));
        if WITH_ALTERNATIVES.iter().any(|element| tag.is(html, element)) {
            let alternatives = tag.attribute(html, "srcset").unwrap_or_default();
            let targets = alternatives.split(", ").filter_map(|one| one.split_ascii_whitespace().next());
            all.extend(targets.map(|target| named(target.to_owned())));
        }
    }
    all.extend(in_style_sheet(html));
    all.truncate(MAX_NAMED);
    all.iter_mut().for_each(|named| named.target = named.target.replace("&amp;", "&"));
    all
}

/// Addresses of a style sheet: of `url(...)`, and of `@import "..."`.
pub(super) fn in_style_sheet(css: &[u8]) -> Vec<Named> {
    let quoted = |text: &[u8]| {
        let text = text.trim_ascii_start();
        let (quote, text) = match text.split_first()? {
            (quote @ (b'"' | b'\''), text) => (*quote, text),
            _ => (b')', text),
        };
        let end = text.iter().take(MAX_ADDRESS_BYTES).position(|byte| *byte == quote)?;
        Some(String::from_utf8_lossy(text[..end].trim_ascii()).into_owned())
    };
    let after = |mark: &'static [u8]| memmem::find_iter(css, mark).map(|at| &css[at + mark.len()..]);
    let urls = after(b"url(").filter_map(quoted);
    let imports =
        after(b"@import").filter(|text| matches!(text.trim_ascii_start().first(), Some(b'"' | b'\'')));
    let targets = urls.chain(imports.filter_map(quoted)).filter(|target| !target.starts_with("data:"));
    targets.take(MAX_NAMED).map(|target| Named { target, place: None, priority: None }).collect()
}

const MAX_ADDRESS_BYTES: usize = 2_000;

/// Chromium's priority (Blink, `ResourceFetcher::ComputeLoadPriority`): of a script that the parser waits for, high before the first
/// image and then medium, otherwise low; and of a style sheet for another medium, lowest.
fn priority(html: &[u8], tag: &TagPosition, is_after_image: bool) -> Option<Priority> {
    let value = |name| tag.attribute(html, name).map(|value| value.to_ascii_lowercase());
    let has = |name: &str| {
        tag.attributes.iter().any(|(own, _)| html[own.clone()].eq_ignore_ascii_case(name.as_bytes()))
    };
    match value("fetchpriority").as_deref() {
        Some("high") => return Some(Priority::High),
        Some("low") => return Some(Priority::Low),
        _ => {}
    }
    if tag.is(html, "script") {
        let is_module = value("type").as_deref() == Some("module");
        return Some(match (has("async") || has("defer") || is_module, is_after_image) {
            (true, _) => Priority::Low,
            (false, true) => Priority::Medium,
            (false, false) => Priority::High,
        });
    }
    let is_of_another_medium = tag.is(html, "link") && value("media").as_deref() == Some("print");
    is_of_another_medium.then_some(Priority::Lowest)
}

#[cfg(test)]
mod tests {
    use super::super::place::line_starts;
    use super::*;

    #[test]
    fn documents_name_what_their_elements_and_styles_request() {
        let html = b"<link rel=stylesheet href=a.css media=print>\n<script src='b.js?x&amp;y'></script><img src=c.png \
            srcset='d.png 2x, e.png 3x'><script defer src=f.js></script><script src=g.js></script>\
            <p style='background:url(\"h.png\")'><a href=i.html><!-- <img src=j.png> -->";
        let found = in_document(html, &line_starts(html));
        let targets: Vec<(&str, Option<Priority>)> =
            found.iter().map(|named| (named.target.as_str(), named.priority)).collect();
        let expected = [
            ("a.css", Some(Priority::Lowest)),
            ("b.js?x&y", Some(Priority::High)),
            ("c.png", None),
            ("d.png", None),
            ("e.png", None),
            ("f.js", Some(Priority::Low)),
            ("g.js", Some(Priority::Medium)),
            ("h.png", None),
        ];
        assert_eq!(targets, expected);
        assert_eq!(found[0].place.map(|place| place.line), Some(0));
        assert_eq!(found[1].place.map(|place| place.line), Some(1));
    }

    #[test]
    fn style_sheets_name_imports_pictures_and_fonts() {
        let css = b"@import 'a.css'; @import url(b.css); .x { background: url( 'c.png' ) } @font-face { src: url(data:x) }";
        let targets: Vec<String> = in_style_sheet(css).into_iter().map(|named| named.target).collect();
        assert_eq!(targets, ["b.css", "c.png", "a.css"]);
        assert!(in_style_sheet(b"url(").is_empty() && in_style_sheet(b"@import \"").is_empty());
    }
}
