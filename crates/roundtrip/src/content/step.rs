//! One change to all of a page, and the sizes of its objects that come of it.
//!
//! Wherever a form is larger than the file, the file stays, as whoever publishes it would have it.

use super::coding::Coding;
use super::css::Replaced;
use super::html;
use super::{Content, File, Kind};

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    AsIs,
    /// Text is coded.
    Coded(Coding),
    /// Tags are in lower case, and text is deflated.
    LowerCase,
    /// Stills become PNG, animations MNG.
    PngAndMng,
    /// Stills become PNG, animations APNG.
    PngAndApng,
    /// Stills and animations become WebP.
    Webp,
    /// Spacers and images of text become rules and words.
    Css,
    /// All that the note does: lower case, deflate, PNG, MNG, CSS.
    AllOfThen,
    /// What replaced it: lower case, Brotli, WebP, CSS.
    AllOfNow,
}

/// What an image becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Gif,
    PngAndMng,
    PngAndApng,
    Webp,
}

impl Step {
    /// Every one, in the order of a table.
    pub const ALL: [Self; 12] = [
        Self::AsIs,
        Self::Coded(Coding::Deflate),
        Self::Coded(Coding::Gzip),
        Self::Coded(Coding::Brotli),
        Self::Coded(Coding::Zstd),
        Self::LowerCase,
        Self::PngAndMng,
        Self::PngAndApng,
        Self::Webp,
        Self::Css,
        Self::AllOfThen,
        Self::AllOfNow,
    ];

    /// In tables and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsIs => "as-it-is",
            Self::Coded(Coding::Deflate) => "deflate",
            Self::Coded(Coding::Gzip) => "gzip",
            Self::Coded(Coding::Brotli) => "brotli",
            Self::Coded(Coding::Zstd) => "zstd",
            Self::LowerCase => "lower-case+deflate",
            Self::PngAndMng => "png+mng",
            Self::PngAndApng => "png+apng",
            Self::Webp => "webp",
            Self::Css => "css",
            Self::AllOfThen => "all-of-1997",
            Self::AllOfNow => "all-of-today",
        }
    }

    /// The sizes of what is left, each at least 1, in the order of the files.
    pub fn sizes(self, content: &Content, replaced: &Replaced) -> Vec<u64> {
        let (coding, is_lower, format, is_styled) = match self {
            Self::AsIs => (None, false, Format::Gif, false),
            Self::Coded(coding) => (Some(coding), false, Format::Gif, false),
            Self::LowerCase => (Some(Coding::Deflate), true, Format::Gif, false),
            Self::PngAndMng => (None, false, Format::PngAndMng, false),
            Self::PngAndApng => (None, false, Format::PngAndApng, false),
            Self::Webp => (None, false, Format::Webp, false),
            Self::Css => (None, false, Format::Gif, true),
            Self::AllOfThen => (Some(Coding::Deflate), true, Format::PngAndMng, true),
            Self::AllOfNow => (Some(Coding::Brotli), true, Format::Webp, true),
        };
        let left = content
            .files
            .iter()
            .enumerate()
            .filter(|(place, _)| !is_styled || !replaced.images.contains(place));
        let size = |(place, file): (usize, &File)| {
            let styled = replaced.documents.get(&place).filter(|_| is_styled);
            let mut bytes = styled.unwrap_or(&file.bytes).clone();
            if is_lower && matches!(file.kind, Kind::Html) {
                bytes = html::in_lower_case(&bytes);
            }
            // What came compressed and was rewritten is compressed again, where nothing else is said.
            let coding = coding.or((styled.is_some() && file.came_compressed()).then_some(Coding::Gzip));
            let coded = coding.filter(|_| file.is_text()).and_then(|coding| coding.encode(&bytes));
            let sent = file.sent.filter(|_| styled.is_none()).unwrap_or(u64::MAX);
            let smallest = coded.map_or(bytes.len(), |coded| coded.len().min(bytes.len()));
            (smallest.min(file.length_as(format)) as u64).min(sent).max(1)
        };
        left.map(size).collect()
    }
}

impl File {
    fn came_compressed(&self) -> bool {
        self.sent.is_some_and(|sent| sent < self.bytes.len() as u64)
    }

    /// In a format of images, or as it is if that is no smaller or there is no such form.
    fn length_as(&self, format: Format) -> usize {
        let Kind::Picture(forms) = &self.kind else { return usize::MAX };
        let is_animation = forms.picture.is_animation();
        let form = match format {
            Format::Gif => None,
            Format::PngAndMng if is_animation => forms.mng.as_ref(),
            Format::PngAndMng | Format::PngAndApng => forms.png.as_ref(),
            Format::Webp => forms.webp.as_ref(),
        };
        form.map_or(usize::MAX, Vec::len).min(self.bytes.len())
    }
}
