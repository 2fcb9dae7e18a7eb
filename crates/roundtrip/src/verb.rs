//! The verbs: flags in, results out, one module for each.

pub mod cache;
pub mod compare;
pub mod connections;
pub mod content;
pub mod diagnose;
pub mod gate;
pub mod gateway;
pub mod get;
pub mod list;
pub mod load;
pub mod logs;
pub mod manual;
pub mod measure;
pub mod nat;
pub mod predict;
pub mod reproduce;
pub mod serve;
pub mod simulate;
pub mod site;
pub mod watch;
