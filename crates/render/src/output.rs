//! Output for people and programs: tables, JSON, CSV.
//!
//! Values flow in, text flows out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`grid`] | columns that line up in a terminal of any width |
//! | [`csv`] | tables for a spreadsheet |
//! | [`number`] | numbers as the papers print them |

pub mod csv;
pub mod grid;
pub mod number;

use serde_core::Serialize;

/// An array of objects, in full precision.
pub fn json<T: Serialize>(items: &[T]) -> String {
    let mut text =
        serde_json::to_string_pretty(items).expect("rows have text for keys and cannot fail to serialise");
    text.push('\n');
    text
}
