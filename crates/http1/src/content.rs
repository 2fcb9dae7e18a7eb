//! Content codings: names, negotiation, compression and decompression of bodies (RFC 9110, section 8.4).
//!
//! Bytes flow in both directions. Only one layer of coding is supported. Everything is in Rust and without a clock, so it
//! builds for `wasm32-unknown-unknown`; zstd's own library is better in part, but not available there. Brotli, whose tables
//! are large, is left out there.
//!
//! | module | contents |
//! | --- | --- |
//! | [`decode`] | streaming decoder, with limits against bombs |
//! | `without_brotli` | what stands for it in WebAssembly |
//! | `zstd` | zstd's frames, cut into blocks |
//! | [`encode`] | a whole body, compressed |
//! | [`negotiate`] | the codings a client accepts |
//! | `media` | media types by file name |

pub mod decode;
pub mod encode;
mod media;
pub mod negotiate;
#[cfg(target_family = "wasm")]
mod without_brotli;
mod zstd;

use crate::message::Fields;
use crate::message::field::list;
pub use decode::{DecodeFault, Decoder};
pub use encode::encoded;
pub use media::{is_text, media_type};
pub use negotiate::AcceptedCodings;

/// Content coding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coding {
    /// No coding.
    Identity,
    /// `deflate`: zlib's format (RFC 1950), or raw deflate (RFC 1951), which some servers send instead.
    Deflate,
    /// RFC 1952.
    Gzip,
    /// `br`, RFC 7932.
    Brotli,
    /// RFC 8878, within the window of RFC 9659.
    Zstd,
}

impl Coding {
    /// All codings.
    pub const ALL: [Self; 5] = [Self::Identity, Self::Deflate, Self::Gzip, Self::Brotli, Self::Zstd];

    /// Returns its name in a field.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Deflate => "deflate",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the coding of a message's body by these fields.
    ///
    /// # Errors
    /// An unknown coding, or nested codings.
    pub fn of(fields: &Fields) -> Result<Self, DecodeFault> {
        let mut body_coding = Self::Identity;
        for name in fields.all("Content-Encoding").flat_map(list).filter(|name| !name.is_empty()) {
            match (body_coding, Self::named(name).ok_or(DecodeFault::Unknown)?) {
                (_, Self::Identity) => {}
                (Self::Identity, coding) => body_coding = coding,
                (Self::Deflate | Self::Gzip | Self::Brotli | Self::Zstd, _) => {
                    return Err(DecodeFault::Layers);
                }
            }
        }
        Ok(body_coding)
    }

    /// Returns the coding of this name; `x-gzip` is `gzip`.
    pub fn named(name: &[u8]) -> Option<Self> {
        let name = name.strip_prefix(b"x-").filter(|rest| rest.eq_ignore_ascii_case(b"gzip")).unwrap_or(name);
        Self::ALL.into_iter().find(|coding| coding.name().as_bytes().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_coding_is_read_from_the_fields() {
        let of = |values: &[&str]| {
            let mut fields = Fields::new();
            values.iter().for_each(|value| fields.push("content-encoding", value).unwrap());
            Coding::of(&fields)
        };
        assert_eq!(of(&[]), Ok(Coding::Identity));
        assert_eq!(of(&["GZIP"]), Ok(Coding::Gzip));
        assert_eq!(of(&["x-gzip, identity"]), Ok(Coding::Gzip));
        assert_eq!(of(&["br"]), Ok(Coding::Brotli));
        assert_eq!(of(&["gzip, br"]), Err(DecodeFault::Layers));
        assert_eq!(of(&["gzip", "gzip"]), Err(DecodeFault::Layers));
        assert_eq!(of(&["compress"]), Err(DecodeFault::Unknown));
    }
}
