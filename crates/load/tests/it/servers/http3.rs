//! HTTP/3: over QUIC, with and without 0-RTT.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Elapsed;

use bytes::Bytes;
use h3::error::Code;
use h3::server::RequestResolver;
use http::Response;
use load::preflight;
use load::record::{Channel, FailureReason};
use load::tls::Trust;
use load::{Config, Protocol};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, ServerConfig};
use tokio::runtime::{Builder, Runtime};
use wire::Duration;
use workload::plan::Plan;

use super::site::{Behaviour, Failure, certified, config, plan, run, run_list, run_until_death, target};

/// A server, until this is dropped.
struct TestServer {
    address: SocketAddr,
    trust: Trust,
    endpoint: Endpoint,
    tls: rustls::ServerConfig,
    _runtime: Runtime,
}

fn serve(plan: &Plan, behaviour: Behaviour, speaks: &[u8]) -> TestServer {
    let (tls, trust) = certified(speaks);
    let mut tls = rustls::ServerConfig::clone(&tls);
    tls.max_early_data_size = u32::MAX;
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let inside = runtime.enter();
    let endpoint = Endpoint::server(of(tls.clone()), "127.0.0.1:0".parse().unwrap()).unwrap();
    drop(inside);
    let (plan, accepting) = (Arc::new(plan.clone()), endpoint.clone());
    runtime.spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            let plan = Arc::clone(&plan);
            tokio::spawn(async move {
                // A server may always write before the handshake is complete; this permits early data.
                let Ok(Ok((connection, _))) = incoming.accept().map(|connecting| connecting.into_0rtt())
                else {
                    return;
                };
                let carried = h3_quinn::Connection::new(connection);
                let Ok(mut connection) = h3::server::Connection::new(carried).await else { return };
                let mut left = behaviour.responses_until_it_leaves();
                while let Ok(Some(request)) = connection.accept().await {
                    tokio::spawn(respond_to_request(request, Arc::clone(&plan), behaviour));
                    left -= 1;
                    if left == 0 {
                        let _ = connection.shutdown(0).await;
                    }
                }
            });
        }
    });
    let address = endpoint.local_addr().unwrap();
    TestServer { address, trust, endpoint, tls, _runtime: runtime }
}

fn of(tls: rustls::ServerConfig) -> ServerConfig {
    ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()))
}

async fn respond_to_request(
    request: RequestResolver<h3_quinn::Connection, Bytes>,
    plan: Arc<Plan>,
    behaviour: Behaviour,
) {
    let Ok((request, mut stream)) = request.resolve_request().await else { return };
    let (status, length) = match behaviour.respond(&plan, &request).await {
        Ok(reply) => reply,
        Err(Failure::Reset) => return stream.stop_stream(Code::H3_INTERNAL_ERROR),
        Err(Failure::Rejected) => return stream.stop_stream(Code::H3_REQUEST_REJECTED),
        Err(Failure::Word) => return tokio::time::sleep(Elapsed::from_secs(60)).await,
    };
    let response = Response::builder().status(status).body(()).unwrap();
    let _ = stream.send_response(response).await;
    if length > 0 {
        let _ = stream.send_data(Bytes::from(vec![b'x'; length])).await;
    }
    let _ = stream.finish().await;
}

#[test]
fn every_request_gets_a_response_on_one_connection_per_user() {
    let plan = plan(60.0);
    let server = serve(&plan, Behaviour::Responds, b"h3");
    for trust in [server.trust.clone(), Trust::Unverified] {
        let target = target(server.address, Some(trust));
        assert_eq!(preflight::send(&(&plan).into(), &target, &config(Protocol::Http3)).unwrap().status, 200);
        let record = run(&plan, &target, &config(Protocol::Http3));
        assert_eq!((record.responses(), record.failures(), record.connections), (60, 0, 2), "{record:?}");
        assert_eq!(record.channels.get(&Channel::Quic), Some(&60));
    }
}

#[test]
fn requests_of_a_connection_are_concurrent() {
    let plan = plan(60.0);
    let server = serve(&plan, Behaviour::RespondsAfter(Elapsed::from_millis(200)), b"h3");
    let one = Config { users: 1, ..config(Protocol::Http3) };
    let record = run(&plan, &target(server.address, Some(server.trust.clone())), &one);
    assert_eq!((record.responses(), record.connections), (60, 1));
    assert!(record.intended.max() < 2_000_000_000, "{} ns", record.intended.max());
}

#[test]
fn returning_users_send_early_data_if_configured() {
    let plan = plan(30.0);
    let server = serve(&plan, Behaviour::Responds, b"h3");
    let target = target(server.address, Some(server.trust.clone()));
    for has_early in [false, true] {
        let no_keep_alive =
            Config { idle_timeout: Some(Duration::ZERO), has_early, ..config(Protocol::Http3) };
        let record = run(&plan, &target, &no_keep_alive);
        assert_eq!((record.responses(), record.failures()), (30, 0), "{record:?}");
        let early = record.channels.get(&Channel::QuicEarly).copied().unwrap_or(0);
        if has_early {
            assert!(early >= record.connections - 6 && early > 10, "{record:?}");
        } else {
            assert_eq!(early, 0, "{record:?}");
        }
    }
}

