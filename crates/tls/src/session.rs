//! One end of a connection with TLS, without cryptography: flights and records of real sizes, sent and awaited as TLS does.
//!
//! Nothing is encrypted: the body of a record is its plaintext, its type and a tag of zeros. A record's plaintext is delivered
//! when all of it has arrived, as a cipher with a tag requires. For simulations; it protects nothing.
//!
//! ```
//! use roundtrip_tls::session::{Handshake, Session, SessionConfig};
//!
//! let config = SessionConfig { server_name: "www".to_owned(), ..SessionConfig::new(Handshake::Full) };
//! let (mut client, mut server) = (Session::client(config.clone()), Session::server(config));
//! client.send(b"request");
//! let mut received = Vec::new();
//! for _ in 0..2 {
//!     while let Some(flight) = client.next_write() {
//!         server.receive(&flight, &mut |plaintext| received.extend_from_slice(plaintext)).expect("it is valid");
//!     }
//!     while let Some(flight) = server.next_write() {
//!         client.receive(&flight, &mut |_| {}).expect("it is valid");
//!     }
//! }
//! assert_eq!(received, b"request");
//! ```

mod flight;
pub mod quic;

use std::collections::VecDeque;

use crate::record::{ContentType, HEADER_BYTES, Header};
use crate::suite::Version;
use flight::{CLIENT_HELLO, FINISHED, MAX_PLAINTEXT, NONCE_BYTES, SERVER_HELLO_DONE, TAG_BYTES};

/// Kind of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// TLS 1.2, with certificates: two round trips (RFC 5246, section 7.3).
    Tls12,
    /// TLS 1.3, with certificates: one round trip (RFC 8446, section 2).
    Full,
    /// TLS 1.3 with a ticket: one round trip, without certificates (section 2.2).
    Resumed,
    /// TLS 1.3 with a ticket and early data (section 2.3).
    EarlyData,
}

impl Handshake {
    /// Whether it has no certificates.
    pub const fn is_resumed(self) -> bool {
        match self {
            Self::Tls12 | Self::Full => false,
            Self::Resumed | Self::EarlyData => true,
        }
    }

    const fn version(self) -> Version {
        match self {
            Self::Tls12 => Version::Tls12,
            Self::Full | Self::Resumed | Self::EarlyData => Version::Tls13,
        }
    }
}

/// Settings of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Kind of the handshake.
    pub handshake: Handshake,
    /// The server's name.
    pub server_name: String,
    /// The application protocol: `h2` or `http/1.1`.
    pub protocol: &'static str,
    /// Bytes of the server's certificates.
    pub certificate_chain: usize,
    /// Sizes of the records that this end sends.
    pub records: RecordSizes,
}

/// Sizes of records of application data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordSizes {
    /// As long as a write has plaintext: up to 16,384 bytes (OpenSSL, BoringSSL).
    #[default]
    Full,
    /// The first fits in a segment, and each next has as many bytes more, until 128 KiB have been sent. Each is a write of its own.
    /// Go: crypto/tls/conn.go (`maxPayloadSizeForWrite`).
    Growing,
}

impl RecordSizes {
    /// Maximum plaintext of the next record, after this number of records and these bytes on the wire.
    fn max_plaintext(self, version: Version, records: usize, bytes: usize) -> usize {
        match self {
            Self::Growing if bytes < BOOST_BYTES => {
                let overhead = flight::protection_bytes(version) + HEADER_BYTES;
                (SEGMENT_BYTES - overhead).saturating_mul(records + 1).min(MAX_PLAINTEXT)
            }
            Self::Growing | Self::Full => MAX_PLAINTEXT,
        }
    }
}

/// `tcpMSSEstimate`, and `recordSizeBoostThreshold`.
const SEGMENT_BYTES: usize = 1_208;
const BOOST_BYTES: usize = 128 << 10;

impl SessionConfig {
    /// Median of 75,000 chains as servers send them (IETF 116, draft-ietf-tls-cert-abridge).
    pub const CERTIFICATE_CHAIN: usize = 4_032;

