//! Hostile behaviour with connections.
//!
//! Datagrams are in `hostile_datagrams`, and the expected results in `hostile`.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration as Elapsed;

use wire::Seed;

/// Handler of a connection.
pub(crate) type ConnectionHandler = fn(TcpStream) -> io::Result<()>;

/// Every behaviour, with its name.
pub(crate) const ALL: &[(&str, ConnectionHandler)] = &[
    ("an immediate close", |_| Ok(())),
    ("a close after the request", |stream| send_and_close(stream, b"")),
    ("a reset", reset),
    ("silence", silent),
    ("an unread stream", unread),
    ("random bytes", random),
    ("another protocol", |stream| send_and_close(stream, b"220 mail.example ESMTP\r\n")),
    ("a truncated header section", |stream| send_and_close(stream, b"HTTP/1.1 200 OK\r\nContent-Le")),
    ("a truncated body", |stream| {
        send_and_close(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nabc")
    }),
    ("an incomplete body", |stream| holds(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nabc")),
    ("a negative length", |stream| holds(stream, b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")),
    ("two lengths", |stream| {
        holds(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
    }),
    ("the largest length", |stream| {
        holds(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nab")
    }),
    ("a larger length", |stream| {
        holds(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nab")
    }),
    ("a chunk of the maximum size", |stream| {
        holds(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab")
    }),
    ("a chunk size of 17 digits", |stream| {
        holds(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nab")
    }),
    ("a chunk of another size", |stream| {
        holds(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcdef\r\n0\r\n\r\n")
    }),
    ("chunks without an end", |stream| {
        endless(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nabcde\r\n")
    }),
    ("an unknown transfer coding", |stream| {
        holds(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: odd\r\n\r\nab")
    }),
    ("a field without an end", |stream| {
        endless(stream, b"HTTP/1.1 200 OK\r\nX: ", b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
    }),
    ("fields without an end", |stream| {
        endless(stream, b"HTTP/1.1 200 OK\r\n", b"X: xxxxxxxxxxxxxxxxxxxxxx\r\n")
    }),
    ("an endless body", |stream| endless(stream, b"HTTP/1.0 200 OK\r\n\r\n", &[b'x'; 65_536])),
    ("endless interim responses", |stream| endless(stream, b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
    ("unsolicited responses", |stream| endless(stream, b"", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
    ("an upgrade to another protocol", |stream| {
        holds(stream, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: odd\r\n\r\nodd")
    }),
    ("a byte at a time", slow),
    ("HTTP/2 SETTINGS alone", |stream| holds(stream, SETTINGS)),
    ("HTTP/2 SETTINGS and GOAWAY", |stream| send_and_close(stream, &[SETTINGS, GOAWAY].concat())),
    ("endless pings", |stream| endless(stream, SETTINGS, b"\0\0\x08\x06\0\0\0\0\0abcdefgh")),
    ("settings without an end", |stream| endless(stream, SETTINGS, SETTINGS)),
    ("a frame larger than agreed", |stream| endless(stream, SETTINGS, b"\xff\xff\xff\0\0\0\0\0\x01")),
    ("no windows", |stream| {
        holds(stream, b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\0")
    }),
    ("data on unopened streams", |stream| endless(stream, SETTINGS, b"\0\0\x01\0\0\0\0\x01\x01x")),
    ("a truncated TLS record", |stream| send_and_close(stream, b"\x16\x03\x03\x40\0\x02\0\0")),
    ("an incomplete TLS record on an open connection", |stream| holds(stream, b"\x16\x03\x03\x40\0\x02\0\0")),
    ("a TLS alert", |stream| send_and_close(stream, b"\x15\x03\x03\0\x02\x02\x28")),
];

const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
/// The last stream is 0: none was processed.
const GOAWAY: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// A server with this handler for each of its connections.
pub(crate) fn serve(behaviour: ConnectionHandler) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listen(listener, behaviour);
    address
}

/// The same for an existing listener.
pub(crate) fn listen(listener: TcpListener, behaviour: ConnectionHandler) {
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Either end may break it first.
            thread::spawn(move || drop(behaviour(stream)));
        }
    });
}

fn send_and_close(stream: TcpStream, bytes: &[u8]) -> io::Result<()> {
    printed(&stream, bytes)?;
    stream.shutdown(Shutdown::Write)
}

fn printed(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let _ = stream.read(&mut [0; 4_096])?;
    stream.write_all(bytes)
}

/// Sends this, and then nothing until the peer has closed.
fn holds(mut stream: TcpStream, bytes: &[u8]) -> io::Result<()> {
    printed(&stream, bytes)?;
    while stream.read(&mut [0; 4_096])? > 0 {}
    Ok(())
}

/// Sends nothing until the peer has closed.
pub(crate) fn silent(stream: TcpStream) -> io::Result<()> {
    holds(stream, b"")
}

fn endless(mut stream: TcpStream, first: &[u8], then: &[u8]) -> io::Result<()> {
    printed(&stream, first)?;
    let many = then.repeat(65_536_usize.div_ceil(then.len()));
    loop {
        stream.write_all(&many)?;
    }
}

/// Closes with unread data, so that the kernel sends a reset.
fn reset(mut stream: TcpStream) -> io::Result<()> {
    stream.read_exact(&mut [0; 1])
}

fn unread(stream: TcpStream) -> io::Result<()> {
    thread::park_timeout(Elapsed::from_secs(5));
    drop(stream);
    Ok(())
}

fn random(mut stream: TcpStream) -> io::Result<()> {
    let _ = stream.read(&mut [0; 4_096])?;
    let mut random = Seed::new(7).stream("garbage", 0);
    for _ in 0..1_000 {
        stream.write_all(&random.next_u64().to_le_bytes())?;
    }
    stream.shutdown(Shutdown::Write)
}

fn slow(mut stream: TcpStream) -> io::Result<()> {
    let _ = stream.read(&mut [0; 4_096])?;
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" {
        stream.write_all(&[*byte])?;
        thread::park_timeout(Elapsed::from_millis(50));
    }
    Ok(())
}
