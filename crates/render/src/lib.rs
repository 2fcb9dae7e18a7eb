//! Results as text: tables for a terminal, JSON, CSV, plots as SVG and pages as HTML.
//!
//! Values flow in, strings flow out; the same values give the same bytes. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`output`] | tables, JSON and CSV |
//! | [`plot`] | plots as SVG, for print and for the screen |
//! | [`report`] | a page that presents results to other people |
//! | [`provenance`] | provenance of results |
//! | [`terminal`] | capabilities of the reader's terminal |
//!
//! ```
//! use roundtrip_render::output::grid::{Column, Grid};
//! use roundtrip_render::terminal::Terminal;
//!
//! let columns = vec![Column::name(["page", ""]), Column::number(["elapsed", "ms"], 0)];
//! let rows = vec![vec!["small".to_owned(), "89".to_owned()]];
//! let text = Grid { columns, rows }.render(Terminal { width: Some(80), colour: false });
//! assert!(text.contains("small"));
//! ```

pub mod output;
pub mod plot;
pub mod provenance;
pub mod report;
pub mod terminal;
