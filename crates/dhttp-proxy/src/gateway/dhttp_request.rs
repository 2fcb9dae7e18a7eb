//! A request by DHTTP, and whether a server is known to speak it.

use std::sync::Arc;

use http1::gateway::Forward;
use http1::message::Fields;

use super::Shared;
use dhttp::client::Exchange;
use dhttp::fields::copy;
use dhttp::{Client, Url};

/// A request in progress by DHTTP.
pub(super) struct DhttpRequest {
    /// The client, held as long as a response to it is awaited.
    _client: Arc<Client>,
    pub(super) exchange: Exchange,
}

/// Sentence for a request that the shutdown interrupts.
pub(super) const STOPPING: &str = "the gateway is being stopped";

impl DhttpRequest {
    /// # Errors
    /// The reason why it cannot be sent, as a sentence.
    pub(super) fn send(client: Arc<Client>, forward: &Forward) -> Result<Self, String> {
        let mut fields = Fields::new();
        // The URL names the host.
        for (name, value) in
            forward.head.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(b"Host"))
        {
            copy(&mut fields, name, value);
        }
        let exchange = client.request(forward.head.method.clone(), &url(forward), &fields);
        Ok(Self { exchange: exchange.map_err(|error| error.to_string())?, _client: client })
    }
}

/// Returns the client for a request that is sent by DHTTP.
pub(super) fn dhttp_client(shared: &Shared, forward: &Forward) -> Option<Arc<Client>> {
    let client = Some(shared.client()).filter(|_| forward.is_for_dhttp())?;
    client.speaks_dhttp(&url(forward)).then_some(client)
}

fn url(forward: &Forward) -> Url {
    let Forward { host, port, authority: _, head, framing: _ } = forward;
    Url { is_dhttp: false, is_by_tcp: false, host: host.clone(), port: *port, target: head.target.clone() }
}
