//! Another HTTP server as a handler: a reverse proxy that speaks DHTTP to clients (`roundtrip serve --origin`).
//!
//! Requests flow in, are rewritten as by a gateway ([`http1::gateway`]), and go to the origin on persistent connections
//! (`client`, `connection`). An origin that is down gets no request until it responds to a probe (`health`). It stores no
//! responses: that is for a cache.

mod client;
mod connection;
pub mod counters;
mod health;
mod timeout_body;

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response as HttpResponse};
use http_body_util::{BodyExt, Full};
use http1::gateway::{self, Plan, is_rewriting_field};
use http1::message::{Fields, Framing, Method, RequestHead, ResponseHead, Version};
use tower_service::Service;

use crate::OPERATION;
use crate::service_handler::{ClientAddress, fields_from};
pub(crate) use client::OnInterim;
use client::{Client, OriginRequest, ResponseBody};
use connection::Failure;
use dhttp::Url;
use dhttp::fields::copy;
use dhttp::handler::{Body, Response};
use health::Health;
use timeout_body::TimeoutBody;

/// An origin, as a service: see [`mod@crate::service_handler`].
#[derive(Clone, Debug)]
pub struct Origin {
    client: Arc<Client>,
    /// `host` or `host:port`.
    authority: String,
    /// This server's own name in `Via`.
    name: String,
    forwards_client_address: bool,
    timeout: Duration,
    health: Arc<Health>,
}

/// Body of a response, streamed as it arrives.
pub type OriginBody = http_body_util::combinators::UnsyncBoxBody<Bytes, OriginError>;

/// Timeout for the begin of a response, and for each pause within it.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Origin {
    /// Creates a proxy for the server at this address; its path is ignored. Call it inside a runtime, or enter one.
    ///
    /// # Errors
    /// If the kernel gives no random bytes.
    pub fn new(url: &Url) -> std::io::Result<Self> {
        let number = u32::from_be_bytes(dhttp::random::bytes()?);
        Ok(Self {
            client: Client::new(&url.host, url.port),
            authority: url.authority(),
            name: format!("roundtrip-{number:08x}"),
            forwards_client_address: false,
            timeout: TIMEOUT,
            health: Health::new(),
        })
    }

    /// Reports each client's address to the origin, in `Forwarded` and `X-Forwarded-For`. An unproven address is reported as
    /// unknown. Otherwise, an origin that grants rights by address would grant them to anyone who forges it in a datagram.
    #[must_use]
    pub fn reporting_clients(self) -> Self {
        Self { forwards_client_address: true, ..self }
    }

    /// Sets the timeout for the begin of a response, and for each pause within it; 30 seconds by default.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Returns a function that renders its state in Prometheus' text format.
    pub fn metrics(&self) -> impl Fn() -> String + Send + 'static + use<> {
        let health = Arc::clone(&self.health);
        move || health.metrics()
    }

    /// Returns this server's own name in `Via`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends it a request, unless it is down.
    pub(crate) async fn send_request(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<HttpResponse<OriginBody>, OriginError> {
        let Self { client, authority, name, forwards_client_address, timeout, health } = self;
        let request = rewritten(request, authority, name, *forwards_client_address).await?;
        if let Some(reason) = health.down() {
            return Err(OriginError::Down(reason));
        }
        match tokio::time::timeout(*timeout, client.send(&request)).await {
            Ok(Ok((head, body))) => {
                health.mark_up(authority);
                Ok(forwarded_response(&head, body, authority, name, *timeout))
            }
            Ok(Err(Failure::Connect(error))) => {
                let reason = format!("{authority} cannot be reached: {error}");
                self.log_failure(&reason, health.could_not_be_reached(&reason));
                Err(OriginError::Down(reason))
            }
            Ok(Err(Failure::Ended(reason) | Failure::Invalid(reason))) => {
                health.broke();
                tracing::warn!(origin = authority, reason, "no valid response from the origin");
                Err(OriginError::Broken(format!("{authority}: {reason}")))
            }
            Err(_) => {
                let reason = format!("{authority} has sent nothing for {} s", timeout.as_secs_f32());
                self.log_failure(&reason, health.record_timeout(&reason));
                Err(OriginError::Silent(reason))
            }
        }
    }

    /// Logs a failure; if the origin has just been marked down, starts the probes.
    fn log_failure(&self, reason: &str, was_marked_down: bool) {
        tracing::warn!(origin = self.authority, reason, "no response from the origin");
        if was_marked_down {
            if self.health.may_log() {
                let origin = &self.authority;
                tracing::warn!(target: OPERATION, origin, reason, "no requests to the origin until it responds to a probe");
            }
            let (client, authority) = (Arc::clone(&self.client), self.authority.clone());
            drop(tokio::spawn(health::probe(client, authority, Arc::downgrade(&self.health))));
        }
    }
}

/// Reason why there is no response from the origin.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// The request cannot be forwarded: a status, and the reason.
    #[error("{1}")]
    Refused(u16, String),
    /// It is unreachable, or was so a moment ago.
    #[error("{0}")]
    Down(String),
    /// It was reached, and sent no response in time.
    #[error("{0}")]
    Silent(String),
    /// Its response was invalid, or was cut short.
    #[error("{0}")]
    Broken(String),
}

