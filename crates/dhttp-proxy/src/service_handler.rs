//! Any `tower` service, such as an axum application, as a handler (`roundtrip_dhttp_proxy::service_handler(app, runtime)`).
//!
//! Requests flow in from the server's threads and out to the runtime's; responses flow back once they are complete. Larger
//! bodies are buffered in an unnamed file, so that their number costs disk and not memory.
//!
//! Endless responses (events, long polls) are not supported: DHTTP sends messages whose length is known.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io::Write;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::Uri;
use http_body::Body as HttpBody;
use http_body_util::Full;
use http1::gateway::is_dhttp_field;
use http1::message::Fields;
use tokio::runtime::Handle;
use tower_service::Service;
use wire::Time;

use crate::fetches::{Fetch, Spill, unless_evicted};
use dhttp::deferred::{Reply, promise};
use dhttp::fields::copy;
use dhttp::handler::{Body, Handler, Request, Response};

/// A service as a server's handler.
pub struct ServiceHandler<S, B> {
    service: S,
    runtime: Handle,
    /// Maximum length of a response body, in bytes.
    max: u64,
    body: PhantomData<fn() -> B>,
}

/// The client's address, among a request's extensions; `None` if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub Option<IpAddr>);

/// Cause of an error.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Maximum bytes of a body in memory; the rest is buffered in a file.
const MAX_MEMORY_BYTES: usize = 256 << 10;
/// Maximum length of a body, unless [`ServiceHandler::with_longest_body`] sets another.
const MAX_BODY_BYTES: u64 = 1 << 30;

/// Makes a handler of a service, whose futures run on that runtime.
pub const fn service_handler<S, B>(service: S, runtime: Handle) -> ServiceHandler<S, B> {
    ServiceHandler { service, runtime, max: MAX_BODY_BYTES, body: PhantomData }
}

impl<S, B> ServiceHandler<S, B> {
    /// Sets the maximum length of a body, in bytes; a longer one gets 502.
    #[must_use]
    pub fn with_longest_body(self, max: u64) -> Self {
        Self { max, ..self }
    }
}

impl<S: Clone, B> Clone for ServiceHandler<S, B> {
    fn clone(&self) -> Self {
        let Self { service, runtime, max, body } = self;
        Self { service: service.clone(), runtime: runtime.clone(), max: *max, body: *body }
    }
}

impl<S: fmt::Debug, B> fmt::Debug for ServiceHandler<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServiceHandler").field(&self.service).finish()
    }
}

impl<S, B> Handler for ServiceHandler<S, B>
where
    S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Cause>,
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<Cause>,
{
    fn respond(&mut self, _now: Time, request: &Request<'_>) -> Reply {
        if request.client.is_none() {
            // The address of a client without a token may be forged: it is referred to plain HTTP.
            return Reply::PlainHttp;
        }
        let Some(fetch) = Fetch::begin(request.client, None) else { return busy().into() };
        let Some(request) = to_http(request) else {
            return Response::text(400, "400 Bad Request").into();
        };
        let (promise, later) = promise();
        let (mut service, max) = (self.service.clone(), self.max);
        let is_head = request.method() == http::Method::HEAD;
        // If the runtime is gone, dropping the promise notifies the client.
        drop(self.runtime.spawn(async move {
            let reply = async {
                poll_fn(|context| service.poll_ready(context)).await.map_err(Into::into)?;
                let response = service.call(request).await.map_err(Into::into)?;
                collect(response, is_head, max).await
            };
            let reply: Option<Result<Response, Cause>> = fetch.run(unless_evicted(reply)).await;
            let failed = |reason: Cause| Response::text(502, &format!("502 Bad Gateway: {reason}"));
            promise.give(reply.map_or_else(busy, |reply| reply.unwrap_or_else(failed)));
        }));
        Reply::Later(later)
    }
}

/// The response to a client that is at its limit of fetches.
pub(crate) fn busy() -> Response {
    let mut response =
        Response::text(503, "503 Service Unavailable: too many requests in progress; retry later");
    copy(Arc::make_mut(&mut response.fields), b"Retry-After", b"1");
    response
}

