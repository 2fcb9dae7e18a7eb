//! Spoofed requests to a cache and a reverse proxy: nothing is requested from the origin, by IPv4 and IPv6.
//!
//! Requests with a token are tested in `dhttp-proxy`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use test_fixture::has_laboratory;

use super::host::Host;
use super::{PORT, SERVER, address, fill, request};
use test_fixture::KilledOnDrop;

const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1);

/// Starts an origin of a large object on the host's loopback interface; returns its address, and the request lines that
/// it receives.
fn origin(host: &Host) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = host.run(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let (at, lines) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let received = Arc::clone(&lines);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, received) = (stream.unwrap(), Arc::clone(&received));
            std::thread::spawn(move || {
                let mut head = [0; 4_096];
                while let Ok(length @ 1..) = stream.read(&mut head) {
                    let text = String::from_utf8_lossy(&head[..length]).into_owned();
                    received.lock().unwrap().push(text.lines().next().unwrap_or_default().to_owned());
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 20000000\r\n\r\n");
                    let _ = stream.write_all(&vec![b'x'; 20_000_000]);
                }
            });
        }
    });
    (at, lines)
}

#[test]
fn spoofed_requests_bring_no_request_to_an_origin() {
    if !has_laboratory() {
        return;
    }
    for (verb, is_six) in [("cache", false), ("cache", true), ("serve", false), ("serve", true)] {
        let host = Host::dual_stack("origins", SERVER, SERVER6);
        let (origin, lines) = origin(&host);
        let at = if is_six { SocketAddr::from((SERVER6, PORT)) } else { SocketAddr::from((SERVER, PORT)) };
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        command.args([verb, "--threads", "1", "--listen", &at.to_string()]);
        command.args(["--origin", &format!("http://{origin}")]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = host.run(move || command.spawn()).unwrap();
        let (mut line, mut reported) = (String::new(), BufReader::new(child.stderr.take().unwrap()));
        reported.read_line(&mut line).unwrap();
        assert!(line.contains("http://"), "{line}");
        let _program = KilledOnDrop(child);
        let (mut sent_bytes, mut received_bytes, mut responses) = (0, 0, 0);
        for id in 0..60_u16 {
            let victim = match is_six {
                true => SocketAddr::from(([0x2600, 61 + id, 0, 0, 0, 0, 0, 7], 40_000)),
                false => address([60, 1, u8::try_from(id).unwrap(), 1], 40_000),
            };
            sent_bytes += host.deliver_datagram_at(at, victim, &request(id.into(), 20_000, 20, &fill(300)));
            if let Some(sent) = host.next(1_000) {
                assert!(!sent.is_tcp() && sent.to() == victim);
                (received_bytes, responses) = (received_bytes + sent.bytes(), responses + 1);
            }
        }
        println!("{verb}, IPv{}: {received_bytes} bytes for {sent_bytes}", if is_six { 6 } else { 4 });
        assert!(
            responses == 60 && received_bytes <= sent_bytes,
            "{verb}: {responses} responses, {received_bytes} bytes for {sent_bytes}"
        );
        // Without a token, only the program's own probes may reach it.
        let lines = lines.lock().unwrap();
        assert!(!lines.iter().any(|line| line.contains("/20")), "{verb}: {lines:?}");
    }
}
