//! A scenario as input of the HTTP state machines: a plan for the robot, a site for the server.
//!
//! Hosts and links are built by [`super::Experiment`].

use std::sync::Arc;

use fetch::{Plan, Release, Shape};
use http1::site::Site;
use scenario::{Client, Connection, Page, Programs, Remark, Serving};
use wire::{Bytes, Duration};

use super::Contents;
use crate::error::Error;

/// The robot's plan, and its deviations from the scenario.
pub(super) fn plan(
    page: &Page,
    shape: Shape,
    serving: &Serving,
    client: &Client,
    programs: &Programs,
) -> Result<(Plan, Vec<Remark>), Error> {
    // A page in a warm state has been fetched just before.
    let warm = match client.connection {
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
    let (plan, remark) = serving.plan(page, shape, client, programs);
    let objects = [before.as_slice(), &plan.objects].concat();
    let plan = Plan {
        objects,
        begins_at: before.len(),
        pages_before: pages_before.max(1),
        pause,
        idle: programs.client_idle,
        deadline: TIMEOUT + pause * pages_before as u64,
        ..plan
    };
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
