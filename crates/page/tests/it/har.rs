//! HARs of the maximum size, generated while they are read, and HARs truncated at any position. Contents are
//! tested in the module itself.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use page::har::{self, HarError};
use proptest::prelude::*;

#[path = "../../../../fuzz/checks/har.rs"]
mod check;

/// A HAR with this many entries, each with a body of this length; the bodies are generated only as they are
/// read.
struct Generated {
    remaining: usize,
    body: usize,
    chunk: io::Cursor<Vec<u8>>,
    has_end: bool,
}

impl Generated {
    fn new(entries: usize, body: usize) -> Self {
        let head = br#"{"log":{"version":"1.2","entries":["#.to_vec();
        Self { remaining: entries, body, chunk: io::Cursor::new(head), has_end: true }
    }

    fn next(&self) -> Vec<u8> {
        let comma = if self.remaining > 1 { "," } else { "" };
        let (size, text) = (self.body, "x".repeat(self.body));
        format!(
            r#"{{"request":{{"url":"http://h/"}},"response":{{"status":200,"bodySize":{size},"content":{{"text":"{text}"}}}}}}{comma}"#
        )
        .into_bytes()
    }
}

impl Read for Generated {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.chunk.position() == self.chunk.get_ref().len() as u64 {
            if self.remaining > 0 {
                self.chunk = io::Cursor::new(self.next());
                self.remaining -= 1;
            } else if std::mem::take(&mut self.has_end) {
                self.chunk = io::Cursor::new(b"]}}".to_vec());
            }
        }
        self.chunk.read(into)
    }
}

#[test]
fn a_har_of_200_megabytes_is_read_an_entry_at_a_time() {
    let page = har::pages("large", Generated::new(200, 1_000_000)).unwrap().remove(0);
    assert_eq!((page.objects.len(), page.size().get()), (200, 200_000_000));
}

#[test]
fn rejects_more_entries_than_the_maximum() {
    let read = har::pages("long", Generated::new(har::MAX_ENTRIES + 1, 1));
    assert!(matches!(read, Err(HarError::TooMany { max: har::MAX_ENTRIES })), "{read:?}");
}

/// Recordings of real sites, where there are any: nearly every entry of each is in a graph, and quickly.
#[test]
fn recordings_of_real_sites_are_kept() {
    let Some(directory) = std::env::var_os("ROUNDTRIP_HARS") else {
        skip::report_skip("ROUNDTRIP_HARS names no directory of recordings");
        return;
    };
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "har")) {
        let text = fs::read(&path).unwrap();
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
        let json: serde_json::Value = serde_json::from_slice(text).unwrap();
        let entries = json["log"]["entries"].as_array().unwrap().len();
        let pages = har::pages("visit", text).unwrap_or_default();
        let objects: usize = pages.iter().map(|page| page.objects.len()).sum();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for page in &pages {
            assert_eq!(page.check(), Ok(()), "{name}");
            assert_eq!(page.clone().over_network().check(), Ok(()), "{name}");
        }
        assert!(objects * 100 >= entries * 99, "{name}: {objects} of {entries} entries");
    }
}

proptest! {
    #[test]
    fn truncated_har_is_rejected_with_its_position(cut in 0_usize..400) {
        let mut whole = Vec::new();
        Generated::new(3, 50).read_to_end(&mut whole).unwrap();
        let error = har::pages("cut", &whole[..cut.min(whole.len() - 1)]).unwrap_err().to_string();
        prop_assert!(error.starts_with("not a HAR: EOF while parsing") && error.contains("column"), "{}", error);
    }

    /// A small fuzzer: the stored inputs, with some bytes changed, or with parts of one another.
    #[test]
    fn damaged_input_gives_an_error_and_never_a_panic(
        first in any::<prop::sample::Index>(), second in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/har");
        let mut files: Vec<_> = fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let [mut bytes, other] = [first, second].map(|file| fs::read(file.get(&files)).unwrap());
        let at = cut.index(bytes.len().min(other.len()) + 1);
        bytes.truncate(at);
        bytes.extend(&other[at..]);
        for (index, byte) in damage {
            if !bytes.is_empty() {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
        }
        check::check(&bytes);
    }
}
