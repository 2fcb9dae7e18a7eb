//! An HTML document with its tags rewritten: in lower case, or replaced.
//!
//! `page` finds the tags. Comments, and text between the tags of script and style, stay as they are.

use std::ops::Range;

use page::html::positions::{TagPosition, tags};

/// Returns the document with the names of tags and of attributes in lower case (`papers/w3c#compression`).
pub fn in_lower_case(html: &[u8]) -> Vec<u8> {
    let mut lower = html.to_vec();
    for TagPosition { whole: _, name, attributes } in tags(html) {
        lower[name].make_ascii_lowercase();
        for (name, _) in attributes {
            lower[name].make_ascii_lowercase();
        }
    }
    lower
}

/// Returns the document with tags replaced by others, given in order.
pub fn replaced(html: &[u8], replacements: &[(Range<usize>, String)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(html.len());
    let mut at = 0;
    for (range, text) in replacements {
        out.extend_from_slice(&html[at..range.start]);
        out.extend_from_slice(text.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(&html[at..]);
    out
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

    proptest! {
        #[test]
        fn only_case_changes_in_any_bytes(html in prop::collection::vec(
            prop::sample::select(b"<>/='\"! -aBscriptSTYLE\n".to_vec()), 0..200)) {
            prop_assert!(in_lower_case(&html).eq_ignore_ascii_case(&html));
        }
    }
}
