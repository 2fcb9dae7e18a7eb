//! Requests of an access log: paths as logged, GET and HEAD only, at their times.
//!
//! In flow records with their requests, in any order; out flows a [`Replay`]. Not the reading of logs.

use std::collections::BTreeMap;

use accesslog::{Client, LoggedRequest, Record};
use render::output::number;
use wire::{Duration, Time};
use workload::plan::{MAX_FILES, MAX_REQUESTS, Page, PageStart, PlanError};
use workload::replay::due_times;

use super::Request;
use super::file::split;
use crate::job::page;

/// The requests of a log, for a server.
#[derive(Debug)]
pub struct Replay {
    /// The different requests.
    pub requests: Vec<Request>,
    /// One for each line of the log.
    pub pages: Vec<Page>,
    /// Duration of the replay.
    pub lasts: Duration,
    /// Sentences on requests that are left out.
    pub notes: Vec<String>,
}

/// Reason why a log cannot be replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// No request can be replayed; sentences on those that are left out.
    #[error("the log has no request to replay{}{}", if .0.is_empty() { "" } else { ": " }, .0.join("; "))]
    Nothing(Vec<String>),
    /// More different requests than a site has files.
    #[error(
        "the log has more than {} different requests; replay a part of it",
        number::count(f64::from(MAX_FILES))
    )]
    TooManyDifferent,
    /// The requests do not make a plan.
    #[error(transparent)]
    Plan(PlanError),
}

/// A method, a path, and the status where it is an error.
type LoggedName = (Vec<u8>, Vec<u8>, Option<u16>);

/// The requests of a log that is being read.
#[derive(Debug, Default)]
pub struct LoggedRequests {
    lines: Vec<LoggedLine>,
    /// Different requests with their numbers; for an error the same status is expected again.
    known: BTreeMap<LoggedName, (u32, Request)>,
    /// Number of lines with other methods, by method.
    unsafe_methods: BTreeMap<String, u64>,
    /// Lines without a path, and those whose path cannot be sent.
    unnamed: u64,
    unsendable: u64,
    /// Lines without a method.
    without_method: u64,
}

#[derive(Clone, Copy, Debug)]
struct LoggedLine {
    time: Time,
    client: Client,
    request: u32,
}

impl LoggedRequests {
    /// Adds a record, with its request where the log has one.
    pub fn push(&mut self, record: &Record, request: Option<LoggedRequest<'_>>) {
        let Some(LoggedRequest { method, path, query }) = request else {
            self.unnamed += 1;
            return;
        };
        self.without_method += u64::from(method.is_none());
        let method = method.unwrap_or(b"GET");
        if !matches!(method, b"GET" | b"HEAD") {
            // Names that are not methods, such as those of probes, are counted together.
            let is_name = method.len() <= 16 && method.iter().all(u8::is_ascii_uppercase);
            let name =
                if is_name { String::from_utf8_lossy(method).into_owned() } else { "other".to_owned() };
            *self.unsafe_methods.entry(name).or_default() += 1;
            return;
        }
        let mut text = path.to_vec();
        if let Some(query) = query {
            text.push(b'?');
            text.extend_from_slice(query);
        }
        let error = Some(record.status).filter(|status| (400..=999).contains(status));
        let key = (method.to_vec(), text, error);
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let number = match self.known.get(&key) {
            Some((number, _)) => *number,
            None => {
                let parsed = std::str::from_utf8(&key.1)
                    .ok()
                    .and_then(split)
                    .and_then(|(_, target)| Request::new(&String::from_utf8_lossy(&key.0), &target).ok());
                let Some(request) = parsed else {
                    self.unsendable += 1;
                    return;
                };
                self.known.insert(key, (next, request));
                next
            }
        };
        self.lines.push(LoggedLine { time: record.time, client: record.client, request: number });
    }

    /// Checks the limits of the number of requests.
    ///
    /// # Errors
    /// Too many requests, or too many different ones.
    pub fn check(&self) -> Result<(), ReplayError> {
        if self.lines.len() as f64 > MAX_REQUESTS {
            return Err(ReplayError::Plan(PlanError::TooManyRequests(self.lines.len() as f64)));
        }
        let different = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        if different > MAX_FILES { Err(ReplayError::TooManyDifferent) } else { Ok(()) }
    }

