//! The part of a client that receives responses in several datagrams, and requests their lost parts.
//!
//! Missing parts are requested once, as a range, as soon as no more arrive; those still missing then come with the
//! usual resend, by TCP. A window limits the parts that a server may have in flight to this client. A response with
//! lost parts halves it; a complete one increases it by one. Not TCP's congestion control, which handles the rest: here
//! nothing is ever sent twice in one round trip.

use core::net::SocketAddr;

use wire::Time;

use super::opened_connections::IncomingResponse;
use super::phase::{Event, Phase};
use super::reassembly::{PartLabel, Reassembly};
use super::{Client, Discard, Key, Output, Request, Source, TimerTarget};
use crate::{Id, Malformed};
use http1::message::{Method, PeerFault, RequestHead, ResponseHead};

/// Maximum bytes of a part: the UDP payload of an Ethernet packet over IPv4.
const MAX_PART_BYTES: usize = 1_472;

/// A part that arrives on a connection, because the server sees loss.
#[derive(Debug)]
pub(super) struct ConnectionPart {
    label: PartLabel,
    head: ResponseHead,
    bytes: Vec<u8>,
}

impl Client {
    /// Returns the number of parts that a request may offer to accept; 0 if none.
    pub(super) fn offer(&self, server: SocketAddr, head: &RequestHead) -> u8 {
        let has = |name| head.fields.get(name).is_some();
        let is_plain = head.method == Method::Get && !has("Range") && !has("If-Range");
        let capacity = self.servers.window(server);
        let parts = self.config.parts.min(capacity);
        if is_plain && parts > 1 { parts } else { 0 }
    }

    /// Handles a datagram with a part of a response.
    pub(super) fn part(
        &mut self,
        now: Time,
        key: Key,
        from: SocketAddr,
        head: ResponseHead,
        part: &[u8],
    ) -> Result<(), Discard> {
        let request = self.requests.get_mut(&key).ok_or(Discard::Unknown)?;
        if request.phase.next(Event::Part).is_none() {
            return Err(Discard::Late);
        }
        let not_a_part = Discard::Malformed(Malformed::Http(PeerFault::Truncated));
        let label = PartLabel::of(&head, usize::from(request.parts) * MAX_PART_BYTES).ok_or(not_a_part)?;
        let is_first = request.gathered.is_none();
        let is_new = request.gather(now, &label, head.clone(), part)?;
        let (id, server, is_fresh) =
            (request.id, request.server, request.resends == 0 && !request.has_recovered);
        if from == server {
            let requested = self.requests.get(&key).map_or(now, |request| request.sent);
            let known = self.servers.find_or_insert(server);
            known.learn_token_of(now, &head);
            if is_first && is_fresh {
                known.round_trips.measured(now.since(requested));
            }
        } else {
            self.servers.find_or_insert(server).learn_cache(&head);
        }
        if self.finish_gathered(key, id, Source::Datagram(from)) {
            return Ok(());
        }
        if !is_new {
            return Err(Discard::Late);
        }
        self.step(key, Event::Part);
        let Some(request) = self.requests.get_mut(&key) else { return Ok(()) };
        if let Some(gathered) = request.gathered.as_ref().filter(|_| !request.has_recovered) {
            let due = now + gathered.timeout();
            if let Some(before) = request.due.replace(due) {
                self.timers.remove(&(before, TimerTarget::Request(key)));
            }
            self.timers.insert((due, TimerTarget::Request(key)));
        }
        Ok(())
    }

    /// Delivers a response to the caller if all its parts have arrived; returns whether they have.
    fn finish_gathered(&mut self, key: Key, id: Id, source: Source) -> bool {
        let Some(request) = self.requests.get_mut(&key) else { return false };
        let Some(gathered) = request.gathered.take_if(|gathered| gathered.is_whole()) else { return false };
        let (server, was_lossy) = (request.server, request.has_recovered || request.resends > 0);
        let is_pending = match request.phase {
            Phase::Claimed => self.step(key, Event::Head) && self.step(key, Event::Complete),
            Phase::Waiting | Phase::Gathering | Phase::Arriving | Phase::Over => {
                self.step(key, Event::Response)
            }
        };
        if let Some((head, body)) = gathered.into_response().filter(|_| is_pending) {
            if !was_lossy {
                self.servers.find_or_insert(server).widen();
            }
            self.outputs.extend([Output::Head(id, source, head), Output::Body(id, body), Output::End(id)]);
        }
        true
    }

