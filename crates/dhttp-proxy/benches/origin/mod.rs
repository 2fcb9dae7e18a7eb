//! In-process upstream that sends the same response to every request, so that benchmarks measure the cache alone.

use std::net::SocketAddr;

use dhttp::{Body, Interims};
use http1::message::{Fields, RequestHead, ResponseHead, Version};
use roundtrip_dhttp_proxy::cache::Upstream;
use roundtrip_dhttp_proxy::cache::upstream::{UpstreamFailure, UpstreamResponse};

/// Origin whose responses have these fields, and a body.
pub(crate) struct Origin {
    pub(crate) lines: &'static [(&'static str, &'static str)],
    pub(crate) body: Vec<u8>,
}

impl Upstream for Origin {
    async fn send_request(
        &self,
        _to: Option<SocketAddr>,
        _head: RequestHead,
        _body: Vec<u8>,
        _most: u64,
        _interims: Option<Interims>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        let head = ResponseHead { version: Version::Http11, status: 200, fields: fields(self.lines) };
        Ok(UpstreamResponse { head, body: Body::Whole(self.body.as_slice().into()), trailers: Fields::new() })
    }
}

/// Returns these lines as fields.
pub(crate) fn fields(lines: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in lines {
        fields.push(name, value).expect("a field");
    }
    fields
}