    /// A session of this kind, for HTTP/1.1.
    pub const fn new(handshake: Handshake) -> Self {
        let certificate_chain = Self::CERTIFICATE_CHAIN;
        let records = RecordSizes::Full;
        Self { handshake, server_name: String::new(), protocol: "http/1.1", certificate_chain, records }
    }
}

/// Maximum early data of a ticket: OpenSSL's default (`SSL_CTX_set_max_early_data`).
const MAX_EARLY_DATA: usize = 16_384;

/// Bytes that are no record, or a message that does not belong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRecord;

/// One end.
#[derive(Clone, Debug)]
pub struct Session {
    config: SessionConfig,
    is_client: bool,
    state: State,
    /// Whether the peer's records are protected; in TLS 1.2 since its Change Cipher Spec.
    is_protected: bool,
    /// A record that has not arrived completely.
    begun: Vec<u8>,
    /// Plaintext that waits for the end of the handshake.
    pending: Vec<Vec<u8>>,
    /// Bytes of early data that may still be sent.
    early: usize,
    writes: VecDeque<Vec<u8>>,
    /// Bytes of all writes, and records of application data among them.
    sent_bytes: usize,
    sent_records: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A client waits for the server's flight, a server for the Client Hello.
    Hello,
    /// Waiting for the peer's Finished.
    Finished,
    Open,
}

impl Session {
    /// A client, whose first write is its hello.
    pub fn client(config: SessionConfig) -> Self {
        let mut hello = Vec::with_capacity(2_048);
        flight::clear_record(&mut hello, ContentType::Handshake, |body| flight::client_hello(body, &config));
        let mut session = Self::new(config, true);
        session.writes.push_back(hello);
        if session.config.handshake == Handshake::EarlyData {
            session.early = MAX_EARLY_DATA;
            let mut change = Vec::new();
            flight::change_cipher_spec(&mut change);
            session.writes.push_back(change);
        }
        session
    }

    /// A server.
    pub fn server(config: SessionConfig) -> Self {
        Self::new(config, false)
    }

    const fn new(config: SessionConfig, is_client: bool) -> Self {
        Self {
            config,
            is_client,
            state: State::Hello,
            is_protected: false,
            begun: Vec::new(),
            pending: Vec::new(),
            early: 0,
            writes: VecDeque::new(),
            sent_bytes: 0,
            sent_records: 0,
        }
    }

    /// Whether the handshake is over at this end.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether application data may leave: the handshake is over, or early data is allowed.
    pub fn can_send(&self) -> bool {
        self.is_open() || self.early > 0
    }

    /// Sends plaintext, as soon as it may leave.
    pub fn send(&mut self, plaintext: &[u8]) {
        if self.is_open() {
            self.write(plaintext);
        } else if plaintext.len() <= self.early && self.pending.is_empty() {
            self.early -= plaintext.len();
            self.write(plaintext);
        } else {
            self.pending.push(plaintext.to_vec());
        }
    }

    fn write(&mut self, plaintext: &[u8]) {
        let (version, content) = (self.config.handshake.version(), ContentType::ApplicationData);
        match self.config.records {
            RecordSizes::Full => {
                let mut records = Vec::with_capacity(plaintext.len() + 64);
                flight::protected_records(version, content, plaintext, &mut records);
                self.push(records);
            }
            sizes @ RecordSizes::Growing => {
                let mut rest = plaintext;
                while !rest.is_empty() {
                    let max = sizes.max_plaintext(version, self.sent_records, self.sent_bytes);
                    let (part, after) = rest.split_at(rest.len().min(max));
                    let mut record = Vec::new();
                    flight::protected_record(version, content, part, &mut record);
                    self.push(record);
                    self.sent_records += 1;
                    rest = after;
                }
            }
        }
    }

    fn push(&mut self, write: Vec<u8>) {
        self.sent_bytes += write.len();
        self.writes.push_back(write);
    }

    /// The next write.
    pub fn next_write(&mut self) -> Option<Vec<u8>> {
        self.writes.pop_front()
    }

