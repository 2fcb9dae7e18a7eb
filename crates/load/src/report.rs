//! Runs and plans as text: tables, JSON, CSV and a page.
//!
//! Strings out; files and terminals are the caller's.
//!
//! | module | contents |
//! | --- | --- |
//! | [`result`] | the results of a run |
//! | [`view`] | a run in progress, in lines |
//! | [`mod@page`] | runs as an HTML page |
//! | `bottlenecks` | the bottleneck of each second, drawn for the page |
//! | [`junit`] | thresholds as JUnit's XML |
//! | [`limit`] | the search for a server's limit |
//! | [`fit`] | a plan's goodness of fit |

mod bottlenecks;
pub mod fit;
pub mod junit;
pub mod limit;
mod named_run;
pub mod page;
pub mod result;
pub mod view;
