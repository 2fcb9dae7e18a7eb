//! A scenario in the terms of our own programs: what the robot is to do, how the server treats it, and for how long.
//!
//! Not what kernels do: that is [`crate::profile`].

use std::num::NonZeroU16;

use proto::http::{Method, Version, WritePolicy};
use proto::robot::{Pipelining, Plan, PlannedObject, Shape};
use proto::server::{Patience, ServerConfig};
use proto::site::Site;
use scenario::programs::Validation;
use scenario::{Client, Connection, Page, Programs, Protocol, Scenario, Visit};
use wire::{Bytes, Duration};

use super::unsuited;
use crate::Error;
use crate::peers::{ClientProgram, ServerProgram};

/// What the robot is to do, and what of the scenario it does otherwise.
pub(super) fn plan(
    protocol: Protocol,
    page: &Page,
    client: &Client,
    pipelining: Pipelining,
) -> Result<(Plan, Vec<String>), Error> {
    let Client { request, requests, parallel, connection } = client;
    match connection {
        Connection::Cold => {}
        Connection::Warm => {
            return Err(unsuited(
                "a connection that is open already",
                "use --connection cold, or another engine",
            ));
        }
    }
    let parallel = NonZeroU16::new(*parallel).ok_or_else(|| unsuited("0 connections", "use --parallel 1"))?;
    let shape = match protocol {
        Protocol::Http10 => Shape::Http10 { parallel },
        Protocol::Http10KeepAlive => Shape::Http10KeepAlive,
        Protocol::Http11 => Shape::Http11,
        Protocol::Http11Pipelined | Protocol::Http11PipelinedDeflate => Shape::Http11Pipelined(pipelining),
        Protocol::Minimum => {
            return Err(unsuited("the minimum, which no protocol reaches", "use --engine model"));
        }
        Protocol::Dhttp => Shape::Dhttp,
        Protocol::Ttcp | Protocol::Ardp => {
            let part = format!("{} on a Linux kernel", protocol.name());
            let remedy = "use http10, http10-keepalive, http11, http11-pipelined or dhttp, or --engine model";
            return Err(unsuited(&part, remedy));
        }
    };
    let (release, note) = requests.release(shape);
    let objects = page
        .objects
        .iter()
        .enumerate()
        .map(|(index, object)| PlannedObject::get(&Site::path(index), Some(object.size)));
    let plan =
        Plan { request_size: Some(*request), release, ..Plan::new("server", objects.collect(), shape) };
    Ok((plan, note.into_iter().map(str::to_owned).collect()))
}

/// Refuses what real programs cannot be told: they take the time they take.
pub(super) fn honoured(programs: &Programs) -> Result<(), Error> {
    let Programs {
        client_setup,
        client_think,
        client_reading,
        client_buffer: _,
        client_flush: _,
        client_flush_explicit: _,
        client_first_bytes: _,
        client_validation: _,
        server_setup,
        server_write,
        server_head: _,
        server_buffer: _,
        server_requests: _,
        server_close: _,
        nagle: _,
        send_buffer: _,
    } = programs;
    let times = [client_setup, client_think, client_reading, server_setup, server_write];
    if times.iter().any(|time| time.is_some_and(|time| time > Duration::ZERO)) {
        let said = programs.described().unwrap_or_default();
        return Err(unsuited(
            &format!("a time that its programs are to take ({said})"),
            "use --processing, which it honours, or --engine simulate",
        ));
    }
    Ok(())
}

/// Refuses what only our own client can be told.
pub(super) fn only_ours(programs: &Programs, client: ClientProgram) -> Result<(), Error> {
    let told = [
        ("first bytes", programs.client_first_bytes.is_some()),
        ("a way to ask for what has changed", programs.client_validation.is_some()),
    ];
    match told.iter().find(|(_, is_said)| *is_said) {
        Some((what, _)) if client != ClientProgram::Ours => {
            Err(unsuited(&format!("{what} that {} is told", client.name()), "use --client ours"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes requests of what the client has, if it has anything.
pub(super) fn validate(
    plan: &mut Plan,
    site: &Site,
    visit: Visit,
    validation: Option<Validation>,
    server: ServerProgram,
) -> Result<(), Error> {
    let version = match (visit, validation) {
        (Visit::First, _) => return Ok(()),
        (Visit::Revalidate, None) => plan.shape.version(),
        (Visit::Revalidate, Some(Validation::EntityTags)) => Version::Http11,
        (Visit::Revalidate, Some(Validation::Dates)) => Version::Http10,
        (Visit::Revalidate, Some(Validation::Heads)) => {
            for object in plan.objects.iter_mut().skip(1) {
                (object.method, object.expected) = (Method::Head, None);
            }
            return Ok(());
        }
    };
    if server != ServerProgram::Ours && validation == Some(Validation::EntityTags) {
        let part = format!("entity tags of {server}, which are its own");
        return Err(unsuited(&part, "use dates or heads, or let our own server serve"));
    }
    for (index, object) in plan.objects.iter_mut().enumerate() {
        object.validator = match server {
            ServerProgram::Ours => site.validator(index, version),
            ServerProgram::Nginx | ServerProgram::Apache | ServerProgram::Caddy | ServerProgram::Python => {
                Some(ServerProgram::validator())
            }
        };
    }
    Ok(())
}

pub(super) fn config(programs: &Programs, shape: Shape, patience: Patience) -> ServerConfig {
    let ServerConfig { limits, writes: _, requests, closing, patience: _ } = ServerConfig::default();
    ServerConfig {
        limits,
        writes: programs.writes(writes(shape)),
        requests: programs.server_requests.or(requests),
        closing: programs.server_close.unwrap_or(closing),
        patience,
    }
}

/// How the server cuts its answers into writes.
fn writes(shape: Shape) -> WritePolicy {
    match shape {
        Shape::Http10 { parallel: _ } | Shape::Http10KeepAlive | Shape::Http11 | Shape::Dhttp => {
            WritePolicy::default()
        }
        Shape::Http11Pipelined(_) => WritePolicy::gathering(),
    }
}

/// Long enough for any run that gets anywhere, losses included; short enough for somebody to wait for.
pub(super) fn deadline(scenario: &Scenario) -> Duration {
    let (network, page, processing) = (&scenario.network, &scenario.page, scenario.server.processing);
    let objects = page.objects.len() as u64;
    let requests = Bytes::new(scenario.client.request.get().saturating_mul(objects));
    let slowest = network.rate_up.map_or(network.rate, |up| up.min(network.rate));
    let sending = slowest.time_for(page.size() + requests);
    let each = network.rtt * 20 + processing;
    Duration::from_secs(30) + sending * 4 + each * objects
}
