//! Cache of the gateway: serving from it, and storing responses that pass, if enabled.
//!
//! [`crate::cache`] decides what may be stored or served.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use http1::gateway::{self, Forward};
use http1::message::{Fields, Framing, RequestHead, ResponseHead};

use super::Shared;
use super::blocking_exchange::{BlockingExchange, ExchangeEnd, conclude};
use super::reply::{Reply, ReplyContext, Size};
use super::upstream::{ResponseItem as Arrived, Upstream};
use crate::cache::streaming_fill::{Disposition, Lookup, StreamingFill};
use dhttp::client::Event;
use dhttp::fields::copy;
use dhttp::handler::Response;
use dhttp::log::Channel;
use dhttp::{Client, Url};

/// Outcome of the header section of a response.
pub(super) enum ReplyStart<'a> {
    /// The response to the program has begun.
    Reply(Reply<'a>),
    /// The request is to be retried.
    Again,
}

/// Begins the response to a program, and stores it meanwhile if allowed.
///
/// # Errors
/// The program is disconnected.
pub(super) fn begin<'a>(
    passing: &mut Option<Box<StreamingFill>>,
    stream: &'a TcpStream,
    requested: ReplyContext<'_>,
    response: &ResponseHead,
    size: Size,
) -> io::Result<ReplyStart<'a>> {
    let Some(mut passes) = passing.take() else {
        return Ok(ReplyStart::Reply(Reply::begin(stream, requested, response, size)));
    };
    let reply = match passes.head(response, size.known()) {
        Disposition::Given(stored) => Reply::given(stream, requested, &stored)?,
        Disposition::Passed(fields) => {
            let (version, status) = (response.version, response.status);
            Reply::begin(stream, requested, &ResponseHead { version, status, fields }, size).keeping(passes)
        }
        Disposition::Again => {
            *passing = Some(passes);
            return Ok(ReplyStart::Again);
        }
    };
    Ok(ReplyStart::Reply(reply))
}

impl BlockingExchange<'_> {
    /// Serves a request from the cache, or forwards it.
    pub(super) fn look(
        &mut self,
        head: &RequestHead,
        requested: ReplyContext<'_>,
        forward: &Forward,
    ) -> ExchangeEnd {
        let Some(keeper) = &self.shared.keeper else { return self.ask(head, requested, forward, None) };
        match keeper.look(forward, self.shared.config().timeout) {
            Lookup::Kept(response) => {
                self.skip_end();
                self.give(head, requested, &response)
            }
            Lookup::Stale(response, passing) => {
                self.skip_end();
                let ended = self.give(head, requested, &response);
                let (shared, forward) = (Arc::clone(self.shared), forward.clone());
                let validation = Box::new(move |_: &mut _| validate(&shared, &forward, passing));
                // If no thread can be started, the next request revalidates.
                let _ = self.shared.hands.do_it(validation);
                ended
            }
            Lookup::Nothing(passing) => self.ask(head, requested, forward, Some(passing)),
        }
    }

    /// Sends a cached response.
    pub(super) fn give(
        &self,
        head: &RequestHead,
        requested: ReplyContext<'_>,
        response: &Response,
    ) -> ExchangeEnd {
        let given = Reply::given(self.stream(), requested, response);
        let ended = given.and_then(|reply| reply.end(&Fields::new()));
        self.reported(head, response.status, Channel::Cache, &ended);
        conclude(&ended)
    }

    /// Handles a failed request: sends the stored response that replaces it, or the error.
    pub(super) fn fail(
        &mut self,
        head: &RequestHead,
        requested: ReplyContext<'_>,
        passing: Option<Box<StreamingFill>>,
        status: u16,
        why: &str,
    ) -> ExchangeEnd {
        match passing.and_then(|passing| passing.failed()) {
            Some(response) => {
                if requested.stays {
                    self.skip_end();
                }
                self.give(head, requested, &response)
            }
            None => self.refuse(Some((head, requested)), status, why),
        }
    }
}

/// Revalidates a stored response that was served stale; no client waits for it.
fn validate(shared: &Shared, forward: &Forward, mut passing: Box<StreamingFill>) {
    let forward = Forward { head: passing.request().clone(), ..forward.clone() };
    let url = url(&forward);
    let client = shared.client();
    let is_whole = if forward.is_for_dhttp() && client.speaks_dhttp(&url) {
        by_dhttp(shared, &client, &forward, &url, &mut passing)
    } else {
        by_plain_http(shared, &forward, &mut passing)
    };
    if is_whole.is_some() {
        passing.end();
    }
}

fn by_dhttp(
    shared: &Shared,
    client: &Client,
    forward: &Forward,
    url: &Url,
    passing: &mut StreamingFill,
) -> Option<()> {
    let exchange = client.request(forward.head.method.clone(), url, &without_host(&forward.head));
    let mut exchange = exchange.ok()?;
    loop {
        match exchange.next()? {
            Event::Head(_, response) => {
                take_head(shared, passing, &response, None);
            }
            Event::Body(part) => passing.part(&part),
            Event::End => return Some(()),
            Event::Failed(_) => return None,
        }
    }
}

fn by_plain_http(shared: &Shared, forward: &Forward, passing: &mut StreamingFill) -> Option<()> {
    let mut server = Upstream::open(shared, forward, false).ok()?;
    server.send_head(forward).ok()?;
    let mut each = |came: Arrived<'_>| -> io::Result<()> {
        match came {
            Arrived::Head(response, Framing::Length(length)) => {
                take_head(shared, passing, &response, Some(length));
            }
            Arrived::Head(response, Framing::Chunked | Framing::UntilClose) => {
                take_head(shared, passing, &response, None);
            }
            Arrived::Body(part) => passing.part(part),
            Arrived::Interim(_) | Arrived::Pause => {}
        }
        Ok(())
    };
    let (stays, _) =
        server.respond(forward, shared.config().timeout, &AtomicBool::new(false), &mut each).ok()?;
    if stays {
        server.keep(shared);
    }
    Some(())
}

/// Handles a header section whose response no client gets.
fn take_head(shared: &Shared, passing: &mut StreamingFill, response: &ResponseHead, length: Option<u64>) {
    drop(passing.head(&gateway::response(response, &shared.name), length));
}

/// Returns the URL of a request.
pub(super) fn url(forward: &Forward) -> Url {
    let Forward { host, port, authority: _, head, framing: _ } = forward;
    Url { is_dhttp: false, host: host.clone(), port: *port, target: head.target.clone() }
}

/// Returns the fields of a request without `Host`, which the URL names.
pub(super) fn without_host(head: &RequestHead) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in head.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(b"Host")) {
        copy(&mut fields, name, value);
    }
    fields
}
