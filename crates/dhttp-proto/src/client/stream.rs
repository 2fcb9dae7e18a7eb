//! A connection that a server opened to a client: a sequence of responses, each after its id.
//!
//! Not the check of ids: the client does that, between two steps of this parser.

use super::IncomingResponse;
use crate::{Id, Malformed};
use http1::client::{Event, Responses};
use http1::message::{Framing, Limits, Method, ResponseHead};

/// Parser of the bytes of a connection.
#[derive(Debug)]
pub(super) struct Stream {
    limits: Limits,
    id: [u8; Id::BYTES],
    /// Bytes of the id that have come in.
    have: usize,
    current: Option<CurrentResponse>,
}

/// The response that is arriving.
#[derive(Debug)]
struct CurrentResponse {
    reader: Responses,
    responses: Method,
    response: IncomingResponse,
}

/// Result of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEvent<'a> {
    /// A response begins: pass its request to [`Stream::expect`], or close the connection.
    Id(Id),
    /// Its header section.
    Head(IncomingResponse, ResponseHead),
    /// A part of its body.
    Body(IncomingResponse, &'a [u8]),
    /// It is complete.
    End(IncomingResponse),
}

impl Stream {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { limits, id: [0; Id::BYTES], have: 0, current: None }
    }

    /// Returns the response that is arriving.
    pub(super) fn respond(&self) -> Option<IncomingResponse> {
        self.current.as_ref().map(|current| current.response)
    }

    /// Whether no byte has arrived since the last response.
    pub(super) const fn is_between_responses(&self) -> bool {
        self.current.is_none() && self.have == 0
    }

    /// Begins to parse `response`, to a request with the method `responses`.
    pub(super) fn expect(&mut self, response: IncomingResponse, responses: Method) {
        let reader = Responses::new(self.limits);
        self.current = Some(CurrentResponse { reader, responses, response });
    }

    /// Parses the next event from the front of `input`; `None` when all of it is consumed.
    pub(super) fn read<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<StreamEvent<'a>>, Malformed> {
        let Some(current) = &mut self.current else { return Ok(self.read_id(input)) };
        while let Some(event) = current.reader.read(input, &current.responses)? {
            let response = current.response;
            match event {
                Event::Interim(_) => {}
                Event::Head(_, Framing::UntilClose) => return Err(Malformed::Unbounded),
                Event::Head(head, Framing::Length(_) | Framing::Chunked) => {
                    return Ok(Some(StreamEvent::Head(response, head)));
                }
                Event::Body(part) => return Ok(Some(StreamEvent::Body(response, part))),
                Event::End { .. } => {
                    (self.current, self.have) = (None, 0);
                    return Ok(Some(StreamEvent::End(response)));
                }
            }
        }
        Ok(None)
    }

    fn read_id<'a>(&mut self, input: &mut &'a [u8]) -> Option<StreamEvent<'a>> {
        while self.have < Id::BYTES {
            let (first, rest) = input.split_first()?;
            *self.id.get_mut(self.have)? = *first;
            *input = rest;
            self.have += 1;
        }
        Some(StreamEvent::Id(Id(u64::from_be_bytes(self.id))))
    }
}
