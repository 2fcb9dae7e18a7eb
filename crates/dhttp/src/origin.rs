//! Another HTTP server as what answers: DHTTP in front of whatever there is (`roundtrip serve --origin`).
//!
//! Requests flow in, are written anew as a gateway does ([`proto::gateway`]), and go to the origin on connections that are
//! kept; hyper keeps them. It keeps no answers: that is for a cache.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use proto::gateway::{self, Plan};
use proto::http::{Fields, Framing, Method, RequestHead, ResponseHead, Version};
use tower_service::Service;

use crate::Url;
use crate::fields::copy;
use crate::hosted::ClientAddress;

/// An origin, as a service: see [`mod@crate::hosted`].
#[derive(Clone, Debug)]
pub struct Origin {
    client: Client<HttpConnector, Full<Bytes>>,
    /// `host` or `host:port`.
    authority: String,
    /// This server's own in `Via`.
    name: String,
    tells_clients: bool,
}

/// An answer's body as it comes.
pub type OriginBody = http_body_util::combinators::UnsyncBoxBody<Bytes, OriginError>;

/// The origin must be reached within this time.
const CONNECT: Duration = Duration::from_secs(5);
/// And begin to answer within this.
const PATIENCE: Duration = Duration::from_secs(30);

impl Origin {
    /// The server at this address; its path does not count. Call it inside a runtime, or enter one.
    ///
    /// # Errors
    /// If the kernel gives no random bytes.
    pub fn new(url: &Url) -> std::io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_nodelay(true);
        let mut builder = Client::builder(TokioExecutor::new());
        // Less than servers are used to keep them, so that both seldom meet in closing.
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(Duration::from_secs(4));
        let number = u32::from_be_bytes(crate::random::bytes()?);
        Ok(Self {
            client: builder.build(connector),
            authority: url.authority(),
            name: format!("roundtrip-{number:08x}"),
            tells_clients: false,
        })
    }
}

impl Origin {
    /// The same, which tells the origin where each client is, in `Forwarded` and `X-Forwarded-For`. Of one that has not
    /// proved it, it says that it is unknown: an origin that lets some addresses do more would let everybody who writes
    /// them on a datagram.
    #[must_use]
    pub fn telling_clients(self) -> Self {
        Self { tells_clients: true, ..self }
    }
}

/// Why an origin gave no answer.
#[derive(Debug)]
pub enum OriginError {
    /// It could not be asked, or its answer broke off.
    Broken(String),
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl Error for OriginError {}

impl Service<Request<Full<Bytes>>> for Origin {
    type Response = Response<OriginBody>;
    type Error = OriginError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, OriginError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), OriginError>> {
        // hyper opens another connection if all are busy.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let Self { client, authority, name, tells_clients } = self.clone();
        Box::pin(async move {
            let request = match rewritten(request, &authority, &name, tells_clients) {
                Ok(request) => request,
                Err((status, sentence)) => return Ok(own(status, sentence)),
            };
            let asked = tokio::time::timeout(PATIENCE, client.request(request)).await;
            let response = match asked {
                Ok(response) => response.map_err(|error| broken(&authority, &error))?,
                Err(_) => {
                    tracing::warn!(
                        origin = authority,
                        seconds = PATIENCE.as_secs(),
                        "the origin says nothing"
                    );
                    return Ok(own(504, format!("504 Gateway Timeout: {authority} says nothing")));
                }
            };
            let (head, body) = response.into_parts();
            let fields = fields_from(&head.headers);
            let head = ResponseHead { version: version(head.version), status: head.status.as_u16(), fields };
            let head = gateway::response(&head, &name);
            let mut answer =
                Response::new(body.map_err(move |error| broken(&authority, &error)).boxed_unsync());
            *answer.status_mut() = http::StatusCode::from_u16(head.status).unwrap_or_default();
            *answer.headers_mut() = headers_from(&head.fields);
            // It is about the origin's own ports, and clients know us as the server (RFC 7838, section 2.1).
            answer.headers_mut().remove(http::header::ALT_SVC);
            Ok(answer)
        })
    }
}

/// The request as the origin gets it, or a refusal.
fn rewritten(
    request: Request<Full<Bytes>>,
    authority: &str,
    name: &str,
    tells_clients: bool,
) -> Result<Request<Full<Bytes>>, (u16, String)> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut fields = Fields::new();
    // Whom the client asked, for an origin that must know.
    let asked_of = head.headers.get("Host").and_then(|host| host.to_str().ok());
    for (name, value) in fields_from(&head.headers).iter() {
        // Whom it was asked for by whom is for us to say: an origin that believes it would believe anybody.
        if !BY_US.iter().any(|by_us| name.eq_ignore_ascii_case(by_us.as_bytes())) {
            copy(&mut fields, name, value);
        }
    }
    if let Some(host) = asked_of {
        copy(&mut fields, b"X-Forwarded-Host", host.as_bytes());
    }
    if tells_clients {
        tell(&mut fields, head.extensions.get::<ClientAddress>().and_then(|ClientAddress(client)| *client));
    }
    let target = format!("http://{authority}{path}");
    let length = http_body::Body::size_hint(&body).exact().unwrap_or(0);
    let framing = Framing::Length(length);
    let method = Method::from_name(head.method.as_str());
    let plan =
        gateway::plan(&RequestHead { method, target, version: version(head.version), fields }, framing, name);
    let forward = match plan {
        Ok(Plan::Forward(forward)) => forward,
        Ok(Plan::Tunnel(..)) => return Err((405, "405 Method Not Allowed".to_owned())),
        Ok(Plan::Own(_)) => return Err((200, String::new())),
        Err(refusal) => return Err((refusal.status, refusal.sentence)),
    };
    let uri: Uri = format!("http://{}{}", forward.authority, forward.head.target)
        .parse()
        .map_err(|_| (400, "400 Bad Request".to_owned()))?;
    let mut request = Request::new(body);
    *request.method_mut() =
        forward.head.method.name().parse().map_err(|_| (400, "400 Bad Request".to_owned()))?;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers_from(&forward.head.fields);
    Ok(request)
}

/// What an origin is told of who asks, by this server alone.
const BY_US: [&str; 5] =
    ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP"];

/// Says where the client is, if it has proved that (RFC 7239, section 5.2, and as everybody did before).
fn tell(fields: &mut Fields, client: Option<IpAddr>) {
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

fn own(status: u16, sentence: String) -> Response<OriginBody> {
    let body = Full::new(Bytes::from(sentence)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response
}

fn broken(authority: &str, error: &dyn Error) -> OriginError {
    // hyper says the cause only one level down.
    let why = error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    tracing::warn!(origin = authority, why, "no answer of the origin, or half of one");
    OriginError::Broken(format!("{authority}: {why}"))
}

fn version(version: http::Version) -> Version {
    if version == http::Version::HTTP_10 { Version::Http10 } else { Version::Http11 }
}

pub(crate) fn fields_from(headers: &HeaderMap) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in headers {
        copy(&mut fields, name.as_str().as_bytes(), value.as_bytes());
    }
    fields
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
