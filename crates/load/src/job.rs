//! Job of a run: its requests, their users, and their times.
//!
//! A plan of SURGE has pages, each for one user, once. A list of requests ([`crate::requests`]) has pages of one
//! request. They have times of their own (an open schedule), or users repeat them, each as soon as the previous response
//! has arrived (a closed loop).

use std::sync::Arc;

use http1::message::{Fields, Method, RequestHead, Version};
use wire::{Duration, Time};
use workload::plan::{ObjectRequest, Page, PageStart, Plan};

use crate::config::{Config, Protocol, Target};
use crate::record::FailureReason;
use crate::requests::{Request, Statuses};

/// Requests of a run, with their users and times.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The time in which requests are started.
    pub lasts: Duration,
    /// The pages.
    pub pages: &'a [Page],
    /// The users that load the pages.
    pub turns: Turns,
    /// Objects of a page, by number.
    pub requests: Requests<'a>,
}

/// Assignment of pages to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Each page is loaded once, by its own user.
    Once,
    /// Each of this number of users loads all pages repeatedly, from a position of its own.
    Loop(u32),
}

/// Objects of a page, by number.
#[derive(Clone, Debug)]
pub enum Requests<'a> {
    /// The files of a site of SURGE, below the target's directory, by their sizes.
    Site(&'a [u64]),
    /// These requests; a response with one of these statuses is a success.
    List(Arc<[Request]>, Statuses),
}

impl<'a> From<&'a Plan> for Job<'a> {
    fn from(plan: &'a Plan) -> Self {
        let Plan { spec, files, pages } = plan;
        Self { lasts: spec.duration, pages, turns: Turns::Once, requests: Requests::Site(files) }
    }
}

impl<'a> From<&Job<'a>> for Job<'a> {
    fn from(job: &Job<'a>) -> Self {
        job.clone()
    }
}

/// The pages of a closed loop over this number of requests: one each, without a pause.
pub fn loop_pages(requests: usize) -> Vec<Page> {
    (0..).zip(0..requests).map(|(file, _)| page(file, 0, PageStart::After(Duration::ZERO))).collect()
}

/// The pages of an open schedule: the requests in turn, at these times.
pub fn timed_pages(requests: usize, times: impl Iterator<Item = Time>) -> Vec<Page> {
    let files = (0..).zip(0..requests).map(|(file, _)| file).cycle();
    files.zip(times).zip(0..).map(|((file, at), user)| page(file, user, PageStart::At(at))).collect()
}

/// A page of a single request.
pub fn page(file: u32, user: u32, start: PageStart) -> Page {
    let request = ObjectRequest { file, after: Duration::ZERO, is_conditional: false };
    Page { user, start, objects: vec![request], ends_session: false }
}

impl Requests<'_> {
    /// Judges a response by its status and the length of its body: the number of bytes, or the reason of its failure.
    pub(crate) fn judge(
        &self,
        number: u32,
        is_conditional: bool,
        status: u16,
        bytes: u64,
    ) -> Result<u64, FailureReason> {
        match self {
            Self::Site(sizes) => match status {
                200 if sizes.get(number as usize).is_some_and(|size| *size == bytes) => Ok(bytes),
                200 => Err(FailureReason::Size),
                304 if is_conditional => Ok(0),
                _ => Err(FailureReason::Status),
            },
            Self::List(list, statuses) => {
                let is_logged =
                    || list.get(number as usize).is_some_and(|request| request.logged_error == Some(status));
                if statuses.has(status) || is_logged() { Ok(bytes) } else { Err(FailureReason::Status) }
            }
        }
    }

    /// Whether it is for the header section alone (HEAD), and whether it may be retried on another connection.
    pub(crate) fn traits(&self, number: u32) -> (bool, bool) {
        match self {
            Self::Site(_) => (false, true),
            Self::List(list, _) => list
                .get(number as usize)
                .map_or((false, false), |request| (request.method == Method::Head, request.is_idempotent())),
        }
    }

    /// Number of different requests with results of their own; 0 where there is one, or too many.
    pub(crate) fn separate_requests(&self) -> usize {
        match self {
            Self::List(list, _) if (2..=MAX_SEPARATE_REQUESTS).contains(&list.len()) => list.len(),
            Self::List(..) | Self::Site(_) => 0,
        }
    }
}

/// Maximum number of these: each has a histogram in each thread.
const MAX_SEPARATE_REQUESTS: usize = 256;

/// A request in the form in which HTTP/1 and DHTTP send it.
#[derive(Clone, Debug)]
pub(crate) struct PreparedRequest {
    pub(crate) head: RequestHead,
    encoded: Vec<u8>,
    body: bytes::Bytes,
}

impl PreparedRequest {
    /// The prepared forms of all of these for a server.
    pub(crate) fn all(list: &[Request], target: &Target, config: &Config) -> Vec<Self> {
        list.iter().map(|request| Self::new(request, target, config)).collect()
    }

    pub(crate) fn new(request: &Request, target: &Target, config: &Config) -> Self {
        let mut fields = Fields::new();
        // All fields were validated before.
        let mut push = |name: &str, value: &str| drop(fields.push(name, value));
        push("Host", request.host.as_deref().unwrap_or(&target.host));
        if closes(config) {
            push("Connection", "close");
        }
        for (name, value) in request.fields.iter() {
            if let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value)) {
                push(name, value);
            }
        }
        if let Some(length) = request.content_length() {
            push("Content-Length", &length.to_string());
        }
        let (method, path) = (request.method.clone(), request.target.clone());
        let head = RequestHead { method, target: path, version: version(config.protocol), fields };
        let mut encoded = Vec::new();
        head.encode(&mut encoded);
        Self { head, encoded, body: request.body.clone() }
    }

    /// Writes the header section and the body.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encoded);
        out.extend_from_slice(&self.body);
    }
}

/// Whether each request requests that the server close its connection.
pub(crate) fn closes(config: &Config) -> bool {
    config.idle_timeout == Some(Duration::ZERO) && config.protocol != Protocol::Http10
}

/// The version of a request line.
pub(crate) const fn version(protocol: Protocol) -> Version {
    match protocol {
        Protocol::Http10 => Version::Http10,
        Protocol::KeepAlive | Protocol::Pipelined | Protocol::Http2 | Protocol::Http3 | Protocol::Dhttp => {
            Version::Http11
        }
    }
}
