//! Diagnosed captures, in every format that people and programs read.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`text`] | for a person, at night |
//! | [`json`], [`csv`] | for programs |
//! | [`page`] | one HTML file |
//! | [`sequence`] | time-sequence plots as SVG |
//! | `raster` | the same as PNG |
//! | [`xpl`] | the same for xplot |
//!
//! Not the reading of captures: that is the crate `capture`. Not the diagnosis itself: that is the crate `diagnose`.

pub mod csv;
pub mod json;
#[cfg(not(feature = "png"))]
pub mod no_raster;
pub mod page;
#[cfg(feature = "png")]
pub mod raster;
pub mod sequence;
pub mod text;
pub mod xpl;

#[cfg(not(feature = "png"))]
pub use no_raster as raster;
