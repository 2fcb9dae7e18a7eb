//! A scenario in the terms of our own programs: the robot's plan, the server's settings, and the deadline.
//!
//! Kernel settings are in [`crate::profile`].

use fetch::{Pipelining, Plan, Shape};
use http1::message::WritePolicy;
use http1::server::{ConnectionTimeouts, ServerConfig};
use scenario::programs::Validation;
use scenario::{Client, Connection, Programs, Protocol, Scenario, Visit};
use wire::{Bytes, Duration};

use crate::Error;
use crate::peers::{ClientProgram, ServerProgram};

/// Connection policy of a protocol that the kernel has, without a connection that is open already.
pub(super) fn shape(protocol: Protocol, client: &Client, pipelining: Pipelining) -> Result<Shape, Error> {
    let shape = client.shape(protocol, pipelining)?;
    if matches!(protocol, Protocol::Ttcp | Protocol::Ardp) {
        let part = format!("{} on a Linux kernel", protocol.name());
        let remedy = "use http10, http11, http11-parallel, http11-pipelined, http2, http3 or dhttp, or --engine simulate";
        return Err(Error::unsuited(&part, remedy));
    }
    match client.connection {
        Connection::Cold => Ok(shape),
        Connection::Warm => Err(Error::unsuited(
            "a connection that is open already",
            "use --connection cold, or another engine",
        )),
    }
}

/// Refuses settings that real programs do not support: their CPU times are their own.
pub(crate) fn refuse_unsupported(programs: &Programs) -> Result<(), Error> {
    let Programs {
        client_pages,
        client_pause,
        client_idle,
        client_setup,
        client_dns: _,
        client_think,
        client_reading,
        client_file,
        client_buffer: _,
        client_flush: _,
        client_flush_explicit: _,
        client_first_bytes: _,
        client_validation: _,
        client_codings: _,
        client_defect: _,
        client_stack,
        browser: _,
        http2_client: _,
        http3_client: _,
        http2_server: _,
        http3_server: _,
        server_idle: _,
        server_connections,
        server_changed: _,
        server_setup,
        server_write,
        server_head: _,
        server_buffer: _,
        server_compression: _,
        server_requests: _,
        server_close: _,
        dhttp: _,
        nagle: _,
        send_buffer: _,
        unsent_limit: _,
        // Parts of the stack that the kernel lacks are refused by [`crate::fidelity`].
        receive_buffer: _,
        initial_window: _,
        idle: _,
        idle_after,
        rto_min,
        rto_initial,
    } = programs;
    let simulated = [
        ("a session of several pages", client_pages.is_some_and(|pages| pages.get() > 1)),
        ("a pause between pages", client_pause.is_some()),
        ("an idle timeout of its client", client_idle.is_some()),
        ("a limit of the server's connections", server_connections.is_some()),
        ("a client with a stack of its own", client_stack.is_some()),
        ("an idle time other than the retransmission timeout", idle_after.is_some()),
        ("a retransmission timer that is set", rto_min.is_some() || rto_initial.is_some()),
    ];
    if let Some((part, _)) = simulated.iter().find(|(_, is_set)| *is_set) {
        return Err(Error::unsuited(part, "use --engine simulate, or leave it out"));
    }
    let times = [client_setup, client_think, client_reading, client_file, server_setup, server_write];
    if times.iter().any(|time| time.is_some_and(|time| time > Duration::ZERO)) {
        let description = programs.described().unwrap_or_default();
        return Err(Error::unsuited(
            &format!("a time that its programs are to take ({description})"),
            "use --processing, which it honours, or --engine simulate",
        ));
    }
    Ok(())
}