    /// Handles bytes of the peer; passes the plaintext of each complete record on.
    ///
    /// # Errors
    /// Bytes that are no record.
    pub fn receive(&mut self, bytes: &[u8], on: &mut impl FnMut(&[u8])) -> Result<(), InvalidRecord> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.begun.is_empty()
                && let Some((header, body, after)) = whole_record(rest)?
            {
                rest = after;
                self.record(header, body, on)?;
                continue;
            }
            rest = self.complete(rest, on)?;
        }
        Ok(())
    }

    /// Handles bytes of the peer; appends the plaintext of each complete record.
    ///
    /// # Errors
    /// Bytes that are no record.
    pub fn receive_into(&mut self, bytes: &[u8], plaintext: &mut Vec<u8>) -> Result<(), InvalidRecord> {
        self.receive(bytes, &mut |part| {
            // All but the first record arrived with these bytes.
            if plaintext.is_empty() {
                plaintext.reserve_exact(part.len().max(bytes.len()));
            }
            plaintext.extend_from_slice(part);
        })
    }

    /// Adds bytes to the record that has begun.
    fn complete<'a>(
        &mut self,
        bytes: &'a [u8],
        on: &mut impl FnMut(&[u8]),
    ) -> Result<&'a [u8], InvalidRecord> {
        let length = match Header::at_start_of(&self.begun) {
            Some(header) => HEADER_BYTES + usize::from(header.length),
            None if self.begun.len() >= HEADER_BYTES => return Err(InvalidRecord),
            None => HEADER_BYTES,
        };
        let (here, rest) = bytes.split_at((length - self.begun.len()).min(bytes.len()));
        self.begun.reserve_exact(length - self.begun.len());
        self.begun.extend_from_slice(here);
        let record = std::mem::take(&mut self.begun);
        match whole_record(&record)? {
            Some((header, body, _)) => self.record(header, body, on)?,
            None => self.begun = record,
        }
        Ok(rest)
    }

    fn record(
        &mut self,
        header: Header,
        body: &[u8],
        on: &mut impl FnMut(&[u8]),
    ) -> Result<(), InvalidRecord> {
        let (content, plaintext) = match (self.config.handshake.version(), header.content) {
            (_, ContentType::ChangeCipherSpec) => {
                self.is_protected = true;
                return Ok(());
            }
            (Version::Tls13, ContentType::ApplicationData) => inner(body).ok_or(InvalidRecord)?,
            (Version::Tls12 | Version::Old, content) if self.is_protected => {
                let plaintext = body.get(NONCE_BYTES..).and_then(without_tag).ok_or(InvalidRecord)?;
                (content, plaintext)
            }
            (_, content) => (content, body),
        };
        match content {
            ContentType::Handshake => self.message(*plaintext.first().ok_or(InvalidRecord)?),
            ContentType::ApplicationData => on(plaintext),
            ContentType::ChangeCipherSpec | ContentType::Alert | ContentType::Heartbeat => {}
        }
        Ok(())
    }

    /// Handles the first message of a record, by its type.
    fn message(&mut self, kind: u8) {
        match (self.is_client, self.state, kind) {
            (false, State::Hello, CLIENT_HELLO) => {
                self.push(flight::server_flight(&self.config));
                self.state = State::Finished;
                // Early data is answered before the client's Finished.
                if self.config.handshake == Handshake::EarlyData {
                    self.early = usize::MAX;
                }
            }
            (false, State::Finished, FINISHED) => {
                self.push(flight::server_finished(&self.config));
                self.open();
            }
            (true, State::Hello, SERVER_HELLO_DONE) => {
                self.writes.push_back(flight::client_finished(&self.config));
                self.state = State::Finished;
            }
            (true, State::Finished, FINISHED) => self.open(),
            (true, State::Hello, FINISHED) => {
                self.writes.push_back(flight::client_finished(&self.config));
                self.open();
            }
            _ => {}
        }
    }

    fn open(&mut self) {
        self.state = State::Open;
        for plaintext in std::mem::take(&mut self.pending) {
            self.write(&plaintext);
        }
    }
}

/// A record's header and body, and what follows it.
type SplitRecord<'a> = (Header, &'a [u8], &'a [u8]);

