//! A page's graph for people and programs: tables, rows of JSON, a picture.

mod cost;
mod picture;
mod row;
mod table;

pub use cost::{HostCost, PageCosts, SimulatedLoad};
pub use picture::picture;
pub use row::{AfterRow, HostRow, ObjectRow, PageRow, rows};
pub use table::text;
