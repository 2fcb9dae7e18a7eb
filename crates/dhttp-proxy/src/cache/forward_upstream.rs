//! Upstream of an intercepting cache: the servers to which the requests were addressed. It uses DHTTP, and HTTP where a server
//! does not respond to that (`papers/dhttp#section-iv-a`).
//!
//! Its requests have this host's own source address. Interception is done by rules, and by the server's sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use http1::gateway::{self, Plan};
use http1::message::{Fields, Framing, Method, RequestHead};

use super::upstream::{Upstream, UpstreamFailure, UpstreamResponse};
use dhttp::client::{Event, KnownServers, Observer};
use dhttp::deferred::Interims;
use dhttp::handler::Body;
use dhttp::{Client, ClientConfig, random};

/// Upstream that forwards to the requested server. Its clones share their ports.
#[derive(Clone)]
pub struct ForwardUpstream {
    client: Arc<Client>,
    /// This cache's own name in `Via`.
    name: Arc<str>,
}

impl ForwardUpstream {
    /// Binds its ports. `known` has the tokens of an earlier run; `watch` observes what is sent and received.
    ///
    /// # Errors
    /// The system's error for a socket.
    pub fn start(
        config: ClientConfig,
        known: KnownServers,
        watch: Option<Observer>,
    ) -> std::io::Result<Self> {
        let number = u32::from_be_bytes(random::bytes()?);
        let client = Arc::new(Client::start(config, known, watch)?);
        Ok(Self { client, name: format!("roundtrip-{number:08x}").into() })
    }

    /// Returns the servers that are known to speak DHTTP by now, and their tokens.
    pub fn known(&self) -> KnownServers {
        self.client.known()
    }
}

impl Upstream for ForwardUpstream {
    async fn send_request(
        &self,
        to: Option<SocketAddr>,
        head: RequestHead,
        _body: Vec<u8>,
        max: u64,
        _interims: Option<Interims>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        Ok(self.fetch(to, head, max).await?)
    }
}

impl ForwardUpstream {
    /// Sends a request; errors are sentences.
    async fn fetch(
        &self,
        to: Option<SocketAddr>,
        head: RequestHead,
        max: u64,
    ) -> Result<UpstreamResponse, String> {
        let Some(to) = to else {
            return Err("this is an intercepting cache; send requests to the origin servers".to_owned());
        };
        let host =
            head.fields.get("Host").and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
        let target = format!("http://{host}{}", head.target);
        let whole = RequestHead { target, ..head };
        let forward = match gateway::plan(&whole, Framing::Length(0), &self.name) {
            Ok(Plan::Forward(forward)) => forward,
            Ok(Plan::Tunnel(..) | Plan::Own(_)) => return Err("this request cannot be forwarded".to_owned()),
            Err(refusal) => return Err(refusal.sentence),
        };
        let is_head = forward.head.method == Method::Head;
        let mut exchange = self.client.request_at(to, forward.head).map_err(|error| error.to_string())?;
        let (mut head, mut body) = (None, Vec::new());
        while let Some(event) = exchange.wait().await {
            match event {
                Event::Head(_, found) => head = Some(found),
                Event::Body(part) if (body.len() + part.len()) as u64 > max => {
                    return Err(format!("{to}: the response is longer than {max} bytes"));
                }
                Event::Body(part) => body.extend_from_slice(&part),
                Event::End => {}
                Event::Failed(reason) => return Err(reason),
            }
        }
        let head = head.ok_or("the cache is being stopped")?;
        let digits = head.fields.get("Content-Length").and_then(|digits| std::str::from_utf8(digits).ok());
        let length = digits.and_then(|digits| digits.parse().ok());
        let body = if is_head { Body::Described(length) } else { Body::Whole(body.into()) };
        // No trailers: a DHTTP datagram carries only the response.
        Ok(UpstreamResponse { head: gateway::response(&head, &self.name), body, trailers: Fields::new() })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use http1::message::Version;

    use super::*;

    #[test]
    fn a_fetch_stops_when_its_budget_is_spent() {
        /// More than the sockets' buffers hold; an endless response would exceed it in a second.
        const MAX_SENT: usize = 64 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let sender = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4_096]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").unwrap();
            let mut sent = 0;
            while sent < MAX_SENT && stream.write_all(&[b'x'; 65_536]).is_ok() {
                sent += 65_536;
            }
            sent
        });
        let client = ClientConfig { reaches_private: true, ..ClientConfig::internet() };
        let upstream = ForwardUpstream::start(client, KnownServers::default(), None).unwrap();
        let mut fields = Fields::new();
        fields.push("Host", &server.to_string()).unwrap();
        let head = RequestHead {
            method: Method::Get,
            target: "/endless".to_owned(),
            version: Version::Http11,
            fields,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let fetched = runtime.block_on(upstream.send_request(Some(server), head, Vec::new(), 1_000, None));
        let UpstreamFailure(response) = fetched.unwrap_err();
        assert_eq!(response.status, 502);
        let sent = sender.join().unwrap();
        assert!(sent < MAX_SENT, "the connection is closed, not read: {sent} bytes");
    }
}
