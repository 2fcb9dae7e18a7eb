//! Responses off a client's connection: final ones, interim ones apart, and whether the connection persists; and idle connections.
//!
//! Not a connection: requests and retries are the callers' (`fetch`, `load`, `dhttp`, `dhttp-proxy`).

mod idle;

pub use idle::IdleConnections;

use crate::message::Event as Part;
use crate::message::{Fields, Framing, Limits, Method, PeerFault, ResponseHead, ResponseReader, persists};

/// Event of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Header section of an interim response (1xx), which has no body (RFC 9110, section 15.2).
    Interim(ResponseHead),
    /// Header section of the final response, and the framing of its body.
    Head(ResponseHead, Framing),
    /// Bytes of its body, at least one.
    Body(&'a [u8]),
    /// It is complete.
    End {
        /// Whether the server reads another request on this connection.
        persists: bool,
    },
}

/// Reads the responses of one connection, in the order of its requests.
///
/// ```
/// use roundtrip_http1::client::{Event, Responses};
/// use roundtrip_http1::message::{Limits, Method};
///
/// let mut responses = Responses::new(Limits::default());
/// let mut input = &b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"[..];
/// let mut event = || responses.read(&mut input, &Method::Get);
/// assert!(matches!(event(), Ok(Some(Event::Interim(head))) if head.status == 103));
/// assert!(matches!(event(), Ok(Some(Event::Head(head, _))) if head.status == 204));
/// assert_eq!(event(), Ok(Some(Event::End { persists: false })));
/// assert_eq!(event(), Ok(None));
/// ```
#[derive(Debug)]
pub struct Responses {
    reader: ResponseReader,
    /// Maximum number of interim responses before a final one, and those that have come.
    max_interims: usize,
    interims: usize,
    current: Current,
}

/// The message that is arriving, or the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    Interim,
    Final { persists: bool },
}

impl Responses {
    /// Creates a reader at the beginning of a connection.
    pub const fn new(limits: Limits) -> Self {
        Self {
            reader: ResponseReader::new(limits),
            max_interims: limits.interim_responses,
            interims: 0,
            current: Current::Interim,
        }
    }

    /// Takes the next event off the front of `input`; `method` is that of the oldest request without a response. `None` when
    /// all of it is consumed and there is no event.
    ///
    /// # Errors
    /// The server's fault. The connection cannot be read further.
    pub fn read<'a>(
        &mut self,
        input: &mut &'a [u8],
        method: &Method,
    ) -> Result<Option<Event<'a>>, PeerFault> {
        while let Some(part) = self.reader.read(input, method)? {
            return match (part, self.current) {
                (Part::Head(head, _), _) if head.is_interim() => {
                    self.current = Current::Interim;
                    self.interims += 1;
                    match self.interims > self.max_interims {
                        true => Err(PeerFault::TooManyInterim),
                        false => Ok(Some(Event::Interim(head))),
                    }
                }
                (Part::Head(head, framing), _) => {
                    let persists = framing != Framing::UntilClose && persists(head.version, &head.fields);
                    self.current = Current::Final { persists };
                    Ok(Some(Event::Head(head, framing)))
                }
                (Part::Body(_) | Part::End, Current::Interim) => continue,
                (Part::Body(bytes), Current::Final { .. }) => Ok(Some(Event::Body(bytes))),
                (Part::End, Current::Final { persists }) => {
                    self.interims = 0;
                    Ok(Some(Event::End { persists }))
                }
            };
        }
        Ok(None)
    }

    /// Handles the end of the stream: `true` if that completes a final response, `false` if none had begun.
    ///
    /// # Errors
    /// [`PeerFault::Truncated`] if the response cannot end here.
    pub fn end_of_stream(&mut self) -> Result<bool, PeerFault> {
        self.reader.end_of_stream()
    }

    /// Whether no part of a response has arrived since the last one ended.
    pub fn is_between_responses(&self) -> bool {
        self.reader.is_between_messages()
    }

    /// Returns the trailers of the response that has just ended (RFC 9110, section 6.5).
    pub const fn trailers(&self) -> &Fields {
        self.reader.trailers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statuses, `.` for the bytes of bodies, and whether the connection persists; or the fault.
    fn events(limits: Limits, mut input: &[u8], method: &Method) -> String {
        let mut responses = Responses::new(limits);
        let mut events = String::new();
        loop {
            events += &match responses.read(&mut input, method) {
                Ok(Some(Event::Interim(head))) => format!("({}) ", head.status),
                Ok(Some(Event::Head(head, _))) => format!("{} ", head.status),
                Ok(Some(Event::Body(bytes))) => ".".repeat(bytes.len()),
                Ok(Some(Event::End { persists })) => format!(" {persists}; "),
                Ok(None) => return events + &format!("{:?}", responses.end_of_stream()),
                Err(fault) => return events + &format!("{fault:?}"),
            };
        }
    }

    #[test]
    fn responses_persist_unless_they_say_so_or_end_with_the_stream() {
        let of = |input: &str| events(Limits::default(), input.as_bytes(), &Method::Get);
        assert_eq!(
            of("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.0 304 Not Modified\r\n\r\n"),
            "200 .. true; 304  false; Ok(false)"
        );
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\nabc"), "200 ...Ok(true)");
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"), "200 .Err(Truncated)");
        let head = events(Limits::default(), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", &Method::Head);
        assert_eq!(head, "200  true; Ok(false)");
    }

    #[test]
    fn interim_responses_are_counted_until_a_final_one() {
        let limits = Limits { interim_responses: 2, ..Limits::default() };
        let (interim, last) = ("HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n");
        let two = [interim, interim, last].concat();
        let of = |input: &str| events(limits, input.as_bytes(), &Method::Get);
        assert_eq!(of(&two.repeat(2)), "(102) (102) 204  true; (102) (102) 204  true; Ok(false)");
        assert_eq!(of(&interim.repeat(3)), "(102) (102) TooManyInterim");
        assert_eq!(of(interim), "(102) Ok(false)");
    }
}