/// Refuses settings that only our own client supports.
pub(crate) fn require_own_client(programs: &Programs, client: ClientProgram) -> Result<(), Error> {
    let settings = [
        ("first bytes", programs.client_first_bytes.is_some()),
        ("a validation method", programs.client_validation.is_some()),
        ("codings", programs.client_codings.is_some()),
        ("a defect", programs.client_defect.is_some()),
        ("times of name lookups", programs.client_dns.is_some()),
        ("a browser's policy", programs.browser.is_some()),
        ("behaviour over HTTP/2", programs.http2_client.is_some()),
        ("behaviour over HTTP/3", programs.http3_client.is_some()),
    ];
    match settings.iter().find(|(_, is_set)| *is_set) {
        Some((setting, _)) if client != ClientProgram::Ours => {
            Err(Error::unsuited(&format!("{setting} set for {}", client.name()), "use --client ours"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes the client's requests conditional, for a third-party server, which has dates of its own.
pub(super) fn validate(
    plan: &mut Plan,
    server: ServerProgram,
    visit: Visit,
    validation: Option<Validation>,
) -> Result<(), Error> {
    match (visit, validation) {
        (Visit::First, _) | (Visit::Revalidate, Some(Validation::Heads)) => {}
        (Visit::Revalidate, Some(Validation::EntityTags)) => {
            let part = format!("entity tags of {server}, which are its own");
            return Err(Error::unsuited(&part, "use dates or heads, or use our own server"));
        }
        (Visit::Revalidate, None | Some(Validation::Dates)) => {
            plan.objects.iter_mut().for_each(|object| object.validator = Some(ServerProgram::validator()));
        }
    }
    Ok(())
}

pub(crate) fn config(programs: &Programs, shape: Shape, timeout: ConnectionTimeouts) -> ServerConfig {
    let ServerConfig { limits, writes: _, requests, closing, timeout: _ } = ServerConfig::default();
    ServerConfig {
        limits,
        writes: programs.writes(writes(shape)),
        requests: programs.server_requests.or(requests),
        closing: programs.server_close.unwrap_or(closing),
        timeout: ConnectionTimeouts { idle: programs.server_idle.unwrap_or(timeout.idle), ..timeout },
    }
}

/// Division of the server's responses into writes.
fn writes(shape: Shape) -> WritePolicy {
    match shape {
        Shape::Http10 { parallel: _ }
        | Shape::Http10KeepAlive
        | Shape::Http11
        | Shape::Http11Parallel { parallel: _ }
        | Shape::Http2
        | Shape::Http3(_)
        | Shape::Dhttp => WritePolicy::default(),
        Shape::Http11Pipelined(_) => WritePolicy::gathering(),
    }
}

/// Deadline: long enough for any run that makes progress, losses included; short enough to wait for.
pub(crate) fn deadline(scenario: &Scenario) -> Duration {
    let (network, page, processing) = (&scenario.network, &scenario.page, scenario.server.processing);
    let objects = page.objects.len() as u64;
    let requests = Bytes::new(scenario.client.request.get().saturating_mul(objects));
    let slowest = network.rate_up.map_or(network.rate, |up| up.min(network.rate));
    let sending = slowest.time_for(page.size() + requests);
    let per_object = longest_rtt(scenario) * 20 + processing;
    Duration::from_secs(30) + sending * 4 + per_object * objects
}

/// Round trip to the page's farthest host.
pub(crate) fn longest_rtt(scenario: &Scenario) -> Duration {
    let farthest = scenario.page.hosts.iter().map(|host| host.extra_rtt).max();
    scenario.network.rtt + farthest.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::programs::ProgramKey;

    #[test]
    fn settings_that_only_the_simulator_has_are_refused_by_name() {
        let refusal = |key, value| {
            let mut programs = Programs::default();
            programs.set(key, value).unwrap();
            refuse_unsupported(&programs).map_err(|error| error.to_string())
        };
        for (key, value, part) in [
            (ProgramKey::ClientPages, "2", "a session of several pages"),
            (ProgramKey::ClientPause, "1s", "a pause"),
            (ProgramKey::ClientIdle, "1s", "an idle timeout"),
            (ProgramKey::ClientStack, "linux", "a client with a stack"),
            (ProgramKey::ServerConnections, "2", "a limit"),
            (ProgramKey::IdleAfter, "1s", "an idle time"),
            (ProgramKey::RtoMin, "1s", "a retransmission timer"),
            (ProgramKey::ClientFile, "1ms", "a time that its programs"),
        ] {
            let sentence = refusal(key, value).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
        for (key, value) in [
            (ProgramKey::ClientPages, "1"),
            (ProgramKey::InitialWindow, "4"),
            (ProgramKey::ServerIdle, "5s"),
            (ProgramKey::ServerChanged, "10%"),
        ] {
            assert_eq!(refusal(key, value), Ok(()));
        }
    }
}