/// Converts a request to the `http` crate's type.
fn to_http(request: &Request<'_>) -> Option<http::Request<Full<Bytes>>> {
    let uri: Uri = request.target.parse().ok()?;
    let mut builder = http::Request::builder().method(request.method).uri(uri);
    builder = builder.extension(ClientAddress(request.client));
    request.each_field(|name, value| {
        // The body is already decoded.
        if !name.eq_ignore_ascii_case(b"Transfer-Encoding") && !is_dhttp_field(name) {
            builder = std::mem::take(&mut builder).header(name, value);
        }
    });
    builder.body(Full::new(Bytes::copy_from_slice(request.body))).ok()
}

/// Returns a response, once all of it has arrived.
async fn collect<B>(response: http::Response<B>, is_head: bool, max: u64) -> Result<Response, Cause>
where
    B: HttpBody,
    B::Error: Into<Cause>,
{
    let (head, body) = response.into_parts();
    let mut fields = Fields::new();
    for (name, value) in &head.headers {
        let is_server_field = SERVER_FIELDS.iter().any(|field| name.as_str().eq_ignore_ascii_case(field));
        if !is_server_field && !is_dhttp_field(name.as_str().as_bytes()) {
            copy(&mut fields, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    let body = if is_head {
        // The described body is not here; its length is known only from `Content-Length`.
        let reported = head.headers.get(http::header::CONTENT_LENGTH).and_then(|digits| digits.to_str().ok());
        Body::Described(reported.and_then(|digits| digits.parse().ok()))
    } else {
        CollectedBody::of(body, max).await?.into_body()?
    };
    Ok(Response { status: head.status.as_u16(), fields: Arc::new(fields), body })
}

/// Fields that the server sets itself.
const SERVER_FIELDS: [&str; 6] =
    ["Connection", "Content-Length", "Date", "Keep-Alive", "Transfer-Encoding", "Upgrade"];

/// A received body, in memory or in an unnamed file.
#[derive(Debug, Default)]
pub(crate) struct CollectedBody {
    memory: Vec<u8>,
    file: Option<Spill>,
    length: u64,
    trailers: Fields,
}

impl CollectedBody {
    pub(crate) async fn of<B>(body: B, max: u64) -> Result<Self, Cause>
    where
        B: HttpBody,
        B::Error: Into<Cause>,
    {
        let mut body = pin!(body);
        let mut collected = Self::default();
        while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let mut data = match frame.map_err(Into::into)?.into_data() {
                Ok(data) => data,
                Err(other) => {
                    if let Ok(trailers) = other.into_trailers() {
                        collected.trailers = fields_from(&trailers);
                    }
                    continue;
                }
            };
            if collected.length + data.remaining() as u64 > max {
                return Err(format!("the body is longer than {max} bytes").into());
            }
            while data.has_remaining() {
                let chunk = data.chunk();
                collected.push(chunk)?;
                let length = chunk.len();
                data.advance(length);
            }
        }
        Ok(collected)
    }

    /// Appends a part of the body.
    pub(crate) fn push(&mut self, part: &[u8]) -> std::io::Result<()> {
        self.length += part.len() as u64;
        self.memory.extend_from_slice(part);
        if self.memory.len() > MAX_MEMORY_BYTES { self.spill() } else { Ok(()) }
    }

    /// Takes the trailers.
    pub(crate) fn take_trailers(&mut self) -> Fields {
        std::mem::take(&mut self.trailers)
    }

    /// Returns the number of bytes.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    fn spill(&mut self) -> std::io::Result<()> {
        let spill = match &mut self.file {
            Some(spill) => spill,
            none => none.insert(Spill::new()?),
        };
        spill.grow(self.memory.len() as u64)?;
        (&*spill.file).write_all(&self.memory)?;
        self.memory.clear();
        Ok(())
    }

    pub(crate) fn into_body(mut self) -> std::io::Result<Body> {
        if self.file.is_some() {
            self.spill()?;
        }
        Ok(match self.file {
            Some(spill) => Body::File { file: spill.file, offset: 0, length: self.length },
            None => Body::Whole(self.memory.into()),
        })
    }
}

/// Returns the fields of `http`'s headers that DHTTP carries.
pub(crate) fn fields_from(headers: &http::HeaderMap) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in headers {
        copy(&mut fields, name.as_str().as_bytes(), value.as_bytes());
    }
    fields
}
