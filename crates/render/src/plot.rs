//! Pictures as SVG: contour maps, surfaces and packets in time, for print and for the screen.
//!
//! Values on a grid, or packets, and their names flow in; one self-contained SVG file flows out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`svg`] | shapes and text to SVG |
//! | [`scale`] | values to positions on an axis, and its ticks |
//! | [`axes`] | scales on a rectangle, with grid lines, ticks and numbers |
//! | [`field`] | values on a grid, and their contours by marching squares |
//! | [`palette`] | colours that remain distinct with colour blindness |
//! | [`bars`] | bars in groups |
//! | [`curves`] | curves in panels |
//! | [`contour_map`] | a field from above, with contours, names and a key |
//! | [`heat_map`] | a table as colours |
//! | [`label`] | position of a contour's number |
//! | [`surface`] | a field in perspective |
//! | [`time_sequence`] | packets in time, as SVG and for xplot |
//! | [`waterfall`] | objects in time, and what each waited for |
//!
//! The caller supplies the values. The same values give the same bytes.

pub mod axes;
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
pub mod waterfall;
