//! HTTP/2: with prior knowledge and over TLS.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration as Elapsed;

use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse, handshake};
use http::{Request, Response};
use load::preflight;
use load::record::FailureReason;
use load::tls::Trust;
use load::{Config, Protocol, Target};
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use wire::Duration;
use workload::plan::Plan;

use super::site::{Behaviour, Failure, certified, config, plan, run, run_list, run_until_death, target};

/// A server, until this is dropped.
struct TestServer {
    address: SocketAddr,
    resumed: Arc<AtomicUsize>,
    _runtime: Runtime,
}

fn serve(plan: &Plan, behaviour: Behaviour, tls: Option<Arc<ServerConfig>>) -> TestServer {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let (plan, resumed) = (Arc::new(plan.clone()), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&resumed);
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (plan, tls, count) = (Arc::clone(&plan), tls.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let Some(tls) = tls else { return connection(stream, plan, behaviour).await };
                let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await else { return };
                if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                connection(stream, plan, behaviour).await;
            });
        }
    });
    TestServer { address, resumed, _runtime: runtime }
}

async fn connection<T: AsyncRead + AsyncWrite + Unpin>(stream: T, plan: Arc<Plan>, behaviour: Behaviour) {
    let Ok(mut connection) = handshake(stream).await else { return };
    let mut left = behaviour.responses_until_it_leaves();
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(respond_to_request(request.map(drop), respond, Arc::clone(&plan), behaviour));
        // More may have been in flight when it sent GOAWAY.
        left = left.saturating_sub(1);
        if left == 0 {
            connection.graceful_shutdown();
        }
    }
    let _: Connection<T, Bytes> = connection;
}

async fn respond_to_request(
    request: Request<()>,
    mut respond: SendResponse<Bytes>,
    plan: Arc<Plan>,
    behaviour: Behaviour,
) {
    let (status, length) = match behaviour.respond(&plan, &request).await {
        Ok(reply) => reply,
        Err(Failure::Reset) => return respond.send_reset(Reason::INTERNAL_ERROR),
        Err(Failure::Rejected) => return respond.send_reset(Reason::REFUSED_STREAM),
        Err(Failure::Word) => return drop(poll_fn(|context| respond.poll_reset(context)).await),
    };
    let response = Response::builder().status(status).body(()).unwrap();
    let Ok(mut stream) = respond.send_response(response, length == 0) else { return };
    if length > 0 {
        let _ = stream.send_data(Bytes::from(vec![b'x'; length]), true);
    }
}

#[test]
fn every_request_gets_a_response_with_and_without_tls() {
    let plan = plan(60.0);
    let (tls, trust) = certified(b"h2");
    for (tls, trust) in
        [(None, None), (Some(Arc::clone(&tls)), Some(trust)), (Some(tls), Some(Trust::Unverified))]
    {
        let server = serve(&plan, Behaviour::Responds, tls);
        let target = target(server.address, trust);
        assert_eq!(preflight::send(&(&plan).into(), &target, &config(Protocol::Http2)).unwrap().status, 200);
        let record = run(&plan, &target, &config(Protocol::Http2));
        assert_eq!((record.responses(), record.failures(), record.connections), (60, 0, 2));
        assert!(record.seconds.iter().all(|second| second.open <= 2));
    }
}

#[test]
fn requests_of_a_connection_are_concurrent() {
    let plan = plan(60.0);
    let server = serve(&plan, Behaviour::RespondsAfter(Elapsed::from_millis(200)), None);
    let one = Config { users: 1, ..config(Protocol::Http2) };
    let record = run(&plan, &target(server.address, None), &one);
    assert_eq!((record.responses(), record.connections), (60, 1));
    // Sequentially they would take twelve seconds.
    assert!(record.intended.max() < 2_000_000_000, "{} ns", record.intended.max());
}

