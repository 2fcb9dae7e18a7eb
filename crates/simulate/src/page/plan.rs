//! A scenario as input of the HTTP state machines: a plan for the robot, a site for the server.
//!
//! Hosts and links are built by [`super::Experiment`].

use std::num::NonZeroU16;
use std::sync::Arc;

use fetch::{Discovery, Hint, Pipelining, Plan, Release, Shape};
use http1::site::Site;
use page::Host;
use scenario::programs::ClientDefect;
use scenario::{Client, Connection, Page, Programs, Protocol, Remark, Serving};
use wire::{Bytes, Duration};

use super::Contents;
use crate::error::Error;

/// Connection policy of a protocol.
pub(super) fn shape(protocol: Protocol, client: &Client, pipelining: Pipelining) -> Result<Shape, Error> {
    let parallel = NonZeroU16::new(client.parallel)
        .ok_or_else(|| Error::unsuited("0 connections", "use --parallel 1"))?;
    if let Some((part, remedy)) = client.refused_parallel(protocol) {
        return Err(Error::unsuited(&part, remedy));
    }
    match protocol {
        Protocol::Http10 | Protocol::Ttcp | Protocol::Ardp => Ok(Shape::Http10 { parallel }),
        Protocol::Http10KeepAlive => Ok(Shape::Http10KeepAlive),
        Protocol::Http11 => Ok(Shape::Http11),
        Protocol::Http11Parallel => Ok(Shape::Http11Parallel { parallel }),
        Protocol::Http11Pipelined | Protocol::Http11PipelinedDeflate => {
            Ok(Shape::Http11Pipelined(pipelining))
        }
        Protocol::Minimum => {
            Err(Error::unsuited("the minimum, which no protocol reaches", "use --engine model"))
        }
        Protocol::Dhttp => Ok(Shape::Dhttp),
        Protocol::Http2 => Ok(Shape::Http2),
        Protocol::Http3 => Ok(Shape::Http3(Discovery::Known)),
        Protocol::Http3Upgrade => Ok(Shape::Http3(Discovery::AltSvc)),
    }
}

/// The robot's plan, and its deviations from the scenario.
pub(super) fn plan(
    page: &Page,
    shape: Shape,
    serving: &Serving,
    client: &Client,
    programs: &Programs,
) -> Result<(Plan, Vec<Remark>), Error> {
    let Client { request, requests, parallel: _, connection } = client;
    let (release, remark) = requests.release(shape);
    // A page in a warm state has been fetched just before.
    let warm = match connection {
        Connection::Cold => 0,
        Connection::Warm => 1,
    };
    let pages_before = (programs.pages() - 1).max(warm);
    if pages_before.saturating_mul(serving.objects.len()) > MAX_OBJECTS {
        return Err(Error::unsuited(
            &format!("a session of more than {MAX_OBJECTS} objects"),
            "use fewer pages, or a smaller one",
        ));
    }
    let before: Vec<_> = std::iter::repeat_n(&serving.objects, pages_before).flatten().cloned().collect();
    let pause = programs.client_pause.unwrap_or_default();
    let plan = Plan {
        request_size: Some(*request),
        release: serving.release(release),
        browser: serving.browser,
        lookups: serving.lookups.clone(),
        client_time: serving.client_time,
        hints: Hint::of(&page.hosts),
        begins_at: before.len(),
        pages_before: pages_before.max(1),
        pause,
        idle: programs.client_idle,
        ignores_body_with_headers: programs.client_defect == Some(ClientDefect::BodyWithHeaders),
        first_bytes: programs.client_first_bytes,
        deadline: TIMEOUT + pause * pages_before as u64,
        accepted: serving.accepted.clone(),
        embedded: serving.embedded.clone(),
        origins: page.hosts.iter().map(Host::authority).collect(),
        ..Plan::new(Host::UNNAMED, [before.as_slice(), serving.known()].concat(), shape)
    };
    let remark = if serving.is_graph { Some(Remark::GraphDecides) } else { remark };
    Ok((plan, Vec::from_iter(remark)))
}

/// Maximum number of objects before the last page of a session.
const MAX_OBJECTS: usize = 100_000;

/// Site with the page's real objects, if they have the page's sizes.
pub(super) fn site(page: &Page, objects: &[Arc<[u8]>]) -> Result<Site, Error> {
    let sizes = objects.iter().map(|object| Bytes::new(object.len() as u64));
    let is_page = page.objects.iter().map(|object| object.size).eq(sizes);
    is_page.then(|| Site::of(objects.to_vec())).ok_or_else(|| {
        Error::unsuited("contents of other sizes than the page's", "give the page the contents' sizes")
    })
}

/// Marks objects that a real document references: they are requested as it arrives, unless an object waits
/// for another anyway.
pub(super) fn name(plan: &mut Plan, contents: Option<&Contents>) {
    let Some(Contents { objects, named_at }) = contents else { return };
    for (index, object) in plan.objects.iter_mut().enumerate() {
        object.named_at = named_at.get(index % objects.len()).copied();
    }
    match (plan.release, plan.shape) {
        (Release::AfterFirst, _)
        | (
            _,
            Shape::Http10 { parallel: _ }
            | Shape::Http11Parallel { parallel: _ }
            | Shape::Http2
            | Shape::Http3(_),
        ) => {
            plan.release = Release::AsNamed;
        }
        (Release::Independent | Release::AsNamed | Release::Dependent | Release::Graph, _) => {}
    }
}

/// Timeout of a day: virtual time costs nothing, and whatever makes progress at all finishes within a day.
const TIMEOUT: Duration = Duration::from_secs(24 * 3_600);
