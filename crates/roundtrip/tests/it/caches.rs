//! Sources of responses that `roundtrip get` and `roundtrip gateway` accept: the server's alone, caches in some
//! networks, or any, over the loopback interface.
//!
//! The cache is a socket that responds from its own address.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

/// A server at 127.0.0.1 that responds to resent requests only, as behind a cache that lets those pass. The cache is at
/// 127.0.0.2 and responds to every first one.
fn server_and_cache() -> SocketAddr {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let cache = UdpSocket::bind("127.0.0.2:0").unwrap();
    let address = server.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2_048];
        loop {
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            assert!(length > 11);
            let (sender, body) = if buffer[10] == 0 { (&cache, "cache") } else { (&server, "whole") };
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}");
            sender.send_to(&[&buffer[..8], response.as_bytes()].concat(), from).unwrap();
        }
    });
    address
}

/// Value of `--caches`, and the expected body.
const CASES: [(&str, &str); 6] = [
    ("none", "whole"),
    ("any", "cache"),
    ("127.0.0.2", "cache"),
    ("192.0.2.0/24,127.0.0.0/30", "cache"),
    ("127.0.0.3", "whole"),
    ("::/0", "whole"),
];

#[test]
fn get_rejects_or_accepts_responses_of_caches_by_network() {
    let server = server_and_cache();
    let get = |flags: &[&str]| {
        let url = format!("dhttp://{server}/");
        let home = std::env::temp_dir().join(format!("roundtrip-caches-{}", std::process::id()));
        Command::new(PROGRAM).args(["get", &url]).args(flags).env("XDG_CACHE_HOME", home).output().unwrap()
    };
    for (caches, from) in CASES {
        assert_eq!(get(&["--caches", caches]).stdout, from.as_bytes(), "{caches}");
    }
    assert_eq!(get(&[]).stdout, b"whole", "the internet profile refuses them");
    let refused = get(&["--caches", "everybody"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("neither an address nor a network"));
}

/// A gateway that is killed when this is dropped.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_gateway_rejects_or_accepts_responses_of_caches_by_network() {
    let server = server_and_cache();
    for (caches, from) in CASES {
        let home = std::env::temp_dir().join(format!("roundtrip-caches-gateway-{}", std::process::id()));
        let child = Command::new(PROGRAM)
            .args(["gateway", "--listen", "127.0.0.1:0", "--caches", caches])
            .env("XDG_CACHE_HOME", home)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut gateway = Gateway(child);
        let mut line = String::new();
        BufReader::new(gateway.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let mut stream = TcpStream::connect(address.unwrap_or_else(|| panic!("{line}"))).unwrap();
        let request =
            format!("GET http://{server}/_dhttp_/a HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.ends_with(from), "{caches}: {response}");
    }
}
