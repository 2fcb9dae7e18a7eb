//! Substitute for the PNG rasteriser in a build without the feature `png`.
//!
//! [`Feature::require`] refuses PNG before this is called.

use std::io;

use crate::feature::Feature;

/// Rasteriser without fonts.
pub struct Raster;

impl Raster {
    /// Creates the substitute.
    pub fn new() -> Self {
        Self
    }

    /// Returns an error.
    pub fn image(&self, _svg: &str) -> io::Result<Vec<u8>> {
        Err(io::Error::other(Feature::Png.missing("--plot")))
    }
}