    /// Returns the datagram that requests the missing parts of a response, if that is due now.
    pub(super) fn recovery(&mut self, key: Key) -> Option<Vec<u8>> {
        let request = self.requests.get_mut(&key).filter(|request| !request.has_recovered)?;
        let datagram = request.gathered.as_ref()?.request(&request.datagram)?;
        let is_fine = datagram.len() <= self.config.request_bytes;
        request.has_recovered = true;
        self.servers.find_or_insert(request.server).narrow();
        is_fine.then_some(datagram)
    }

    /// Handles the header section of a response on a connection; returns whether it was taken as a requested part.
    pub(super) fn takes_aside(&mut self, now: Time, response: IncomingResponse, head: &ResponseHead) -> bool {
        let Some(request) = self.requests.get_mut(&response.key) else { return false };
        // Left over from a connection that broke.
        request.connection_part = None;
        if head.status != 206 || !request.has_recovered || request.phase != Phase::Claimed {
            return false;
        }
        let label = PartLabel::of(head, usize::from(request.parts) * MAX_PART_BYTES);
        request.connection_part =
            label.map(|label| ConnectionPart { label, head: head.clone(), bytes: Vec::new() });
        if request.connection_part.is_none() {
            self.resend_broken(now, response.key);
        }
        true
    }

    /// Stores bytes of such a response's body.
    pub(super) fn put_aside(&mut self, key: Key, bytes: &[u8]) {
        let connection_part =
            self.requests.get_mut(&key).and_then(|request| request.connection_part.as_mut());
        if let Some(connection_part) = connection_part.filter(|connection_part| {
            connection_part.bytes.len() + bytes.len() <= connection_part.label.length()
        }) {
            connection_part.bytes.extend_from_slice(bytes);
        }
    }

    /// Handles the end of a response on a connection; returns whether it was a requested part.
    pub(super) fn end_aside(&mut self, now: Time, response: IncomingResponse, peer: SocketAddr) -> bool {
        let Some(request) = self.requests.get_mut(&response.key) else { return false };
        let Some(ConnectionPart { label, head, bytes }) = request.connection_part.take() else {
            return false;
        };
        // A part of another object than before replaces the others, and is not all of it.
        let _ = request.gather(now, &label, head, &bytes);
        if !self.finish_gathered(response.key, response.id, Source::Connection(peer)) {
            self.resend_broken(now, response.key);
        }
        true
    }

    /// Resends a request whose response on a connection was incomplete.
    fn resend_broken(&mut self, now: Time, key: Key) {
        if self.step(key, Event::Broken)
            && let Some(request) = self.requests.get_mut(&key)
        {
            request.due = Some(now);
            self.timers.insert((now, TimerTarget::Request(key)));
        }
    }
}

impl Request {
    /// Adds a part; returns whether it had new bytes. Before missing parts are requested, all parts are of the object
    /// of the first one.
    fn gather(
        &mut self,
        now: Time,
        label: &PartLabel,
        head: ResponseHead,
        part: &[u8],
    ) -> Result<bool, Discard> {
        if part.len() != label.length() {
            return Err(Discard::Malformed(Malformed::Body));
        }
        match &self.gathered {
            Some(gathered) if gathered.is_of(label) => {}
            Some(_) if !self.has_recovered => return Err(Discard::Late),
            Some(_) | None => self.gathered = Some(Box::new(Reassembly::new(now, self.sent, label))),
        }
        Ok(self.gathered.as_mut().is_some_and(|gathered| gathered.take(now, label, head, part)))
    }
}
