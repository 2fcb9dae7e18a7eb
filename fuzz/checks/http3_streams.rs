//! Invariants for any bytes of a stream of HTTP/3: frames are the same at every cut and bounded, field sections are decoded
//! again after they have been encoded, QPACK's tables are the same at every cut, and readers of streams return.

use http3::frame::{FrameReader, MAX_FRAME_BYTES, Part};
use http3::qpack::dynamic::{Decoder, Section};
use http3::{qpack, stream, varint};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    stream::check(bytes);
    let whole = (frames(&[bytes]), table(&[bytes], bytes));
    for cut in [1, 2, 3, 9, 17, bytes.len() / 2] {
        let (head, rest) = bytes.split_at(cut.min(bytes.len()));
        assert_eq!((frames(&[head, rest]), table(&[head, rest], bytes)), whole, "cut at {cut}");
    }
    let mut rest = bytes;
    if let Some(value) = varint::take(&mut rest) {
        let mut written = Vec::new();
        varint::put(value, &mut written);
        assert_eq!(varint::take(&mut &written[..]), Some(value));
    }
    if let Some(fields) = qpack::decode(bytes) {
        let mut section = Vec::new();
        qpack::encode(fields.iter(), &mut section);
        assert_eq!(qpack::decode(&section), Some(fields));
    }
}

/// Bytes of DATA, complete frames until an error, and whether there was one.
type Frames = (Vec<u8>, Vec<(u64, Vec<u8>)>, bool);

fn frames(chunks: &[&[u8]]) -> Frames {
    let (mut reader, mut data, mut frames) = (FrameReader::default(), Vec::new(), Vec::new());
    for chunk in chunks {
        let result = reader.read(chunk, &mut |part| match part {
            Part::Data(bytes) => data.extend_from_slice(bytes),
            Part::Frame(kind, payload) => {
                assert!(payload.len() <= MAX_FRAME_BYTES);
                frames.push((kind, payload.to_vec()));
            }
        });
        if result.is_err() {
            return (data, frames, true);
        }
    }
    (data, frames, false)
}

/// A section after these instructions, if they are valid.
fn table(instructions: &[&[u8]], section: &[u8]) -> Option<Section> {
    let mut decoder = Decoder::new(4_096);
    let is_valid = instructions.iter().all(|instructions| decoder.instruct(instructions).is_some());
    is_valid.then(|| decoder.decode(section))
}
