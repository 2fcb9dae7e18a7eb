//! A server with the fault, `gate-server KIND apart`, or its fixed twin, `gate-server KIND whole`. Prints its port.
//!
//! KIND: h1, tls (by rustls), h2, grpc (frames made by hand), or axum: axum as it is, whose fixed twin sets TCP_NODELAY.

use std::env;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const HEADERS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n";
const BODY: [u8; 600] = [b'x'; 600];

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let (kind, is_whole) = (arguments[1].clone(), arguments[2] == "whole");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    println!("{}", listener.local_addr().expect("it is bound").port());
    if kind == "axum" {
        return axum(listener, is_whole);
    }
    let tls = (kind == "tls").then(config);
    for stream in listener.incoming().flatten() {
        // HTTP/2's SETTINGS and their acknowledgement are small writes, too: one write for each response is not enough.
        stream.set_nodelay(is_whole).expect("a socket has the option");
        let (kind, tls) = (kind.clone(), tls.clone());
        thread::spawn(move || match (kind.as_str(), tls) {
            ("tls", Some(config)) => {
                let connection = ServerConnection::new(config).expect("the configuration is valid");
                http1(StreamOwned::new(connection, stream), is_whole)
            }
            ("h1", _) => http1(stream, is_whole),
            (kind, _) => http2(stream, is_whole, kind == "grpc"),
        });
    }
}

fn config() -> Arc<ServerConfig> {
    let path = |name: &str| env::var(name).expect("GATE_CERT and GATE_KEY name files");
    let certificate = CertificateDer::from_pem_file(path("GATE_CERT")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(path("GATE_KEY")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("ring has both versions").with_no_client_auth();
    Arc::new(config.with_single_cert(vec![certificate], key).expect("they fit"))
}

fn send(stream: &mut impl Write, pieces: &[&[u8]], is_whole: bool) -> io::Result<()> {
    if is_whole {
        return stream.write_all(&pieces.concat()).and_then(|()| stream.flush());
    }
    pieces.iter().try_for_each(|piece| stream.write_all(piece).and_then(|()| stream.flush()))
}

fn http1(mut stream: impl Read + Write, is_whole: bool) -> io::Result<()> {
    let (mut pending, mut buffer) = (Vec::new(), [0; 4_096]);
    loop {
        while let Some(end) = pending.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            pending.drain(..end + 4);
            send(&mut stream, &[HEADERS, &BODY], is_whole)?;
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => pending.extend_from_slice(&buffer[..length]),
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload");
    [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// HPACK: a literal field without indexing (RFC 7541, section 6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| [u8::try_from(text.len()).expect("a short text")];
    [&[0], &length(name)[..], name.as_bytes(), &length(value), value.as_bytes()].concat()
}

fn http2(mut stream: TcpStream, is_whole: bool, is_grpc: bool) -> io::Result<()> {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload)?;
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        match (head[3], head[4] & 1 == 1) {
            (SETTINGS, false) => stream.write_all(&frame(SETTINGS, 1, 0, &[]))?,
            (PING, false) => stream.write_all(&frame(PING, 1, 0, &payload))?,
            (HEADERS | DATA, true) if is_grpc => {
                let message = [&[0], &600_u32.to_be_bytes()[..], &BODY].concat();
                let start = [&[0x88], &literal("content-type", "application/grpc")[..]].concat();
                let pieces = [
                    frame(HEADERS, 4, id, &start),
                    frame(DATA, 0, id, &message),
                    frame(HEADERS, 5, id, &literal("grpc-status", "0")),
                ];
                send(&mut stream, &[&pieces[0], &pieces[1], &pieces[2]], is_whole)?;
            }
            (HEADERS | DATA, true) => {
                let pieces = [frame(HEADERS, 4, id, &[0x88]), frame(DATA, 1, id, &BODY)];
                send(&mut stream, &[&pieces[0], &pieces[1]], is_whole)?;
            }
            _ => {}
        }
    }
}

fn axum(listener: TcpListener, is_whole: bool) {
    use axum::serve::ListenerExt as _;
    listener.set_nonblocking(true).expect("a socket has the option");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("it listens");
        let listener = listener.tap_io(move |stream| {
            stream.set_nodelay(is_whole).expect("a socket has the option");
        });
        let site = axum::Router::new().route("/", axum::routing::get(|| async { BODY.to_vec() }));
        axum::serve(listener, site).await
    })
    .expect("it serves");
}
