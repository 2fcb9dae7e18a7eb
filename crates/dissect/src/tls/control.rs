//! Records that are control traffic: session tickets, and frames of HTTP/2 that only have such sizes.
//!
//! Not decryption: a record's plaintext is its length without what encryption adds. Sizes that a message could have, too,
//! prove nothing.

use tls::ContentType;
use tls::record::Part;

use super::Tls;
use crate::{Mark, Side};

/// Content of a segment, by the sizes of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Control traffic and nothing else: no request and no response.
    Control,
    /// Anything else, or unknown.
    Message,
}

/// SETTINGS with acknowledgement, PING and WINDOW_UPDATE of HTTP/2 (RFC 9113, section 6), headers included.
const EMPTY: u16 = 9;
const SETTING: u16 = 6;
pub(super) const WINDOW_UPDATE: u16 = 13;
/// Those of a stream and of the connection, or of two streams and it, in one record.
pub(super) const TWO_WINDOW_UPDATES: u16 = 2 * WINDOW_UPDATE;
pub(super) const THREE_WINDOW_UPDATES: u16 = 3 * WINDOW_UPDATE;
pub(super) const PING: u16 = 17;

/// Returns whether a plaintext of this size can be a PING, perhaps with updates of windows: gRPC measures the path with it after data.
pub(super) fn is_ping(size: u16) -> bool {
    const MAX_UPDATES: u16 = 3;
    (0..=MAX_UPDATES).any(|updates| size == PING + updates * WINDOW_UPDATE)
}

/// Returns whether a plaintext of this size can be the server's first record in HTTP/2: SETTINGS, perhaps with a
/// WINDOW_UPDATE and the acknowledgement of the client's SETTINGS.
pub(super) fn is_server_preface(size: u16) -> bool {
    const MAX_SETTINGS: u16 = 8;
    let is_settings = |size: u16| {
        size % SETTING == EMPTY % SETTING && (EMPTY..=EMPTY + MAX_SETTINGS * SETTING).contains(&size)
    };
    [0, WINDOW_UPDATE, EMPTY, EMPTY + WINDOW_UPDATE]
        .into_iter()
        .any(|more| size.checked_sub(more).is_some_and(is_settings))
}

impl Tls {
    /// Returns the content of the next bytes of `side`, which follow those read so far.
    pub fn content(&self, side: Side, payload: &[u8], mark: Mark) -> Content {
        let direction = self.directions.of(side);
        if direction.is_lost() || direction.is_within() || self.ended.is_none() || payload.is_empty() {
            return Content::Message;
        }
        let (mut begun, mut ended, mut is_control) = (0_u32, 0_u32, true);
        let (mut is_first, mut is_http2) = (*self.contents.of(side) == 0, self.is_http2);
        let mut tickets = self.tickets;
        direction.peek(payload, &mut |part| match part {
            Part::Begins(header) => {
                begun += 1;
                if side == Side::Server && self.is_ticket(header.length, mark.at, tickets) {
                    tickets = Some((header.length, tickets.map_or(0, |(_, count)| count) + 1));
                    return;
                }
                let is_data = header.content == ContentType::ApplicationData;
                let plain = self.plaintext(side, header.length).filter(|_| is_data);
                is_control &= is_data && self.is_pong(side, header.length)
                    || plain.is_some_and(|plain| self.is_control_size(side, plain, is_first, is_http2));
                if side == Side::Server && is_first {
                    is_http2 = plain.map(is_server_preface);
                }
                is_first = false;
            }
            Part::Ends(_) => ended += 1,
            Part::Body(..) | Part::Missing(..) => {}
        });
        if is_control && begun > 0 && begun == ended { Content::Control } else { Content::Message }
    }

    /// Returns the bytes of plaintext in a segment that is one record.
    pub(crate) fn plaintext_of(&self, payload: &[u8]) -> Option<u16> {
        let (header, body) = payload.split_first_chunk::<5>()?;
        let length = u16::from_be_bytes([header[3], header[4]]);
        let overhead = self.overhead.filter(|_| body.len() == usize::from(length))?;
        length.checked_sub(overhead)
    }

    /// Returns the bytes of a record's plaintext, where HTTP/2 is possible.
    fn plaintext(&self, side: Side, length: u16) -> Option<u16> {
        let plain = self.overhead_of(side).and_then(|overhead| length.checked_sub(overhead));
        plain.filter(|_| self.may_be_http2())
    }

    /// Returns whether a record has the size of a client's Pong without content in WebSocket (RFC 6455, section 5.5.3), which
    /// responds to a Ping. No request of HTTP/1.1 is as short.
    fn is_pong(&self, side: Side, length: u16) -> bool {
        /// A header of two bytes, and the mask.
        const PONG: u16 = 6;
        let is_client = side == Side::Client && self.offers_http() && !self.may_be_http2();
        is_client && self.overhead_of(side).is_some_and(|overhead| length == overhead + PONG)
    }

    /// Returns whether only frames that control HTTP/2 have this size.
    fn is_control_size(&self, side: Side, plain: u16, is_first: bool, is_http2: Option<bool>) -> bool {
        match (side, is_http2) {
            (Side::Server, _) if is_first => is_server_preface(plain),
            (Side::Server, Some(true)) if self.contents.client <= 2 && plain == PING => true,
            // Once one was answered so: a request and its response rarely have these sizes.
            (Side::Client, Some(true)) if self.pongs > 0 && is_ping(plain) => true,
            (Side::Server, Some(true)) if self.pongs > 0 && self.is_pinged && plain == PING => true,
            (Side::Client | Side::Server, Some(true)) => plain == EMPTY || self.is_window_update(side, plain),
            (Side::Client | Side::Server, Some(false) | None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_ping_are_those_of_one_ping_with_updates() {
        assert_eq!([17, 30, 43, 56].map(is_ping), [true; 4]);
        assert_eq!([9, 13, 26, 34, 69].map(is_ping), [false; 5]);
    }

    #[test]
    fn sizes_of_a_server_preface_are_those_of_settings() {
        for size in [9, 15, 27, 39, 9 + 13, 27 + 13 + 9] {
            assert!(is_server_preface(size), "{size}");
        }
        for size in [10, 14, 17, 100, 223] {
            assert!(!is_server_preface(size), "{size}");
        }
    }
}
