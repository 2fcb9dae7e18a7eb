//! Microscape as transferred: its real files, plain or with the document deflated, and the position of each image's
//! name in the document.
//!
//! Not the generator: that is `scenario`'s. The contents of the original's images are unknown (`papers/w3c#microscape`).

use std::io::Write;
use std::sync::{Arc, LazyLock};

use fetch::named_at;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use http1::content::Coding;
use scenario::{Object, Page, Site};
use simulate::page::Contents;
use wire::{Bytes, Seed};

/// A page with its real contents.
#[derive(Clone, Debug)]
pub struct RealPage {
    /// Its sizes; of the deflated one, after deflate.
    pub page: Page,
    /// Its files.
    pub contents: Contents,
}

/// The page as it is.
pub fn plain() -> &'static RealPage {
    static PLAIN: LazyLock<RealPage> = LazyLock::new(|| {
        let files = Site::Microscape.files(Seed::default());
        real(files.into_iter().map(|file| file.contents.into()).collect(), false)
    });
    &PLAIN
}

/// The same with a document deflated beforehand, by zlib's defaults (`papers/w3c`, on changing content).
pub fn deflated() -> &'static RealPage {
    static DEFLATED: LazyLock<RealPage> = LazyLock::new(|| real(plain().contents.objects.clone(), true));
    &DEFLATED
}

/// A page of these files, the document first, which is deflated if requested.
pub fn real(mut objects: Vec<Arc<[u8]>>, is_deflated: bool) -> RealPage {
    let mut named_at = vec![Bytes::ZERO];
    if let Some(document) = objects.first_mut() {
        let coding = if is_deflated { Coding::Deflate } else { Coding::Identity };
        if is_deflated {
            *document = deflate(document).into();
        }
        named_at.extend(named(coding, document));
    }
    RealPage::of(objects, named_at)
}

/// The document alone.
pub fn document(real: &RealPage) -> RealPage {
    RealPage::of(real.contents.objects.iter().take(1).cloned().collect(), Vec::new())
}

impl RealPage {
    fn of(objects: Vec<Arc<[u8]>>, named_at: Vec<Bytes>) -> Self {
        // The contents determine which of the two it is: the sizes are those on the wire.
        let object = |bytes: &Arc<[u8]>| {
            let size = Bytes::new(bytes.len() as u64);
            Object::deflatable(size, size)
        };
        let page = Page::new("microscape", objects.iter().map(object).collect())
            .expect("a document and at most 42 images");
        Self { page, contents: Contents { objects, named_at } }
    }
}

/// Bytes of the document received when a client discovers each image: the robot's own result, image by image.
fn named(coding: Coding, document: &[u8]) -> impl Iterator<Item = Bytes> {
    let named =
        named_at("server", "/index.html", coding, document).expect("it was deflated here, or not at all");
    named.into_iter().map(|reference| reference.named_at)
}

/// zlib's default level.
pub fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("memory takes everything")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_every_image_in_the_order_of_the_files() {
        let document = &plain().contents.objects[0];
        let named = named_at("server", "/index.html", Coding::Identity, document).unwrap();
        let files = Site::Microscape.files(Seed::default());
        let expected: Vec<String> = files.iter().skip(1).map(|file| format!("/{}", file.path)).collect();
        assert_eq!(named.into_iter().map(|reference| reference.path).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn deflate_reveals_images_to_a_client_three_times_as_early() {
        let [plain, deflated] = [plain(), deflated()].map(|real| &real.contents.named_at);
        assert_eq!((plain.len(), deflated.len()), (43, 43));
        assert!(plain.is_sorted() && deflated.is_sorted());
        assert!(plain[1..].iter().zip(&deflated[1..]).all(|(plain, deflated)| deflated < plain));
        let first_segment =
            |named_at: &[Bytes]| named_at.iter().filter(|at| at.get() <= 1_460 - 222).count() - 1;
        let (plain, deflated) = (first_segment(plain), first_segment(deflated));
        assert!(deflated > plain, "{plain} {deflated}");
    }
}
