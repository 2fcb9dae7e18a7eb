//! Tags of an HTML document: their positions, their attributes, and the same document with them rewritten.
//!
//! Not a full HTML parser or validator: a tag begins with `<` and a letter and ends with `>` outside of quotes, as in
//! all browsers. Comments, and text between the tags of script and style, stay as they are.

use std::ops::Range;

/// A tag, by the byte ranges of its parts in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// From `<` to `>`, both included.
    pub whole: Range<usize>,
    /// `img`, `/table`.
    pub name: Range<usize>,
    /// Names and values; the value without its quotes.
    pub attributes: Vec<(Range<usize>, Option<Range<usize>>)>,
}

impl Tag {
    /// Whether it has this name, in upper or lower case.
    pub fn is(&self, html: &[u8], name: &str) -> bool {
        html[self.name.clone()].eq_ignore_ascii_case(name.as_bytes())
    }

    /// The value of an attribute, as it is written.
    pub fn attribute(&self, html: &[u8], name: &str) -> Option<String> {
        let named = |found: &&(Range<usize>, Option<Range<usize>>)| {
            html[found.0.clone()].eq_ignore_ascii_case(name.as_bytes())
        };
        let (_, value) = self.attributes.iter().find(named)?;
        Some(String::from_utf8_lossy(&html[value.clone()?]).into_owned())
    }
}

/// Every tag, in order.
pub fn tags(html: &[u8]) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(begin) = find(html, at, b"<") {
        let rest = &html[begin..];
        if rest.starts_with(b"<!--") {
            at = find(html, begin + 4, b"-->").map_or(html.len(), |end| end + 3);
            continue;
        }
        let name = begin + 1 + usize::from(rest.get(1) == Some(&b'/'));
        if !html.get(name).is_some_and(u8::is_ascii_alphabetic) {
            at = begin + 1;
            continue;
        }
        let Some(tag) = tag(html, begin, name) else { break };
        at = tag.whole.end;
        let opens = tag.name.start == begin + 1;
        if let Some(raw) =
            ["script", "style", "textarea", "xmp"].iter().find(|raw| opens && tag.is(html, raw))
        {
            at = end_of(html, at, raw);
        }
        tags.push(tag);
    }
    tags
}

/// The document with the names of tags and of attributes in lower case (`papers/w3c#compression`).
pub fn in_lower_case(html: &[u8]) -> Vec<u8> {
    let mut lower = html.to_vec();
    for Tag { whole: _, name, attributes } in tags(html) {
        lower[name].make_ascii_lowercase();
        for (name, _) in attributes {
            lower[name].make_ascii_lowercase();
        }
    }
    lower
}

/// The document with tags replaced by others, given in order.
pub fn replaced(html: &[u8], replacements: &[(Range<usize>, String)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(html.len());
    let mut at = 0;
    for (place, text) in replacements {
        out.extend_from_slice(&html[at..place.start]);
        out.extend_from_slice(text.as_bytes());
        at = place.end;
    }
    out.extend_from_slice(&html[at..]);
    out
}

/// A tag; `None` if it is not closed.
fn tag(html: &[u8], begin: usize, name: usize) -> Option<Tag> {
    let is_end = |byte: u8| byte.is_ascii_whitespace() || byte == b'>' || byte == b'/';
    let skip = |from: usize, wanted: &dyn Fn(u8) -> bool| {
        html[from..].iter().position(|byte| !wanted(*byte)).map(|count| from + count)
    };
    let mut at = skip(name, &|byte| !is_end(byte))?;
    let mut tag = Tag { whole: begin..at, name: name..at, attributes: Vec::new() };
    loop {
        at = skip(at, &|byte| byte.is_ascii_whitespace() || byte == b'/')?;
        if html[at] == b'>' {
            tag.whole.end = at + 1;
            return Some(tag);
        }
        // A name may begin with `=`, so that it has at least one character.
        let end = skip(at + 1, &|byte| !is_end(byte) && byte != b'=')?;
        let name = at..end;
        at = skip(end, &|byte| byte.is_ascii_whitespace())?;
        let mut value = None;
        if html[at] == b'=' {
            at = skip(at + 1, &|byte| byte.is_ascii_whitespace())?;
            let quote = html[at];
            let found = if quote == b'"' || quote == b'\'' {
                let end = skip(at + 1, &|byte| byte != quote)?;
                (at + 1..end, end + 1)
            } else {
                let end = skip(at, &|byte| !byte.is_ascii_whitespace() && byte != b'>')?;
                (at..end, end)
            };
            at = found.1;
            value = Some(found.0);
        }
        tag.attributes.push((name, value));
    }
}

fn find(html: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(html.get(from..)?, wanted).map(|place| from + place)
}

/// Position of the end tag of an element that contains no tags.
fn end_of(html: &[u8], mut from: usize, name: &str) -> usize {
    while let Some(place) = find(html, from, b"</") {
        let called = html.get(place + 2..place + 2 + name.len());
        if called.is_some_and(|called| called.eq_ignore_ascii_case(name.as_bytes())) {
            return place;
        }
        from = place + 2;
    }
    html.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_and_attributes_become_lower_case_and_nothing_else() {
        let html = b"<!-- <B> --><TABLE BORDER=0 Title=\"A > B\"><TD>X < Y</TD><SCRIPT>if (a<B) C</SCRIPT><Img SRC='A.GIF'/>";
        let lower = "<!-- <B> --><table border=0 title=\"A > B\"><td>X < Y</td><script>if (a<B) C</script><img src='A.GIF'/>";
        assert_eq!(String::from_utf8(in_lower_case(html)).unwrap(), lower);
    }

    #[test]
    fn attributes_are_found_in_any_case_and_quotes() {
        let html = b"<IMG SRC = 'a.gif' alt=words width=\"7\" ismap>";
        let [tag] = &tags(html)[..] else { panic!() };
        let found = ["src", "alt", "width", "ismap"].map(|name| tag.attribute(html, name));
        assert_eq!(found, [Some("a.gif".into()), Some("words".into()), Some("7".into()), None]);
    }

    proptest! {
        #[test]
        fn any_bytes_have_tags_that_lie_within_them_in_order(html in prop::collection::vec(
            prop::sample::select(b"<>/='\"! -aBscriptSTYLE\n".to_vec()), 0..200)) {
            let mut at = 0;
            for tag in tags(&html) {
                prop_assert!(tag.whole.start >= at && tag.whole.end <= html.len());
                at = tag.whole.end;
            }
            prop_assert!(in_lower_case(&html).eq_ignore_ascii_case(&html));
        }
    }
}
