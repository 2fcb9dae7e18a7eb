//! A user's connections of HTTP/2 or HTTP/3: assignment of requests to them, and outcomes.
//!
//! In flow requests from [`crate::user`], and reports from the connections' tasks; out flow finished requests. Read in
//! this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`connection_task`] | a connection's task: orders and reports |
//! | [`streams_config`] | configuration of connections |
//! | [`http2`], [`http3`] | opening connections and sending requests, in each |
//! | [`reactor`] | the thread's runtime, which runs all tasks |
//!
//! The protocols are h2's, h3's and quinn's.

pub(crate) mod connection_task;
pub(crate) mod http2;
pub(crate) mod http3;
pub(crate) mod reactor;
pub(crate) mod streams_config;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use wire::{Duration, Time};

use self::connection_task::{ConnectionTask, Report, Site, StreamOutcome, StreamRequest};
use self::reactor::Reactor;
use self::streams_config::{StreamsConfig, UserStreamsConfig};
use crate::gauge::Gauge;
use crate::http1_connection::{Pending, Response};
use crate::record::{Channel, FailureReason};

/// A user's connections.
#[derive(Debug)]
pub(crate) struct Streams {
    number: u32,
    site: Arc<Site>,
    own: UserStreamsConfig,
    max_connections: usize,
    idle_timeout: Option<Duration>,
    connections: BTreeMap<u64, StreamConnection>,
    pending_streams: BTreeMap<u64, PendingStream>,
    /// Next number of a connection or a request.
    next: u64,
}

#[derive(Debug)]
struct StreamConnection {
    /// Sender of orders; `None`: it takes no more requests.
    orders: Option<UnboundedSender<StreamRequest>>,
    in_flight: u64,
    responses: u64,
    /// Time since which it is idle.
    idle: Option<Time>,
}

#[derive(Debug)]
struct PendingStream {
    pending: Pending,
    connection: u64,
}

/// Result of a report.
#[derive(Debug)]
pub(crate) enum ReportOutcome {
    /// Nothing to report to the user.
    Nothing,
    /// A request is finished.
    Finished(Pending, Result<Response, FailureReason>, Channel),
    /// To be retried on another connection.
    Retry(Pending),
}

impl Streams {
    /// A user without connections.
    pub(crate) fn new(number: u32, config: &StreamsConfig) -> Self {
        let StreamsConfig { connections: max_connections, idle_timeout, .. } = *config;
        let site = Arc::clone(&config.site);
        let (connections, pending_streams) = (BTreeMap::new(), BTreeMap::new());
        Self {
            number,
            site,
            own: config.own(),
            max_connections,
            idle_timeout,
            connections,
            pending_streams,
            next: 0,
        }
    }

    /// Sends a request; returns whether a connection was opened for it.
    pub(crate) fn send_request(&mut self, pending: Pending, reactor: &Reactor, open: &Gauge) -> bool {
        let free = self.free();
        let connection = free.unwrap_or_else(|| self.open(reactor, open, !pending.is_retry));
        let number = self.number();
        let Pending { number: request, is_conditional, .. } = pending;
        self.pending_streams.insert(number, PendingStream { pending, connection });
        if let Some(StreamConnection { orders: Some(orders), in_flight, idle, .. }) =
            self.connections.get_mut(&connection)
        {
            *in_flight += 1;
            *idle = None;
            if let Err(unsent) = orders.send(StreamRequest { number, request, is_conditional }) {
                // Its task has ended, and has reported that.
                let StreamRequest { number, .. } = unsent.0;
                reactor
                    .reporter(self.number)
                    .send_report(Report::Finished(number, StreamOutcome::Broken(false)));
            }
        }
        free.is_none()
    }

    /// The connection for the next request: an idle one, or, at the maximum number of connections, the one with
    /// the fewest requests. `None`: a new one.
    fn free(&self) -> Option<u64> {
        let open = self.connections.iter().filter(|(_, connection)| connection.orders.is_some());
        let count = open.clone().count();
        let (number, best) = open.min_by_key(|(_, connection)| connection.in_flight)?;
        (best.in_flight == 0 || count >= self.max_connections).then_some(*number)
    }

