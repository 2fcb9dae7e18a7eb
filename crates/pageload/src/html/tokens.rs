//! Tokeniser: tags, attributes, comments and raw text (HTML, section 13.2.5), byte by byte.
//!
//! Tags are interpreted elsewhere. Text is not stored; of a tag only attributes that some element embeds
//! something by.

use super::entity;

/// Tokeniser of a document; reports each start tag when it ends.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    at: At,
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

/// Attributes that are stored; every name of an attribute or element is shorter than [`NAME_MOST`].
const ATTRIBUTES: [&[u8]; 8] =
    [b"src", b"href", b"rel", b"type", b"background", b"data", b"poster", b"xlink:href"];
/// Maximum length of a name; longer ones are irrelevant.
const NAME_MOST: usize = 16;
/// Maximum length of a value: servers need not accept such a path (RFC 9112, section 3).
const VALUE_MOST: usize = 8_000;

/// State of the tokeniser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
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
    /// In an element whose content is not markup, with the part of its end tag that has come.
    Raw(RawEnd),
}

/// Part of the end of a comment that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dashes {
    /// Nothing yet: `<!-->` and `<!--->` are whole comments.
    Start,
    StartDash,
    None,
    One,
    Two,
    /// `--!`
    Bang,
}

/// Part of the end of raw text that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RawEnd {
    None,
    Less,
    /// `</` and this number of letters of the element's name.
    Name(usize),
}

