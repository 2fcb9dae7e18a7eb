//! Links of a recorded document by which a browser prepares for a host before it requests anything from it: elements (the HTML standard,
//! link types `preconnect` and `dns-prefetch`), and the field `Link` (RFC 8288).

use crate::html::positions::{TagPosition, tags};

/// A hint of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DocumentHint {
    /// Address, perhaps relative.
    pub(super) target: String,
    /// Part of the document that ends with it, from 0 to 1.
    pub(super) part: f64,
    /// Whether it opens a connection; otherwise the name is looked up.
    pub(super) opens: bool,
}

/// Hints of the elements of a document with this text.
pub(super) fn of_text(html: &[u8]) -> Vec<DocumentHint> {
    let names = |relation: &str| html.windows(relation.len()).any(|text| text == relation.as_bytes());
    if !names("preconnect") && !names("dns-prefetch") {
        return Vec::new();
    }
    let links = tags(html).into_iter().filter(|tag| tag.is(html, "link") && !tag.is_end());
    links.filter_map(|tag| of_element(html, &tag)).collect()
}

fn of_element(html: &[u8], tag: &TagPosition) -> Option<DocumentHint> {
    let opens = opens(&tag.attribute(html, "rel")?)?;
    let target = tag.attribute(html, "href")?;
    Some(DocumentHint { target, part: tag.whole.end as f64 / html.len().max(1) as f64, opens })
}

/// Hints of a field `Link`: `<https://a.example>; rel=preconnect, ...`.
pub(super) fn of_field(value: &str) -> Vec<DocumentHint> {
    let hint = |link: &str| {
        let (target, parameters) = link.split_once('>')?;
        let mut parameters = parameters.split(',').next()?.split(';').map(str::trim);
        let relation = parameters.find_map(|parameter| parameter.strip_prefix("rel="))?;
        let opens = opens(relation.trim_matches('"'))?;
        Some(DocumentHint { target: target.trim().to_owned(), part: 0.0, opens })
    };
    value.split('<').skip(1).filter_map(hint).collect()
}

/// Whether these link types open a connection; `None` if they are no hints for a host.
fn opens(relation: &str) -> Option<bool> {
    let has = |name: &str| relation.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(name));
    (has("preconnect") || has("dns-prefetch")).then(|| has("preconnect"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_elements_name_hosts() {
        let hint = |target: &str, part, opens| DocumentHint { target: target.to_owned(), part, opens };
        let field = "<https://a.example>; rel=preconnect; crossorigin, </x.css>; rel=preload, <//b>;rel=\"dns-prefetch\"";
        assert_eq!(of_field(field), [hint("https://a.example", 0.0, true), hint("//b", 0.0, false)]);
        let html = b"<link rel='dns-prefetch Preconnect' href=//a><!-- <link rel=preconnect href=//c> --><p>";
        let end = html.iter().position(|byte| *byte == b'>').unwrap() + 1;
        assert_eq!(of_text(html), [hint("//a", end as f64 / html.len() as f64, true)]);
        assert_eq!(of_text(b"<link rel=stylesheet href=preconnect>"), []);
    }
}
