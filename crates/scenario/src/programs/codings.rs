//! Content codings that a client accepts: `gzip+br`.
//!
//! Bodies are coded by `http1`.

use std::fmt;

use http1::content::Coding;

use quantity::ValueError;
use quantity::names::UnknownName;

/// Content codings, without repetition, in the client's order; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codings {
    listed: [Option<Coding>; 4],
}

impl Codings {
    /// Iterates over the codings in the client's order.
    pub fn iter(&self) -> impl Iterator<Item = Coding> {
        self.listed.into_iter().flatten()
    }

    /// Parses `gzip+br`; repetitions are dropped.
    ///
    /// # Errors
    /// An unknown coding.
    pub(super) fn read(text: &str) -> Result<Self, ValueError> {
        let mut codings = Self { listed: [None; 4] };
        for name in text.split('+').map(str::trim) {
            let coding = Coding::named(name.as_bytes()).filter(is_offered);
            let coding = coding.ok_or_else(|| {
                UnknownName::new("coding", name, Coding::ALL.into_iter().filter(is_offered).map(Coding::name))
            })?;
            let is_new = codings.iter().all(|listed| listed != coding);
            if let Some(slot) = codings.listed.iter_mut().find(|slot| slot.is_none() && is_new) {
                *slot = Some(coding);
            }
        }
        Ok(codings)
    }
}

/// Whether a client may accept it: in WebAssembly, `http1` has no Brotli.
const fn is_offered(coding: &Coding) -> bool {
    match coding {
        Coding::Identity => false,
        Coding::Brotli => !cfg!(target_family = "wasm"),
        Coding::Deflate | Coding::Gzip | Coding::Zstd => true,
    }
}

impl fmt::Display for Codings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Coding::name).collect();
        f.write_str(&names.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_parsed_in_order_without_repetition() {
        for text in ["gzip", "br+gzip", "zstd+br+deflate+gzip"] {
            assert_eq!(Codings::read(text).unwrap().to_string(), text);
        }
        assert_eq!(Codings::read("x-gzip + br+gzip").unwrap().to_string(), "gzip+br");
        for invalid in ["", "gzip+", "identity", "brotli"] {
            let error = Codings::read(invalid).unwrap_err().to_string();
            assert!(error.contains("coding"), "{invalid}: {error}");
        }
    }
}
