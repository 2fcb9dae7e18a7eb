//! WebP and AVIF in a build without the feature `image-codecs`: no picture has such a form.
//!
//! Not an error: callers check [`HAS_IMAGE_CODECS`](crate::HAS_IMAGE_CODECS) first.

/// WebP.
pub(crate) mod webp {
    use crate::picture::Picture;

    /// Always `None`.
    pub(crate) const fn encode(_: &Picture) -> Option<Vec<u8>> {
        None
    }

    /// Always `None`.
    pub(crate) const fn encode_lossy(_: &Picture, _quality: u8) -> Option<Vec<u8>> {
        None
    }
}

/// AVIF.
pub(crate) mod avif {
    use crate::picture::Picture;

    /// Always `None`.
    pub(crate) const fn encode(_: &Picture, _quality: u8) -> Option<Vec<u8>> {
        None
    }
}