    fn open(&mut self, reactor: &Reactor, open: &Gauge, may_early: bool) -> u64 {
        let number = self.number();
        let (orders, order_receiver) = unbounded_channel();
        let (site, reporter, open) = (Arc::clone(&self.site), reactor.reporter(self.number), open.open());
        let task = ConnectionTask { number, site, orders: order_receiver, reporter, open };
        self.own.begin(task, reactor.runtime(), may_early);
        self.connections.insert(
            number,
            StreamConnection { orders: Some(orders), in_flight: 0, responses: 0, idle: None },
        );
        number
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Handles a connection's report.
    pub(crate) fn reported(&mut self, now: Time, report: Report) -> ReportOutcome {
        match report {
            Report::Closed(connection) => {
                if let Some(over) = self.connections.get_mut(&connection) {
                    over.orders = None;
                    self.forget(connection);
                }
                ReportOutcome::Nothing
            }
            Report::Finished(number, outcome) => match self.pending_streams.remove(&number) {
                Some(PendingStream { pending, connection }) => {
                    self.finish_request(now, pending, connection, outcome)
                }
                // It has timed out before.
                None => ReportOutcome::Nothing,
            },
        }
    }

    fn finish_request(
        &mut self,
        now: Time,
        pending: Pending,
        number: u64,
        outcome: StreamOutcome,
    ) -> ReportOutcome {
        let Some(connection) = self.connections.get_mut(&number) else { return ReportOutcome::Nothing };
        connection.in_flight = connection.in_flight.saturating_sub(1);
        if connection.in_flight == 0 {
            connection.idle = Some(now);
        }
        let turn = match outcome {
            StreamOutcome::Response(status, bytes, channel) => {
                connection.responses += 1;
                ReportOutcome::Finished(pending, Ok(Response { status, bytes }), channel)
            }
            StreamOutcome::Broken(has_begun) => {
                connection.orders = None;
                // On a connection without any response the close is the outcome; the same within a response.
                if has_begun || connection.responses == 0 {
                    ReportOutcome::Finished(pending, Err(FailureReason::Closed), Channel::TcpClient)
                } else {
                    retry(pending)
                }
            }
            StreamOutcome::Unseen => {
                connection.orders = None;
                // The server did not process it: it may be retried, whatever its method.
                retry(Pending { may_repeat: true, ..pending })
            }
            StreamOutcome::Failed(reason) => {
                // A response that is late or missing may mean a dead path.
                connection.orders = None;
                ReportOutcome::Finished(pending, Err(reason), Channel::TcpClient)
            }
        };
        if self.idle_timeout == Some(Duration::ZERO) && connection.in_flight == 0 {
            connection.orders = None;
        }
        self.forget(number);
        turn
    }

    /// Removes a connection that takes no requests and has none in flight.
    fn forget(&mut self, number: u64) {
        let is_over =
            |connection: &StreamConnection| connection.orders.is_none() && connection.in_flight == 0;
        if self.connections.get(&number).is_some_and(is_over) {
            self.connections.remove(&number);
        }
    }

    /// Closes idle connections.
    pub(crate) fn close(&mut self) {
        self.connections.retain(|_, connection| connection.in_flight > 0);
    }

    /// Closes connections that have been idle for `idle_timeout`.
    pub(crate) fn close_idle(&mut self, now: Time, idle_timeout: Duration) {
        self.connections.retain(|_, connection| {
            connection.in_flight > 0 || connection.idle.is_none_or(|since| since + idle_timeout > now)
        });
    }

    /// Times out requests sent before `sent_before`: connections enforce the timeout themselves, except at the end of a run.
    pub(crate) fn expire_requests(&mut self, sent_before: Time) -> Vec<Pending> {
        if sent_before < Time::MAX {
            return Vec::new();
        }
        self.connections.clear();
        std::mem::take(&mut self.pending_streams)
            .into_values()
            .map(|pending_streams| pending_streams.pending)
            .collect()
    }
}

/// A retry, once.
fn retry(pending: Pending) -> ReportOutcome {
    if pending.is_retry || !pending.may_repeat {
        ReportOutcome::Finished(pending, Err(FailureReason::Closed), Channel::TcpClient)
    } else {
        ReportOutcome::Retry(Pending { is_retry: true, ..pending })
    }
}
