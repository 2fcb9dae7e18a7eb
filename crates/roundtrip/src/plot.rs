//! Pictures as SVG: contour maps, surfaces and packets in time, for print and for the screen.
//!
//! In flow values on a grid, or packets, and what to call them; out flows one self-contained SVG file. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`svg`] | shapes and text to SVG |
//! | [`scale`] | values to places on an axis, and where its ticks are |
//! | [`field`] | values on a grid, and their contours by marching squares |
//! | [`palette`] | colours that everybody can tell apart |
//! | [`bars`] | bars in groups |
//! | [`curves`] | curves in panels |
//! | [`contour_map`] | a field from above, with lines, names and a key |
//! | [`heat_map`] | a table as colours |
//! | [`label`] | where on a contour its number stands |
//! | [`surface`] | a field in perspective |
//! | [`time_sequence`] | packets in time, as SVG and for xplot |
//!
//! What it is not: it knows no network and no formula; what is drawn is the caller's. The same values give the same
//! bytes.

pub mod bars;
pub mod contour_map;
pub mod curves;
pub mod field;
pub mod heat_map;
pub mod label;
pub mod palette;
pub mod scale;
pub mod surface;
pub mod svg;
pub mod time_sequence;
