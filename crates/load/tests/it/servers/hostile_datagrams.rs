//! Hostile behaviour with datagrams: of DHTTP servers, and of QUIC servers where it makes no difference.
//!
//! Connections that users open are in `hostile_streams`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration as Elapsed;

use wire::Seed;

use super::hostile_streams::{self, ConnectionHandler};

/// Handler of each datagram: socket, source address, and payload.
pub(crate) type DatagramHandler = fn(&UdpSocket, SocketAddr, &[u8]) -> io::Result<()>;

/// Every behaviour, with its name.
pub(crate) const ALL: &[(&str, DatagramHandler)] = &[
    ("silence", |_, _, _| Ok(())),
    ("an empty datagram", |port, from, _| sends(port, from, b"")),
    ("the id alone", refers),
    ("half an id", |port, from, requested| sends(port, from, part(requested, 4))),
    ("the request, echoed", |port, from, requested| sends(port, from, requested)),
    ("random bytes", |port, from, _| sends(port, from, &random(900))),
    ("random bytes after the id", |port, from, requested| responses(port, from, requested, &random(900))),
    ("a truncated header section", |port, from, requested| {
        responses(port, from, requested, b"HTTP/1.1 200 OK\r\nContent-L")
    }),
    ("a truncated body", |port, from, requested| {
        responses(port, from, requested, b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nab")
    }),
    ("too long a body", |port, from, requested| {
        responses(port, from, requested, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc")
    }),
    ("a size that is not the plan's", |port, from, requested| {
        responses(port, from, requested, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
    }),
    ("the largest datagram", |port, from, requested| responses(port, from, requested, &[b'x'; 65_499])),
    ("the largest response", largest),
    ("another client's id", |port, from, requested| {
        let mut other = requested.to_vec();
        other.iter_mut().take(8).for_each(|byte| *byte ^= 0x55);
        responses(port, from, &other, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }),
    ("another user's id", |port, from, requested| {
        let mut other = requested.to_vec();
        // The last bits identify the user.
        other.iter_mut().skip(7).take(1).for_each(|byte| *byte ^= 1);
        responses(port, from, &other, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }),
    ("an unknown user's id", |port, from, requested| {
        let mut other = requested.to_vec();
        other.iter_mut().skip(5).take(3).for_each(|byte| *byte = 0xff);
        responses(port, from, &other, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }),
    ("a response a thousand times", |port, from, requested| {
        (0..1_000).try_for_each(|_| {
            responses(port, from, requested, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
        })
    }),
    ("a response from another address", |_, from, requested| {
        responses(
            &UdpSocket::bind("127.0.0.1:0")?,
            from,
            requested,
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        )
    }),
    ("a part of a response", |port, from, requested| {
        responses(
            port,
            from,
            requested,
            b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-1/99999999999\r\nContent-Length: 2\r\n\r\nab",
        )
    }),
    ("unknown versions of QUIC", versions),
    ("silent connections", |_, from, requested| opens(from, requested, b"", Elapsed::from_secs(2))),
    ("connections that close", |_, from, requested| opens(from, requested, b"", Elapsed::ZERO)),
    ("connections with random bytes", |_, from, requested| {
        opens(from, requested, &random(900), Elapsed::ZERO)
    }),
    ("connections with an endless field", |_, from, requested| {
        opens(
            from,
            requested,
            &[part(requested, 8), &b"HTTP/1.1 200 OK\r\nX: "[..], &[b'x'; 500_000]].concat(),
            Elapsed::from_secs(2),
        )
    }),
    ("connections with an incomplete body", |_, from, requested| {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc";
        opens(from, requested, &[part(requested, 8), &response[..]].concat(), Elapsed::from_secs(2))
    }),
    ("hundreds of connections", |_, from, requested| {
        let unsent: Vec<_> = (0..100).filter_map(|_| connection(from, requested).ok()).collect();
        thread::spawn(move || {
            thread::park_timeout(Elapsed::from_secs(2));
            drop(unsent);
        });
        Ok(())
    }),
];

/// A server with these handlers for datagrams and for connections.
pub(crate) fn serve(handler: DatagramHandler, behaviour: ConnectionHandler) -> SocketAddr {
    // A port that is free for one protocol may be in use for the other.
    let (port, listener) = std::iter::repeat_with(|| TcpListener::bind("127.0.0.1:0").unwrap())
        .find_map(|listener| Some((UdpSocket::bind(listener.local_addr().unwrap()).ok()?, listener)))
        .unwrap();
    let address = port.local_addr().unwrap();
    hostile_streams::listen(listener, behaviour);
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        loop {
            // An ICMP error is reported here: the datagram counts as lost.
            if let Ok((length, from)) = port.recv_from(&mut buffer) {
                let _ = handler(&port, from, part(&buffer, length));
            }
        }
    });
    address
}

/// Sends the fallback message of eight bytes: retry over plain HTTP.
pub(crate) fn refers(port: &UdpSocket, from: SocketAddr, requested: &[u8]) -> io::Result<()> {
    sends(port, from, part(requested, 8))
}

fn sends(port: &UdpSocket, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
    port.send_to(bytes, to).map(|_| ())
}

fn responses(port: &UdpSocket, to: SocketAddr, requested: &[u8], response: &[u8]) -> io::Result<()> {
    sends(port, to, &[part(requested, 8), response].concat())
}

fn largest(port: &UdpSocket, to: SocketAddr, requested: &[u8]) -> io::Result<()> {
    let mut response = b"HTTP/1.1 200 OK\r\nContent-Length: 65000\r\n\r\n".to_vec();
    response.resize(response.len() + 65_000, b'x');
    responses(port, to, requested, &response)
}

/// Replies to the first datagram of a QUIC connection with no version in common (RFC 9000, section 17.2.1).
fn versions(port: &UdpSocket, to: SocketAddr, requested: &[u8]) -> io::Result<()> {
    let connection_id = |from: usize| {
        requested.get(from..)?.split_first().and_then(|(length, id)| id.get(..usize::from(*length)))
    };
    let Some((source_id, destination_id)) =
        connection_id(5).and_then(|source_id| Some((source_id, connection_id(6 + source_id.len())?)))
    else {
        return Ok(());
    };
    let lengths = [destination_id.len(), source_id.len()].map(|length| [u8::try_from(length).unwrap_or(0)]);
    let packet =
        [&[0x80, 0, 0, 0, 0], &lengths[0][..], destination_id, &lengths[1], source_id, b"\x1a\x2a\x3a\x4a"];
    sends(port, to, &packet.concat())
}

/// Connects to the port that a request names after its id.
fn connection(from: SocketAddr, requested: &[u8]) -> io::Result<TcpStream> {
    let port = requested.get(8..10).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_be_bytes);
    TcpStream::connect(SocketAddr::new(from.ip(), port))
}

fn opens(from: SocketAddr, requested: &[u8], reported: &[u8], holds: Elapsed) -> io::Result<()> {
    let mut stream = connection(from, requested)?;
    let reported = reported.to_vec();
    thread::spawn(move || {
        let _ = stream.write_all(&reported);
        let _ = stream.set_read_timeout(Some(holds.max(Elapsed::from_millis(1))));
        let _ = stream.read(&mut [0; 1]);
    });
    Ok(())
}

fn part(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(..length).unwrap_or(bytes)
}

fn random(length: usize) -> Vec<u8> {
    let mut random = Seed::new(7).stream("garbage", 0);
    (0..length).map(|_| random.next_u64().to_le_bytes()[0]).collect()
}