#[test]
fn faults_of_a_server_are_counted_by_kind() {
    let plan = plan(30.0);
    let short_timeout = Config { timeout: Duration::from_millis(300), ..config(Protocol::Http2) };
    for (behaviour, reason) in Behaviour::BAD {
        let server = serve(&plan, behaviour, None);
        let record = run(&plan, &target(server.address, None), &short_timeout);
        assert_eq!(
            (record.responses(), record.failure_counts.get(&reason)),
            (0, Some(&30)),
            "{reason:?}: {record:?}"
        );
    }
    let record =
        run(&plan, &target(fixed_response_server(b"HTTP/1.1 400 Bad Request\r\n\r\n"), None), &short_timeout);
    assert_eq!((record.responses(), record.failures()), (0, 30), "{record:?}");
    let closed_port: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let record = run(&plan, &target(closed_port, None), &short_timeout);
    assert_eq!(record.failure_counts.get(&FailureReason::Refused), Some(&30));
}

/// A server that sends these bytes on every connection, and no more.
fn fixed_response_server(reported: &'static [u8]) -> SocketAddr {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(reported);
        }
    });
    address
}

#[test]
fn requests_not_processed_before_goaway_are_retried() {
    let plan = plan(60.0);
    let server = serve(&plan, Behaviour::LeavesAfter(10), None);
    let record = run(&plan, &target(server.address, None), &config(Protocol::Http2));
    assert_eq!((record.responses(), record.failures()), (60, 0), "{record:?}");
    // The number of further responses on a connection depends on the requests in flight at that time.
    assert!(record.connections >= 2, "{}", record.connections);
}

#[test]
fn a_server_that_dies_leaves_no_request_unrecorded() {
    let plan = plan(60.0);
    for (tls, trust) in [(None, None), (Some(certified(b"h2").0), Some(Trust::Unverified))] {
        let server = serve(&plan, Behaviour::Responds, tls);
        let record = run_until_death(&plan, &target(server.address, trust), Protocol::Http2, server);
        assert!(record.responses() > 0 && record.failures() > 0, "{record:?}");
        assert_eq!(record.responses() + record.failures(), 60, "{record:?}");
    }
}

#[test]
fn returning_users_resume_sessions() {
    let plan = plan(30.0);
    let (tls, trust) = certified(b"h2");
    let server = serve(&plan, Behaviour::Responds, Some(tls));
    let no_keep_alive = Config { idle_timeout: Some(Duration::ZERO), ..config(Protocol::Http2) };
    let record = run(&plan, &target(server.address, Some(trust)), &no_keep_alive);
    assert_eq!((record.responses(), record.failures()), (30, 0));
    let resumed = server.resumed.load(Ordering::Relaxed) as u64;
    assert!(record.connections > 20 && resumed >= record.connections - 4, "{resumed}: {record:?}");
}

#[test]
fn a_server_without_http2_is_refused_with_the_remedy() {
    let plan = plan(30.0);
    let (other, trust) = certified(b"http/1.1");
    let (tls, _) = certified(b"h2");
    let reported = |target: &Target| {
        preflight::send(&(&plan).into(), target, &config(Protocol::Http2)).unwrap_err().to_string()
    };
    let http1 = fixed_response_server(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(reported(&target(http1, None)).contains("does not speak HTTP/2 here"));
    assert!(reported(&target(http1, Some(Trust::Unverified))).contains("does not speak TLS here"));
    let server = serve(&plan, Behaviour::Responds, Some(other));
    assert!(
        reported(&target(server.address, Some(trust.clone())))
            .contains("does not offer HTTP/2 in its handshake")
    );
    let server = serve(&plan, Behaviour::Responds, Some(tls));
    let printed = reported(&target(server.address, Some(trust)));
    assert!(printed.contains("untrusted certificate") && printed.contains("--ca FILE"), "{printed}");
    let server = serve(&plan, Behaviour::RespondsWith(404), None);
    let missing = target(server.address, None);
    assert_eq!(preflight::send(&(&plan).into(), &missing, &config(Protocol::Http2)).unwrap().status, 404);
    assert!(reported(&target("127.0.0.1:1".parse().unwrap(), None)).contains("does not respond"));
}

#[test]
fn a_list_of_requests_is_repeated_with_its_bodies() {
    let plan = plan(1.0);
    let server = serve(&plan, Behaviour::Responds, None);
    let record = run_list(&target(server.address, None), Protocol::Http2);
    let each: Vec<_> =
        record.requests.iter().map(|request| (request.responses > 10, request.failed)).collect();
    assert_eq!(each, [(true, 0), (true, 0)], "{record:?}");
    assert_eq!((record.statuses.len(), record.statuses[&200]), (1, record.responses()));
}
