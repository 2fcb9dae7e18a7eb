//! Look-up of a request in the cache, and revalidation of a stale response.
//!
//! [`crate::cache`] decides what may be stored or served.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use http1::gateway::{self, Forward};
use http1::message::{Framing, ResponseHead};

use super::Shared;
use super::abort::Abort;
use super::dhttp_request::{DhttpRequest, dhttp_client};
use super::stage::{Exchange, Pipeline, Stage};
use super::upstream::{ResponseItem, Upstream};
use crate::cache::streaming_fill::{Lookup, StreamingFill};
use dhttp::Client;
use dhttp::client::Event;

impl Pipeline<'_> {
    /// Looks up the request, and waits for a pending one for the same.
    pub(super) fn look_up(&self, mut exchange: Box<Exchange>) -> Stage {
        let Some(cache) = &self.shared.cache else { return Stage::Connect(exchange) };
        match cache.look(&exchange.forward, self.shared.config().timeout) {
            Lookup::Hit(response) => Stage::WriteStored(exchange.request, response),
            Lookup::Stale(response, fill) => {
                let ended = self.write_stored(&exchange.request, &response);
                let shared = Arc::clone(self.shared);
                let revalidation = Box::new(move |_: &mut _| revalidate(&shared, exchange.forward, fill));
                // If no thread can be started, the next request revalidates.
                let _ = self.shared.threads.run(revalidation);
                ended
            }
            Lookup::Miss(fill) => {
                exchange.fill = Some(fill);
                Stage::Connect(exchange)
            }
        }
    }
}

/// Revalidates a stored response that was served stale; no client waits for it.
fn revalidate(shared: &Shared, mut forward: Forward, mut fill: Box<StreamingFill>) {
    forward.head = fill.request().clone();
    let is_whole = match dhttp_client(shared, &forward) {
        Some(client) => by_dhttp(shared, client, &forward, &mut fill),
        None => by_plain_http(shared, &forward, &mut fill),
    };
    if is_whole.is_some() {
        fill.end();
    }
}

fn by_dhttp(shared: &Shared, client: Arc<Client>, forward: &Forward, fill: &mut StreamingFill) -> Option<()> {
    let mut request = DhttpRequest::send(client, forward).ok()?;
    loop {
        match request.exchange.next()? {
            Event::Head(_, response) => {
                take_head(shared, fill, &response, None);
            }
            Event::Body(part) => fill.part(&part),
            Event::End => return Some(()),
            Event::Failed(_) => return None,
        }
    }
}

fn by_plain_http(shared: &Shared, forward: &Forward, fill: &mut StreamingFill) -> Option<()> {
    // No client waits, so nothing aborts it.
    let mut server = Upstream::open(shared, forward, false, &Abort::default()).ok()?;
    server.send_head(forward).ok()?;
    let mut each = |item: ResponseItem<'_>| -> io::Result<()> {
        match item {
            ResponseItem::Head(response, Framing::Length(length)) => {
                take_head(shared, fill, &response, Some(length));
            }
            ResponseItem::Head(response, Framing::Chunked | Framing::UntilClose) => {
                take_head(shared, fill, &response, None);
            }
            ResponseItem::Body(part) => fill.part(part),
            ResponseItem::Interim(_) | ResponseItem::Pause => {}
        }
        Ok(())
    };
    let (keep_alive, _) =
        server.respond(forward, shared.config().timeout, &AtomicBool::new(false), &mut each).ok()?;
    if keep_alive {
        server.keep(shared);
    }
    Some(())
}

/// Handles a header section whose response no client gets.
fn take_head(shared: &Shared, fill: &mut StreamingFill, response: &ResponseHead, length: Option<u64>) {
    drop(fill.head(&gateway::response(response, &shared.name), length));
}
