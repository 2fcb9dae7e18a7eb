//! Load for a server: SURGE's users, a log's requests, and access logs that are made up.
//!
//! SURGE (Barford and Crovella, SIGMETRICS 1998) says what users ask a server for, and when; `papers/dhttp#section-vi-b`
//! used it. In flow a set of laws, a number of files and of users, a schedule, a seed; out flows a [`plan::Plan`]: every
//! page, every object, every intended time. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`law`] | the distributions, and values drawn from them |
//! | [`set`] | which laws belong together: those of 1998, those of 1999, a site's own |
//! | [`popularity`] | how often each file is asked for, in which order, and which size it has |
//! | [`schedule`] | when users begin: one page after the other, or at a rate whatever the server does |
//! | [`plan`], `draft` | all of it drawn: files and pages |
//! | [`lines`] | what a plan takes of an access log |
//! | [`replay`] | a plan that replays a log instead |
//! | [`site`], `estimate` | a site's own laws, from its log |
//! | [`text`] | the plan as a file |
//! | [`fit`], [`fits`] | whether what was drawn is as it was asked for |
//! | [`logs`] | synthetic access logs |
//!
//! ```
//! use roundtrip_workload::plan::Wanted;
//! use roundtrip_workload::schedule::Schedule;
//!
//! let schedule = Schedule::Users(20);
//! let plan = Wanted { files: 100, schedule, ..Wanted::default() }.plan().expect("100 files make a site");
//! assert_eq!(plan.files.len(), 100);
//! assert!(plan.requests() > 20);
//! ```
//!
//! Not a load generator: nothing is sent here, nobody waits, and no file is opened.

mod draft;
mod estimate;
pub mod fit;
pub mod fits;
pub mod law;
pub mod lines;
pub mod logs;
pub mod plan;
pub mod popularity;
pub mod replay;
pub mod schedule;
pub mod set;
pub mod site;
pub mod text;
