//! Configuration of a run's connections, with each user's own part: session tickets, and for HTTP/3 a port.
//!
//! Connections are run by `connection_task`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::uri::Scheme;
use http::{HeaderValue, Request, Uri};
use quinn::Endpoint;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::runtime::Runtime;
use wire::Duration;

use super::connection_task::{ConnectionTask, Site, StreamRequest};
use super::{http2, http3};
use crate::config::{Config, Protocol, Target};
use crate::job::Requests;
use crate::record::FailureReason;
use crate::tls::{TrustError, with_own_tickets};

/// Configuration that all connections of a run share.
#[derive(Clone, Debug)]
pub(crate) struct StreamsConfig {
    pub(crate) site: Arc<Site>,
    carrier: Carrier,
    /// Maximum number of concurrent connections of each user.
    pub(crate) connections: usize,
    /// Idle timeout of connections.
    pub(crate) idle_timeout: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Carrier {
    Http2(SocketAddr, Option<(ClientConfig, ServerName<'static>)>),
    Http3 { address: SocketAddr, name: String, tls: ClientConfig, has_early: bool },
}

impl StreamsConfig {
    /// The configuration; `None` if the protocol has no streams.
    pub(crate) fn new(
        target: &Target,
        config: &Config,
        unchanged_since: &str,
        requests: &Requests<'_>,
    ) -> Result<Option<Self>, TrustError> {
        let Target { address, host, directory, security } = target;
        let secure = |protocol| match security {
            Some(security) => Ok(Some((security.client(protocol)?, security.server()?))),
            None => Ok(None),
        };
        let carrier = match config.protocol {
            Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined | Protocol::Dhttp => {
                return Ok(None);
            }
            Protocol::Http2 => Carrier::Http2(*address, secure(http2::NAME)?),
            Protocol::Http3 => {
                let (tls, name) = secure(http3::NAME)?.ok_or(TrustError::Nothing)?;
                let name = name.to_str().into_owned();
                Carrier::Http3 { address: *address, name, tls, has_early: config.has_early }
            }
        };
        let uri: Uri = host.parse().map_err(|_| TrustError::Name(host.clone()))?;
        let site = Site {
            scheme: if security.is_some() { Scheme::HTTPS } else { Scheme::HTTP },
            authority: uri.into_parts().authority.ok_or_else(|| TrustError::Name(host.clone()))?,
            directory: directory.clone(),
            unchanged_since: HeaderValue::from_str(unchanged_since).expect("a date is a field's value"),
            list: match requests {
                Requests::Site(_) => None,
                Requests::List(list, _) => Some(Arc::clone(list)),
            },
            timeout: std::time::Duration::from_nanos(config.timeout.as_nanos()),
        };
        let (site, connections, idle_timeout) = (Arc::new(site), config.connections, config.idle_timeout);
        Ok(Some(Self { site, carrier, connections, idle_timeout }))
    }

    /// The first request of the job.
    pub(crate) fn first(&self) -> Request<bytes::Bytes> {
        self.site.request(StreamRequest { number: 0, request: 0, is_conditional: false })
    }

    /// A user's own configuration.
    pub(crate) fn own(&self) -> UserStreamsConfig {
        match &self.carrier {
            Carrier::Http2(address, tls) => {
                let tls = tls.as_ref().map(|(tls, name)| (Arc::new(with_own_tickets(tls)), name.clone()));
                UserStreamsConfig::Http2(*address, tls)
            }
            Carrier::Http3 { address, name, tls, has_early } => {
                let tls = with_own_tickets(tls);
                UserStreamsConfig::Http3(Box::new(Quic {
                    address: *address,
                    name: name.clone(),
                    config: http3::config(tls.clone(), *has_early),
                    without_early_data: http3::config(tls, false),
                    endpoint: None,
                }))
            }
        }
    }
}

/// Configuration of one user's connections.
#[derive(Debug)]
pub(crate) enum UserStreamsConfig {
    /// HTTP/2, with TLS if there is a configuration for it.
    Http2(SocketAddr, Option<(Arc<ClientConfig>, ServerName<'static>)>),
    /// HTTP/3.
    Http3(Box<Quic>),
}

/// A user's QUIC configuration.
#[derive(Debug)]
pub(crate) struct Quic {
    pub(crate) address: SocketAddr,
    pub(crate) name: String,
    pub(crate) config: quinn::ClientConfig,
    /// The same without early data: for requests whose early data was rejected.
    without_early_data: quinn::ClientConfig,
    endpoint: Option<Endpoint>,
}

impl UserStreamsConfig {
    /// Opens a connection, with this state of its task.
    pub(crate) fn begin(&mut self, task: ConnectionTask, runtime: &Runtime, may_early: bool) {
        match self {
            Self::Http2(address, tls) => {
                let (address, tls) = (*address, tls.clone());
                runtime.spawn(task.serve(async move {
                    http2::open(address, tls).await.map_err(|failed| http2::failure_reason(&failed))
                }));
            }
            Self::Http3(quic) => {
                let _inside = runtime.enter();
                let endpoint = quic.endpoint();
                let config = if may_early { quic.config.clone() } else { quic.without_early_data.clone() };
                let (address, name) = (quic.address, quic.name.clone());
                runtime.spawn(task.serve(async move {
                    let endpoint = endpoint.map_err(|_| FailureReason::Exhausted)?;
                    let opened = http3::open(endpoint, config, address, &name).await;
                    opened.map_err(|failed| http3::failure_reason(&failed))
                }));
            }
        }
    }
}

impl Quic {
    /// The user's UDP port; to be called inside the runtime.
    pub(crate) fn endpoint(&mut self) -> io::Result<Endpoint> {
        if self.endpoint.is_none() {
            self.endpoint = Some(http3::endpoint(self.address)?);
        }
        self.endpoint.clone().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