/// The record at the beginning, and what follows it; `None` if it is incomplete.
fn whole_record(bytes: &[u8]) -> Result<Option<SplitRecord<'_>>, InvalidRecord> {
    if bytes.len() < HEADER_BYTES {
        return Ok(None);
    }
    let header = Header::at_start_of(bytes).ok_or(InvalidRecord)?;
    let body = bytes.get(HEADER_BYTES..).and_then(|rest| rest.split_at_checked(usize::from(header.length)));
    Ok(body.map(|(body, rest)| (header, body, rest)))
}

/// Content and plaintext of a protected record of TLS 1.3.
fn inner(body: &[u8]) -> Option<(ContentType, &[u8])> {
    let (content, plaintext) = without_tag(body)?.split_last()?;
    Some((ContentType::of(*content)?, plaintext))
}

fn without_tag(body: &[u8]) -> Option<&[u8]> {
    body.get(..body.len().checked_sub(TAG_BYTES)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientHello, Direction, Event, ServerHello};

    /// The writes of both ends until neither has any, each end's in turn: (is the client's, bytes).
    fn exchange(handshake: Handshake, request: &[u8], response: &[u8]) -> Vec<(bool, Vec<u8>)> {
        let name = "www.example.org".to_owned();
        let config = SessionConfig { server_name: name, protocol: "h2", ..SessionConfig::new(handshake) };
        let (mut client, mut server) = (Session::client(config.clone()), Session::server(config));
        client.send(request);
        let (mut writes, mut requested, mut responded) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let before = writes.len();
            while let Some(bytes) = client.next_write() {
                // Cut anywhere: a record is delivered when it is complete.
                for part in bytes.chunks(1_000) {
                    server.receive(part, &mut |plaintext| requested.extend_from_slice(plaintext)).unwrap();
                }
                writes.push((true, bytes));
            }
            if !requested.is_empty() && responded.is_empty() && server.can_send() {
                server.send(response);
            }
            while let Some(bytes) = server.next_write() {
                client.receive(&bytes, &mut |plaintext| responded.extend_from_slice(plaintext)).unwrap();
                writes.push((false, bytes));
            }
            if writes.len() == before {
                assert!(client.is_open() && server.is_open());
                assert_eq!((requested.as_slice(), responded.as_slice()), (request, response));
                return writes;
            }
        }
    }

    /// Changes of direction before the write with the request.
    fn round_trips(handshake: Handshake) -> usize {
        let writes = exchange(handshake, &[7; 1_000], b"response");
        let place = writes.iter().position(|(is_client, bytes)| *is_client && contains(bytes, &[7; 1_000]));
        let before = &writes[..place.unwrap()];
        before.windows(2).filter(|pair| pair[0].0 && !pair[1].0).count()
    }

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn requests_leave_after_the_round_trips_of_the_handshake() {
        assert_eq!(round_trips(Handshake::Tls12), 2);
        assert_eq!(round_trips(Handshake::Full), 1);
        assert_eq!(round_trips(Handshake::Resumed), 1);
        assert_eq!(round_trips(Handshake::EarlyData), 0);
    }

    #[test]
    fn flights_have_the_sizes_of_chromium_and_openssl() {
        let sizes = |handshake| -> Vec<usize> {
            exchange(handshake, b"request", b"response").iter().map(|(_, bytes)| bytes.len()).collect()
        };
        let [hello, flight, finished, request, tickets, response] = sizes(Handshake::Full)[..] else {
            panic!("{:?}", sizes(Handshake::Full))
        };
        // Two segments; draft-ietf-tls-ecdhe-mlkem: a share of 1,216 bytes, of 1,120 in return.
        assert!((1_700..1_900).contains(&hello), "{hello}");
        let server_hello = 5 + 4 + 2 + 32 + 33 + 2 + 1 + 2 + 6 + (4 + 4 + 1_120);
        let certificates = 22 + 4 + 1 + 3 + 4_032 + 2 * (3 + 2);
        let verify = 22 + 4 + 4 + 256;
        let finished_record = 22 + 4 + 32;
        let extensions = 22 + 4 + 2 + 4 + 2 + 3;
        assert_eq!(flight, server_hello + 6 + extensions + certificates + verify + finished_record);
        assert_eq!((finished, request), (6 + finished_record, 7 + 22));
        assert_eq!((tickets, response), (2 * (22 + 4 + 8 + 9 + 210 + 2), 8 + 22));
        assert!(sizes(Handshake::Resumed)[1] < 1_400);
    }

    fn events(bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        Direction::default().read(bytes, &mut |event| events.push(event));
        events
    }

    #[test]
    fn hellos_are_read_as_those_of_a_browser_and_a_server() {
        for handshake in [Handshake::Tls12, Handshake::Full, Handshake::Resumed, Handshake::EarlyData] {
            let writes = exchange(handshake, b"request", b"response");
            let client = events(&writes[0].1).into_iter().find_map(|event| match event {
                Event::ClientHello(hello) => Some(*hello),
                _ => None,
            });
            let ClientHello { server_name, protocols, offers_psk, has_early_data, shares, .. } =
                client.unwrap();
            assert_eq!(server_name.as_deref(), Some("www.example.org"));
            assert_eq!(protocols, ["h2", "http/1.1"]);
            assert_eq!(
                (offers_psk, has_early_data),
                (handshake.is_resumed(), handshake == Handshake::EarlyData)
            );
            assert!(shares.contains(&4_588));
            let flight = &writes.iter().find(|(is_client, _)| !is_client).unwrap().1;
            let server = events(flight).into_iter().find_map(|event| match event {
                Event::ServerHello(hello) => Some(*hello),
                _ => None,
            });
            let ServerHello { version, accepts_psk, .. } = server.unwrap();
            assert_eq!((version, accepts_psk), (handshake.version(), handshake.is_resumed()));
        }
    }

    #[test]
    fn records_have_at_most_16_384_bytes_and_22_more_on_the_wire() {
        let writes = exchange(Handshake::Full, b"request", &[0; 40_000]);
        assert_eq!(writes.last().unwrap().1.len(), 40_000 + 3 * 22);
    }

    #[test]
    fn growing_records_begin_with_a_segment_and_are_full_after_128_kib() {
        let config = SessionConfig { records: RecordSizes::Growing, ..SessionConfig::new(Handshake::Full) };
        let (mut client, mut server) =
            (Session::client(SessionConfig::new(Handshake::Full)), Session::server(config));
        client.send(b"request");
        let mut received = 0;
        for _ in 0..2 {
            while let Some(write) = client.next_write() {
                server.receive(&write, &mut |_| {}).unwrap();
            }
            while let Some(write) = server.next_write() {
                client.receive(&write, &mut |_| {}).unwrap();
            }
        }
        server.send(&[7; 200_000]);
        let mut lengths = Vec::new();
        while let Some(write) = server.next_write() {
            client.receive(&write, &mut |plaintext| received += plaintext.len()).unwrap();
            lengths.push(write.len());
        }
        // 1,186 bytes of plaintext, and 22 more.
        assert_eq!(lengths[..3], [1_208, 2 * 1_186 + 22, 3 * 1_186 + 22]);
        assert_eq!((received, lengths.iter().max()), (200_000, Some(&(16_384 + 22))));
        let full = lengths.iter().position(|length| *length == 16_384 + 22).unwrap();
        assert_eq!(full, 13, "14 times 1,186 exceed a record: {lengths:?}");
        server.send(b"response");
        assert_eq!(server.next_write().map(|write| write.len()), Some(30));
    }

    #[test]
    fn bytes_that_are_no_record_are_refused() {
        let mut server = Session::server(SessionConfig::new(Handshake::Full));
        assert_eq!(server.receive(b"GET / HTTP/1.1\r\n", &mut |_| {}), Err(InvalidRecord));
        let mut server = Session::server(SessionConfig::new(Handshake::Full));
        assert_eq!(server.receive(&[23, 3, 3, 0, 2, 1, 2], &mut |_| {}), Err(InvalidRecord), "no tag");
    }
}
