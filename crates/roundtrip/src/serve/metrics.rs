//! Metrics for Prometheus: every request gets them, whatever its path.
//!
//! Names begin with `roundtrip_`; the names of the version before follow as aliases, for one version.
//!
//! A thread for each connection, at most [`MAX_CONNECTIONS`], each with a timeout of one second. Not a public server: bind it
//! to an address for monitoring only.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

/// Responds in a thread of its own until the program ends.
pub fn serve(address: SocketAddr, read: impl Fn() -> String + Send + 'static) -> Result<(), Failure> {
    let read = Mutex::new(read);
    let listener = TcpListener::bind(address).map_err(|error| {
        Failure::Network(format!(
            "cannot listen at {address}: {error}; choose another address with --metrics"
        ))
    })?;
    let (read, open) = (Arc::new(read), Arc::new(AtomicUsize::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (read, place) = (Arc::clone(&read), ConnectionSlot::take(&open));
            // A client that disconnects is not an error.
            let respond = move || drop((respond(stream, &*read), place));
            drop(thread::Builder::new().name("metrics".to_owned()).spawn(respond));
        }
    });
    Ok(())
}

/// Maximum number of concurrent connections. Another one waits at most a second: by then one of the others has closed.
const MAX_CONNECTIONS: usize = 64;
/// Timeout of a client that sends or reads nothing.
const TIMEOUT: Duration = Duration::from_millis(900);

/// Slot of one of [`MAX_CONNECTIONS`] connections; released when dropped.
struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlot {
    #[expect(
        clippy::disallowed_methods,
        reason = "a connection of those that are there ends within a second"
    )]
    fn take(open: &Arc<AtomicUsize>) -> Self {
        while open.load(Ordering::Acquire) >= MAX_CONNECTIONS {
            thread::sleep(Duration::from_millis(5));
        }
        open.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(open))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn respond(mut stream: TcpStream, read: &Mutex<impl Fn() -> String>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let length = stream.read(&mut [0; 4_096])?;
    if length == 0 {
        return Ok(());
    }
    // A reader that panicked once has changed nothing.
    let text = read.lock().unwrap_or_else(PoisonError::into_inner)();
    let text = text.lines().map(renamed).collect::<String>() + &text;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// A line of the text format under the name of this version: the prefix, `responses`, and the label `reason`.
pub fn renamed(line: &str) -> String {
    let (keyword, rest) = ["# HELP ", "# TYPE "]
        .into_iter()
        .find_map(|keyword| Some((keyword, line.strip_prefix(keyword)?)))
        .unwrap_or(("", line));
    let (name, rest) = rest.split_at(rest.find(['{', ' ']).unwrap_or(rest.len()));
    let rest = match rest.strip_prefix("{why=") {
        Some(reason) => format!("{{reason={reason}"),
        None => rest.to_owned(),
    };
    format!("{keyword}roundtrip_{}{rest}\n", name.replace("answers", "responses"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_a_prefix() {
        for (line, expected) in [
            ("# TYPE dhttp_answers_total counter", "# TYPE roundtrip_dhttp_responses_total counter\n"),
            ("# HELP origin_up Whether it answers.", "# HELP roundtrip_origin_up Whether it answers.\n"),
            ("dhttp_ignored_total{why=\"source\"} 3", "roundtrip_dhttp_ignored_total{reason=\"source\"} 3\n"),
            ("cache_entries 7", "roundtrip_cache_entries 7\n"),
        ] {
            assert_eq!(renamed(line), expected);
        }
    }

    #[test]
    fn a_scrape_is_answered_beside_idle_connections() {
        let probe = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = probe.local_addr().unwrap();
        drop(probe);
        serve(address, || "counted 1\n".to_owned()).unwrap();
        let idle: Vec<_> = (0..MAX_CONNECTIONS - 1).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\r\n\r\nroundtrip_counted 1\ncounted 1\n"), "{text}");
        // No idle connection was closed or received data: the scrape did not wait for their timeout.
        for stream in &idle {
            stream.set_nonblocking(true).unwrap();
            let open = stream.peek(&mut [0]).unwrap_err();
            assert_eq!(open.kind(), std::io::ErrorKind::WouldBlock);
        }
    }
}
