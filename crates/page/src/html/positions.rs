//! Positions of the tags of a whole document, for programs that rewrite it.
//!
//! It follows the states of the tokeniser in `tokens`. A tag that never ends has no position.

use std::ops::Range;

use super::tokens::{TokenizerState, Tokens};

/// Byte ranges of a start or end tag and its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagPosition {
    /// The tag from `<` to `>`, both included.
    pub whole: Range<usize>,
    /// `img` of `<img>`, `table` of `</table>`.
    pub name: Range<usize>,
    /// Names and values of a start tag's attributes; values without their quotes.
    pub attributes: Vec<(Range<usize>, Option<Range<usize>>)>,
}

/// Returns every tag, in order.
pub fn tags(html: &[u8]) -> Vec<TagPosition> {
    let (mut tokens, mut tag, mut all) = (Tokens::default(), TagPosition::default(), Vec::new());
    for (at, byte) in html.iter().enumerate() {
        let (before, after) = tokens.advance(*byte);
        if tag.ends(html, at, before, after) {
            all.push(std::mem::take(&mut tag));
        }
    }
    all
}

impl TagPosition {
    /// Whether it has this name, in upper or lower case.
    pub fn is(&self, html: &[u8], name: &str) -> bool {
        html[self.name.clone()].eq_ignore_ascii_case(name.as_bytes())
    }

    /// Whether it is an end tag.
    pub const fn is_end(&self) -> bool {
        self.name.start > self.whole.start + 1
    }

    /// The value of an attribute, as it is written.
    pub fn attribute(&self, html: &[u8], name: &str) -> Option<String> {
        let is_named = |attribute: &&(Range<usize>, Option<Range<usize>>)| {
            html[attribute.0.clone()].eq_ignore_ascii_case(name.as_bytes())
        };
        let (_, value) = self.attributes.iter().find(is_named)?;
        Some(String::from_utf8_lossy(&html[value.clone()?]).into_owned())
    }

    /// Follows the byte at `at`, which led from one state to another. Returns whether it ends the tag.
    fn ends(&mut self, html: &[u8], at: usize, before: TokenizerState, after: TokenizerState) -> bool {
        use TokenizerState::{
            AfterName, BeforeName, BeforeValue, EndTag, Less, LessSlash, Name, Quoted, Raw, TagName, Text,
            Unquoted,
        };
        match (before, after) {
            (Less, TagName) => *self = Self::starting_at(at - 1, at),
            (LessSlash, EndTag) => *self = Self::starting_at(at - 2, at),
            (Raw(_), EndTag | Text) => {
                // The end tag of an element without markup is known at its last letter.
                let begin = html[..at].iter().rposition(|byte| *byte == b'<').unwrap_or_default();
                *self = Self::starting_at(begin, begin + 2);
            }
            (BeforeName | AfterName, Name) => self.attributes.push((at..at, None)),
            _ => {}
        }
        if before == TagName && after != TagName {
            self.name.end = at;
        }
        if let Some((name, value)) = self.attributes.last_mut() {
            match (before, after) {
                (Name, _) if after != Name => name.end = at,
                (BeforeValue, Quoted(_)) => *value = Some(at + 1..at + 1),
                (BeforeValue, Unquoted) => *value = Some(at..at),
                (Quoted(_) | Unquoted, _) if before != after => {
                    value.iter_mut().for_each(|value| value.end = at);
                }
                _ => {}
            }
        }
        let is_end = match before {
            TagName | BeforeName | Name | AfterName | BeforeValue | Unquoted => {
                matches!(after, Text | Raw(_))
            }
            EndTag | Raw(_) => after == Text,
            _ => false,
        };
        if is_end {
            self.whole.end = at + 1;
            if self.is_end() {
                let is_name_byte = |byte: &u8| !byte.is_ascii_whitespace() && !b"/>".contains(byte);
                let length = html[self.name.start..].iter().position(|byte| !is_name_byte(byte));
                self.name.end = self.name.start + length.unwrap_or_default();
            }
        }
        is_end
    }

    fn starting_at(whole: usize, name: usize) -> Self {
        Self { whole: whole..whole, name: name..name, attributes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attributes_are_found_in_any_case_and_quotes() {
        let html = b"<IMG SRC = 'a.gif' alt=words width=\"7\" ismap>";
        let [tag] = &tags(html)[..] else { panic!() };
        let values = ["src", "alt", "width", "ismap"].map(|name| tag.attribute(html, name));
        assert_eq!(values, [Some("a.gif".into()), Some("words".into()), Some("7".into()), None]);
        assert!(tag.is(html, "img") && !tag.is_end() && tag.whole == (0..html.len()));
    }

    #[test]
    fn every_tag_is_found_but_in_comments_and_in_scripts() {
        let html = b"<!-- <B> --><TD>X < Y</TD ><SCRIPT>if (a<B) </SCRIP C</SCRIPT\n><title><b></title><br/>";
        let tags = tags(html);
        let texts: Vec<&[u8]> = tags.iter().map(|tag| &html[tag.whole.clone()]).collect();
        let expected: [&[u8]; 7] =
            [b"<TD>", b"</TD >", b"<SCRIPT>", b"</SCRIPT\n>", b"<title>", b"</title>", b"<br/>"];
        assert_eq!(texts, expected);
        let names: Vec<&[u8]> = tags.iter().map(|tag| &html[tag.name.clone()]).collect();
        let expected: [&[u8]; 7] = [b"TD", b"TD", b"SCRIPT", b"SCRIPT", b"title", b"title", b"br"];
        assert_eq!(names, expected);
        let ends: Vec<bool> = tags.iter().map(TagPosition::is_end).collect();
        assert_eq!(ends, [false, true, false, true, false, true, false]);
    }

    proptest! {
        #[test]
        fn any_bytes_have_tags_that_lie_within_them_in_order(html in prop::collection::vec(
            prop::sample::select(b"<>/='\"! -aBscriptSTYLE\n".to_vec()), 0..200)) {
            let mut at = 0;
            for TagPosition { whole, name, attributes } in tags(&html) {
                prop_assert!(whole.start >= at && whole.end <= html.len());
                at = whole.end;
                let parts = attributes.into_iter().flat_map(|(name, value)| [Some(name), value]).flatten();
                let mut inner = whole.start;
                for part in [name].into_iter().chain(parts) {
                    prop_assert!(part.start >= inner && part.start <= part.end && part.end < whole.end);
                    inner = part.end;
                }
            }
        }
    }
}
