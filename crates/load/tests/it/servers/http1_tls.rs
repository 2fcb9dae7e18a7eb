//! HTTP/1 over TLS: keep-alive, pipelining, large bodies, connections that the server closes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use load::preflight;
use load::tls::Trust;
use load::{Config, Protocol};
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

use super::site::{certified, config, plan, run, run_list, target};

/// A server, until this is dropped.
struct TestServer {
    address: SocketAddr,
    resumed: Arc<AtomicUsize>,
    _runtime: Runtime,
}

/// Serves responses with `bytes` of body; it closes each connection after `responses` of them.
fn serve(bytes: usize, responses: usize, tls: Arc<ServerConfig>) -> TestServer {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let resumed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&resumed);
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (tls, count) = (tls.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await else { return };
                if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                connection(stream, bytes, responses).await
            });
        }
    });
    TestServer { address, resumed, _runtime: runtime }
}

async fn connection<T: AsyncRead + AsyncWrite + Unpin>(stream: T, bytes: usize, responses: usize) {
    let (mut stream, mut left) = (BufReader::new(stream), responses);
    let (mut line, mut length) = (String::new(), 0);
    while left > 0 {
        line.clear();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            let mut body = vec![0; std::mem::take(&mut length)];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut body).await.unwrap();
            let last = if left == 1 { "Connection: close\r\n" } else { "" };
            let head = format!("HTTP/1.1 200 OK\r\n{last}Content-Length: {bytes}\r\n\r\n");
            let _ = stream.write_all(&[head.as_bytes(), &vec![b'x'; bytes]].concat()).await;
            left -= 1;
        }
    }
    let _ = stream.shutdown().await;
}

#[test]
fn requests_share_kept_connections_and_pipelines_over_tls() {
    let (tls, trust) = certified(b"http/1.1");
    for (protocol, trust) in [(Protocol::KeepAlive, trust), (Protocol::Pipelined, Trust::Unverified)] {
        let server = serve(3, usize::MAX, Arc::clone(&tls));
        let record = run_list(&target(server.address, Some(trust)), protocol);
        assert_eq!((record.failures(), record.connections), (0, 2), "{protocol:?}");
        assert!(record.responses() > 20, "{protocol:?}: {}", record.responses());
    }
}

#[test]
fn bodies_of_many_records_are_whole() {
    let (tls, trust) = certified(b"http/1.1");
    let server = serve(1_000_003, usize::MAX, tls);
    let record = run_list(&target(server.address, Some(trust)), Protocol::KeepAlive);
    assert_eq!((record.failures(), record.connections), (0, 2));
    assert!(record.responses() >= 2);
    let bytes: u64 = record.seconds.iter().map(|second| second.bytes).sum();
    assert_eq!(bytes, record.responses() * 1_000_003);
}

#[test]
fn users_resume_sessions_of_connections_that_the_server_closed() {
    let (tls, trust) = certified(b"http/1.1");
    let server = serve(3, 5, tls);
    let record = run_list(&target(server.address, Some(trust)), Protocol::KeepAlive);
    assert_eq!(record.failures(), 0);
    let resumed = server.resumed.load(Ordering::Relaxed) as u64;
    assert!(resumed > 0 && resumed + 2 >= record.connections - 1, "{resumed} of {}", record.connections);
}

#[test]
fn a_server_that_cannot_be_trusted_or_offers_no_http1_is_refused_beforehand() {
    let (tls, trust) = certified(b"http/1.1");
    let (other, other_trust) = certified(b"h2");
    let plan = plan(10.0);
    let reported = |address, trust| {
        let target = target(address, Some(trust));
        preflight::send(&(&plan).into(), &target, &config(Protocol::KeepAlive)).unwrap_err().to_string()
    };
    let server = serve(3, usize::MAX, tls);
    let distrusted = reported(server.address, other_trust.clone());
    assert!(distrusted.contains("has an untrusted certificate"), "{distrusted}");
    let only_http2 = serve(3, usize::MAX, other);
    let refused = reported(only_http2.address, other_trust);
    assert!(refused.contains("does not offer HTTP/1.1"), "{refused}");
    // Without a preflight request it fails, and does not hang.
    let short_timeout = Config { timeout: wire::Duration::from_millis(300), ..config(Protocol::KeepAlive) };
    let record = run(&plan, &target(only_http2.address, Some(trust)), &short_timeout);
    assert_eq!((record.responses(), record.failures()), (0, 10));
}
