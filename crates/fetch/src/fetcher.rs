//! A policy over a transport: what a driver runs to fetch a page.
//!
//! It returns no contents. It always ends: at the plan's deadline at the latest every object has arrived or failed, and
//! every connection is closed soon after.
//!
//! ```text
//! Connected, Received, Datagram, ... -> handle -> poll -> Wire, Report, Timeout
//!
//!      Report          ToTransport                Wire
//! policy ◄────────────────────────► transport ◄──────────► driver
//!                      FromTransport           FromWire
//! ```

use std::collections::VecDeque;

use http3::Recovery;
use wire::Time;

use crate::plan::{Plan, PlanError, Shape};
use crate::policy::{self, Policy};
use crate::report::Report;
use crate::security::Security;
use crate::transport::Http3;
use crate::transport::dhttp::{Dhttp, DhttpConfig, TransportCounts};
use crate::transport::http1::Http1;
use crate::transport::http2::Http2;
use crate::transport::{Endpoint, FromWire, Outcome, Progress, Transport, Wire};
use crate::web::WebConfig;

/// Output of a fetcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the network.
    Wire(Wire),
    /// An event of the page.
    Report(Report),
    /// No output before the next input, or this time, when to poll again.
    Timeout(Option<Time>),
}

/// A client that fetches one page. `poll` until it returns a timeout, then `handle` an input, and so on until
/// it is done.
#[derive(Debug)]
pub struct Fetcher {
    policy: Policy,
    transport: Transport,
    /// TLS of the connections, if any has it.
    security: Option<Box<Security>>,
    outputs: VecDeque<Output>,
    /// The last poll, if nothing has happened since: its time, and the policy's timeout.
    polled: Option<(Time, Option<Time>)>,
}

impl Fetcher {
    /// A client that starts on its plan at `now`, over HTTP/1.
    ///
    /// # Errors
    /// An invalid plan.
    pub fn http1(now: Time, plan: Plan) -> Result<Self, PlanError> {
        let transport = Transport::Http1(Box::new(Http1::new(plan.http1())));
        Self::new(now, plan, transport)
    }

    /// A client that starts on its plan at `now`, over DHTTP.
    ///
    /// # Errors
    /// An invalid plan.
    pub fn dhttp(now: Time, plan: Plan, config: DhttpConfig) -> Result<Self, PlanError> {
        let transport = Transport::Dhttp(Box::new(Dhttp::new(plan.http1(), config)));
        Self::new(now, plan, transport)
    }

    /// A client that starts on its plan at `now`, over HTTP/1, HTTP/2 or HTTP/3, with TLS where its origins have it.
    ///
    /// # Errors
    /// An invalid plan.
    pub fn web(now: Time, plan: Plan, config: WebConfig) -> Result<Self, PlanError> {
        let transport = match plan.shape {
            Shape::Http2 => Transport::Http2(Box::new(Http2::new(config.clone(), plan.http1()))),
            Shape::Http3(_) => Transport::Http3(Box::new(Http3::new(config.clone(), &plan)?)),
            Shape::Http10 { parallel: _ }
            | Shape::Http10KeepAlive
            | Shape::Http11
            | Shape::Http11Parallel { parallel: _ }
            | Shape::Http11Pipelined(_)
            | Shape::Dhttp => Transport::Http1(Box::new(Http1::new(plan.http1()))),
        };
        let has_tls = config.origins.iter().any(|origin| origin.tls.is_some());
        let security = has_tls.then(|| Box::new(Security::new(config, plan.origins.clone())));
        Self::secured(now, plan, transport, security)
    }

    fn new(now: Time, plan: Plan, transport: Transport) -> Result<Self, PlanError> {
        Self::secured(now, plan, transport, None)
    }

    fn secured(
        now: Time,
        plan: Plan,
        transport: Transport,
        security: Option<Box<Security>>,
    ) -> Result<Self, PlanError> {
        let policy = Policy::new(now, plan)?;
        let mut fetcher = Self { policy, transport, security, outputs: VecDeque::new(), polled: None };
        fetcher.exchange(now);
        Ok(fetcher)
    }

