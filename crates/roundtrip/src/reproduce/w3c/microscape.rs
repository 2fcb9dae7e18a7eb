//! Microscape as it is sent: its real files, plain or with the document deflated, and where the document names each
//! image.
//!
//! Not the generator: that is `scenario`'s. What the original's images were is not known (`papers/w3c#microscape`).

use std::io::Write;
use std::sync::{Arc, LazyLock};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Decompress, FlushDecompress};
use scenario::{Object, Page, Site};
use simulate::page::Contents;
use wire::{Bytes, Seed};

/// A page, and what it really is.
#[derive(Clone, Debug)]
pub struct Real {
    /// Its sizes; of the deflated one, after deflate.
    pub page: Page,
    /// Its files.
    pub contents: Contents,
}

/// The page as it is.
pub fn plain() -> &'static Real {
    static PLAIN: LazyLock<Real> = LazyLock::new(|| {
        let files = Site::Microscape.files(Seed::default());
        let document: Arc<[u8]> = files.first().map(|file| file.contents.clone()).unwrap_or_default().into();
        let mut named_at = vec![Bytes::ZERO];
        // A client knows of an image at the end of the tag that names it.
        named_at.extend(
            files.iter().skip(1).map(|file| end_of_tag(&document, &format!("src=\"{}\"", file.path))),
        );
        Real::of(files.into_iter().map(|file| file.contents.into()).collect(), named_at)
    });
    &PLAIN
}

/// The same with a document that was deflated beforehand, by zlib as it comes (`papers/w3c`, on changing content).
pub fn deflated() -> &'static Real {
    static DEFLATED: LazyLock<Real> = LazyLock::new(|| {
        let Real { page: _, contents: Contents { mut objects, named_at } } = plain().clone();
        let mut named_at = named_at;
        if let Some(document) = objects.first_mut() {
            let compressed = deflate(document);
            named_at = inflated_at(&compressed, &named_at);
            *document = compressed.into();
        }
        Real::of(objects, named_at)
    });
    &DEFLATED
}

/// The document alone.
pub fn document(real: &Real) -> Real {
    Real::of(real.contents.objects.iter().take(1).cloned().collect(), Vec::new())
}

impl Real {
    fn of(objects: Vec<Arc<[u8]>>, named_at: Vec<Bytes>) -> Self {
        // Which of the two it is, the contents say: its sizes are those that are sent.
        let object = |bytes: &Arc<[u8]>| {
            let size = Bytes::new(bytes.len() as u64);
            Object { size, deflated: Some(size) }
        };
        let page = Page::new("microscape", objects.iter().map(object).collect()).expect("43 files");
        Self { page, contents: Contents { objects, named_at } }
    }
}

fn end_of_tag(document: &[u8], attribute: &str) -> Bytes {
    let at = memchr::memmem::find(document, attribute.as_bytes()).unwrap_or(document.len());
    let rest = document.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'>').map_or(document.len(), |end| at + end + 1);
    Bytes::new(end as u64)
}

/// As zlib comes.
pub fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("memory takes everything")
}

/// How much of a deflated document a client needs before it has so much of it.
fn inflated_at(compressed: &[u8], plain: &[Bytes]) -> Vec<Bytes> {
    let (mut inflater, mut out) = (Decompress::new(true), vec![0; 32_768]);
    let mut reached = Vec::new();
    for (read, byte) in (1_u64..).zip(compressed) {
        // A window of output at a time: nothing but its length is looked at.
        let _ = inflater.decompress(std::slice::from_ref(byte), &mut out, FlushDecompress::None);
        while plain.get(reached.len()).is_some_and(|wanted| wanted.get() <= inflater.total_out()) {
            reached.push(Bytes::new(read));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deflate_lets_a_client_know_of_images_three_times_as_early() {
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
