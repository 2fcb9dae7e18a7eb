//! Whom a cache asks for what it lacks.
//!
//! Not what becomes of the answers.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use proto::http::{RequestHead, ResponseHead};
use tower_service::Service;

use crate::Origin;
use crate::fields::copy;
use crate::handler::Body;
use crate::hosted::Collected;
use crate::origin::fields_from;

/// Whom it asks.
pub trait Upstream: Send + Sync + 'static {
    /// The answer to a request, whole, of the server that it was on its way to, if it was taken on its way; or why there is none, in a sentence. No body is longer than `most` bytes.
    fn ask(
        &self,
        to: Option<SocketAddr>,
        head: RequestHead,
        body: Vec<u8>,
        most: u64,
    ) -> impl Future<Output = Result<Fetched, String>> + Send;
}

/// An answer that has come.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// As a gateway passes it on: without what was for one hop, and with a line in `Via`.
    pub head: ResponseHead,
    /// Its body.
    pub body: Body,
}

impl Upstream for Origin {
    async fn ask(
        &self,
        _to: Option<SocketAddr>,
        head: RequestHead,
        body: Vec<u8>,
        most: u64,
    ) -> Result<Fetched, String> {
        let mut origin = self.clone();
        let mut builder = http::Request::builder().method(head.method.name()).uri(&head.target);
        for (name, value) in head.fields.iter() {
            // Which host was asked for is for us to say: nobody else's word is part of the key.
            if !name.eq_ignore_ascii_case(b"X-Forwarded-Host") {
                builder = builder.header(name, value);
            }
        }
        let request = builder.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
        poll_fn(|context| origin.poll_ready(context)).await.map_err(|error| error.to_string())?;
        let (parts, body) = origin.call(request).await.map_err(|error| error.to_string())?.into_parts();
        let mut fields = proto::http::Fields::new();
        for (name, value) in fields_from(&parts.headers).iter() {
            copy(&mut fields, name, value);
        }
        let described = (head.method == proto::http::Method::Head).then(|| {
            fields.get("Content-Length").and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        });
        let body = match described {
            Some(length) => Body::Described(length),
            None => Collected::of(body, most).await.map_err(|error| error.to_string())?.into_body(),
        };
        let version = proto::http::Version::Http11;
        Ok(Fetched { head: ResponseHead { version, status: parts.status.as_u16(), fields }, body })
    }
}
