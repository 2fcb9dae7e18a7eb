//! What a robot tells of a page, in the terms of an HTTP archive: the same for every engine that has one.
//!
//! Not the format, which is `trace`'s.

use std::collections::BTreeMap;

use proto::robot::{Report, What};
use proto::site::Site;
use scenario::{Protocol, Scenario};
use trace::har::Exchange;
use wire::{Bytes, Duration, Time};

/// What became of an object.
#[derive(Default)]
struct Course {
    connection: u32,
    sent: Option<Time>,
    answered: Option<Time>,
    complete: Option<(Time, u16, Bytes)>,
}

/// Every exchange of a page: what the robot told from `began` on, and when its connections were asked for, in their order.
pub fn exchanges(scenario: &Scenario, reports: &[Report], connects: &[Time], began: Time) -> Vec<Exchange> {
    let mut courses: BTreeMap<usize, Course> = BTreeMap::new();
    for report in reports {
        match report.what {
            What::RequestSent { object, connection } => {
                // If it is asked for again, this is what was answered.
                courses.insert(
                    object,
                    Course { connection: connection.0, sent: Some(report.at), ..Course::default() },
                );
            }
            What::HeadReceived { object, status: _ } => {
                courses.entry(object).or_default().answered = Some(report.at);
            }
            What::ObjectComplete { object, status, body } => {
                courses.entry(object).or_default().complete = Some((report.at, status, body));
            }
            What::ObjectFailed { object: _, failure: _ }
            | What::Fault { connection: _, fault: _ }
            | What::ObjectFound { object: _, path: _ }
            | What::TooManyObjects { most: _ }
            | What::FirstBytesReceived { object: _ }
            | What::Finished { failed: _ } => {}
        }
    }
    let mut told = Vec::new();
    let first = courses.len().min(scenario.page.objects.len());
    let mut is_used: Vec<u32> = Vec::new();
    let since = |at: Time| if at > began { at.since(began) } else { Duration::ZERO };
    // A page before this one, which made everything warm, is not part of it.
    for (object, course) in courses.into_iter().rev().take(first).collect::<Vec<_>>().into_iter().rev() {
        let Course { connection, sent: Some(sent), answered, complete: Some((complete, status, body)) } =
            course
        else {
            continue;
        };
        let is_first = !is_used.contains(&connection);
        is_used.push(connection);
        let opened = usize::try_from(connection).ok().and_then(|place| connects.get(place)).copied();
        let object = object % scenario.page.objects.len().max(1);
        told.push(Exchange {
            path: Site::path(object),
            version: version(scenario.protocol),
            request: scenario.client.request,
            status,
            body,
            mime: if object == 0 { "text/html" } else { "image/gif" },
            connection,
            connects: opened.filter(|_| is_first).map(since),
            sent: since(sent),
            answered: since(answered.unwrap_or(complete)),
            complete: since(complete),
        });
    }
    told.sort_by_key(|exchange| exchange.sent);
    told
}

const fn version(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http10 | Protocol::Http10KeepAlive | Protocol::Ttcp | Protocol::Ardp => "HTTP/1.0",
        Protocol::Minimum
        | Protocol::Http11
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Dhttp => "HTTP/1.1",
    }
}