#[test]
fn requests_rejected_as_early_data_are_retried() {
    let plan = plan(30.0);
    let server = serve(&plan, Behaviour::Responds, b"h3");
    let target = target(server.address, Some(server.trust.clone()));
    let no_keep_alive =
        Config { idle_timeout: Some(Duration::ZERO), has_early: true, ..config(Protocol::Http3) };
    let is_over = AtomicBool::new(false);
    let record = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Tickets of another server, as after a restart: it rejects them, and reads no early data.
            while !is_over.load(Ordering::Relaxed) {
                let mut other = server.tls.clone();
                other.session_storage = rustls::server::ServerSessionMemoryCache::new(8);
                server.endpoint.set_server_config(Some(of(other)));
                std::thread::park_timeout(Elapsed::from_millis(100));
            }
        });
        let record = run(&plan, &target, &no_keep_alive);
        is_over.store(true, Ordering::Relaxed);
        record
    });
    assert_eq!((record.responses(), record.failures()), (30, 0), "{record:?}");
    assert!(record.retries > 3, "{record:?}");
}

#[test]
fn faults_of_a_server_are_counted_by_kind() {
    let plan = plan(30.0);
    let short_timeout = Config { timeout: Duration::from_millis(300), ..config(Protocol::Http3) };
    for (behaviour, reason) in Behaviour::BAD {
        let server = serve(&plan, behaviour, b"h3");
        let record = run(&plan, &target(server.address, Some(server.trust.clone())), &short_timeout);
        assert_eq!(
            (record.responses(), record.failure_counts.get(&reason)),
            (0, Some(&30)),
            "{reason:?}: {record:?}"
        );
    }
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = target(silent.local_addr().unwrap(), Some(Trust::Unverified));
    let record = run(&plan, &target, &short_timeout);
    assert_eq!(record.failure_counts.get(&FailureReason::Timeout), Some(&30), "{record:?}");
}

#[test]
fn requests_not_processed_before_goaway_are_retried() {
    let plan = plan(60.0);
    let server = serve(&plan, Behaviour::LeavesAfter(10), b"h3");
    let record = run(&plan, &target(server.address, Some(server.trust.clone())), &config(Protocol::Http3));
    assert_eq!((record.responses(), record.failures()), (60, 0), "{record:?}");
    assert!(record.connections >= 6, "{}", record.connections);
}

#[test]
fn a_server_that_dies_leaves_no_request_unrecorded() {
    let plan = plan(60.0);
    let server = serve(&plan, Behaviour::Responds, b"h3");
    let target = target(server.address, Some(server.trust.clone()));
    let record = run_until_death(&plan, &target, Protocol::Http3, server);
    assert!(record.responses() > 0 && record.failures() > 0, "{record:?}");
    assert_eq!(record.responses() + record.failures(), 60, "{record:?}");
}

#[test]
fn a_server_without_http3_is_refused_with_the_remedy() {
    let plan = plan(30.0);
    let reported = |server: &TestServer, trust: &Trust| {
        let target = target(server.address, Some(trust.clone()));
        preflight::send(&(&plan).into(), &target, &config(Protocol::Http3)).unwrap_err().to_string()
    };
    let server = serve(&plan, Behaviour::Responds, b"hq-interop");
    assert!(reported(&server, &server.trust).contains("does not offer HTTP/3 in its handshake"));
    let (_, other_trust) = certified(b"h3");
    let server = serve(&plan, Behaviour::Responds, b"h3");
    let printed = reported(&server, &other_trust);
    assert!(printed.contains("untrusted certificate") && printed.contains("--ca FILE"), "{printed}");
    let server = serve(&plan, Behaviour::RespondsWith(404), b"h3");
    let missing = target(server.address, Some(server.trust.clone()));
    assert_eq!(preflight::send(&(&plan).into(), &missing, &config(Protocol::Http3)).unwrap().status, 404);
    let open = target(server.address, None);
    assert!(
        preflight::send(&(&plan).into(), &open, &config(Protocol::Http3))
            .unwrap_err()
            .to_string()
            .contains("give an https:// URL")
    );
}

#[test]
fn a_list_of_requests_is_repeated_with_its_bodies() {
    let plan = plan(1.0);
    let server = serve(&plan, Behaviour::Responds, b"h3");
    let record = run_list(&target(server.address, Some(server.trust.clone())), Protocol::Http3);
    let each: Vec<_> =
        record.requests.iter().map(|request| (request.responses > 10, request.failed)).collect();
    assert_eq!(each, [(true, 0), (true, 0)], "{record:?}");
    assert_eq!((record.statuses.len(), record.statuses[&200]), (1, record.responses()));
}
