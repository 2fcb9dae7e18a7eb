//! Traffic of a run: a plan of SURGE, or a list of requests with its schedule.
//!
//! Owns the data that a [`Job`] borrows. Not the server, and not the flags or files that the traffic comes from.

use std::sync::Arc;

use wire::Duration;
use workload::fingerprint;
use workload::plan::{Page, Plan};

use crate::job::{Job, Requests, Turns};
use crate::requests::file::split;
use crate::requests::{Request, Statuses};

/// The requests of a load and their schedule.
#[derive(Debug)]
pub enum Traffic {
    /// A plan of SURGE.
    Plan(Plan),
    /// A list of requests.
    List(RequestList),
}

/// Requests, and when they are sent.
#[derive(Debug)]
pub struct RequestList {
    /// The requests.
    pub requests: Arc<[Request]>,
    /// Statuses of successful responses.
    pub statuses: Statuses,
    /// Order and times of the requests: pages of one request.
    pub pages: Vec<Page>,
    /// The users that send them.
    pub turns: Turns,
    /// The time in which requests are started.
    pub lasts: Duration,
    /// The random seed of the schedule.
    pub seed: u64,
    /// Description of the requests and the schedule.
    pub words: String,
    /// Sentences on requests that are left out.
    pub notes: Vec<String>,
    /// Whether the status of the preflight request matters.
    pub is_judged: bool,
}

impl RequestList {
    /// The job of a run.
    pub fn job(&self) -> Job<'_> {
        let Self { requests, statuses, pages, turns, lasts, .. } = self;
        let requests = Requests::List(Arc::clone(requests), statuses.clone());
        Job { lasts: *lasts, pages, turns: *turns, requests }
    }

    /// Whether a response with this status is a success.
    pub fn succeeds(&self, status: u16) -> bool {
        self.statuses.has(status)
    }

    /// The URL of the first request, on the server of the given URL.
    pub fn first_url(&self, url: &str) -> String {
        let (server, path) = split(url).unwrap_or_default();
        let first = self.requests.first().map_or(path, Request::target);
        format!("{}{first}", server.unwrap_or_default())
    }
}

impl Traffic {
    /// The job of a run.
    pub fn job(&self) -> Job<'_> {
        match self {
            Self::Plan(plan) => plan.into(),
            Self::List(list) => list.job(),
        }
    }

    /// The requests of a list, method and path; none of a plan.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Plan(_) => Vec::new(),
            Self::List(list) => list.requests.iter().map(Request::name).collect(),
        }
    }

    /// Fingerprint of the work: identifies shards of one run.
    pub fn mark(&self) -> String {
        match self {
            Self::Plan(plan) => fingerprint::of_plan(plan),
            Self::List(RequestList { requests, pages, lasts, words, .. }) => {
                let names =
                    requests.iter().map(|request| format!("{} {}\n", request.name(), request.body_bytes()));
                let names: String = names.collect();
                fingerprint::of(format_args!("{words}\n{} {}\n{names}", lasts.as_nanos(), pages.len()))
            }
        }
    }

    /// Whether every request is safe (RFC 9110, section 9.2.1).
    pub fn is_safe(&self) -> bool {
        match self {
            Self::Plan(_) => true,
            Self::List(list) => list.requests.iter().all(Request::is_safe),
        }
    }
}
