//! A small HTTP/3 server made of quinn and h3, as in their own examples: files that are read once.
//!
//! Not a product. It accepts requests in first datagrams (0-RTT) from clients with one of its last `TICKETS` tickets.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use h3::server::RequestResolver;
use hyper::{Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, IdleTimeout, Incoming, ServerConfig, TransportConfig, VarInt};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ServerSessionMemoryCache;
use tokio::runtime::Runtime;

use super::in_memory::{Files, read};

/// Number of tickets: rustls accepts early data only for tickets that it has stored.
const TICKETS: usize = 65_536;

/// Serves the files of `directory` on a thread of the caller's network namespace, until the runtime is dropped. Idle
/// connections are closed after `idle`.
///
/// # Errors
/// The system's error.
pub fn serve(address: SocketAddr, directory: &Path, idle: wire::Duration) -> io::Result<Runtime> {
    let files = read(directory)?;
    let config = config(idle)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let endpoint = {
        let _inside = runtime.enter();
        Endpoint::server(config, address)?
    };
    runtime.spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(connection(incoming, Arc::clone(&files)));
        }
    });
    Ok(runtime)
}

/// A self-signed certificate and its key, which exist only during the run.
fn certificate() -> io::Result<CertifiedKey<rcgen::KeyPair>> {
    generate_simple_self_signed(["server".to_owned()]).map_err(io::Error::other)
}

fn config(idle: wire::Duration) -> io::Result<ServerConfig> {
    let CertifiedKey { cert, signing_key } = certificate()?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key))
        .map_err(io::Error::other)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    // RFC 9001, section 4.6.1: the only value that allows early data.
    tls.max_early_data_size = u32::MAX;
    tls.session_storage = ServerSessionMemoryCache::new(TICKETS);
    let mut config =
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).map_err(io::Error::other)?));
    let idle_ms = u32::try_from(idle.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(idle_ms))));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

async fn connection(incoming: Incoming, files: Files) {
    // Responses may leave before the handshake is complete, because requests may have arrived.
    let Ok(Ok((connection, _))) = incoming.accept().map(quinn::Connecting::into_0rtt) else { return };
    let carried = h3_quinn::Connection::new(connection);
    let Ok(mut connection) = h3::server::builder().send_grease(false).build(carried).await else { return };
    // A connection that the client aborts is not an error of the server.
    while let Ok(Some(request)) = connection.accept().await {
        tokio::spawn(respond(request, Arc::clone(&files)));
    }
}

async fn respond(request: RequestResolver<h3_quinn::Connection, Bytes>, files: Files) {
    let Ok((request, mut stream)) = request.resolve_request().await else { return };
    let (status, body) = match files.get(request.uri().path()) {
        Some(body) => (StatusCode::OK, body.clone()),
        None => (StatusCode::NOT_FOUND, Bytes::new()),
    };
    let mut response = Response::new(());
    *response.status_mut() = status;
    if stream.send_response(response).await.is_ok()
        && (body.is_empty() || stream.send_data(body).await.is_ok())
    {
        let _ = stream.finish().await;
    }
}

/// Writes a certificate and its key for external programs: `certificate.pem` and `key.pem`.
///
/// # Errors
/// The system's error.
pub fn write(directory: &Path) -> io::Result<()> {
    let CertifiedKey { cert, signing_key } = certificate()?;
    fs::write(directory.join("certificate.pem"), cert.pem())?;
    fs::write(directory.join("key.pem"), signing_key.serialize_pem())
}
