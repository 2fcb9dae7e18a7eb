//! Upstream of a cache, for responses that it lacks.
//!
//! Storing the responses is the cache's.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use http1::gateway;
use http1::message::{Fields, Method, RequestHead, ResponseHead, Version};

use crate::Origin;
use crate::origin::{OnInterim, OriginError};
use crate::service_handler::CollectedBody;
use crate::service_handler::fields_from;
use dhttp::deferred::Interims;
use dhttp::fields::copy;
use dhttp::handler::{Body, Response};

/// Upstream of a cache.
pub trait Upstream: Send + Sync + 'static {
    /// Returns the whole response to a request; an intercepted one is sent to the server to which it was addressed. The error
    /// is a sentence. No body is longer than `max` bytes. Interim responses go to `interims`.
    fn send_request(
        &self,
        to: Option<SocketAddr>,
        head: RequestHead,
        body: Vec<u8>,
        max: u64,
        interims: Option<Interims>,
    ) -> impl Future<Output = Result<UpstreamResponse, UpstreamFailure>> + Send;
}

/// Response to clients when there is none from the upstream, and no stored one replaces it.
#[derive(Clone, Debug)]
pub struct UpstreamFailure(pub Response);

impl From<String> for UpstreamFailure {
    /// Error of the next server, in a sentence.
    fn from(reason: String) -> Self {
        Self(Response::text(502, &format!("502 Bad Gateway: {reason}")))
    }
}

/// A response of the upstream.
#[derive(Clone, Debug)]
pub struct UpstreamResponse {
    /// Header section, as forwarded by a gateway: without hop-by-hop fields, and with a line in `Via`.
    pub head: ResponseHead,
    /// Its body.
    pub body: Body,
    /// Trailers, for callers that use them; they are not stored (RFC 9111, section 3).
    pub trailers: Fields,
}

impl UpstreamResponse {
    /// Refusal of a request that is not forwarded: an ordinary response, and no failure of a server.
    fn refusal(status: u16, sentence: &str) -> Self {
        let Response { status, fields, body } = Response::text(status, sentence);
        let fields = Arc::unwrap_or_clone(fields);
        Self {
            head: ResponseHead { version: Version::Http11, status, fields },
            body,
            trailers: Fields::new(),
        }
    }
}

impl Upstream for Origin {
    async fn send_request(
        &self,
        _to: Option<SocketAddr>,
        head: RequestHead,
        body: Vec<u8>,
        max: u64,
        interims: Option<Interims>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        let mut builder = http::Request::builder().method(head.method.name()).uri(&head.target);
        for (name, value) in head.fields.iter() {
            // The host is this cache's to determine: a client's claim is not part of the key.
            if !name.eq_ignore_ascii_case(b"X-Forwarded-Host") {
                builder = builder.header(name, value);
            }
        }
        let mut request = builder.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
        if let Some(interims) = interims {
            let name = self.name().to_owned();
            let on_interim = move |head: &ResponseHead| {
                interims.send(head.status, gateway::response(head, &name).fields);
            };
            request.extensions_mut().insert(OnInterim(Arc::new(on_interim)));
        }
        let (parts, body) = match Self::send_request(self, request).await {
            Ok(response) => response.into_parts(),
            Err(OriginError::Refused(status, sentence)) => {
                return Ok(UpstreamResponse::refusal(status, &sentence));
            }
            Err(error) => return Err(UpstreamFailure(error.respond())),
        };
        let mut fields = Fields::new();
        for (name, value) in fields_from(&parts.headers).iter() {
            copy(&mut fields, name, value);
        }
        let described = (head.method == Method::Head).then(|| {
            fields.get("Content-Length").and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        });
        let (body, trailers) = match described {
            Some(length) => (Body::Described(length), Fields::new()),
            None => {
                let mut collected = CollectedBody::of(body, max).await.map_err(|error| error.to_string())?;
                let trailers = gateway::trailers(&collected.take_trailers());
                (collected.into_body().map_err(|error| error.to_string())?, trailers)
            }
        };
        let version = Version::Http11;
        Ok(UpstreamResponse {
            head: ResponseHead { version, status: parts.status.as_u16(), fields },
            body,
            trailers,
        })
    }
}
