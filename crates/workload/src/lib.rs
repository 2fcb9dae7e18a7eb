//! Load for a server: SURGE's users, the requests of a log, and synthetic access logs.
//!
//! SURGE (Barford and Crovella, SIGMETRICS 1998) describes users' requests and their times; `papers/dhttp#section-vi-b`
//! used it. Input: a set of distributions, a number of files and of users, a schedule, a seed. Output: a
//! [`plan::Plan`] with every page, every object and every intended time. In reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`distribution`] | the distributions, and values sampled from them |
//! | [`set`] | sets of distributions: those of 1998, those of 1999, a site's own |
//! | [`popularity`] | the number of requests per file, their order, and the size of each file |
//! | [`schedule`] | start times: after the previous page (closed), or at a rate independent of the server (open) |
//! | [`plan`], `draft` | a complete plan: files and pages |
//! | [`log_sample`] | requests of an access log, as a plan uses them |
//! | [`replay`] | replay of an access log |
//! | [`site`], `estimate` | a site's own distributions, estimated from its log |
//! | [`text`] | the plan as a file |
//! | [`fingerprint`] | fingerprint of a plan or a text, in 16 digits |
//! | [`fit`], [`goodness_of_fit`] | goodness of fit: sampled values against their distributions |
//! | [`logs`] | synthetic access logs |
//!
//! ```
//! use roundtrip_workload::plan::PlanSpec;
//! use roundtrip_workload::schedule::Schedule;
//!
//! let schedule = Schedule::Users(20);
//! let plan = PlanSpec { files: 100, schedule, ..PlanSpec::default() }.plan().expect("100 files make a site");
//! assert_eq!(plan.files.len(), 100);
//! assert!(plan.requests() > 20);
//! ```
//!
//! The crate does no input or output: it sends nothing and opens no file.

pub mod distribution;
mod draft;
mod estimate;
pub mod fingerprint;
pub mod fit;
pub mod goodness_of_fit;
pub mod log_sample;
pub mod logs;
pub mod plan;
pub mod popularity;
pub mod replay;
pub mod schedule;
pub mod set;
pub mod site;
pub mod text;
