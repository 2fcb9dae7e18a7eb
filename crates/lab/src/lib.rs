//! The laboratory: scenarios in, typed outcomes out; rows, JSON, tables and reports are made from these.
//!
//! The pure engines are called here. The kernel's engine is not pure: its caller hands in a [`RunResult`], and gets an
//! [`Outcome`] like any other. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`outcome`] | an engine's result of a scenario: metrics, stalls, remarks |
//! | [`remark`] | remarks of all engines, as sentences |
//! | [`minimum`] | the lower bound, which only the formulas know |
//! | [`mod@predict`] | calls of the formulas |
//! | [`mod@simulate`] | calls of the simulator; a run is simulated once, whatever is written from it |
//! | [`difference`], [`explanation`] | reasons why simulator and kernel differ, and the search for them |
//! | [`exchanges`] | a client's reports as exchanges of an HTTP archive |
//! | [`metric`] | every metric with its name and unit |
//! | [`setting`] | settings of scenarios as typed columns |
//! | [`row`] | outcomes as rows of JSON and CSV |
//! | [`description`] | scenarios in words |
//! | [`table`], [`comparison`], [`conclusion`] | outcomes as tables and sentences |
//! | [`saving`], [`best_change`] | the change of a page that saves most, and the search for it |
//! | [`waterfall`] | what each object of a run waited for, and the critical path |
//! | [`plot`] | outcomes as one picture |
//! | [`report`] | outcomes as an HTML page |
//! | [`page`] | a page's graph as tables, rows and a picture |
//!
//! Nothing is computed here that an engine computes, and nothing of a paper is known.
//!
//! ```
//! use roundtrip_lab::{predict, row, simulate};
//! use scenario::{Defaults, Spec};
//!
//! let plan = Spec::from_toml("network = 'modem'\nprotocol = 'http11'", "file")?.plan(&Defaults::laboratory())?;
//! let outcomes = [predict::outcomes(&plan), simulate::outcomes(&plan)].concat();
//! assert!(outcomes[1].overhead.is_some_and(|overhead| overhead > 1.0));
//! assert!(row::csv(&outcomes, &[]).starts_with("network,page,visit,protocol,engine,stack,tls,elapsed_ms,"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod best_change;
pub mod comparison;
pub mod conclusion;
pub mod description;
pub mod difference;
pub mod exchanges;
pub mod explanation;
mod first_run;
mod grid;
pub mod metric;
pub mod minimum;
pub mod outcome;
pub mod page;
pub mod plot;
pub mod predict;
pub mod remark;
pub mod report;
pub mod row;
pub mod saving;
pub mod setting;
pub mod simulate;
pub mod table;
pub mod waterfall;

#[cfg(test)]
mod test_outcomes;

pub use metric::{Metric, Unit};
pub use outcome::{Missing, Outcome, RunResult};
pub use remark::Remark;
