//! A diagnosed capture in every format that people and programs read.
//!
//! Strings out; files and standard output are the caller's.
//!
//! | module | contents |
//! | --- | --- |
//! | [`text`] | for a terminal |
//! | [`json`], [`csv`] | for programs |
//! | [`mod@page`] | one HTML file |
//! | [`sequence`] | time-sequence plots, as SVG and for xplot |

pub mod csv;
pub mod json;
pub mod page;
pub mod sequence;
pub mod text;
