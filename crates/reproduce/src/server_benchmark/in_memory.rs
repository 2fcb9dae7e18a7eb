//! A small hyper server, as in its own examples: files read once, with keep-alive.
//!
//! Not a product: it shows what hyper can do without anything around it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Contents of the served files, by path.
pub type Files = Arc<BTreeMap<String, Bytes>>;

/// Serves the files of `directory` on a thread of the caller's network namespace, until the runtime is dropped. Idle
/// connections are closed after `idle`; zero: after each response.
///
/// # Errors
/// The system's error.
pub fn serve(address: SocketAddr, directory: &Path, idle: wire::Duration) -> io::Result<Runtime> {
    let files = read(directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind(address))?;
    runtime.spawn(accept(listener, files, idle));
    Ok(runtime)
}

/// The files of a directory.
///
/// # Errors
/// The system's error.
pub fn read(directory: &Path) -> io::Result<Files> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("/{}", entry.file_name().to_string_lossy());
        files.insert(path, Bytes::from(fs::read(entry.path())?));
    }
    Ok(Arc::new(files))
}

async fn accept(listener: TcpListener, files: Files, idle: wire::Duration) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let files = Arc::clone(&files);
        let service = service_fn(move |request| {
            let response = respond(&files, &request);
            async move { Ok::<_, Infallible>(response) }
        });
        let mut builder = Builder::new();
        builder.timer(TokioTimer::new()).pipeline_flush(true).keep_alive(idle > wire::Duration::ZERO);
        if idle > wire::Duration::ZERO {
            // The timeout for a request's header section begins when the previous response is sent.
            builder.header_read_timeout(std::time::Duration::from_nanos(idle.as_nanos()));
        }
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // A connection that the client aborts is not an error of the server.
            let _ = connection.await;
        });
    }
}

fn respond(files: &Files, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = match files.get(request.uri().path()) {
        Some(body) => (StatusCode::OK, body.clone()),
        None => (StatusCode::NOT_FOUND, Bytes::new()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
}
