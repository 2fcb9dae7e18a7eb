//! Plain HTTP/1.1 over a connection of its own: for servers without DHTTP, for requests that it cannot carry, and raced
//! against DHTTP ([`super::race`]).
//!
//! Each exchange has a blocking thread. Not a pool: servers with many requests speak DHTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;

use http1::client::{Event as Part, Responses};
use http1::message::{Fields, Limits, RequestHead};
use wire::{Duration, Time};

use super::exchange::{Event, Sink, Via};
use super::{Command, Note, PendingRequest, Shared};
use linux::clock::Clock;

/// Sends the request in a thread of its own.
pub(super) fn send_request(shared: &Arc<Shared>, question: PendingRequest) {
    let (shared, sink, race) = (Arc::clone(shared), Arc::clone(&question.sink), question.race.clone());
    let spawned = thread::Builder::new().name("dhttp-plain".to_owned()).spawn(move || {
        if let Err(reason) = exchange(&shared, &question)
            && question.race.as_ref().is_none_or(|race| race.fail())
        {
            question.sink.fail(reason);
        }
    });
    if let Err(error) = spawned
        && race.is_none_or(|race| race.fail())
    {
        sink.fail(format!("no thread for plain HTTP: {error}"));
    }
}

fn exchange(shared: &Shared, question: &PendingRequest) -> Result<(), String> {
    let PendingRequest { id, url, server, dhttp: _, head, sink, race } = question;
    let timeout = std::time::Duration::from_nanos(shared.config.timeout.as_nanos());
    let failed = |what: &str, error: &io::Error| format!("{what} {server}: {error}");
    shared.note(&Note::Connecting(*server));
    let clock = Clock::start();
    let mut stream =
        TcpStream::connect_timeout(server, timeout).map_err(|error| failed("cannot connect to", &error))?;
    let set = stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)));
    set.map_err(|error| failed("cannot use the connection to", &error))?;
    if race.as_ref().is_some_and(|race| !race.wait(clock.now().since(Time::ZERO))) {
        return Ok(());
    }
    let mut bytes = Vec::new();
    close_after(head).encode(&mut bytes);
    stream.write_all(&bytes).map_err(|error| failed("cannot write to", &error))?;
    let accept_fields = |fields: &Fields| {
        shared.learn_from_response(&url.authority(), fields);
        let is_first = race.as_ref().is_none_or(|race| race.claim_for_plain());
        if race.is_some() && is_first {
            shared.send_command(Command::Cancel(*id));
        }
        is_first
    };
    read(&mut stream, (shared, *server), head, sink, accept_fields)
        .map_err(|reason| format!("{server}: {reason}"))?;
    sink.give(Event::End);
    Ok(())
}

/// Reads the response and hands it over except for its end; `accept_fields` gets its header fields first, and returns whether the
/// response is wanted. The header section must be complete within the timeout, and each read must return within it.
fn read(
    stream: &mut TcpStream,
    (shared, server): (&Shared, SocketAddr),
    requested: &RequestHead,
    sink: &Sink,
    accept_fields: impl Fn(&Fields) -> bool,
) -> Result<(), String> {
    let (clock, timeout) = (Clock::start(), shared.config.timeout);
    let mut responses = Responses::new(Limits::default());
    let mut buffer = vec![0; 65_536];
    let mut is_final = false;
    loop {
        if !is_final && clock.now().since(Time::ZERO) > timeout {
            return Err(format!("the server's response has not begun within {timeout}"));
        }
        sink.wait_for_capacity();
        let length = stream.read(&mut buffer).map_err(|error| silence(&error, timeout))?;
        shared.count_received_bytes(server.ip(), length);
        let mut input = buffer.get(..length).unwrap_or_default();
        if length == 0 {
            return match responses.end_of_stream().map_err(|fault| fault.to_string())? {
                true => Ok(()),
                false => Err("the server closed the connection without a response".to_owned()),
            };
        }
        while let Some(part) =
            responses.read(&mut input, &requested.method).map_err(|fault| fault.to_string())?
        {
            let wanted = match part {
                Part::Interim(_) => true,
                Part::Head(head, _) => {
                    is_final = true;
                    accept_fields(&head.fields) && sink.give(Event::Head(Via::TcpClient, head))
                }
                Part::Body(bytes) => sink.give(Event::Body(bytes.to_vec())),
                Part::End { .. } => return Ok(()),
            };
            if !wanted {
                return Err("the caller no longer waits for the response".to_owned());
            }
        }
    }
}

/// Returns an error message for a failed read; the system's own text for a timeout is unclear.
fn silence(error: &io::Error, timeout: Duration) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("the server has sent nothing for {timeout}")
        }
        _another => error.to_string(),
    }
}

/// Returns the header section for the only request of a connection, with the port that it names.
fn close_after(head: &RequestHead) -> RequestHead {
    let mut head = head.clone();
    // A constant, valid field.
    let _ = head.fields.push("Connection", "close");
    head
}
