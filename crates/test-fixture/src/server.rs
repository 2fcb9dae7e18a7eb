//! HTTP/1 servers of tests.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// An HTTP/1 server at a loopback address, with a thread for each connection and one exchange on each.
#[derive(Debug)]
pub struct TestServer {
    /// Its address.
    pub address: SocketAddr,
    requested: Arc<AtomicUsize>,
}

impl TestServer {
    /// Starts a server. `respond` gets the header section of a request, its number from 0, and the stream to write to.
    ///
    /// # Panics
    /// If no port can be bound.
    pub fn start(respond: impl Fn(&str, usize, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("its address");
        let requested = Arc::new(AtomicUsize::new(0));
        let (counted, respond) = (Arc::clone(&requested), Arc::new(respond));
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (counted, respond) = (Arc::clone(&counted), Arc::clone(&respond));
                thread::spawn(move || {
                    let Some(head) = read_head(&mut stream) else { return };
                    respond(&head, counted.fetch_add(1, Ordering::SeqCst), &mut stream);
                    // Other received bytes are read, so that the close is not a reset.
                    let _ = stream.shutdown(Shutdown::Write);
                    let _ = stream.read_to_end(&mut Vec::new());
                });
            }
        });
        Self { address, requested }
    }

    /// Number of complete header sections so far.
    pub fn requested(&self) -> usize {
        self.requested.load(Ordering::SeqCst)
    }
}

/// Reads a header section; `None` if the stream ends before it does, or if it is not UTF-8.
pub fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// Sends a request that asks for the connection to be closed; returns the header section and the body of the response, or
/// whatever came until the connection was closed.
///
/// # Panics
/// If the server accepts no connection, sends nothing for ten seconds, or sends a header section that is not UTF-8.
pub fn exchange(server: SocketAddr, method: &str, target: &str, fields: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(server).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    write!(stream, "{method} {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n")
        .expect("a request");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("a response, and the end of the stream");
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let body = bytes.split_off(end);
    (String::from_utf8(bytes).expect("a header section in UTF-8"), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_numbered_and_counted() {
        let server = TestServer::start(|head, number, stream| {
            let target = head.split(' ').nth(1).unwrap_or_default();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n{number} {target}");
        });
        for number in 0..2 {
            let (head, body) = exchange(server.address, "GET", "/a", "");
            assert_eq!(
                (head.as_str(), body),
                ("HTTP/1.1 200 OK\r\n\r\n", format!("{number} /a").into_bytes())
            );
        }
        assert_eq!(server.requested(), 2);
    }
}
