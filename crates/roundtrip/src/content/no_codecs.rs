//! WebP and AVIF in a build without the feature `image-codecs`: no picture has such a form.
//!
//! A request for one is refused ([`Feature::missing`](crate::feature::Feature::missing)).

/// WebP.
pub mod webp {
    use crate::content::picture::Picture;

    /// None.
    pub const fn encode(_: &Picture) -> Option<Vec<u8>> {
        None
    }

    /// None.
    pub const fn encode_lossy(_: &Picture, _quality: u8) -> Option<Vec<u8>> {
        None
    }
}

/// AVIF.
pub mod avif {
    use crate::content::picture::Picture;

    /// None.
    pub const fn encode(_: &Picture, _quality: u8) -> Option<Vec<u8>> {
        None
    }
}
