//! Messages off a stream: head, parts of the body, end, and the next message.
//!
//! Not a connection: it neither sends nor waits. It buffers only an incomplete header section; the rest stays with the caller,
//! who may leave bytes unread.

use std::marker::PhantomData;

use super::body::{Body, BodyItem};
use super::framing::{self, Framing};
use super::scan::{FirstLine, Rules, Scan};
use super::{Fields, Limits, Method, PeerFault, RequestHead, ResponseHead};

/// Event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a, Head> {
    /// Header section of a message, and the framing of its body.
    Head(Head, Framing),
    /// Bytes of its body, at least one.
    Body(&'a [u8]),
    /// End of the message; it is complete.
    End,
}

/// Reads requests, for a server. See [`Reader::read`] of each kind.
pub type RequestReader = Reader<RequestHead>;
/// Reads responses, for a client.
pub type ResponseReader = Reader<ResponseHead>;

/// Reads successive messages off one direction of a connection.
#[derive(Debug)]
pub struct Reader<Head> {
    limits: Limits,
    scan: Scan,
    /// The body that is being received, between head and end.
    body: Option<Body>,
    /// Trailers of the last complete message.
    trailers: Fields,
    kind: PhantomData<Head>,
}

impl Reader<RequestHead> {
    /// Creates a reader at the beginning of a stream.
    pub const fn new(limits: Limits) -> Self {
        let opening = FirstLine::RequestLine { blank_lines: limits.blank_lines };
        Self::with_opening(limits, opening)
    }

    /// Takes the next event off the front of `input`; `None` when all of it is consumed and there is no event.
    ///
    /// # Errors
    /// The peer's fault. The stream cannot be read further.
    pub fn read<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a, RequestHead>>, PeerFault> {
        let limits = self.limits;
        self.next(input, |bytes| {
            let head = RequestHead::parse(bytes, &limits)?;
            let framing = framing::of_request(&head, &limits)?;
            Ok((head, framing))
        })
    }
}

impl Reader<ResponseHead> {
    /// Creates a reader at the beginning of a stream.
    pub const fn new(limits: Limits) -> Self {
        Self::with_opening(limits, FirstLine::StatusLine)
    }

    /// Takes the next event off the front of `input`; `responses` is the method of the request. `None` when all of it is
    /// consumed and there is no event. An interim response is a message of its own.
    ///
    /// # Errors
    /// The peer's fault. The stream cannot be read further.
    pub fn read<'a>(
        &mut self,
        input: &mut &'a [u8],
        responses: &Method,
    ) -> Result<Option<Event<'a, ResponseHead>>, PeerFault> {
        let limits = self.limits;
        self.next(input, |bytes| {
            let head = ResponseHead::parse(bytes, &limits)?;
            let framing = framing::of_response(&head, responses, &limits)?;
            Ok((head, framing))
        })
    }
}

impl<Head> Reader<Head> {
    /// Whether no part of a message has arrived since the last one ended.
    pub fn is_between_messages(&self) -> bool {
        self.body.is_none() && self.scan.is_empty()
    }

    /// Returns the trailers of the message that has just ended (RFC 9110, section 6.5).
    pub const fn trailers(&self) -> &Fields {
        &self.trailers
    }

    /// Handles the end of the stream: `true` if that completes the message, `false` if none had begun.
    ///
    /// # Errors
    /// [`PeerFault::Truncated`] if the message cannot end here.
    pub fn end_of_stream(&mut self) -> Result<bool, PeerFault> {
        match self.body.take() {
            Some(body) if body.ends_with_stream() => Ok(true),
            None if self.scan.is_empty() => Ok(false),
            Some(_) | None => Err(PeerFault::Truncated),
        }
    }

    const fn with_opening(limits: Limits, opening: FirstLine) -> Self {
        let rules = Rules { opening, bytes: limits.head_bytes, too_many: PeerFault::HeadTooLarge };
        Self { limits, scan: Scan::new(rules), body: None, trailers: Fields::new(), kind: PhantomData }
    }

    fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        parse: impl FnOnce(&[u8]) -> Result<(Head, Framing), PeerFault>,
    ) -> Result<Option<Event<'a, Head>>, PeerFault> {
        let Some(body) = &mut self.body else {
            let Some((head, framing)) = self.scan.take(input, parse)? else { return Ok(None) };
            self.body = Some(Body::new(framing, &self.limits));
            return Ok(Some(Event::Head(head, framing)));
        };
        match body.take(input)? {
            BodyItem::Part(part) => Ok(Some(Event::Body(part))),
            BodyItem::Nothing => Ok(None),
            BodyItem::End => {
                self.trailers = self.body.take().map(Body::into_trailers).unwrap_or_default();
                Ok(Some(Event::End))
            }
        }
    }
}
