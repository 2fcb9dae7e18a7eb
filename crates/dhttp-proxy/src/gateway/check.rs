//! Check of a request: its limits and method, the server that it names, and the gateway's rules.
//!
//! [`http1::gateway::plan`] interprets it. Addresses of servers are checked when they are resolved (`pool`).

use http1::gateway::{Plan, Refusal, plan};
use http1::message::Framing;

use super::Shared;
use super::stage::{ClientRequest, Exchange, Stage};

/// Checks a request.
///
/// # Errors
/// The stage of a request that is not forwarded.
pub(super) fn check(
    shared: &Shared,
    request: ClientRequest,
    framing: Framing,
) -> Result<Exchange, Box<Stage>> {
    // A body that is not forwarded is not read, and ends the connection.
    let keep_alive = request.keep_alive && framing == Framing::Length(0);
    let planned = plan(&request.head, framing, &shared.name);
    let refuse = |request, keep_alive, status, reason: String| {
        Stage::Refuse(Some(ClientRequest { keep_alive, ..request }), status, reason)
    };
    Err(Box::new(match planned {
        Ok(Plan::Forward(forward)) => return Ok(Exchange { request, forward, fill: None, origin: None }),
        Ok(Plan::Tunnel(host, port)) => {
            let ports = &shared.config().connect_ports;
            match ports.as_ref().is_none_or(|ports| ports.contains(&port)) {
                true => Stage::Tunnel(request, host, port),
                false => {
                    let reason = format!("CONNECT to port {port} is not allowed here (--connect-ports)");
                    refuse(request, false, 403, reason)
                }
            }
        }
        Ok(Plan::Own(path)) if path == "/proxy.pac" => {
            Stage::WriteScript(ClientRequest { keep_alive, ..request })
        }
        Ok(Plan::Own(path)) => {
            let reason =
                "this is a proxy: set it as your program's proxy for http, or give browsers its /proxy.pac";
            refuse(request, keep_alive, if path == "*" { 200 } else { 404 }, reason.to_owned())
        }
        Err(Refusal { status, sentence }) => refuse(request, keep_alive, status, sentence),
    }))
}
