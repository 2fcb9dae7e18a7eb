//! Service of a page: the origins, what they serve, and when.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fetch::serving::{HeadSizes, ResponseTraits, ServerProtocols};
use http1::message::RequestHead;
use http1::server::{Response, ServerConfig};
use http1::site::Site;
use wire::Duration;

use super::dhttp_endpoint::DhttpServer;
use crate::profile::Profile;

/// Settings of a server.
#[derive(Debug)]
pub struct Service {
    /// The page's hosts, in order. The first speaks DHTTP, if any does.
    pub origins: Vec<ServedOrigin>,
    /// The site, which all of them serve.
    pub site: Site,
    /// Traits of responses, by the request's target.
    pub traits: BTreeMap<String, ResponseTraits>,
    /// Processing time, from the last byte of a request to the first of its response.
    pub processing: Duration,
    /// Treatment of connections.
    pub config: ServerConfig,
    /// Pinned socket settings.
    pub profile: Profile,
    /// DHTTP settings, if it speaks DHTTP.
    pub dhttp: Option<DhttpServer>,
}

/// A host of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedOrigin {
    /// Listening address.
    pub address: SocketAddr,
    /// Protocols of its connections.
    pub protocols: ServerProtocols,
}

impl Service {
    /// The response to a request, with a header section of its size.
    pub(super) fn respond(&self, request: &RequestHead, is_http2: bool) -> Response {
        let mut response = self.site.respond(request);
        let own = self.traits.get(&request.target).and_then(|traits| traits.head);
        HeadSizes::default().pad(own, is_http2, request, &mut response);
        response
    }

    /// Time from a request to the first byte of its response.
    pub(super) fn processing(&self, target: Option<&str>) -> Duration {
        let traits = target.and_then(|target| self.traits.get(target));
        self.processing + traits.map_or(Duration::ZERO, |traits| traits.delay)
    }
}
