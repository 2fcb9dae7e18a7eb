//! Cost of a page's content as it is and in other forms: the last part of the W3C note, for any page.
//!
//! Every form is produced and its bytes are counted; nothing is estimated (`papers/w3c#content`). Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Content`]: a page's files, and the forms of each |
//! | [`error`] | reasons why a page cannot be read |
//! | [`directory`] | a directory as a page of a scenario |
//! | [`input`], [`recording`] | a directory, a named site, a browser's recording |
//! | [`html`] | tags: in lower case, and images found and replaced |
//! | [`coding`], [`dictionary`] | deflate, gzip, brotli, zstd; a dictionary for HTML and CSS |
//! | [`picture`], [`still`] | GIF, and PNG and JPEG, decoded within limits |
//! | [`png`], [`mng`], `webp` | the same picture in other formats, without loss |
//! | [`jpeg`], `avif`, and `webp` again | the same at a quality, if one is requested |
//! | [`make`] | all forms of all files, on every CPU |
//! | [`css`] | spacers, symbols and images of text, as CSS rules, characters and text |
//! | [`step`] | one change to the whole page, and the resulting sizes |
//! | [`row`], [`show`], [`gallery`] | tables, JSON and the picture gallery |
//!
//! Looks are not judged. Lossless forms stay the same to the pixel; words that replace an image of text do not, nor
//! do images encoded at a quality.

#[cfg(feature = "image-codecs")]
pub mod avif;
pub mod coding;
pub mod css;
pub mod dictionary;
pub mod directory;
pub mod error;
pub mod gallery;
pub mod html;
pub mod input;
pub mod jpeg;
pub mod make;
pub mod mng;
#[cfg(not(feature = "image-codecs"))]
mod no_codecs;
pub mod picture;
pub mod png;
pub mod recording;
pub mod row;
pub mod show;
pub mod step;
pub mod still;
#[cfg(feature = "image-codecs")]
pub mod webp;

#[cfg(not(feature = "image-codecs"))]
use no_codecs::{avif, webp};
use picture::Picture;

pub use error::Error;

/// Whether WebP and AVIF were built (the feature `image-codecs`); without it no picture has these forms.
pub const HAS_IMAGE_CODECS: bool = cfg!(feature = "image-codecs");

/// A page's files, the document first.
#[derive(Debug)]
pub struct Content {
    /// The directory's or the site's name.
    pub name: String,
    /// Everything that has bytes.
    pub files: Vec<File>,
    /// The files that were left out, in sentences.
    pub left_out: Vec<String>,
}

/// A file of the page.
#[derive(Debug)]
pub struct File {
    /// The path below the page's directory, with slashes.
    pub path: String,
    /// The bytes, decoded.
    pub bytes: Vec<u8>,
    /// Bytes on the wire where the page was recorded: fewer, if the file was sent compressed.
    pub sent: Option<u64>,
    /// Kind of content, with other forms of an image.
    pub kind: FileKind,
}

/// Kind of a file in this study.
#[derive(Debug)]
pub enum FileKind {
    /// HTML: has tags, and names images.
    Html,
    /// Other text: style, script, data.
    Text,
    /// A GIF, PNG or JPEG, with the forms it was given.
    Picture(Box<ImageForms>),
    /// Anything else stays as it is.
    Other,
}

/// An image in other formats.
#[derive(Debug)]
pub struct ImageForms {
    /// The decoded picture, or the reason why the image stays as it is.
    pub picture: Result<Picture, String>,
    /// PNG, or APNG of an animation.
    pub png: Option<Vec<u8>>,
    /// MNG of an animation.
    pub mng: Option<Vec<u8>>,
    /// Lossless WebP.
    pub webp: Option<Vec<u8>>,
    /// JPEG at the requested quality.
    pub jpeg: Option<Vec<u8>>,
    /// WebP at the requested quality.
    pub webp_lossy: Option<Vec<u8>>,
    /// AVIF at the requested quality.
    pub avif: Option<Vec<u8>>,
}

impl File {
    /// Returns the decoded picture, if the file is an image that can be read.
    pub fn picture(&self) -> Option<&Picture> {
        match &self.kind {
            FileKind::Picture(forms) => forms.picture.as_ref().ok(),
            FileKind::Html | FileKind::Text | FileKind::Other => None,
        }
    }
}
