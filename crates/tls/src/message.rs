//! Handshake messages (RFC 8446, section 4), reassembled from the bodies of records.

/// Type of a handshake message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageType(pub u8);

impl MessageType {
    /// Client Hello.
    pub const CLIENT_HELLO: Self = Self(1);
    /// Server Hello, and Hello Retry Request.
    pub const SERVER_HELLO: Self = Self(2);
    /// New Session Ticket.
    pub const NEW_SESSION_TICKET: Self = Self(4);
    /// End Of Early Data.
    pub const END_OF_EARLY_DATA: Self = Self(5);
    /// Encrypted Extensions.
    pub const ENCRYPTED_EXTENSIONS: Self = Self(8);
    /// Certificate.
    pub const CERTIFICATE: Self = Self(11);
    /// Server Key Exchange.
    pub const SERVER_KEY_EXCHANGE: Self = Self(12);
    /// Certificate Request.
    pub const CERTIFICATE_REQUEST: Self = Self(13);
    /// Server Hello Done.
    pub const SERVER_HELLO_DONE: Self = Self(14);
    /// Client Key Exchange.
    pub const CLIENT_KEY_EXCHANGE: Self = Self(16);
    /// Finished.
    pub const FINISHED: Self = Self(20);
    /// Certificate Status.
    pub const CERTIFICATE_STATUS: Self = Self(22);
    /// Key Update.
    pub const KEY_UPDATE: Self = Self(24);

    const fn is_known(self) -> bool {
        matches!(self.0, 0..=5 | 8 | 11..=16 | 20..=22 | 24 | 25 | 254)
    }

    /// Returns whether its body is stored: that of a hello, or of Encrypted Extensions.
    const fn is_stored(self) -> bool {
        matches!(self, Self::CLIENT_HELLO | Self::SERVER_HELLO | Self::ENCRYPTED_EXTENSIONS)
    }
}

/// Maximum number of bytes of a hello that are stored; a Client Hello with post-quantum keys has about 2,000.
const MAX_HELLO_BYTES: usize = 1 << 14;
const HEADER_BYTES: usize = 4;

/// A complete handshake message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type.
    pub kind: MessageType,
    /// Its length without the header.
    pub length: u32,
    /// The body of a hello, or of Encrypted Extensions; empty for other messages.
    pub body: &'a [u8],
}

/// Reader of the handshake messages of one direction, while they are in the clear.
#[derive(Clone, Debug, Default)]
pub struct MessageReader {
    /// The header, then the body of a hello.
    begun: Vec<u8>,
    /// Bytes still to come that are not stored.
    left: u32,
    /// The message that they belong to.
    skipped: Option<(MessageType, u32)>,
    is_lost: bool,
}

impl MessageReader {
    /// Returns whether the messages cannot be followed: a hole, or encrypted bytes.
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Skips bytes that were not captured: within a message that is not stored they cost nothing.
    pub(crate) fn miss(&mut self, missing: u32) {
        match self.skipped {
            Some(_) if missing < self.left => self.left -= missing,
            Some(_) | None => self.lose(),
        }
    }

    /// Stops reading.
    pub fn lose(&mut self) {
        *self = Self { is_lost: true, ..Self::default() };
    }

    /// Reads the body of a record, or a part of it.
    pub fn read(&mut self, bytes: &[u8], on: &mut impl FnMut(Message<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_lost {
            rest = match self.skipped {
                Some((kind, length)) => self.skip(kind, length, rest, on),
                None => self.store(rest, on),
            };
        }
    }

    fn skip<'a>(
        &mut self,
        kind: MessageType,
        length: u32,
        bytes: &'a [u8],
        on: &mut impl FnMut(Message<'_>),
    ) -> &'a [u8] {
        let here = bytes.len().min(self.left as usize);
        self.left -= u32::try_from(here).unwrap_or(self.left);
        if self.left == 0 {
            self.skipped = None;
            on(Message { kind, length, body: &[] });
        }
        bytes.get(here..).unwrap_or_default()
    }

    fn store<'a>(&mut self, bytes: &'a [u8], on: &mut impl FnMut(Message<'_>)) -> &'a [u8] {
        let wanted = self.wanted();
        let here = wanted.saturating_sub(self.begun.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(here);
        self.begun.extend_from_slice(head);
        if self.begun.len() < wanted {
            return rest;
        }
        let Some((kind, length)) = header(&self.begun) else { return rest };
        if !kind.is_known() || (kind.is_stored() && length as usize > MAX_HELLO_BYTES) {
            self.lose();
        } else if !kind.is_stored() && length > 0 {
            (self.skipped, self.left) = (Some((kind, length)), length);
            self.begun.clear();
        } else if self.begun.len() == HEADER_BYTES + length as usize || !kind.is_stored() {
            let begun = std::mem::take(&mut self.begun);
            on(Message { kind, length, body: begun.get(HEADER_BYTES..).unwrap_or_default() });
        }
        rest
    }

    /// Returns the number of bytes to be stored before the next step.
    fn wanted(&self) -> usize {
        match header(&self.begun) {
            Some((kind, length)) if kind.is_stored() => HEADER_BYTES + length as usize,
            Some(_) | None => HEADER_BYTES,
        }
    }
}

fn header(bytes: &[u8]) -> Option<(MessageType, u32)> {
    let &[kind, a, b, c, ..] = bytes else { return None };
    Some((MessageType(kind), u32::from_be_bytes([0, a, b, c])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_across_records_are_the_same_at_every_cut() {
        let bytes = [2, 0, 0, 3, 7, 8, 9, 11, 0, 0, 2, 1, 1, 14, 0, 0, 0];
        for cut in 0..=bytes.len() {
            let mut reader = MessageReader::default();
            let mut read = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                reader.read(part, &mut |message| {
                    read.push((message.kind.0, message.length, message.body.to_vec()));
                });
            }
            assert_eq!(read, [(2, 3, vec![7, 8, 9]), (11, 2, vec![]), (14, 0, vec![])], "cut at {cut}");
        }
    }

    #[test]
    fn unknown_types_and_huge_hellos_end_the_reading() {
        for bytes in [[99, 0, 0, 1], [1, 1, 0, 0]] {
            let mut reader = MessageReader::default();
            reader.read(&bytes, &mut |_| panic!("no message"));
            assert!(reader.is_lost());
        }
    }
}
