//! Tokeniser: tags, attributes, comments and raw text (HTML, section 13.2.5), byte by byte.
//!
//! The parent module interprets tags. Text is not stored; of a tag only attributes that can embed an object
//! are.

use super::entity;

/// Tokeniser of a document; reports each start tag when it ends.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    state: TokenizerState,
    tag: Tag,
    /// Bytes of the current name.
    name: Vec<u8>,
    /// Bytes of the current value.
    value: Vec<u8>,
}

/// A start tag.
#[derive(Debug, Default)]
pub(super) struct Tag {
    /// Name in lower case; truncated if it is too long.
    name: Vec<u8>,
    /// Name and value, with undecoded character references; at most one of each name in [`ATTRIBUTES`].
    attributes: Vec<(&'static [u8], Vec<u8>)>,
}

/// Attributes that are stored; every name of an attribute or element is shorter than [`MAX_NAME_BYTES`].
const ATTRIBUTES: [&[u8]; 8] =
    [b"src", b"href", b"rel", b"type", b"background", b"data", b"poster", b"xlink:href"];
/// Maximum length of a name; longer ones are irrelevant.
const MAX_NAME_BYTES: usize = 16;
/// Maximum length of a value: servers need not accept such a path (RFC 9112, section 3).
const MAX_VALUE_BYTES: usize = 8_000;

/// State of the tokeniser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TokenizerState {
    #[default]
    Text,
    /// After `<`.
    Less,
    /// After `</`.
    LessSlash,
    /// In the name of a tag.
    TagName,
    /// Between attributes.
    BeforeName,
    /// In the name of an attribute.
    Name,
    /// After the name, where a `=` may follow.
    AfterName,
    /// After the `=`.
    BeforeValue,
    /// In a value that ends with this quote.
    Quoted(u8),
    Unquoted,
    /// In an end tag, outside and inside of quotes: its contents are ignored.
    EndTag,
    EndTagQuoted(u8),
    /// After `<!`.
    Bang,
    /// After `<!-`.
    BangDash,
    /// In a comment.
    Comment(Dashes),
    /// In a bogus comment of the standard, and in a doctype: up to `>`.
    Bogus,
    /// In an element whose content is not markup, with the part of its end tag received so far.
    Raw(RawEnd),
}

/// Part of the end of a comment received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dashes {
    /// Nothing yet: `<!-->` and `<!--->` are whole comments.
    Start,
    StartDash,
    None,
    One,
    Two,
    /// `--!`
    Bang,
}

/// Part of the end of raw text received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawEnd {
    None,
    Less,
    /// `</` and this number of letters of the element's name.
    Name(usize),
}

