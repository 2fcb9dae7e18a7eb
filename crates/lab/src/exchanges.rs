//! A robot's reports of a page as exchanges of an HTTP archive, for every engine that has a robot.
//!
//! Not the format, which is `trace`'s.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fetch::{Failure, PageEvent, Report};
use http1::content::media_type;
use http1::site::Site;
use scenario::{Protocol, Scenario, Tls};
use trace::har::{Exchange, Visit};
use wire::{Bytes, Duration, Time};

use crate::{Outcome, description};

/// Timeline of an object.
#[derive(Default)]
struct ObjectTimeline {
    connection: u32,
    sent: Option<Time>,
    answered: Option<Time>,
    complete: Option<(Time, u16, Bytes)>,
}

/// Adds the scenario and its means to a visit, which is one of its runs.
pub fn labelled(visit: Visit, outcome: &Outcome) -> Visit {
    let Outcome { scenario, engine, metrics, stalls, .. } = outcome;
    Visit {
        title: description::full_title(scenario),
        network: scenario.network.name.clone(),
        protocol: scenario.protocol.name(),
        engine: engine.name(),
        stack: scenario.stack.name,
        metrics: *metrics,
        stalls: stalls.clone(),
        ..visit
    }
}

/// Every exchange of a page, from the robot's reports since `began` and the times of its connection attempts, in order.
pub fn exchanges(scenario: &Scenario, reports: &[Report], connects: &[Time], began: Time) -> Vec<Exchange> {
    let mut courses: BTreeMap<usize, ObjectTimeline> = BTreeMap::new();
    let mut paths: BTreeMap<usize, &str> = BTreeMap::new();
    // An earlier page, which opened the connections, is not part of it.
    for report in reports.iter().filter(|report| report.at >= began) {
        match &report.event {
            PageEvent::RequestSent { object, connection } => {
                // A retried request starts over: its response is the one that counts.
                courses.insert(
                    *object,
                    ObjectTimeline {
                        connection: connection.0,
                        sent: Some(report.at),
                        ..ObjectTimeline::default()
                    },
                );
            }
            PageEvent::HeadReceived { object, status: _ } => {
                courses.entry(*object).or_default().answered = Some(report.at);
            }
            PageEvent::ObjectComplete { object, status, body } => {
                courses.entry(*object).or_default().complete = Some((report.at, *status, *body));
            }
            PageEvent::ObjectFailed { object, failure: Failure::Missing } => {
                courses.entry(*object).or_default().complete = Some((report.at, 404, Bytes::ZERO));
            }
            PageEvent::ObjectFound { object, path } => drop(paths.insert(*object, path)),
            PageEvent::ObjectFailed { object: _, failure: _ }
            | PageEvent::Fault { connection: _, fault: _ }
            | PageEvent::TooManyObjects { max: _ }
            | PageEvent::FirstBytesReceived { object: _ }
            | PageEvent::Finished { failed: _ } => {}
        }
    }
    let mut reported = Vec::new();
    let mut is_used: Vec<u32> = Vec::new();
    let since = |at: Time| if at > began { at.since(began) } else { Duration::ZERO };
    for (object, course) in courses {
        let ObjectTimeline {
            connection,
            sent: Some(sent),
            answered,
            complete: Some((complete, status, body)),
        } = course
        else {
            continue;
        };
        let is_first = !is_used.contains(&connection);
        is_used.push(connection);
        let opened = usize::try_from(connection).ok().and_then(|index| connects.get(index)).copied();
        let Resource { method, url, mime } = resource(scenario, object, paths.get(&object).copied());
        reported.push(Exchange {
            version: version(scenario.protocol),
            method,
            request: Some(scenario.client.request),
            status: Some(status),
            body: Some(body),
            mime,
            url,
            connection,
            connects: opened.filter(|_| is_first).map(since),
            sent: since(sent),
            answered: Some(since(answered.unwrap_or(complete))),
            complete: since(complete),
        });
    }
    reported.sort_by_key(|exchange| exchange.sent);
    reported
}

/// Names of an object.
struct Resource {
    method: Cow<'static, str>,
    url: String,
    mime: &'static str,
}

/// The object as its page names it, or else at the path that the robot `found` or knew.
fn resource(scenario: &Scenario, object: usize, found: Option<&str>) -> Resource {
    let Scenario { page, tls, .. } = scenario;
    let named = page.objects.get(object % page.objects.len().max(1));
    let named = named.and_then(|object| Some((object, object.path.as_ref()?, page.hosts.get(object.host)?)));
    match named {
        Some((object, path, host)) => {
            let scheme = if *tls != Tls::None && host.protocols.tls { "https" } else { "http" };
            let url = format!("{scheme}://{}{path}", host.name);
            Resource { method: object.method.name().to_owned().into(), url, mime: object.kind.media_type() }
        }
        None => {
            let path = found.map_or_else(|| planned(scenario, object), str::to_owned);
            Resource {
                method: "GET".into(),
                mime: mime(scenario, &path),
                url: format!("http://server{path}"),
            }
        }
    }
}

/// The path of an object that the client knew, perhaps from an earlier page.
fn planned(scenario: &Scenario, object: usize) -> String {
    let page = &scenario.page;
    match &page.contents {
        Some(contents) => {
            let file = contents.files.get(object % contents.files.len().max(1));
            file.map_or_else(String::new, |file| file.path.clone())
        }
        None => Site::path(object % page.objects.len().max(1)),
    }
}

fn mime(scenario: &Scenario, path: &str) -> &'static str {
    match &scenario.page.contents {
        Some(_) => media_type(path.split('?').next().unwrap_or_default()),
        None if path == Site::path(0) => "text/html",
        None => "image/gif",
    }
}

const fn version(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http10 | Protocol::Http10KeepAlive | Protocol::Ttcp | Protocol::Ardp => "HTTP/1.0",
        Protocol::Minimum
        | Protocol::Http11
        | Protocol::Http11Parallel
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Dhttp => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
        Protocol::Http3 | Protocol::Http3Upgrade => "HTTP/3",
    }
}
