//! Metrics for Prometheus: every request gets them, whatever its path.
//!
//! One client at a time, with a timeout of five seconds. Not a public server: bind it to an address for monitoring only.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

/// Responds in a thread of its own, as long as the program runs.
pub fn serve(address: SocketAddr, read: impl Fn() -> String + Send + 'static) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).map_err(|error| {
        Failure::Network(format!(
            "cannot listen at {address}: {error}; choose another address with --metrics"
        ))
    })?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that disconnects is not an error.
            let _ = answer(stream, &read());
        }
    });
    Ok(())
}

fn answer(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
    let patience = Some(Duration::from_secs(5));
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    let length = stream.read(&mut [0; 4_096])?;
    if length == 0 {
        return Ok(());
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}
