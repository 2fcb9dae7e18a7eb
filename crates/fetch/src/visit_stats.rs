//! Statistics of a visit, from its reports: retries, missing objects, and the time at which the
//! page's contents were known.
//!
//! Durations are measured by an engine; failures are in the reports.

use std::collections::BTreeMap;

use wire::Time;

use crate::report::{Failure, PageEvent, Report};

/// Statistics of a visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitStats {
    /// Number of requests retried, because a connection ended before any part of their responses arrived.
    pub retries: u64,
    /// Time at which the first bytes of the last object had arrived. `None` if they are missing for a
    /// requested object, or the plan did not request this.
    pub first_bytes: Option<Time>,
    /// Number of objects that the document references and the server does not have.
    pub missing: u64,
    /// Maximum number of objects, if the document references more; only that number was fetched.
    pub max: Option<usize>,
}

impl VisitStats {
    /// Statistics of the page with these reports.
    pub fn of(reports: &[Report]) -> Self {
        let (mut retries, mut missing, mut max_objects) = (0, 0, None);
        // Whether the last request for each object has had a response.
        let mut has_response: BTreeMap<usize, bool> = BTreeMap::new();
        let mut known: BTreeMap<usize, Time> = BTreeMap::new();
        for report in reports {
            match report.event {
                PageEvent::RequestSent { object, connection: _ } => {
                    retries += u64::from(has_response.insert(object, false) == Some(false));
                }
                PageEvent::HeadReceived { object, status: _ } => drop(has_response.insert(object, true)),
                PageEvent::FirstBytesReceived { object } => drop(known.insert(object, report.at)),
                PageEvent::TooManyObjects { max } => max_objects = Some(max),
                PageEvent::ObjectFailed { object: _, failure: Failure::Missing } => missing += 1,
                PageEvent::ObjectFound { object: _, path: _ }
                | PageEvent::ObjectComplete { object: _, status: _, body: _ }
                | PageEvent::ObjectFailed { object: _, failure: _ }
                | PageEvent::Fault { connection: _, fault: _ }
                | PageEvent::Finished { failed: _ } => {}
            }
        }
        let are_all_known = has_response.keys().eq(known.keys());
        let max = max_objects;
        Self { retries, missing, max, first_bytes: known.into_values().max().filter(|_| are_all_known) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::ConnectionId;

    #[test]
    fn retries_are_requests_without_a_response() {
        let sent = |object| PageEvent::RequestSent { object, connection: ConnectionId(0) };
        let head = |object| PageEvent::HeadReceived { object, status: 206 };
        let events = [
            sent(0),
            head(0),
            PageEvent::FirstBytesReceived { object: 0 },
            // A request for the rest is not a retry.
            sent(0),
            sent(1),
            sent(1),
            head(1),
        ];
        let reports = |events: &[PageEvent]| -> Vec<Report> {
            let at = |seconds: usize| Time::ZERO + wire::Duration::from_secs(seconds as u64);
            events
                .iter()
                .enumerate()
                .map(|(index, event)| Report { at: at(index), event: event.clone() })
                .collect()
        };
        let mut events = events.to_vec();
        assert_eq!(VisitStats::of(&reports(&events)), VisitStats { retries: 1, ..VisitStats::default() });
        events.push(PageEvent::FirstBytesReceived { object: 1 });
        let known = Some(Time::ZERO + wire::Duration::from_secs(7));
        assert_eq!(
            VisitStats::of(&reports(&events)),
            VisitStats { retries: 1, first_bytes: known, ..VisitStats::default() }
        );
    }
}
