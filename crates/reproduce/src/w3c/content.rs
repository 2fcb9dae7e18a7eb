//! Ours for the note's results on its document and its images: deflate's effect on the document, and the effect of the
//! tags' case (`papers/w3c#compression`); the sizes of the images (`papers/w3c#microscape`) and of their other formats
//! (`papers/w3c#content`), and the size of a word that replaces its image (the same).
//!
//! Not the note's files: Microscape is generated with the published sizes. Its own sizes are exact because of that;
//! only those of other forms are results.

use std::io::Write;
use std::sync::LazyLock;

use content::css::Replacements;
use content::make::{self, Source};
use content::picture::Picture;
use content::{Content, File, FileKind, ImageForms, mng, png};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use scenario::Site;
use wire::Seed;

use super::microscape::{deflate, plain};
use super::{Laboratory, ReproducedValue};
use crate::published::Cell;

/// The document after deflate, by the case of its tags.
pub fn compression(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
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

/// The images as they are, and as PNG and MNG.
pub fn images(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    let ImageBytes { gif, converted } = &SUMS[usize::from(cell.label(0) == "animations")];
    Ok(match cell.column.name.as_str() {
        "gif" => Some(*gif),
        "converted" => Some(*converted),
        "saved" => Some(gif - converted),
        _ => None,
    })
}

/// A quantity that no table prints: `default-over-best`, deflate's default size over that of its best level; `css-saved`,
/// bytes that style sheets save; `deflate-saved`, bytes that deflate saves of the document; `images-saved`, bytes that PNG
/// and MNG save; `images-share`, these in percent of the images; `all-saved`, all of it in percent of the page.
///
/// # Errors
/// The name, if it is unknown.
pub fn quantity(name: &str) -> ReproducedValue {
    let page = plain().page.objects.iter().map(|object| object.size.get()).sum::<u64>() as f64;
    let document = plain().contents.objects.first().ok_or("a page without a document")?;
    let default = deflate(document).len() as f64;
    let [fixed, moving] = &*SUMS;
    let converted = fixed.gif + moving.gif - fixed.converted - moving.converted;
    let deflated = document.len() as f64 - default;
    Ok(Some(match name {
        "default-over-best" => default / best(document) as f64,
        "deflate-saved" => deflated,
        "images-saved" => converted,
        "css-saved" => css_saved(),
        "images-share" => 100.0 * converted / (fixed.gif + moving.gif),
        "payload-share" => 100.0 * converted / page,
        "all-saved" => 100.0 * (deflated + converted + css_saved()) / page,
        _ => return Err(format!("no quantity content/{name}")),
    }))
}

/// Size after deflate at its best level.
fn best(plain: &[u8]) -> usize {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).and_then(|()| encoder.finish()).map_or(0, |bytes| bytes.len())
}

/// Bytes of the page less those of its rewritten form, with its images that style sheets replace left out.
fn css_saved() -> f64 {
    let files = Site::Microscape.files(Seed::default());
    let file = |file: scenario::site::File| {
        let kind = match Picture::of_gif(&file.contents) {
            Ok(picture) => FileKind::Picture(Box::new(ImageForms {
                picture: Ok(picture),
                png: None,
                mng: None,
                webp: None,
                jpeg: None,
                webp_lossy: None,
                avif: None,
            })),
            Err(_) => FileKind::Html,
        };
        File { path: file.path, bytes: file.contents, sent: None, kind }
    };
    let files = files.into_iter().map(file).collect();
    let content = Content { name: String::new(), files, left_out: Vec::new() };
    let replaced = Replacements::of(&content);
    let gone: u64 = replaced.images.keys().map(|place| content.files[*place].bytes.len() as u64).sum();
    let grown: f64 = replaced
        .documents
        .iter()
        .map(|(place, rewritten)| rewritten.len() as f64 - content.files[*place].bytes.len() as f64)
        .sum();
    gone as f64 - grown
}

/// Bytes of several images.
#[derive(Clone, Copy, Default)]
struct ImageBytes {
    gif: f64,
    converted: f64,
}

/// Computed once.
static SUMS: LazyLock<[ImageBytes; 2]> = LazyLock::new(sums);

