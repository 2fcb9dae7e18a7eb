//! Files from bytes: the kind of each, and all its forms, computed on every CPU, with a progress bar on stderr.
//!
//! The order of the files is preserved, so that the result is the same on every host.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::picture::Picture;
use crate::{File, FileKind, ImageForms, avif, jpeg, mng, png, still, webp};

/// A file with unknown contents.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path below the page's directory, with slashes.
    pub path: String,
    /// The path's extension, or the one of its media type.
    pub ending: String,
    /// The bytes, decoded.
    pub bytes: Vec<u8>,
    /// Bytes on the wire, where the page was recorded.
    pub sent: Option<u64>,
}

impl Source {
    /// A file of a directory.
    pub fn of(path: String, bytes: Vec<u8>) -> Self {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_owned();
        Self { path, ending, bytes, sent: None }
    }

    /// Whether it may refer to other files.
    pub fn is_text(&self) -> bool {
        let ending = self.ending.to_ascii_lowercase();
        HTML.contains(&ending.as_str()) || TEXT.contains(&ending.as_str())
    }

    fn made(self, quality: Option<u8>) -> File {
        let Self { path, ending, bytes, sent } = self;
        let kind = match ending.to_ascii_lowercase().as_str() {
            html if HTML.contains(&html) => FileKind::Html,
            text if TEXT.contains(&text) => FileKind::Text,
            ending => match Format::of(&bytes, ending) {
                Some(format) => FileKind::Picture(Box::new(format.forms(&bytes, quality))),
                None => FileKind::Other,
            },
        };
        File { path, bytes, sent, kind }
    }
}

const HTML: [&str; 3] = ["html", "htm", "xhtml"];
const TEXT: [&str; 8] = ["css", "js", "mjs", "json", "map", "svg", "txt", "xml"];

/// Progress callback: the number of finished files, and of all files; called by several threads.
pub type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// Computes the forms of every file, in the same order; lossy forms only with a quality of 1 to 100.
pub fn files(sources: Vec<Source>, quality: Option<u8>, progress: &Progress<'_>) -> Vec<File> {
    let waiting: Vec<Mutex<Option<Source>>> =
        sources.into_iter().map(|source| Mutex::new(Some(source))).collect();
    let made: Vec<Mutex<Option<File>>> = waiting.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    progress(0, waiting.len());
    let done = AtomicUsize::new(0);
    let work = || {
        while let Some((from, to)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            waiting.get(index).zip(made.get(index))
        } {
            if let (Ok(mut from), Ok(mut to)) = (from.lock(), to.lock()) {
                *to = from.take().map(|source| source.made(quality));
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, waiting.len());
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get).min(waiting.len()) {
            scope.spawn(work);
        }
    });
    made.into_iter().filter_map(|file| file.into_inner().ok().flatten()).collect()
}

/// Format of an image, by its first bytes, or for damaged ones by its name.
#[derive(Clone, Copy)]
enum Format {
    Gif,
    Png,
    Jpeg,
}

impl Format {
    fn of(bytes: &[u8], ending: &str) -> Option<Self> {
        match (bytes, ending) {
            ([b'G', b'I', b'F', b'8', ..], _) => Some(Self::Gif),
            ([0x89, b'P', b'N', b'G', ..], _) => Some(Self::Png),
            ([0xff, 0xd8, 0xff, ..], _) => Some(Self::Jpeg),
            (_, "gif") => Some(Self::Gif),
            (_, "png" | "apng") => Some(Self::Png),
            (_, "jpg" | "jpeg") => Some(Self::Jpeg),
            _ => None,
        }
    }

    fn forms(self, bytes: &[u8], quality: Option<u8>) -> ImageForms {
        let picture = match self {
            Self::Gif => Picture::of_gif(bytes),
            Self::Png => still::of_png(bytes),
            Self::Jpeg => still::of_jpeg(bytes),
        };
        let shown = picture.as_ref().ok();
        let lossy = shown.zip(quality);
        let lossless = || shown.and_then(webp::encode);
        let (png, webp) = match self {
            Self::Gif => (shown.and_then(png::encode), lossless()),
            // The original is optimised: it retains chunks that the other formats would lose.
            Self::Png => (png::optimised(bytes), lossless()),
            // Lossless formats only make a photograph larger.
            Self::Jpeg => (None, None),
        };
        ImageForms {
            png,
            webp,
            mng: shown.filter(|picture| picture.is_animation()).and_then(mng::encode),
            jpeg: lossy.and_then(|(picture, quality)| jpeg::encode(picture, quality)),
            webp_lossy: lossy.and_then(|(picture, quality)| webp::encode_lossy(picture, quality)),
            avif: lossy.and_then(|(picture, quality)| avif::encode(picture, quality)),
            picture,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::picture::tests::two_frames;

    proptest! {
        #[test]
        fn a_damaged_image_never_panics(
            which in 0_usize..4,
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut still = two_frames(true);
            still.frames.truncate(1);
            let jpeg = include_bytes!("still/grey.jpg").to_vec();
            let gif = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
            let mut bytes = match which {
                0 => jpeg,
                1 => gif.to_vec(),
                2 => png::encode(&still).unwrap(),
                _ => png::encode(&two_frames(false)).unwrap(),
            };
            for (index, byte) in damage {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
            let files = files(vec![Source::of("x.png".to_owned(), bytes)], None, &|_, _| ());
            if let [File { kind: FileKind::Picture(forms), .. }] = &files[..] {
                let reported = forms.picture.as_ref().err();
                prop_assert!(reported.is_none_or(|reported| !reported.is_empty() && !reported.contains(char::is_control)));
            }
        }
    }

    #[test]
    fn first_bytes_select_the_format_and_order_is_kept() {
        let mut still = two_frames(false);
        still.frames.truncate(1);
        let png = png::encode(&still).unwrap();
        let sources =
            [("index.html", b"<p>".to_vec()), ("a.gif", png), ("b.jpg", b"no".to_vec()), ("c", vec![0])]
                .map(|(path, bytes)| Source::of(path.to_owned(), bytes));
        let files = files(sources.to_vec(), Some(50), &|_, _| ());
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["index.html", "a.gif", "b.jpg", "c"]);
        let [FileKind::Html, FileKind::Picture(png), FileKind::Picture(broken), FileKind::Other] =
            [&files[0].kind, &files[1].kind, &files[2].kind, &files[3].kind]
        else {
            panic!("{files:?}")
        };
        let ImageForms { picture, png, mng, webp, jpeg, webp_lossy, avif } = &**png;
        assert_eq!(picture.as_ref().unwrap().frames[0].pixels, still.frames[0].pixels);
        let made = [png, mng, webp, jpeg, webp_lossy, avif].map(Option::is_some);
        let is_built = crate::HAS_IMAGE_CODECS;
        assert_eq!(made, [true, false, is_built, true, is_built, is_built]);
        assert!(broken.picture.as_ref().unwrap_err().starts_with("undecodable: "));
    }
}
