//! What a page's content costs, and what it would cost in other forms: the last part of the W3C note, for any page.
//!
//! Every form is really made, and its bytes are counted; nothing is estimated (`papers/w3c#content`). Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | (here) | [`Content`]: a page's files, and what each was made into |
//! | [`input`], [`recording`] | a folder, a named site, a browser's recording |
//! | [`html`] | tags: in lower case, and images found and replaced |
//! | [`coding`] | deflate, gzip, brotli, zstd |
//! | [`picture`], [`still`] | GIF, and PNG and JPEG, decoded within limits |
//! | [`png`], [`mng`], `webp` | the same picture in other formats, without loss |
//! | [`jpeg`], `avif`, and `webp` again | the same at a quality, if one is asked for |
//! | [`make`] | all forms of all files, on every processor |
//! | [`css`] | spacers and images of text, as rules and words |
//! | [`step`] | one change to all of the page, and the sizes that come of it |
//! | [`row`], [`show`], [`gallery`] | what people and programs see |
//!
//! Not a judge of looks: what is lossless stays the same to the pixel, but words that replace an image of them will not,
//! nor what was made at a quality.

#[cfg(feature = "image-codecs")]
pub mod avif;
pub mod coding;
pub mod css;
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

/// A page's files, the document first.
#[derive(Debug)]
pub struct Content {
    /// The folder's or the site's name.
    pub name: String,
    /// Everything that has bytes.
    pub files: Vec<File>,
    /// What is not among them, in sentences.
    pub left_out: Vec<String>,
}

/// One file.
#[derive(Debug)]
pub struct File {
    /// Below the page's folder, with slashes.
    pub path: String,
    /// As it is, decoded.
    pub bytes: Vec<u8>,
    /// How many bytes it had on the wire, where it was recorded: fewer, if it came compressed.
    pub sent: Option<u64>,
    /// What is in it.
    pub kind: Kind,
}

/// What a file is to this study.
#[derive(Debug)]
pub enum Kind {
    /// HTML: has tags, and names images.
    Html,
    /// Other text: style, script, data.
    Text,
    /// A GIF, PNG or JPEG, with the forms it was given.
    Picture(Box<Forms>),
    /// Anything else stays as it is.
    Other,
}

/// An image in other formats.
#[derive(Debug)]
pub struct Forms {
    /// What it shows, or why it stays as it is.
    pub picture: Result<Picture, String>,
    /// PNG, or of an animation APNG.
    pub png: Option<Vec<u8>>,
    /// Of an animation.
    pub mng: Option<Vec<u8>>,
    /// WebP without loss.
    pub webp: Option<Vec<u8>>,
    /// JPEG at the quality that was asked for.
    pub jpeg: Option<Vec<u8>>,
    /// WebP at the same.
    pub webp_lossy: Option<Vec<u8>>,
    /// AVIF at the same.
    pub avif: Option<Vec<u8>>,
}

impl File {
    /// What it shows, if it is an image that can be read.
    pub fn picture(&self) -> Option<&Picture> {
        match &self.kind {
            Kind::Picture(forms) => forms.picture.as_ref().ok(),
            Kind::Html | Kind::Text | Kind::Other => None,
        }
    }
}
