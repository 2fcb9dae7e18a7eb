//! Messages off a stream: head, parts of the body, end, and the next message.
//!
//! Not a connection: it sends nothing and waits for nothing. It buffers only an incomplete header section; the rest
//! stays with the caller, who may leave bytes unread.

use std::marker::PhantomData;

use super::body::{Body, BodyItem};
use super::framing::{self, Framing};
use super::scan::{FirstLine, Rules, Scan};
use super::{Fields, Limits, Method, PeerFault, RequestHead, ResponseHead};

/// Event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a, Head> {
    /// A message begins; its body will end so.
    Head(Head, Framing),
    /// Bytes of its body, at least one.
    Body(&'a [u8]),
    /// It is complete.
    End,
}

/// Reads requests: what a server does. See [`Reader::read`] of each kind.
pub type RequestReader = Reader<RequestHead>;
/// Reads responses: what a client does.
pub type ResponseReader = Reader<ResponseHead>;

/// Reads one message after the other off one direction of a connection.
#[derive(Debug)]
pub struct Reader<Head> {
    limits: Limits,
    scan: Scan,
    /// The body that is coming in, between head and end.
    body: Option<Body>,
    /// Those of the last message that ended.
    trailers: Fields,
    kind: PhantomData<Head>,
}

impl Reader<RequestHead> {
    /// A reader at the beginning of a stream.
    pub const fn new(limits: Limits) -> Self {
        let opening = FirstLine::RequestLine { blank_lines: limits.blank_lines };
        Self::with_opening(limits, opening)
    }

    /// Takes the next event off the front of `input`; `None` when all of it is taken and there is no more.
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
    /// A reader at the beginning of a stream.
    pub const fn new(limits: Limits) -> Self {
        Self::with_opening(limits, FirstLine::StatusLine)
    }

    /// Takes the next event off the front of `input`, the response to a request with the method `answers`;
    /// `None` when all of it is taken and there is no more. An interim response is a message of its own.
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
    /// Whether nothing of a message has come in since the last one ended.
    pub fn is_between_messages(&self) -> bool {
        self.body.is_none() && self.scan.is_empty()
    }

    /// The trailers of the message that has just ended (RFC 9110, section 6.5).
    pub const fn trailers(&self) -> &Fields {
        &self.trailers
    }

    /// Tells the reader that the stream has ended: `true` if that completes the message, `false` if none had
    /// begun.
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