/// Elements whose content is text up to their end tag.
const RAW: [&[u8]; 8] =
    [b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes"];

impl Tokens {
    pub(super) fn take(&mut self, bytes: &[u8], mut on_tag: impl FnMut(&Tag)) {
        let mut rest = bytes;
        while let Some((byte, tail)) = rest.split_first() {
            if self.state == TokenizerState::Text && *byte != b'<' {
                // Most of a document is text: there is nothing to do before the next tag.
                let text = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
                rest = rest.get(text..).unwrap_or_default();
                continue;
            }
            rest = tail;
            self.state = self.step(*byte, &mut on_tag);
        }
    }

    /// Takes one byte; returns the states before and after it.
    pub(super) fn advance(&mut self, byte: u8) -> (TokenizerState, TokenizerState) {
        let before = self.state;
        self.state = self.step(byte, &mut |_| {});
        (before, self.state)
    }

    /// Number of bytes stored.
    #[cfg(test)]
    pub(super) fn retained(&self) -> usize {
        let values = self.tag.attributes.iter().map(|(_, value)| value.capacity());
        self.tag.name.capacity() + self.name.capacity() + self.value.capacity() + values.sum::<usize>()
    }

    fn step(&mut self, byte: u8, on_tag: &mut impl FnMut(&Tag)) -> TokenizerState {
        match (self.state, byte) {
            (TokenizerState::Text, b'<') => TokenizerState::Less,
            (TokenizerState::Text, _) => TokenizerState::Text,
            (TokenizerState::Less, b'/') => TokenizerState::LessSlash,
            (TokenizerState::Less, b'!') => TokenizerState::Bang,
            (TokenizerState::Less, b'?') => TokenizerState::Bogus,
            (TokenizerState::Less, b'<') => TokenizerState::Less,
            (TokenizerState::Less, _) if byte.is_ascii_alphabetic() => self.open(byte),
            (TokenizerState::Less, _) => TokenizerState::Text,
            (TokenizerState::LessSlash, b'>') => TokenizerState::Text,
            (TokenizerState::LessSlash, _) if byte.is_ascii_alphabetic() => TokenizerState::EndTag,
            (TokenizerState::LessSlash, _) => TokenizerState::Bogus,
            (TokenizerState::TagName, b'>') => self.end(on_tag),
            (TokenizerState::TagName, b'/') => TokenizerState::BeforeName,
            (TokenizerState::TagName, _) if is_space(byte) => TokenizerState::BeforeName,
            (TokenizerState::TagName, _) => {
                push_bounded(&mut self.tag.name, byte.to_ascii_lowercase(), MAX_NAME_BYTES);
                TokenizerState::TagName
            }
            (TokenizerState::BeforeName, b'>') => self.end(on_tag),
            (TokenizerState::BeforeName, b'/') => TokenizerState::BeforeName,
            (TokenizerState::BeforeName, _) if is_space(byte) => TokenizerState::BeforeName,
            (TokenizerState::BeforeName, _) => self.begin_name(byte),
            (TokenizerState::Name, b'=') => TokenizerState::BeforeValue,
            (TokenizerState::Name, b'>') => self.end(on_tag),
            (TokenizerState::Name, b'/') => TokenizerState::BeforeName,
            (TokenizerState::Name, _) if is_space(byte) => TokenizerState::AfterName,
            (TokenizerState::Name, _) => {
                push_bounded(&mut self.name, byte.to_ascii_lowercase(), MAX_NAME_BYTES);
                TokenizerState::Name
            }
            (TokenizerState::AfterName, b'=') => TokenizerState::BeforeValue,
            (TokenizerState::AfterName, b'>') => self.end(on_tag),
            (TokenizerState::AfterName, b'/') => TokenizerState::BeforeName,
            (TokenizerState::AfterName, _) if is_space(byte) => TokenizerState::AfterName,
            (TokenizerState::AfterName, _) => self.begin_name(byte),
            (TokenizerState::BeforeValue, b'"' | b'\'') => TokenizerState::Quoted(byte),
            (TokenizerState::BeforeValue, b'>') => self.end(on_tag),
            (TokenizerState::BeforeValue, _) if is_space(byte) => TokenizerState::BeforeValue,
            (TokenizerState::Quoted(quote), _) if byte == quote => {
                self.attribute();
                TokenizerState::BeforeName
            }
            (TokenizerState::Quoted(quote), _) => {
                self.push_value(byte);
                TokenizerState::Quoted(quote)
            }
            (TokenizerState::Unquoted, b'>') => {
                self.attribute();
                self.end(on_tag)
            }
            (TokenizerState::Unquoted, _) if is_space(byte) => {
                self.attribute();
                TokenizerState::BeforeName
            }
            (TokenizerState::BeforeValue | TokenizerState::Unquoted, _) => {
                self.push_value(byte);
                TokenizerState::Unquoted
            }
            (TokenizerState::EndTag | TokenizerState::Bogus, b'>') => TokenizerState::Text,
            (TokenizerState::EndTag, b'"' | b'\'') => TokenizerState::EndTagQuoted(byte),
            (TokenizerState::EndTag, _) => TokenizerState::EndTag,
            (TokenizerState::EndTagQuoted(quote), _) if byte == quote => TokenizerState::EndTag,
            (TokenizerState::EndTagQuoted(quote), _) => TokenizerState::EndTagQuoted(quote),
            (TokenizerState::Bang, b'-') => TokenizerState::BangDash,
            (TokenizerState::Bang | TokenizerState::BangDash, b'>') => TokenizerState::Text,
            (TokenizerState::BangDash, b'-') => TokenizerState::Comment(Dashes::Start),
            (TokenizerState::Bang | TokenizerState::BangDash | TokenizerState::Bogus, _) => {
                TokenizerState::Bogus
            }
            (TokenizerState::Comment(dashes), _) => dashes.step(byte),
            (TokenizerState::Raw(end), _) => self.raw(end, byte),
        }
    }

    /// Begins a start tag with this byte.
    fn open(&mut self, byte: u8) -> TokenizerState {
        self.tag.name.clear();
        self.tag.attributes.clear();
        self.tag.name.push(byte.to_ascii_lowercase());
        TokenizerState::TagName
    }

    fn begin_name(&mut self, byte: u8) -> TokenizerState {
        self.name.clear();
        self.value.clear();
        self.name.push(byte.to_ascii_lowercase());
        TokenizerState::Name
    }

    fn push_value(&mut self, byte: u8) {
        if ATTRIBUTES.contains(&self.name.as_slice()) {
            push_bounded(&mut self.value, byte, MAX_VALUE_BYTES);
        }
    }

    /// Ends an attribute with a value: it is stored if it is relevant, and is the first of its name.
    fn attribute(&mut self) {
        let Some(name) = ATTRIBUTES.into_iter().find(|name| *name == self.name) else { return };
        if self.value.len() <= MAX_VALUE_BYTES
            && self.tag.attributes.iter().all(|(before, _)| *before != name)
        {
            self.tag.attributes.push((name, self.value.clone()));
        }
    }

    fn end(&mut self, on_tag: &mut impl FnMut(&Tag)) -> TokenizerState {
        on_tag(&self.tag);
        if RAW.contains(&self.tag.name()) { TokenizerState::Raw(RawEnd::None) } else { TokenizerState::Text }
    }

    fn raw(&self, end: RawEnd, byte: u8) -> TokenizerState {
        let name = self.tag.name();
        match (end, byte) {
            (_, b'<') => TokenizerState::Raw(RawEnd::Less),
            (RawEnd::Less, b'/') => TokenizerState::Raw(RawEnd::Name(0)),
            (RawEnd::Name(matched), b'>') if matched == name.len() => TokenizerState::Text,
            (RawEnd::Name(matched), _) if matched == name.len() && (is_space(byte) || byte == b'/') => {
                TokenizerState::EndTag
            }
            (RawEnd::Name(matched), _) if name.get(matched) == Some(&byte.to_ascii_lowercase()) => {
                TokenizerState::Raw(RawEnd::Name(matched + 1))
            }
            (RawEnd::None | RawEnd::Less | RawEnd::Name(_), _) => TokenizerState::Raw(RawEnd::None),
        }
    }
}

impl Dashes {
    fn step(self, byte: u8) -> TokenizerState {
        match (self, byte) {
            (Self::Start | Self::StartDash | Self::Two | Self::Bang, b'>') => TokenizerState::Text,
            (Self::Start, b'-') => TokenizerState::Comment(Self::StartDash),
            (Self::None | Self::Bang, b'-') => TokenizerState::Comment(Self::One),
            (Self::StartDash | Self::One | Self::Two, b'-') => TokenizerState::Comment(Self::Two),
            (Self::Two, b'!') => TokenizerState::Comment(Self::Bang),
            (Self::Start | Self::StartDash | Self::None | Self::One | Self::Two | Self::Bang, _) => {
                TokenizerState::Comment(Self::None)
            }
        }
    }
}

impl Tag {
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The value of an attribute, character references decoded.
    pub(super) fn value(&self, name: &[u8]) -> Option<Vec<u8>> {
        let entry = self.attributes.iter().find(|(attribute, _)| *attribute == name);
        entry.map(|(_, value)| entity::decode(value))
    }
}

fn is_space(byte: u8) -> bool {
    b" \t\n\r\x0c".contains(&byte)
}

/// Stores a byte; at most one more than `max`, which marks the value as too long.
fn push_bounded(retained: &mut Vec<u8>, byte: u8, max: usize) {
    if retained.len() <= max {
        retained.push(byte);
    }
}
