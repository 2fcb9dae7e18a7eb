//! One change to the whole page, and the resulting objects.
//!
//! Where a form is larger than the original file, the file stays, as a publisher would choose.

use serde::Serialize;

use crate::coding::Coding;
use crate::css::Replacements;
use crate::html;
use crate::{Content, File, FileKind, ImageForms};

/// A change to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// No change.
    AsIs,
    /// Text is compressed with this coding.
    Coded(Coding),
    /// Tags are in lower case, and text is deflated.
    LowerCase,
    /// Stills become PNG, animations MNG.
    PngAndMng,
    /// Stills become PNG, animations APNG.
    PngAndApng,
    /// Stills and animations become WebP.
    Webp,
    /// Stills become JPEG at a quality.
    Jpeg,
    /// Stills and animations become WebP at a quality.
    WebpLossy,
    /// Stills become AVIF at a quality.
    Avif,
    /// Spacers and images of text become rules and words.
    Css,
    /// All changes of the note: lower case, deflate, PNG, MNG, CSS.
    AllOfThen,
    /// Their lossless successors: lower case, Brotli, the smallest of PNG, APNG and WebP, CSS.
    AllOfNow,
    /// The same with the smallest of all formats.
    AllOfNowLossy,
}

/// A fetched object. The field names are the JSON's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The file's path below the page's directory.
    pub path: String,
    /// Its form: a coding, a format, or `as-it-is`.
    pub form: &'static str,
    /// Bytes of the body, at least 1.
    pub bytes: u64,
}

/// Format of an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    AsIs,
    PngAndMng,
    PngAndApng,
    Webp,
    Jpeg,
    WebpLossy,
    Avif,
    SmallestLossless,
    Smallest,
}

impl Step {
    /// Every step that this build supports, in the order of a table; lossy ones only with a quality.
    pub fn all(has_quality: bool) -> impl Iterator<Item = Self> {
        let has_webp = crate::HAS_IMAGE_CODECS;
        let steps = Self::ALL.into_iter().filter(move |step| has_webp || *step != Self::Webp);
        steps.filter(move |step| has_quality || !step.is_lossy())
    }

    const ALL: [Self; 16] = [
        Self::AsIs,
        Self::Coded(Coding::Deflate),
        Self::Coded(Coding::Gzip),
        Self::Coded(Coding::Brotli),
        Self::Coded(Coding::Zstd),
        Self::LowerCase,
        Self::PngAndMng,
        Self::PngAndApng,
        Self::Webp,
        Self::Jpeg,
        Self::WebpLossy,
        Self::Avif,
        Self::Css,
        Self::AllOfThen,
        Self::AllOfNow,
        Self::AllOfNowLossy,
    ];

    fn is_lossy(self) -> bool {
        match self {
            Self::Jpeg | Self::WebpLossy | Self::Avif | Self::AllOfNowLossy => true,
            Self::AsIs
            | Self::Coded(_)
            | Self::LowerCase
            | Self::PngAndMng
            | Self::PngAndApng
            | Self::Webp
            | Self::Css
            | Self::AllOfThen
            | Self::AllOfNow => false,
        }
    }

    /// Name in tables and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsIs => "as-it-is",
            Self::Coded(coding) => coding.name(),
            Self::LowerCase => "lower-case+deflate",
            Self::PngAndMng => "png+mng",
            Self::PngAndApng => "png+apng",
            Self::Webp => "webp",
            Self::Jpeg => "jpeg",
            Self::WebpLossy => "webp-lossy",
            Self::Avif => "avif",
            Self::Css => "css",
            Self::AllOfThen => "all-of-1997",
            Self::AllOfNow => "all-of-today",
            Self::AllOfNowLossy => "all-of-today-lossy",
        }
    }

    /// The remaining objects, in the order of the files.
    pub fn parts(self, content: &Content, replaced: &Replacements) -> Vec<Part> {
        let (coding, is_lower, format, is_styled) = match self {
            Self::AsIs => (None, false, Format::AsIs, false),
            Self::Coded(coding) => (Some(coding), false, Format::AsIs, false),
            Self::LowerCase => (Some(Coding::Deflate), true, Format::AsIs, false),
            Self::PngAndMng => (None, false, Format::PngAndMng, false),
            Self::PngAndApng => (None, false, Format::PngAndApng, false),
            Self::Webp => (None, false, Format::Webp, false),
            Self::Jpeg => (None, false, Format::Jpeg, false),
            Self::WebpLossy => (None, false, Format::WebpLossy, false),
            Self::Avif => (None, false, Format::Avif, false),
            Self::Css => (None, false, Format::AsIs, true),
            Self::AllOfThen => (Some(Coding::Deflate), true, Format::PngAndMng, true),
            Self::AllOfNow => (Some(Coding::Brotli), true, Format::SmallestLossless, true),
            Self::AllOfNowLossy => (Some(Coding::Brotli), true, Format::Smallest, true),
        };
        let files = content.files.iter().enumerate();
        let left = files.filter(|(index, _)| !is_styled || !replaced.images.contains_key(index));
        let part = |(index, file): (usize, &File)| {
            let rewritten = replaced.documents.get(&index).filter(|_| is_styled);
            let (form, bytes) = match &file.kind {
                FileKind::Html | FileKind::Text => file.coded(coding, is_lower, rewritten),
                FileKind::Picture(forms) => file.smallest(forms.in_format(format)),
                FileKind::Other => file.unchanged(),
            };
            Part { path: file.path.clone(), form, bytes: bytes.max(1) }
        };
        left.map(part).collect()
    }
}

