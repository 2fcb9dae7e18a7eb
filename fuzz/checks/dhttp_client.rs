//! Invariants for any bytes that a DHTTP client receives, as a datagram and on a connection at every cut: it sends only its
//! own requests, and each of them ends once. Not a generator: the bytes are the server's output.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use dhttp_proto::client::{ConnectionId, Input, Output};
use dhttp_proto::message::Request;
use dhttp_proto::{Client, ClientConfig, Extension, Id};
use http1::message::{Fields, Limits, Method, RequestHead, Version};
use wire::Time;

const SERVER: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(9, 9, 9, 9)), 80);
const CONNECTION: ConnectionId = ConnectionId(0);

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let whole = fetch(data.len().max(1), data);
    for cut in [1, 2, 7, 64] {
        assert_eq!(fetch(cut, data), whole, "cut {cut}");
    }
    let mut fetch = Fetch::begin();
    for _ in 0..2 {
        fetch.client.handle(fetch.now, Input::Datagram(SERVER, data));
        fetch.drain();
    }
    fetch.finish();
}

/// Outcomes of requests 1 (GET) and 2 (HEAD) when these bytes came on a connection, `cut` at a time.
fn fetch(cut: usize, data: &[u8]) -> (BTreeMap<u64, String>, BTreeMap<u64, Vec<u8>>) {
    let mut fetch = Fetch::begin();
    fetch.client.handle(fetch.now, Input::Accepted(CONNECTION, SERVER));
    for piece in data.chunks(cut) {
        fetch.client.handle(fetch.now, Input::Received(CONNECTION, piece));
        fetch.drain();
    }
    fetch.client.handle(fetch.now, Input::Ended(CONNECTION));
    fetch.drain();
    fetch.finish()
}

struct Fetch {
    client: Client,
    now: Time,
    ended: BTreeMap<u64, String>,
    bodies: BTreeMap<u64, Vec<u8>>,
}

impl Fetch {
    fn begin() -> Self {
        let limits = Limits {
            head_bytes: 512,
            fields: 8,
            body_bytes: 1_024,
            extension_bytes: 16,
            ..Limits::default()
        };
        let config = ClientConfig { limits, ..ClientConfig::internet() }.with(Extension::Parts, true);
        let mut client = Client::new(config, 40_001, [0; 16]);
        for (id, method) in [(1, Method::Get), (2, Method::Head)] {
            let mut fields = Fields::new();
            fields.push("Host", "h").expect("a field");
            let head = RequestHead { method, target: "/".to_owned(), version: Version::Http11, fields };
            client.request(Time::ZERO, Id(id), SERVER, &head).expect("it goes over UDP");
        }
        let mut fetch = Self { client, now: Time::ZERO, ended: BTreeMap::new(), bodies: BTreeMap::new() };
        fetch.drain();
        fetch
    }

    /// Does what the client says; its next timeout.
    fn drain(&mut self) -> Option<Time> {
        loop {
            match self.client.poll(self.now) {
                Output::Send(to, datagram) => {
                    let request = Request::read(&datagram, &Limits::default()).expect("its own request");
                    assert_eq!(to, SERVER);
                    assert!(matches!(request.header.id, Id(1 | 2)));
                    assert!(!self.ended.contains_key(&request.header.id.0), "it is over");
                }
                Output::Head(Id(id), _, _) => {
                    assert!(self.bodies.insert(id, Vec::new()).is_none(), "two heads")
                }
                Output::Body(Id(id), part) => {
                    assert!(!part.is_empty());
                    self.bodies.get_mut(&id).expect("its head came before").extend(part);
                }
                Output::End(Id(id)) => self.end(id, "complete".to_owned()),
                Output::Fallback(Id(id), why) => {
                    assert!(!self.bodies.contains_key(&id), "something had come");
                    self.end(id, format!("{why:?}"));
                }
                Output::Failed(Id(id), why) => self.end(id, format!("{why:?}")),
                Output::Close(id) => assert_eq!(id, CONNECTION),
                Output::Discarded(from, _) => assert_eq!(from, SERVER),
                Output::Timeout(wake) => return wake,
            }
        }
    }

    fn end(&mut self, id: u64, how: String) {
        assert_eq!(self.ended.insert(id, how), None, "it ended twice");
    }

    /// Lets time go by until nothing more is waited for.
    fn finish(mut self) -> (BTreeMap<u64, String>, BTreeMap<u64, Vec<u8>>) {
        for _ in 0..100 {
            let Some(wake) = self.drain() else {
                assert_eq!((self.ended.len(), self.client.outstanding()), (2, 0));
                return (self.ended, self.bodies);
            };
            assert!(wake > self.now, "a timeout that is over");
            self.now = wake;
        }
        panic!("it goes on for ever");
    }
}