    /// The requests at their times, `speed` times as fast.
    ///
    /// # Errors
    /// No requests, or times that make no plan.
    pub fn replay(self, speed: f64) -> Result<Replay, ReplayError> {
        let notes = self.notes();
        let Self { mut lines, known, .. } = self;
        // The sort is stable: requests at equal times stay in the order of the log.
        lines.sort_by_key(|line| line.time);
        let times: Vec<Time> = lines.iter().map(|line| line.time).collect();
        let (due_times, lasts) = due_times(&times, speed).map_err(|error| match error {
            PlanError::EmptyLog => ReplayError::Nothing(notes.clone()),
            error => ReplayError::Plan(error),
        })?;
        let mut users = BTreeMap::new();
        let mut pages = Vec::with_capacity(lines.len());
        for (line, due) in lines.iter().zip(due_times) {
            let next = u32::try_from(users.len()).unwrap_or(u32::MAX);
            let user = *users.entry(line.client).or_insert(next);
            pages.push(page(line.request, user, PageStart::At(due)));
        }
        let mut requests: Vec<(u32, Request)> = known
            .into_iter()
            .map(|((_, _, error), (number, mut request))| {
                request.logged_error = error;
                (number, request)
            })
            .collect();
        requests.sort_by_key(|(number, _)| *number);
        let requests = requests.into_iter().map(|(_, request)| request).collect();
        Ok(Replay { requests, pages, lasts, notes })
    }

    fn notes(&self) -> Vec<String> {
        let count = |count: u64| number::count(count as f64);
        let methods = self.unsafe_methods.iter().map(|(name, times)| format!("{} {name}", count(*times)));
        let mut counts: Vec<String> = methods.collect();
        let left_out: u64 = self.unsafe_methods.values().sum::<u64>() + self.unnamed + self.unsendable;
        if self.unnamed > 0 {
            counts.push(format!("{} without a path", count(self.unnamed)));
        }
        if self.unsendable > 0 {
            counts.push(format!("{} with a path that cannot be sent", count(self.unsendable)));
        }
        let mut notes = Vec::new();
        if left_out > 0 {
            let all = left_out + self.lines.len() as u64;
            notes.push(format!(
                "{} of {} logged requests are left out ({}); only GET and HEAD are replayed",
                count(left_out),
                count(all),
                counts.join(", ")
            ));
        }
        if self.without_method > 0 {
            notes.push(format!(
                "the log has no method for {} requests, which are replayed as GET",
                count(self.without_method)
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use accesslog::{ClientDefinition, Reader, recognise};

    use super::*;

    fn logged(lines: &[&str]) -> LoggedRequests {
        let text = lines
            .iter()
            .fold(String::new(), |text, line| text + &format!("192.0.2.1 - - [21/Nov/2026:08:00:0{line}\n"));
        let client = ClientDefinition::default();
        let mut reader = Reader::new(recognise(text.as_bytes(), &client).expect("a log"), client);
        let mut logged = LoggedRequests::default();
        reader.read_requests(text.as_bytes(), |record, request| logged.push(&record, request));
        logged
    }

    #[test]
    fn requests_are_replayed_in_order_of_time_at_a_speed() {
        let lines = [
            "4 +0000] \"GET /b HTTP/1.1\" 200 5",
            "2 +0000] \"GET /a HTTP/1.1\" 404 5",
            "6 +0000] \"GET /b HTTP/1.1\" 200 5",
        ];
        let Replay { requests, pages, notes, .. } = logged(&lines).replay(2.0).expect("requests");
        let names: Vec<String> = requests.iter().map(Request::name).collect();
        assert_eq!(names, ["GET /b", "GET /a"]);
        assert_eq!(
            requests.iter().map(|request| request.logged_error).collect::<Vec<_>>(),
            [None, Some(404)]
        );
        let starts: Vec<PageStart> = pages.iter().map(|page| page.start).collect();
        let at = |seconds| PageStart::At(Time::ZERO + Duration::from_secs(seconds));
        assert_eq!(starts, [at(0), at(1), at(2)]);
        assert!(notes.is_empty());
    }

    #[test]
    fn a_log_without_safe_requests_is_refused_with_their_methods() {
        let error = logged(&["1 +0000] \"POST /a HTTP/1.1\" 200 5"]).replay(1.0).unwrap_err();
        assert!(
            error.to_string().contains("no request to replay: 1 of 1 logged requests are left out (1 POST)"),
            "{error}"
        );
    }
}
