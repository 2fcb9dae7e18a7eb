//! Invariants for the bytes of any document: the objects found are the same at every cut, every path is valid in a request
//! line, and little memory is used. Not a browser: the module's tests state the expected objects.

use http1::content::{Coding, Decoder};
use http1::message::Limits;
use page::html::Discovery;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let whole = found(data, data.len().max(1));
    for cut in [1, 2, 7, 64] {
        assert_eq!(found(data, cut), whole, "cut {cut}");
    }
    for path in &whole {
        assert!(path.starts_with('/') && path.len() <= 8_000, "{path:?}");
        assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{path:?}");
    }
    for coding in Coding::ALL {
        let whole = decoded(coding, data, data.len().max(1));
        for cut in [1, 7] {
            assert_eq!(decoded(coding, data, cut), whole, "{coding:?} cut {cut}");
        }
    }
}

fn found(html: &[u8], cut: usize) -> Vec<String> {
    let mut discovery = Discovery::new("h.test", "/dir/index.html");
    let mut all = Vec::new();
    html.chunks(cut).for_each(|piece| discovery.take(piece, |path| all.push(path)));
    all
}

/// The body that these bytes are, if they are one.
fn decoded(coding: Coding, data: &[u8], cut: usize) -> Option<Vec<u8>> {
    let limits = Limits { decoded_bytes: 1 << 22, ..Limits::default() };
    let mut decoder = Decoder::new(coding, &limits);
    let mut all = Vec::new();
    for piece in data.chunks(cut) {
        decoder.take(piece, |part| all.extend_from_slice(part)).ok()?;
    }
    decoder.end().ok().map(|()| all)
}
