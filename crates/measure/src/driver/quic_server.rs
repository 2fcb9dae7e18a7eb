//! HTTP/3 server for browsers on kernel sockets: quinn and h3, with TLS 1.3 of real keys.
//!
//! It plays the same page as [`super::tls_server`]. It is not the simulated server: quinn's congestion control and pacing are its own,
//! and concurrent responses share the connection evenly, whatever their priorities. One thread, in the caller's namespace.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use h3::server::RequestResolver;
use http::{Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, Incoming, TransportConfig};

use super::tls_server::{TimedResponse, TlsServerResult, TlsService};
use crate::Error;

/// State that the connections share.
struct Shared {
    service: TlsService,
    result: Mutex<TlsServerResult>,
}

/// Endpoints that are open.
pub(crate) struct QuicServer {
    runtime: tokio::runtime::Runtime,
    endpoints: Vec<Endpoint>,
    shared: Arc<Shared>,
}

/// Interval at which the stop signal is read.
const STOP_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

impl QuicServer {
    /// Listens in the calling thread's namespace.
    pub(crate) fn open(service: TlsService) -> Result<Self, Error> {
        let doing = "set HTTP/3 up";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(Error::io(doing))?;
        let mut endpoints = Vec::new();
        for (address, tls) in &service.origins {
            let Some(tls) = tls else { continue };
            endpoints.push(endpoint(&runtime, *address, tls).map_err(Error::io(doing))?);
        }
        let shared = Arc::new(Shared { service, result: Mutex::default() });
        Ok(Self { runtime, endpoints, shared })
    }

    /// Serves until `stop` is set.
    pub(crate) fn serve(self, stop: &AtomicBool) -> TlsServerResult {
        let Self { runtime, endpoints, shared } = self;
        runtime.block_on(async {
            for endpoint in endpoints {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    while let Some(incoming) = endpoint.accept().await {
                        tokio::spawn(connection(incoming, Arc::clone(&shared)));
                    }
                });
            }
            while !stop.load(Ordering::Acquire) {
                tokio::time::sleep(STOP_INTERVAL).await;
            }
        });
        drop(runtime);
        shared.note(|result| result.clone())
    }
}

fn endpoint(
    runtime: &tokio::runtime::Runtime,
    address: SocketAddr,
    tls: &Arc<rustls::ServerConfig>,
) -> std::io::Result<Endpoint> {
    let crypto = QuicServerConfig::try_from(Arc::clone(tls)).map_err(std::io::Error::other)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(TransportConfig::default()));
    let _inside = runtime.enter();
    Endpoint::server(config, address)
}

impl Shared {
    fn note<T>(&self, change: impl FnOnce(&mut TlsServerResult) -> T) -> T {
        change(&mut self.result.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn connection(incoming: Incoming, shared: Arc<Shared>) {
    let connection = match incoming.await {
        Ok(connection) => connection,
        Err(error) => {
            let error = error.to_string();
            // A browser also closes connections that it does not need.
            if error.contains("cryptographic") {
                shared.note(|result| {
                    result.faults.push(format!("it refused the certificate or the handshake: {error}"));
                });
            }
            return;
        }
    };
    shared.note(|result| result.connections += 1);
    let carried = h3_quinn::Connection::new(connection);
    let Ok(mut connection) = h3::server::builder().send_grease(false).build(carried).await else { return };
    // A connection that the client aborts is not an error of the server.
    while let Ok(Some(request)) = connection.accept().await {
        tokio::spawn(respond(request, Arc::clone(&shared)));
    }
}

async fn respond(request: RequestResolver<h3_quinn::Connection, Bytes>, shared: Arc<Shared>) {
    let Ok((request, mut stream)) = request.resolve_request().await else { return };
    let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
    while let Ok(Some(_)) = stream.recv_data().await {}
    let known: Option<TimedResponse> = shared.service.responses.get(&target).cloned();
    shared.note(|result| *result.requests.entry(target).or_default() += 1);
    let mut response = Response::new(());
    let Some(TimedResponse { media_type, body, delay, .. }) = known else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        let _ = stream.send_response(response).await;
        let _ = stream.finish().await;
        return;
    };
    tokio::time::sleep(std::time::Duration::from_nanos(delay.as_nanos())).await;
    let fields = response.headers_mut();
    fields.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(media_type));
    fields.insert(http::header::CONTENT_LENGTH, http::HeaderValue::from(body.len()));
    fields.insert(http::header::CACHE_CONTROL, http::HeaderValue::from_static("max-age=3600"));
    // Fonts, and what scripts fetch, of other hosts.
    if let Some(origin) = request.headers().get(http::header::ORIGIN) {
        fields.insert(http::header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        let allowed = http::HeaderValue::from_static("true");
        fields.insert(http::header::ACCESS_CONTROL_ALLOW_CREDENTIALS, allowed);
    }
    let body = Bytes::copy_from_slice(&body);
    if stream.send_response(response).await.is_ok() && stream.send_data(body).await.is_ok() {
        let _ = stream.finish().await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::UdpSocket;
    use std::thread;

    use bytes::Buf;
    use http1::server::ServerConfig;
    use quinn::crypto::rustls::QuicClientConfig;
    use wire::Duration;

    use super::*;
    use crate::profile::Profile;
    use crate::whole_page::test_identity;
    use scenario::Protocol;

    #[test]
    fn http3_serves_bodies_after_their_server_time_and_counts_requests() {
        let (tls, root) = test_identity(false, Protocol::Http3);
        let response = |body: usize, delay| TimedResponse {
            media_type: "text/html",
            body: vec![b'x'; body].into(),
            head: None,
            offers_http3: false,
            delay: Duration::from_millis(delay),
        };
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let stack = scenario::Stack::LINUX;
        let service = TlsService {
            origins: vec![(port, Some(tls))],
            responses: BTreeMap::from([("/".to_owned(), response(100_000, 40))]),
            config: ServerConfig::default(),
            http2: http2::Profile::NGINX,
            profile: Profile::of(&stack, wire::Bytes::new(1_460), testbed::End::Client).unwrap(),
        };
        let server = QuicServer::open(service).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let running = thread::spawn(move || server.serve(&stopped));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h3".to_vec()];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (status, length) = runtime.block_on(async {
            let mut endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let crypto = QuicClientConfig::try_from(config).unwrap();
            endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
            let connection = endpoint.connect(port, "a.example").unwrap().await.unwrap();
            let carried = h3_quinn::Connection::new(connection);
            let (mut driver, mut requests) = h3::client::new(carried).await.unwrap();
            let driving = tokio::spawn(async move { driver.wait_idle().await });
            let request = http::Request::get("https://a.example/").body(()).unwrap();
            let mut stream = requests.send_request(request).await.unwrap();
            stream.finish().await.unwrap();
            let response = stream.recv_response().await.unwrap();
            let mut length = 0;
            while let Some(part) = stream.recv_data().await.unwrap() {
                length += part.remaining();
            }
            driving.abort();
            (response.status(), length)
        });
        assert_eq!((status, length), (StatusCode::OK, 100_000));
        stop.store(true, Ordering::Release);
        let result = running.join().unwrap();
        assert_eq!((result.connections, &result.requests["/"], result.faults.len()), (1, &1, 0));
    }
}
