//! Ours for what the note says of its document and its images: what deflate makes of the one, and what case tags are in
//! (`papers/w3c#compression`), and how large the others are (`papers/w3c#microscape`).
//!
//! Not the note's files: Microscape is made up to the published sizes. Its own are exact because of that, and what is made
//! of them is what tells something.

use wire::Seed;

use super::microscape::{deflate, plain};
use super::{Measured, Ours};
use crate::reproduce::published::Cell;

/// The document after deflate, by the case of its tags.
pub fn compression(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    let lower = plain().contents.objects.first().ok_or("a page without a document")?;
    let document = match cell.label(0) {
        "lower-case" => lower.to_vec(),
        "mixed-case" => mixed(lower),
        _ => return Ok(None),
    };
    let (plain_size, deflated) = (document.len() as f64, deflate(&document).len() as f64);
    Ok(match cell.column.name.as_str() {
        "plain" => Some(plain_size / KILOBYTE),
        "deflated" => Some(deflated / KILOBYTE),
        "ratio" => Some(deflated / plain_size),
        "payload-saved" => {
            let page = plain().page.objects.iter().map(|object| object.size.get()).sum::<u64>() as f64;
            Some(100.0 * (plain_size - deflated) / page)
        }
        _ => None,
    })
}

/// The images as they are; what they would be in another format takes the formats.
pub fn images(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    let images = plain().contents.objects.iter().skip(1);
    let is_wanted = |image: &[u8]| is_animation(image) == (cell.label(0) == "animations");
    Ok(match cell.column.name.as_str() {
        "gif" => Some(images.filter(|image| is_wanted(image)).map(|image| image.len() as f64).sum()),
        _ => None,
    })
}

/// "42KB".
const KILOBYTE: f64 = 1024.0;

/// Only an animation says how often it is shown.
fn is_animation(gif: &[u8]) -> bool {
    memchr::memmem::find(gif, b"NETSCAPE2.0").is_some()
}

/// The same document as if nobody had minded: each tag and each attribute in lower case, in upper case or with a capital, by
/// chance. Values and text stay.
fn mixed(lower: &[u8]) -> Vec<u8> {
    let mut random = Seed::default().stream("case of tags", 0);
    let (mut out, mut place, mut hand) = (lower.to_vec(), Place::Text, 0);
    for byte in &mut out {
        place = match (place, *byte) {
            (Place::Text, b'<') => Place::Tag,
            (Place::Tag | Place::Word, b'>') => Place::Text,
            (Place::Tag | Place::Word, b'"') => Place::Value,
            (Place::Value, b'"') => Place::Tag,
            (Place::Tag, letter) if letter.is_ascii_alphabetic() => {
                hand = random.up_to(2);
                if hand > 0 {
                    byte.make_ascii_uppercase();
                }
                Place::Word
            }
            (Place::Word, letter) if letter.is_ascii_alphanumeric() => {
                if hand == 1 {
                    byte.make_ascii_uppercase();
                }
                Place::Word
            }
            (Place::Tag | Place::Word, _) => Place::Tag,
            (place @ (Place::Text | Place::Value), _) => place,
        };
    }
    out
}

/// Where in a document a byte stands.
#[derive(Clone, Copy)]
enum Place {
    Text,
    Tag,
    /// In the name of a tag or of an attribute.
    Word,
    /// Between quotes.
    Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_attributes_change_case_and_neither_values_nor_text_do() {
        let page = b"<p align=\"left\">a b</p>".repeat(100);
        let mixed = String::from_utf8(mixed(&page)).unwrap();
        assert_eq!(mixed.to_lowercase().as_bytes(), page);
        assert_eq!(mixed.matches("=\"left\">a b</").count(), 100);
        assert!(["<p ", "<P ", " align=", " ALIGN=", " Align="].iter().all(|name| mixed.contains(name)));
    }
}
