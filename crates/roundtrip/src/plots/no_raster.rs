//! PNG in a build without the feature `png`: nothing is drawn.
//!
//! A request for it is refused earlier ([`Feature::require`]).

use std::io;

use crate::feature::Feature;

/// Rasteriser without fonts.
pub struct Raster;

impl Raster {
    /// Loads no fonts.
    pub fn new() -> Self {
        Self
    }

    /// Always an error.
    pub fn image(&self, _svg: &str) -> io::Result<Vec<u8>> {
        Err(io::Error::other(Feature::Png.missing("--plot")))
    }
}
