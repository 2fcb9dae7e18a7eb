//! PNG in a build without the feature `png`: nothing is drawn.
//!
//! A request for it is refused earlier ([`Feature::require`]).

use std::io;
use std::path::Path;

use capture::Capture;

use crate::failure::Failure;
use crate::feature::Feature;

/// None.
pub fn write_all(_: &[Capture], folder: &Path) -> Result<(), Failure> {
    Feature::Png.require(&folder.display().to_string())
}

/// None.
pub fn image(_svg: &str) -> io::Result<Vec<u8>> {
    Err(io::Error::other(Feature::Png.missing("--plot")))
}
