//! Tests of [`super::Endpoint`]: two ends that pass their writes to each other.

use super::*;
use crate::profile::Scheduling;

/// A client, its server, and what each has been told.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    /// Bytes of each response's body.
    received: BTreeMap<u32, usize>,
    ended: Vec<u32>,
    /// Writes of the server since the last look.
    writes: Vec<usize>,
}

impl Pair {
    fn new(client: Profile, server: Profile) -> Self {
        let (client, server) = (Endpoint::client(client), Endpoint::server(server));
        Self { client, server, received: BTreeMap::new(), ended: Vec::new(), writes: Vec::new() }
    }

    fn request(&mut self) -> u32 {
        let fields = [(&b":method"[..], &b"GET"[..]), (b":path", b"/")];
        self.client.request(fields, Priority::default(), [].into()).unwrap()
    }

    /// The client's writes reach the server, which responds to each request with this number of bytes.
    fn client_to_server(&mut self, size: usize) {
        while let Some(bytes) = self.client.next_write() {
            let mut requests = Vec::new();
            let on = &mut |event: Event<'_>| {
                if let Event::Fields { stream, .. } = event {
                    requests.push(stream);
                }
            };
            self.server.receive(&bytes, on).unwrap();
            for stream in requests {
                let body = vec![0; size].into();
                self.server.respond(stream, [(&b":status"[..], &b"200"[..])], Priority::default(), body);
            }
        }
    }

    /// The server's writes reach the client.
    fn server_to_client(&mut self) {
        while let Some(bytes) = self.server.next_write() {
            self.writes.push(bytes.len());
            let Self { client, received, ended, .. } = self;
            let on = &mut |event: Event<'_>| {
                if let Event::Data { stream, bytes, ends } = event {
                    *received.entry(stream).or_default() += bytes.len();
                    ended.extend(ends.then_some(stream));
                }
            };
            client.receive(&bytes, on).unwrap();
        }
    }
}

#[test]
fn default_windows_stop_a_sender_at_65_535_bytes_until_they_are_granted_again() {
    let mut pair = Pair::new(Profile::DEFAULT_CLIENT, Profile::NGINX);
    let stream = pair.request();
    pair.client_to_server(100_000);
    pair.server_to_client();
    assert_eq!(pair.received[&stream], 65_535);
    assert!(pair.server.has_body());
    // The client has granted two parts of more than half of each window.
    pair.client_to_server(0);
    pair.server_to_client();
    assert_eq!((pair.received[&stream], pair.ended.as_slice()), (100_000, &[stream][..]));
}

#[test]
fn chromiums_windows_let_6_mib_of_a_stream_leave_at_once() {
    let mut pair = Pair::new(Profile::CHROMIUM, Profile::NGINX);
    let stream = pair.request();
    pair.client_to_server(7 << 20);
    let mut sent = 0;
    while let Some(bytes) = pair.server.next_write() {
        sent += bytes.len();
    }
    assert!((6 << 20..(6 << 20) + 10_000).contains(&sent), "{sent} on {stream}");
}

#[test]
fn every_stream_ends_and_none_is_left() {
    for scheduling in Scheduling::ALL {
        let mut pair = Pair::new(Profile::CHROMIUM, Profile { scheduling, ..Profile::NGINX });
        let streams: Vec<u32> = (0..50).map(|_| pair.request()).collect();
        pair.client_to_server(20_000);
        pair.server_to_client();
        pair.ended.sort_unstable();
        assert_eq!(pair.ended, streams, "{scheduling:?}");
        assert!(pair.received.values().all(|bytes| *bytes == 20_000));
        assert!(pair.client.open.is_empty() && pair.server.bodies.is_empty());
    }
}

#[test]
fn client_opens_no_more_streams_than_the_server_takes() {
    let mut pair = Pair::new(Profile::CHROMIUM, Profile::NGINX);
    pair.server_to_client();
    for _ in 0..128 {
        pair.request();
    }
    assert!(!pair.client.can_request());
}

#[test]
fn server_refuses_what_is_not_http2() {
    let mut server = Endpoint::server(Profile::NGINX);
    assert_eq!(server.receive(b"GET / HTTP/1.1\r\n", &mut |_| {}), Err(PROTOCOL_ERROR));
    let mut server = Endpoint::server(Profile::NGINX);
    server.receive(PREFACE, &mut |_| {}).unwrap();
    let mut bytes = Vec::new();
    write::frame(FrameType::Headers, 5, 2, &[0x82], &mut bytes);
    assert_eq!(server.receive(&bytes, &mut |_| {}), Err(PROTOCOL_ERROR), "an even stream");
}

#[test]
fn bytes_cut_anywhere_give_the_same_events() {
    let mut client = Endpoint::client(Profile::CHROMIUM);
    let fields = [(&b":method"[..], &b"POST"[..]), (b":path", b"/")];
    client.request(fields, Priority::default(), [7; 10].into()).unwrap();
    let bytes = client.next_write().unwrap();
    for cut in 0..=bytes.len() {
        let mut server = Endpoint::server(Profile::NGINX);
        let (mut fields, mut data, mut ended) = (0, 0, false);
        for part in [&bytes[..cut], &bytes[cut..]] {
            server
                .receive(part, &mut |event| match event {
                    Event::Fields { .. } => fields += 1,
                    Event::Data { bytes, ends, .. } => {
                        data += bytes.len();
                        ended |= ends;
                    }
                    Event::Reset { .. } | Event::GoAway { .. } => {}
                })
                .unwrap();
        }
        assert_eq!((fields, data, ended), (1, 10, true), "cut at {cut}");
    }
}