/// Elements whose content is text up to their end tag.
const RAW: [&[u8]; 8] =
    [b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes"];

impl Tokens {
    pub(super) fn take(&mut self, bytes: &[u8], mut ended: impl FnMut(&Tag)) {
        let mut rest = bytes;
        while let Some((byte, behind)) = rest.split_first() {
            if self.at == At::Text && *byte != b'<' {
                // Most of a document is text: there is nothing to do before the next tag.
                let text = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
                rest = rest.get(text..).unwrap_or_default();
                continue;
            }
            rest = behind;
            self.at = self.step(*byte, &mut ended);
        }
    }

    /// Number of bytes stored.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let values = self.tag.attributes.iter().map(|(_, value)| value.capacity());
        self.tag.name.capacity() + self.name.capacity() + self.value.capacity() + values.sum::<usize>()
    }

    fn step(&mut self, byte: u8, ended: &mut impl FnMut(&Tag)) -> At {
        match (self.at, byte) {
            (At::Text, b'<') => At::Less,
            (At::Text, _) => At::Text,
            (At::Less, b'/') => At::LessSlash,
            (At::Less, b'!') => At::Bang,
            (At::Less, b'?') => At::Bogus,
            (At::Less, b'<') => At::Less,
            (At::Less, _) if byte.is_ascii_alphabetic() => self.open(byte),
            (At::Less, _) => At::Text,
            (At::LessSlash, b'>') => At::Text,
            (At::LessSlash, _) if byte.is_ascii_alphabetic() => At::EndTag,
            (At::LessSlash, _) => At::Bogus,
            (At::TagName, b'>') => self.end(ended),
            (At::TagName, b'/') => At::BeforeName,
            (At::TagName, _) if is_space(byte) => At::BeforeName,
            (At::TagName, _) => {
                keep(&mut self.tag.name, byte.to_ascii_lowercase(), NAME_MOST);
                At::TagName
            }
            (At::BeforeName, b'>') => self.end(ended),
            (At::BeforeName, b'/') => At::BeforeName,
            (At::BeforeName, _) if is_space(byte) => At::BeforeName,
            (At::BeforeName, _) => self.begin_name(byte),
            (At::Name, b'=') => At::BeforeValue,
            (At::Name, b'>') => self.end(ended),
            (At::Name, b'/') => At::BeforeName,
            (At::Name, _) if is_space(byte) => At::AfterName,
            (At::Name, _) => {
                keep(&mut self.name, byte.to_ascii_lowercase(), NAME_MOST);
                At::Name
            }
            (At::AfterName, b'=') => At::BeforeValue,
            (At::AfterName, b'>') => self.end(ended),
            (At::AfterName, b'/') => At::BeforeName,
            (At::AfterName, _) if is_space(byte) => At::AfterName,
            (At::AfterName, _) => self.begin_name(byte),
            (At::BeforeValue, b'"' | b'\'') => At::Quoted(byte),
            (At::BeforeValue, b'>') => self.end(ended),
            (At::BeforeValue, _) if is_space(byte) => At::BeforeValue,
            (At::Quoted(quote), _) if byte == quote => {
                self.attribute();
                At::BeforeName
            }
            (At::Quoted(quote), _) => {
                self.keep_value(byte);
                At::Quoted(quote)
            }
            (At::Unquoted, b'>') => {
                self.attribute();
                self.end(ended)
            }
            (At::Unquoted, _) if is_space(byte) => {
                self.attribute();
                At::BeforeName
            }
            (At::BeforeValue | At::Unquoted, _) => {
                self.keep_value(byte);
                At::Unquoted
            }
            (At::EndTag | At::Bogus, b'>') => At::Text,
            (At::EndTag, b'"' | b'\'') => At::EndTagQuoted(byte),
            (At::EndTag, _) => At::EndTag,
            (At::EndTagQuoted(quote), _) if byte == quote => At::EndTag,
            (At::EndTagQuoted(quote), _) => At::EndTagQuoted(quote),
            (At::Bang, b'-') => At::BangDash,
            (At::Bang | At::BangDash, b'>') => At::Text,
            (At::BangDash, b'-') => At::Comment(Dashes::Start),
            (At::Bang | At::BangDash | At::Bogus, _) => At::Bogus,
            (At::Comment(dashes), _) => dashes.step(byte),
            (At::Raw(end), _) => self.raw(end, byte),
        }
    }

    /// Begins a start tag with this byte.
    fn open(&mut self, byte: u8) -> At {
        self.tag.name.clear();
        self.tag.attributes.clear();
        self.tag.name.push(byte.to_ascii_lowercase());
        At::TagName
    }

    fn begin_name(&mut self, byte: u8) -> At {
        self.name.clear();
        self.value.clear();
        self.name.push(byte.to_ascii_lowercase());
        At::Name
    }

    fn keep_value(&mut self, byte: u8) {
        if ATTRIBUTES.contains(&self.name.as_slice()) {
            keep(&mut self.value, byte, VALUE_MOST);
        }
    }

    /// Ends an attribute with a value: it is stored if it is relevant, and is the first of its name.
    fn attribute(&mut self) {
        let Some(name) = ATTRIBUTES.into_iter().find(|name| *name == self.name) else { return };
        if self.value.len() <= VALUE_MOST && self.tag.attributes.iter().all(|(before, _)| *before != name) {
            self.tag.attributes.push((name, self.value.clone()));
        }
    }

    fn end(&mut self, ended: &mut impl FnMut(&Tag)) -> At {
        ended(&self.tag);
        if RAW.contains(&self.tag.name()) { At::Raw(RawEnd::None) } else { At::Text }
    }

    fn raw(&self, end: RawEnd, byte: u8) -> At {
        let name = self.tag.name();
        match (end, byte) {
            (_, b'<') => At::Raw(RawEnd::Less),
            (RawEnd::Less, b'/') => At::Raw(RawEnd::Name(0)),
            (RawEnd::Name(read), b'>') if read == name.len() => At::Text,
            (RawEnd::Name(read), _) if read == name.len() && (is_space(byte) || byte == b'/') => At::EndTag,
            (RawEnd::Name(read), _) if name.get(read) == Some(&byte.to_ascii_lowercase()) => {
                At::Raw(RawEnd::Name(read + 1))
            }
            (RawEnd::None | RawEnd::Less | RawEnd::Name(_), _) => At::Raw(RawEnd::None),
        }
    }
}

impl Dashes {
    fn step(self, byte: u8) -> At {
        match (self, byte) {
            (Self::Start | Self::StartDash | Self::Two | Self::Bang, b'>') => At::Text,
            (Self::Start, b'-') => At::Comment(Self::StartDash),
            (Self::None | Self::Bang, b'-') => At::Comment(Self::One),
            (Self::StartDash | Self::One | Self::Two, b'-') => At::Comment(Self::Two),
            (Self::Two, b'!') => At::Comment(Self::Bang),
            (Self::Start | Self::StartDash | Self::None | Self::One | Self::Two | Self::Bang, _) => {
                At::Comment(Self::None)
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
        let found = self.attributes.iter().find(|(attribute, _)| *attribute == name);
        found.map(|(_, value)| entity::decode(value))
    }
}

fn is_space(byte: u8) -> bool {
    b" \t\n\r\x0c".contains(&byte)
}

/// Stores a byte; at most one more than `most`, which marks the value as too long.
fn keep(kept: &mut Vec<u8>, byte: u8, most: usize) {
    if kept.len() <= most {
        kept.push(byte);
    }
}
