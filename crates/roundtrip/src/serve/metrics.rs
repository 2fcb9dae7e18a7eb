//! Prometheus metrics over HTTP, on any path.
//!
//! Names begin with `roundtrip_`; the names of the previous version follow as aliases, for one version.
//!
//! A thread for each connection, at most [`MAX_CONNECTIONS`], each with a timeout of one second. It is not a public
//! server: bind it to an address for monitoring only.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

/// Serves metrics on a separate thread until the program ends.
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
            let (read, slot) = (Arc::clone(&read), ConnectionSlot::take(&open));
            // A client that disconnects is not an error.
            let respond = move || drop((respond(stream, &*read), slot));
            drop(thread::Builder::new().name("metrics".to_owned()).spawn(respond));
        }
    });
    Ok(())
}

/// Maximum number of concurrent connections. Another one waits at most a second, until one of the others has closed.
const MAX_CONNECTIONS: usize = 64;
/// Timeout of a client that sends or reads nothing.
const TIMEOUT: Duration = Duration::from_millis(900);

/// Slot of one of [`MAX_CONNECTIONS`] connections; released when dropped.
struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlot {
    #[expect(clippy::disallowed_methods, reason = "an open connection ends within a second")]
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
    // A panic of a reader leaves nothing inconsistent.
    let text = read.lock().unwrap_or_else(PoisonError::into_inner)();
    let aliases = text.lines().filter_map(alias).collect::<String>();
    let text = text + &aliases;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// Families that had names without the prefix.
const ALIASED: [&str; 5] = ["dhttp_", "gateway_", "cache_", "nat_", "origin_"];

/// Returns a line of the text format under its name in the previous version: without the prefix, with `answers` and the label `why`.
fn alias(line: &str) -> Option<String> {
    let (keyword, rest) = ["# HELP ", "# TYPE "]
        .into_iter()
        .find_map(|keyword| Some((keyword, line.strip_prefix(keyword)?)))
        .unwrap_or(("", line));
    let rest = rest
        .strip_prefix("roundtrip_")
        .filter(|rest| ALIASED.iter().any(|family| rest.starts_with(family)))?;
    let (name, rest) = rest.split_at(rest.find(['{', ' ']).unwrap_or(rest.len()));
    let rest = match rest.strip_prefix("{reason=") {
        Some(reason) => format!("{{why={reason}"),
        None => rest.to_owned(),
    };
    Some(format!("{keyword}{}{rest}\n", name.replace("responses", "answers")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_previous_version_are_aliases() {
        for (expected, line) in [
            ("# TYPE dhttp_answers_total counter\n", "# TYPE roundtrip_dhttp_responses_total counter"),
            ("# HELP origin_up Whether it responds.\n", "# HELP roundtrip_origin_up Whether it responds."),
            ("dhttp_ignored_total{why=\"source\"} 3\n", "roundtrip_dhttp_ignored_total{reason=\"source\"} 3"),
            ("cache_objects 7\n", "roundtrip_cache_objects 7"),
        ] {
            assert_eq!(alias(line).as_deref(), Some(expected));
        }
        assert_eq!(alias("roundtrip_watch_stalls 1"), None, "it never had another name");
    }

    #[test]
    fn a_scrape_gets_its_response_despite_idle_connections() {
        let probe = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = probe.local_addr().unwrap();
        drop(probe);
        serve(address, || "roundtrip_nat_mappings 1\n".to_owned()).unwrap();
        let idle: Vec<_> = (0..MAX_CONNECTIONS - 1).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("\r\n\r\nroundtrip_nat_mappings 1\nnat_mappings 1\n"), "{text}");
        // No idle connection was closed or received data: the scrape did not wait for their timeout.
        for stream in &idle {
            stream.set_nonblocking(true).unwrap();
            let open = stream.peek(&mut [0]).unwrap_err();
            assert_eq!(open.kind(), std::io::ErrorKind::WouldBlock);
        }
    }
}