impl File {
    fn unchanged(&self) -> (&'static str, u64) {
        ("as-it-is", self.sent.unwrap_or(self.bytes.len() as u64))
    }

    /// The smallest form, or the original if none is smaller.
    fn smallest(&self, forms: impl IntoIterator<Item = (&'static str, u64)>) -> (&'static str, u64) {
        std::iter::once(self.unchanged())
            .chain(forms)
            .min_by_key(|(_, bytes)| *bytes)
            .unwrap_or(self.unchanged())
    }

    /// Text in a coding; `rewritten` replaces the original.
    fn coded(
        &self,
        coding: Option<Coding>,
        is_lower: bool,
        rewritten: Option<&Vec<u8>>,
    ) -> (&'static str, u64) {
        let bytes = rewritten.unwrap_or(&self.bytes);
        let lower = (is_lower && matches!(self.kind, FileKind::Html)).then(|| html::in_lower_case(bytes));
        let bytes = lower.as_ref().unwrap_or(bytes);
        // A file that was sent compressed and then rewritten is compressed again, unless a coding is given.
        let came_compressed = self.sent.is_some_and(|sent| sent < self.bytes.len() as u64);
        let coding = coding.or((rewritten.is_some() && came_compressed).then_some(Coding::Gzip));
        let coded =
            coding.and_then(|coding| coding.encode(bytes).map(|coded| (coding.name(), coded.len() as u64)));
        match rewritten {
            None => self.smallest(coded),
            Some(_) => {
                let plain = ("rewritten", bytes.len() as u64);
                coded.filter(|(_, bytes)| *bytes < plain.1).unwrap_or(plain)
            }
        }
    }
}

impl ImageForms {
    /// The image's forms of a format.
    fn in_format(&self, format: Format) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { picture, png, mng, webp, jpeg, webp_lossy, avif } = self;
        let is_animation = picture.as_ref().is_ok_and(|picture| picture.is_animation());
        let lossless = [("png", png), ("webp", webp)];
        let forms: Vec<(&'static str, &Option<Vec<u8>>)> = match format {
            Format::AsIs => Vec::new(),
            Format::PngAndMng if is_animation => vec![("mng", mng)],
            Format::PngAndMng | Format::PngAndApng => vec![("png", png)],
            Format::Webp => vec![("webp", webp)],
            Format::Jpeg => vec![("jpeg", jpeg)],
            Format::WebpLossy => vec![("webp-lossy", webp_lossy)],
            Format::Avif => vec![("avif", avif)],
            Format::SmallestLossless => lossless.into(),
            Format::Smallest => {
                [&lossless[..], &[("jpeg", jpeg), ("webp-lossy", webp_lossy), ("avif", avif)]].concat()
            }
        };
        forms.into_iter().filter_map(|(name, form)| form.as_ref().map(|form| (name, form.len() as u64)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::make::{self, Source};

    const PIECES: [&str; 22] = [
        "<img src=s.gif",
        "<IMG SRC='s.gif'",
        " width=9",
        " alt=\"a < b\"",
        " usemap",
        "/",
        ">",
        "<",
        "<!--",
        "-->",
        "<head>",
        "</head>",
        "<script>",
        "</script>",
        "<style>",
        "\"",
        "'",
        " ",
        "words",
        "\u{e9}",
        "\0",
        "<p",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_document_is_fetched_in_every_form(pieces in prop::collection::vec(0..PIECES.len(), 1..40)) {
            let html: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
            let spacer = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
            let sources = [("index.html", html.as_bytes()), ("s.gif", spacer)];
            let sources = sources.map(|(path, bytes)| Source::of(path.to_owned(), bytes.to_vec())).to_vec();
            let content = Content { name: "p".to_owned(), files: make::files(sources, None, &|_, _| ()), left_out: Vec::new() };
            let replaced = Replacements::of(&content);
            for step in Step::all(true) {
                let parts = step.parts(&content, &replaced);
                let stays = !matches!(step, Step::Css | Step::AllOfThen | Step::AllOfNow | Step::AllOfNowLossy)
                    || replaced.images.is_empty();
                prop_assert_eq!(parts.len(), if stays { 2 } else { 1 }, "{}", step.name());
                prop_assert!(parts.iter().all(|part| part.bytes > 0), "{}", step.name());
                // The page has one image in one document: both change or neither does.
                prop_assert_eq!(replaced.documents.len(), replaced.images.len());
            }
        }
    }
}
