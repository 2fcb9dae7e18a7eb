//! What a scenario means to the machines of `proto`: a plan for the robot, a site for the server.
//!
//! Not hosts and links: those are [`super::Experiment`]'s.

use std::num::NonZeroU16;

use proto::http::{Method, Version};
use proto::robot::{Pipelining, Plan, PlannedObject, Release, Shape};
use proto::site::Site;
use scenario::programs::Validation;
use scenario::{Client, Connection, Page, Protocol};
use wire::{Bytes, Duration, Seed};

use super::Contents;
use crate::error::Error;

/// What a page may hold: its bytes are kept in memory.
const LARGEST_PAGE: Bytes = Bytes::new(1 << 28);

/// What the robot is to do, and what of the scenario it does otherwise.
pub(super) fn plan(
    protocol: Protocol,
    page: &Page,
    client: &Client,
    pipelining: Pipelining,
) -> Result<(Plan, Vec<String>), Error> {
    let Client { request, requests, parallel, connection } = client;
    let parallel =
        NonZeroU16::new(*parallel).ok_or_else(|| Error::unsuited("0 connections", "use --parallel 1"))?;
    let shape = match protocol {
        Protocol::Http10 | Protocol::Ttcp | Protocol::Ardp => Shape::Http10 { parallel },
        Protocol::Http10KeepAlive => Shape::Http10KeepAlive,
        Protocol::Http11 => Shape::Http11,
        Protocol::Http11Pipelined | Protocol::Http11PipelinedDeflate => Shape::Http11Pipelined(pipelining),
        Protocol::Minimum => {
            let what = "the minimum, which no protocol reaches";
            return Err(Error::unsuited(what, "use --engine model"));
        }
        Protocol::Dhttp => Shape::Dhttp,
    };
    let (release, note) = requests.release(shape);
    let once = page.objects.iter().enumerate().map(|(index, object)| PlannedObject {
        method: Method::Get,
        path: Site::path(index),
        expected: Some(object.size),
        validator: None,
        named_at: None,
    });
    // A page that finds everything warm has been fetched just before.
    let times = match connection {
        Connection::Cold => 1,
        Connection::Warm => 2,
    };
    let count = page.objects.len() * times;
    let objects: Vec<PlannedObject> = once.cycle().take(count).collect();
    let plan = Plan {
        request_size: Some(*request),
        release,
        begins_at: count - page.objects.len(),
        deadline: PATIENCE,
        ..Plan::new("server", objects, shape)
    };
    Ok((plan, note.into_iter().map(str::to_owned).collect()))
}

/// What the page is: real, or bytes of no meaning.
pub(super) fn site(page: &Page, contents: Option<&Contents>, seed: Seed) -> Result<Site, Error> {
    let sizes: Vec<Bytes> = page.objects.iter().map(|object| object.size).collect();
    if let Some(Contents { objects, named_at: _ }) = contents {
        let is_page = sizes.iter().copied().eq(objects.iter().map(|object| Bytes::new(object.len() as u64)));
        return is_page.then(|| Site::of(objects.clone())).ok_or_else(|| {
            Error::unsuited("contents of other sizes than the page's", "give the page the contents' sizes")
        });
    }
    let site = (page.size() <= LARGEST_PAGE).then(|| Site::new(&sizes, seed)).flatten();
    site.ok_or_else(|| {
        let what = format!("a page of {}", page.size());
        Error::unsuited(&what, &format!("use one of at most {LARGEST_PAGE}"))
    })
}

/// Objects that a real document names are asked for as it arrives, unless one waits for the other anyway.
pub(super) fn name(plan: &mut Plan, contents: Option<&Contents>) {
    let Some(Contents { objects, named_at }) = contents else { return };
    for (index, object) in plan.objects.iter_mut().enumerate() {
        object.named_at = named_at.get(index % objects.len()).copied();
    }
    match (plan.release, plan.shape) {
        (Release::AfterFirst, _) | (_, Shape::Http10 { parallel: _ }) => plan.release = Release::AsNamed,
        (Release::Independent | Release::AsNamed | Release::Dependent, _) => {}
    }
}

/// Makes requests of what the client has.
pub(super) fn validate(plan: &mut Plan, site: &Site, objects: usize, validation: Option<Validation>) {
    let version = plan.shape.version();
    for (index, object) in plan.objects.iter_mut().enumerate() {
        match (validation, index % objects) {
            (None, index) => object.validator = site.validator(index, version),
            (Some(Validation::EntityTags), index) => {
                object.validator = site.validator(index, Version::Http11);
            }
            (Some(Validation::Dates), index) => object.validator = site.validator(index, Version::Http10),
            (Some(Validation::Heads), 0) => {}
            (Some(Validation::Heads), 1..) => (object.method, object.expected) = (Method::Head, None),
        }
    }
}

/// Virtual time costs nothing: anything that gets anywhere gets there in a day.
const PATIENCE: Duration = Duration::from_secs(24 * 3_600);