impl OriginError {
    /// Returns the response to the client in place of the origin's.
    pub(crate) fn respond(&self) -> Response {
        match self {
            Self::Refused(status, sentence) => Response::text(*status, sentence),
            Self::Down(reason) => {
                let mut response = Response::text(503, &format!("503 Service Unavailable: {reason}"));
                let seconds = health::MAX_PAUSE.as_secs().to_string();
                copy(Arc::make_mut(&mut response.fields), b"Retry-After", seconds.as_bytes());
                response
            }
            Self::Silent(reason) => Response::text(504, &format!("504 Gateway Timeout: {reason}")),
            Self::Broken(reason) => Response::text(502, &format!("502 Bad Gateway: {reason}")),
        }
    }
}

impl Service<Request<Full<Bytes>>> for Origin {
    type Response = HttpResponse<OriginBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Another connection is opened if all are busy.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let origin = self.clone();
        Box::pin(async move {
            Ok(origin.send_request(request).await.unwrap_or_else(|error| own_response(error.respond())))
        })
    }
}

/// Returns the response as clients get it.
fn forwarded_response(
    head: &ResponseHead,
    body: ResponseBody,
    authority: &str,
    name: &str,
    timeout: Duration,
) -> HttpResponse<OriginBody> {
    let head = gateway::response(head, name);
    let mut response = HttpResponse::new(TimeoutBody::new(body, timeout, authority).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(head.status).unwrap_or_default();
    *response.headers_mut() = headers_from(&head.fields);
    // It names the origin's own ports, but clients know this proxy as the server (RFC 7838, section 2.1).
    response.headers_mut().remove(http::header::ALT_SVC);
    response
}

/// Returns the request as the origin gets it, or a refusal.
async fn rewritten(
    request: Request<Full<Bytes>>,
    authority: &str,
    name: &str,
    forwards_client_address: bool,
) -> Result<OriginRequest, OriginError> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_or_else(|never| match never {}, http_body_util::Collected::to_bytes);
    let path = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut fields = Fields::new();
    // The requested host, for origins that need it.
    let requested_host = head.headers.get("Host").and_then(|host| host.to_str().ok());
    for (name, value) in fields_from(&head.headers).iter() {
        // Forwarding fields are this proxy's to set: an origin that trusts them would otherwise trust any client.
        if !is_rewriting_field(name) {
            copy(&mut fields, name, value);
        }
    }
    if let Some(host) = requested_host {
        copy(&mut fields, b"X-Forwarded-Host", host.as_bytes());
    }
    if forwards_client_address {
        add_client_address(
            &mut fields,
            head.extensions.get::<ClientAddress>().and_then(|ClientAddress(client)| *client),
        );
    }
    let target = format!("http://{authority}{path}");
    let framing = Framing::Length(body.len() as u64);
    let method = Method::from_name(head.method.as_str());
    let plan =
        gateway::plan(&RequestHead { method, target, version: version(head.version), fields }, framing, name);
    let forward = match plan {
        Ok(Plan::Forward(forward)) => forward,
        Ok(Plan::Tunnel(..)) => return Err(OriginError::Refused(405, "405 Method Not Allowed".to_owned())),
        Ok(Plan::Own(_)) => return Err(OriginError::Refused(200, "OPTIONS ends here".to_owned())),
        Err(refusal) => return Err(OriginError::Refused(refusal.status, refusal.sentence)),
    };
    let mut fields = Fields::new();
    for (name, value) in forward.head.fields.iter() {
        // The body is complete: 100 Continue is unnecessary.
        if !name.eq_ignore_ascii_case(b"Expect") {
            copy(&mut fields, name, value);
        }
    }
    let has_length = ["POST", "PUT", "PATCH"].contains(&forward.head.method.name()) || !body.is_empty();
    if has_length && fields.get("Content-Length").is_none() {
        // The body came in chunks, or is empty (RFC 9110, section 8.6).
        copy(&mut fields, b"Content-Length", body.len().to_string().as_bytes());
    }
    let on_interim = head.extensions.get::<OnInterim>().cloned();
    Ok(OriginRequest { head: RequestHead { fields, ..forward.head }, body, on_interim })
}

/// Adds the client's address, if proved (`Forwarded`, RFC 7239, section 5.2; and the older `X-Forwarded-For`).
fn add_client_address(fields: &mut Fields, client: Option<IpAddr>) {
    let node = match client {
        Some(IpAddr::V4(address)) => format!("for={address}"),
        Some(IpAddr::V6(address)) => format!("for=\"[{address}]\""),
        None => "for=unknown".to_owned(),
    };
    copy(fields, b"Forwarded", node.as_bytes());
    if let Some(client) = client {
        copy(fields, b"X-Forwarded-For", client.to_string().as_bytes());
    }
}

/// Converts a response of this proxy's own.
fn own_response(reply: Response) -> HttpResponse<OriginBody> {
    let Response { status, fields, body } = reply;
    let body = match body {
        Body::Whole(bytes) => Bytes::copy_from_slice(&bytes),
        Body::File { file: _, offset: _, length: _ } | Body::Described(_) => Bytes::new(),
    };
    let mut response = HttpResponse::new(Full::new(body).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    *response.headers_mut() = headers_from(&fields);
    response
}

fn version(version: http::Version) -> Version {
    if version == http::Version::HTTP_10 { Version::Http10 } else { Version::Http11 }
}

fn headers_from(fields: &Fields) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields.iter() {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
}
