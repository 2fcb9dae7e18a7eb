//! Ours for the note's results on its document: the effects of deflate and of the tags' case (`papers/w3c#compression`).
//! And on its images: their sizes (`papers/w3c#microscape`), those in other formats, and the size of a word that replaces
//! its image (`papers/w3c#content`). Whole pages: [`super::techniques`].
//!
//! Not the note's files: Microscape is generated with the published sizes, and its drawings so that they take the
//! note's bytes as PNG and MNG. Everything else is a result.

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
    let ImageBytes { gif, converted, gamma: _ } = &SUMS[usize::from(cell.label(0) == "animations")];
    Ok(match cell.column.name.as_str() {
        "gif" => Some(*gif),
        "converted" => Some(*converted),
        "saved" => Some(gif - converted),
        _ => None,
    })
}

/// A quantity that no table prints. `default-over-best`: deflate's default size over that of its best level.
/// `css-saved`: bytes that style sheets save, without requests. `symbols`: images that became characters.
/// `images-replaced`, `bytes-replaced`: images that style sheets replace, and their bytes. `gamma`: bytes of gamma for
/// each image.
///
/// # Errors
/// The name, if it is unknown.
pub fn quantity(name: &str) -> ReproducedValue {
    let document = plain().contents.objects.first().ok_or("a page without a document")?;
    let Styled { content, replaced } = &*STYLED;
    let bytes_replaced = || -> f64 {
        replaced
            .images
            .keys()
            .filter_map(|index| content.files.get(*index))
            .map(|file| file.bytes.len() as f64)
            .sum()
    };
    Ok(Some(match name {
        "default-over-best" => deflate(document).len() as f64 / best(document) as f64,
        "css-saved" => bytes_replaced() - grown(),
        "images-replaced" => replaced.images.len() as f64,
        "bytes-replaced" => bytes_replaced(),
        // A character stands as a reference.
        "symbols" => replaced.images.values().filter(|image| image.words.starts_with("&#")).count() as f64,
        "gamma" => SUMS.iter().map(|sum| sum.gamma).sum::<f64>() / (content.files.len() - 1) as f64,
        _ => return Err(format!("no quantity content/{name}")),
    }))
}

/// Size after deflate at its best level.
fn best(plain: &[u8]) -> usize {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).and_then(|()| encoder.finish()).map_or(0, |bytes| bytes.len())
}

/// The page with its decoded images, and their replacements by style sheets.
pub(super) struct Styled {
    /// Files, the document first.
    pub(super) content: Content,
    /// Rewritten document, and the images that it no longer needs.
    pub(super) replaced: Replacements,
}

/// Computed once.
pub(super) static STYLED: LazyLock<Styled> = LazyLock::new(|| {
    let file = |file: page::site::File| {
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
    let files = Site::Microscape.files(Seed::default()).into_iter().map(file).collect();
    let content = Content { name: String::new(), files, left_out: Vec::new() };
    let replaced = Replacements::of(&content);
    Styled { content, replaced }
});

/// Bytes that the rewritten document has more than the original.
fn grown() -> f64 {
    let Styled { content, replaced } = &*STYLED;
    let grown = |(index, rewritten): (&usize, &Vec<u8>)| {
        Some(rewritten.len() as f64 - content.files.get(*index)?.bytes.len() as f64)
    };
    replaced.documents.iter().filter_map(grown).sum()
}

/// An image in the formats of the note: MNG for an animation, PNG otherwise, with gamma.
pub(super) fn converted(picture: &Picture) -> Option<Vec<u8>> {
    if picture.is_animation() { mng::encode_with_gamma(picture) } else { png::encode_unoptimised(picture) }
}

/// Bytes of several images.
#[derive(Clone, Copy, Default)]
struct ImageBytes {
    gif: f64,
    converted: f64,
    /// Bytes of their chunks of gamma.
    gamma: f64,
}

/// Computed once.
static SUMS: LazyLock<[ImageBytes; 2]> = LazyLock::new(sums);

/// Sums of the static images and of the animations.
fn sums() -> [ImageBytes; 2] {
    let mut sums = [ImageBytes::default(); 2];
    for file in &STYLED.content.files {
        let Some(picture) = file.picture() else { continue };
        let made = converted(picture).expect("a picture of a GIF can be written");
        let sum = &mut sums[usize::from(picture.is_animation())];
        sum.gif += file.bytes.len() as f64;
        sum.converted += made.len() as f64;
        sum.gamma += gamma_bytes(&made) as f64;
    }
    sums
}

/// Length of a file's chunk of gamma (RFC 2083, section 3.2), 0 if it has none.
fn gamma_bytes(file: &[u8]) -> usize {
    const SIGNATURE: usize = 8;
    let mut rest = file.get(SIGNATURE..).unwrap_or_default();
    while let Some((length, named)) = rest.split_first_chunk::<4>() {
        let whole = u32::from_be_bytes(*length) as usize + 12;
        if named.starts_with(b"gAMA") {
            return whole;
        }
        rest = rest.get(whole..).unwrap_or_default();
    }
    0
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
    let (mut out, mut context, mut hand) = (lower.to_vec(), DocumentContext::Text, 0);
    for byte in &mut out {
        context = match (context, *byte) {
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
            (context @ (DocumentContext::Text | DocumentContext::Value), _) => context,
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
