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
//! | [`picture`] | GIF, decoded within limits |
//! | [`png`], [`mng`], [`webp`] | the same picture in other formats, without loss |
//! | [`css`] | spacers and images of text, as rules and words |
//! | [`step`] | one change to all of the page, and the sizes that come of it |
//! | [`row`], [`show`] | what people and programs see |
//!
//! Not a judge of looks: what is lossless stays the same to the pixel, but words that replace an image of them will not.

pub mod coding;
pub mod css;
pub mod html;
pub mod input;
pub mod mng;
pub mod picture;
pub mod png;
pub mod recording;
pub mod row;
pub mod show;
pub mod step;
pub mod webp;

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
    /// A GIF, with the forms it was given.
    Picture(Box<Forms>),
    /// A GIF that does not decode: why.
    Broken(String),
    /// Anything else stays as it is.
    Other,
}

/// A GIF in other formats.
#[derive(Debug)]
pub struct Forms {
    /// What it shows.
    pub picture: Picture,
    /// PNG, or of an animation APNG.
    pub png: Option<Vec<u8>>,
    /// Of an animation.
    pub mng: Option<Vec<u8>>,
    /// WebP without loss.
    pub webp: Option<Vec<u8>>,
}

impl File {
    /// Looks into a file and makes all its forms.
    pub fn of(path: String, bytes: Vec<u8>) -> Self {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_owned();
        Self::called(path, &ending, bytes)
    }

    /// The same, as if its path had this ending.
    pub fn called(path: String, ending: &str, bytes: Vec<u8>) -> Self {
        let kind = match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" => Kind::Html,
            "css" | "js" | "mjs" | "json" | "map" | "svg" | "txt" | "xml" => Kind::Text,
            _ if bytes.starts_with(b"GIF8") || ending.eq_ignore_ascii_case("gif") => {
                match Picture::of_gif(&bytes) {
                    Ok(picture) => Kind::Picture(Box::new(Forms::of(picture))),
                    Err(why) => Kind::Broken(why),
                }
            }
            _ => Kind::Other,
        };
        Self { path, bytes, sent: None, kind }
    }

    /// Whether a content coding is worth trying.
    pub fn is_text(&self) -> bool {
        match self.kind {
            Kind::Html | Kind::Text => true,
            Kind::Picture(_) | Kind::Broken(_) | Kind::Other => false,
        }
    }
}

impl Forms {
    fn of(picture: Picture) -> Self {
        Self {
            png: png::encode(&picture),
            mng: picture.is_animation().then(|| mng::encode(&picture)).flatten(),
            webp: webp::encode(&picture),
            picture,
        }
    }
}