/// Sums of the static images and of the animations.
fn sums() -> [ImageBytes; 2] {
    let mut sums = [ImageBytes::default(); 2];
    for gif in plain().contents.objects.iter().skip(1) {
        let picture = Picture::of_gif(gif).expect("the images that are generated decode");
        let is_animation = picture.is_animation();
        let made = if is_animation { mng::encode(&picture) } else { png::encode(&picture) };
        let ImageBytes { gif: before, converted } = &mut sums[usize::from(is_animation)];
        *before += gif.len() as f64;
        *converted += made.expect("a picture of a GIF can be written").len() as f64;
    }
    sums
}

/// Replacement of an image of a word in a rewritten document.
pub fn style_sheet(cell: &Cell, _: &mut Laboratory<'_>) -> ReproducedValue {
    const TAG: &str = "<img src=solutions.gif alt=solutions>";
    if cell.column.name != "html-and-css" {
        return Ok(None);
    }
    let html = format!("<html><head></head><body>{TAG}</body></html>");
    let image = word().map_err(|error| error.to_string())?;
    let sources = [("index.html", html.clone().into_bytes()), ("solutions.gif", image)];
    let sources = sources.map(|(path, bytes)| Source::of(path.to_owned(), bytes)).to_vec();
    let content =
        Content { name: String::new(), files: make::files(sources, None, &|_, _| ()), left_out: Vec::new() };
    let rewritten = Replacements::of(&content).documents.remove(&0).ok_or("an image that stays")?;
    Ok(Some((rewritten.len() + TAG.len() - html.len()) as f64))
}

/// White on #FC0: strokes 20 pixels high with the space around them that the note's rule has, in em 4/10 and 11.
fn word() -> Result<Vec<u8>, gif::EncodingError> {
    const LETTERS: u16 = 100;
    let (width, height) = (LETTERS + 11 * 20, 20 + 8);
    let is_ink =
        |x: u16, y: u16| (20..20 + LETTERS).contains(&x) && (4..24).contains(&y) && x.is_multiple_of(5);
    let indices: Vec<u8> =
        (0..height).flat_map(|y| (0..width).map(move |x| u8::from(is_ink(x, y)))).collect();
    let mut file = Vec::new();
    let mut encoder = gif::Encoder::new(&mut file, width, height, &[0xff, 0xcc, 0, 0xff, 0xff, 0xff])?;
    encoder.write_frame(&gif::Frame { width, height, buffer: indices.into(), ..gif::Frame::default() })?;
    drop(encoder);
    Ok(file)
}

/// "42KB".
const KILOBYTE: f64 = 1024.0;

/// The same document with arbitrary case: each tag and each attribute in lower case, in upper case or capitalised, at
/// random. Values and text stay.
fn mixed(lower: &[u8]) -> Vec<u8> {
    let mut random = Seed::default().stream("case of tags", 0);
    let (mut out, mut place, mut hand) = (lower.to_vec(), DocumentContext::Text, 0);
    for byte in &mut out {
        place = match (place, *byte) {
            (DocumentContext::Text, b'<') => DocumentContext::Tag,
            (DocumentContext::Tag | DocumentContext::Word, b'>') => DocumentContext::Text,
            (DocumentContext::Tag | DocumentContext::Word, b'"') => DocumentContext::Value,
            (DocumentContext::Value, b'"') => DocumentContext::Tag,
            (DocumentContext::Tag, letter) if letter.is_ascii_alphabetic() => {
                hand = random.up_to(2);
                if hand > 0 {
                    byte.make_ascii_uppercase();
                }
                DocumentContext::Word
            }
            (DocumentContext::Word, letter) if letter.is_ascii_alphanumeric() => {
                if hand == 1 {
                    byte.make_ascii_uppercase();
                }
                DocumentContext::Word
            }
            (DocumentContext::Tag | DocumentContext::Word, _) => DocumentContext::Tag,
            (place @ (DocumentContext::Text | DocumentContext::Value), _) => place,
        };
    }
    out
}

/// Context of a byte in a document.
#[derive(Clone, Copy)]
enum DocumentContext {
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
