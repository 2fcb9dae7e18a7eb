//! A connection that a server opened to a client: answers one after the other, each behind its id.
//!
//! Not a judge: whether an id is known is the client's to say, and it says so between two steps.

use super::Answer;
use crate::{Id, Malformed};
use http1::message::{Event, Framing, Limits, Method, PeerFault, ResponseHead, ResponseReader};

/// Parser of the bytes of a connection.
#[derive(Debug)]
pub(super) struct Stream {
    limits: Limits,
    id: [u8; Id::BYTES],
    /// Bytes of the id that have come in.
    have: usize,
    current: Option<Current>,
}

/// The answer that is coming in.
#[derive(Debug)]
struct Current {
    reader: ResponseReader,
    answers: Method,
    answer: Answer,
    is_interim: bool,
    interims: usize,
}

/// Result of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// An answer begins: tell [`Stream::expect`] what it answers, or close.
    Id(Id),
    /// Its head.
    Head(Answer, ResponseHead),
    /// A part of its body.
    Body(Answer, &'a [u8]),
    /// It is complete.
    End(Answer),
}

impl Stream {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { limits, id: [0; Id::BYTES], have: 0, current: None }
    }

    /// The answer that is coming in.
    pub(super) fn answer(&self) -> Option<Answer> {
        self.current.as_ref().map(|current| current.answer)
    }

    /// Whether nothing of an answer has come in since the last one.
    pub(super) const fn is_between_answers(&self) -> bool {
        self.current.is_none() && self.have == 0
    }

    /// The answer that begins is `answer`, to a request with the method `answers`.
    pub(super) fn expect(&mut self, answer: Answer, answers: Method) {
        let reader = ResponseReader::new(self.limits);
        self.current = Some(Current { reader, answers, answer, is_interim: false, interims: 0 });
    }

    /// Takes the next step off the front of `input`; `None` when all of it is taken.
    pub(super) fn read<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Step<'a>>, Malformed> {
        let Some(current) = &mut self.current else { return Ok(self.read_id(input)) };
        let most = self.limits.interim_responses;
        while let Some(event) = current.reader.read(input, &current.answers)? {
            let answer = current.answer;
            match event {
                Event::Head(head, _) if head.is_interim() => {
                    current.is_interim = true;
                    current.interims += 1;
                    if current.interims > most {
                        return Err(Malformed::Http(PeerFault::TooManyInterim));
                    }
                }
                Event::Head(_, Framing::UntilClose) => return Err(Malformed::Unbounded),
                Event::Head(head, Framing::Length(_) | Framing::Chunked) => {
                    return Ok(Some(Step::Head(answer, head)));
                }
                Event::Body(part) => return Ok(Some(Step::Body(answer, part))),
                Event::End if current.is_interim => current.is_interim = false,
                Event::End => {
                    (self.current, self.have) = (None, 0);
                    return Ok(Some(Step::End(answer)));
                }
            }
        }
        Ok(None)
    }

    fn read_id<'a>(&mut self, input: &mut &'a [u8]) -> Option<Step<'a>> {
        while self.have < Id::BYTES {
            let (first, rest) = input.split_first()?;
            *self.id.get_mut(self.have)? = *first;
            *input = rest;
            self.have += 1;
        }
        Some(Step::Id(Id(u64::from_be_bytes(self.id))))
    }
}
