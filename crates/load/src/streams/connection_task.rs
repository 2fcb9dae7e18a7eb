//! A connection's task: orders come in, requests run concurrently, and each is reported once.
//!
//! It is independent of the protocol: the code that opens connections and sends requests is passed in.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, IF_MODIFIED_SINCE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Uri};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use crate::gauge::GaugeGuard;
use crate::record::{Channel, FailureReason};

/// Configuration that all connections of a thread share.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
    pub(crate) directory: String,
    pub(crate) unchanged_since: HeaderValue,
    /// The requests of a list; `None`: the files of a site below the directory.
    pub(crate) list: Option<Arc<[crate::requests::Request]>>,
    /// Timeout of a request.
    pub(crate) timeout: std::time::Duration,
}

/// A request to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRequest {
    /// Number that identifies its report.
    pub(crate) number: u64,
    /// Index of the request in the job.
    pub(crate) request: u32,
    pub(crate) is_conditional: bool,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamOutcome {
    /// A response with this status and number of bytes.
    Response(u16, u64, Channel),
    /// The connection ended before a response; whether one had begun.
    Broken(bool),
    /// The server reports that it did not process the request.
    Unseen,
    /// An invalid response, none before the timeout, or no connection.
    Failed(FailureReason),
}

/// Report of a connection to its user.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
    /// Outcome of the request with this number.
    Finished(u64, StreamOutcome),
    /// The connection with this number takes no more requests.
    Closed(u64),
}

/// Sender of reports for a user's connections.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    user: u32,
    to: UnboundedSender<(u32, Report)>,
}

impl Reporter {
    pub(crate) fn new(user: u32, to: UnboundedSender<(u32, Report)>) -> Self {
        Self { user, to }
    }

    pub(crate) fn send_report(&self, report: Report) {
        // The receiver is gone when the run is over.
        let _ = self.to.send((self.user, report));
    }
}

/// Sender of requests on an open connection, many concurrently.
pub(crate) trait Fetch: Clone + Send + 'static {
    /// Sends a request and receives its response.
    fn fetch(self, request: Request<Bytes>) -> impl Future<Output = StreamOutcome> + Send;
}

/// Task that drives a connection until it has ended.
pub(crate) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// State of a connection's task.
#[derive(Debug)]
pub(crate) struct ConnectionTask {
    /// The connection's number.
    pub(crate) number: u64,
    pub(crate) site: Arc<Site>,
    /// Orders; their user closes the channel when there are no more.
    pub(crate) orders: UnboundedReceiver<StreamRequest>,
    pub(crate) reporter: Reporter,
    /// Counts the connection while it takes requests.
    pub(crate) open: GaugeGuard,
}

impl ConnectionTask {
    /// Opens a connection and executes orders. `opened` yields the sender of requests, and the driver of the connection.
    pub(crate) async fn serve<F: Fetch>(
        self,
        opened: impl Future<Output = Result<(F, Driver), FailureReason>>,
    ) {
        let Self { number, site, mut orders, reporter, open } = self;
        let opened = timeout(site.timeout, opened).await.unwrap_or(Err(FailureReason::Timeout));
        let (fetch, mut driver) = match opened {
            Ok(opened) => opened,
            Err(reason) => return reject(number, orders, &reporter, StreamOutcome::Failed(reason)),
        };
        loop {
            let next = poll_fn(|context| match driver.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(NextOrder::End),
                Poll::Pending => {
                    orders.poll_recv(context).map(|order| order.map_or(NextOrder::NoMore, NextOrder::Order))
                }
            });
            match next.await {
                NextOrder::End => return reject(number, orders, &reporter, StreamOutcome::Broken(false)),
                NextOrder::NoMore => break,
                NextOrder::Order(order) => {
                    let (fetch, site, reporter) = (fetch.clone(), Arc::clone(&site), reporter.clone());
                    tokio::spawn(async move {
                        let outcome = timeout(site.timeout, fetch.fetch(site.request(order))).await;
                        reporter.send_report(Report::Finished(
                            order.number,
                            outcome.unwrap_or(StreamOutcome::Failed(FailureReason::Timeout)),
                        ));
                    });
                }
            }
        }
        drop((fetch, open));
        // Requests in flight may finish, and the peer gets a graceful close.
        let _ = timeout(site.timeout, driver).await;
    }
}

enum NextOrder {
    Order(StreamRequest),
    NoMore,
    End,
}

/// Rejects waiting and later requests with this outcome.
fn reject(
    line: u64,
    mut orders: UnboundedReceiver<StreamRequest>,
    reporter: &Reporter,
    outcome: StreamOutcome,
) {
    orders.close();
    reporter.send_report(Report::Closed(line));
    while let Ok(order) = orders.try_recv() {
        reporter.send_report(Report::Finished(order.number, outcome));
    }
}

impl Site {
    pub(crate) fn request(&self, order: StreamRequest) -> Request<Bytes> {
        let StreamRequest { number: _, request: number, is_conditional } = order;
        if let Some(listed) = self.list.as_ref().and_then(|list| list.get(number as usize)) {
            return self.listed(listed);
        }
        let path = format!("{}{}", self.directory, workload::plan::path(number));
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.uri(path, self.authority.clone());
        if is_conditional {
            request.headers_mut().insert(IF_MODIFIED_SINCE, self.unchanged_since.clone());
        }
        request
    }

    /// A request of the list: its parts were validated before.
    fn listed(&self, listed: &crate::requests::Request) -> Request<Bytes> {
        let authority = listed.host.as_ref().and_then(|host| host.parse().ok());
        let mut request = Request::new(listed.body.clone());
        *request.uri_mut() =
            self.uri(listed.target.clone(), authority.unwrap_or_else(|| self.authority.clone()));
        *request.method_mut() = Method::from_bytes(listed.method.name().as_bytes()).unwrap_or_default();
        let headers = request.headers_mut();
        for (name, value) in listed.fields.iter() {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                headers.append(name, value);
            }
        }
        if let Some(length) = listed.content_length() {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        request
    }

    fn uri(&self, path: String, authority: Authority) -> Uri {
        let path = PathAndQuery::from_maybe_shared(Bytes::from(path));
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(authority)
            .path_and_query(path.expect("paths are checked before the run"));
        uri.build().expect("it has all its parts")
    }
}