    /// Handles input from the network.
    pub fn handle(&mut self, now: Time, input: FromWire<'_>) {
        self.expire(now);
        self.polled = None;
        match self.security.as_mut().map_or(Err(input), |security| security.handle(input)) {
            Ok(arrivals) => {
                self.flush_security();
                arrivals.iter().for_each(|arrival| self.transport.handle(now, arrival.as_input()));
            }
            Err(input) => self.transport.handle(now, input),
        }
        self.exchange(now);
    }

    /// Next output.
    pub fn poll(&mut self, now: Time) -> Output {
        loop {
            let page = match self.polled {
                Some((at, page)) if at == now => page,
                Some(_) | None => self.expire(now),
            };
            self.polled = Some((now, page));
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            match self.transport.poll(now) {
                Progress::Some => {
                    self.exchange(now);
                    self.polled = None;
                }
                Progress::Timeout(transport) => {
                    return Output::Timeout([page, transport].into_iter().flatten().min());
                }
            }
        }
    }

    /// Whether everything has arrived or failed, and every connection that this client opened is closed.
    pub fn is_done(&self) -> bool {
        self.policy.is_finished() && self.transport.is_idle() && self.outputs.is_empty()
    }

    /// Transport of requests and responses so far, where there are several.
    pub const fn counts(&self) -> Option<TransportCounts> {
        match &self.transport {
            Transport::Http1(_) | Transport::Http2(_) | Transport::Http3(_) => None,
            Transport::Dhttp(dhttp) => Some(dhttp.counts()),
        }
    }

    /// Records the state of QUIC's recovery from now on.
    pub fn record(&mut self) {
        if let Transport::Http3(http3) = &mut self.transport {
            http3.record();
        }
    }

    /// Changes of QUIC's recovery and their servers, in order.
    pub fn recoveries(&self) -> Vec<(Endpoint, Recovery)> {
        match &self.transport {
            Transport::Http1(_) | Transport::Http2(_) | Transport::Dhttp(_) => Vec::new(),
            Transport::Http3(http3) => http3.recoveries().collect(),
        }
    }

    /// Handles what is due; returns the policy's next timeout.
    fn expire(&mut self, now: Time) -> Option<Time> {
        let timeout = self.instruct(now);
        self.exchange(now);
        timeout
    }

    /// Passes events and requests between policy and transport, until neither has any.
    fn exchange(&mut self, now: Time) {
        loop {
            while let Some(outcome) = self.transport.take() {
                match outcome {
                    Outcome::Event(event) => {
                        self.policy.handle(now, event);
                        self.instruct(now);
                    }
                    Outcome::Wire(wire) => self.send(wire),
                }
            }
            self.instruct(now);
            self.transport.settle(now);
            match self.transport.take() {
                Some(Outcome::Event(event)) => self.policy.handle(now, event),
                Some(Outcome::Wire(wire)) => self.send(wire),
                None => return,
            }
        }
    }

    /// Queues an output of the transport, in records where its connection has TLS.
    fn send(&mut self, wire: Wire) {
        match &mut self.security {
            Some(security) => {
                security.send(wire);
                self.flush_security();
            }
            None => self.outputs.push_back(Output::Wire(wire)),
        }
    }

    fn flush_security(&mut self) {
        let Some(security) = &mut self.security else { return };
        self.outputs.extend(std::iter::from_fn(|| security.take()).map(Output::Wire));
    }

    /// Passes the policy's requests to the transport; returns the policy's timeout.
    fn instruct(&mut self, now: Time) -> Option<Time> {
        loop {
            match self.policy.poll(now) {
                policy::Output::Transport(input) => self.transport.request(now, input),
                policy::Output::Report(report) => self.outputs.push_back(Output::Report(report)),
                policy::Output::Timeout(timeout) => return timeout,
            }
        }
    }
}
