//! A user's connections of HTTP/2 or HTTP/3: assignment of requests to them, and outcomes.
//!
//! In flow requests from [`crate::user`], and reports from the connections' tasks; out flow finished requests. Read in
//! this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`desk`] | a connection's task: orders and reports |
//! | [`means`] | configuration of connections |
//! | [`http2`], [`http3`] | opening connections and sending requests, in each |
//! | [`reactor`] | the thread's runtime, which runs all tasks |
//!
//! Not the protocols: those are h2's, h3's and quinn's.

pub(crate) mod desk;
pub(crate) mod http2;
pub(crate) mod http3;
pub(crate) mod means;
pub(crate) mod reactor;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use wire::{Duration, Time};

use self::desk::{Came, Desk, Order, Report, Site};
use self::means::{Means, Own};
use self::reactor::Reactor;
use crate::gauge::Gauge;
use crate::line::{Pending, Response};
use crate::record::{Channel, Trouble};

/// A user's connections.
#[derive(Debug)]
pub(crate) struct Streams {
    number: u32,
    site: Arc<Site>,
    own: Own,
    connections: usize,
    keeps: Option<Duration>,
    lines: BTreeMap<u64, Line>,
    asked: BTreeMap<u64, Asked>,
    /// Next number of a connection or a request.
    next: u64,
}

#[derive(Debug)]
struct Line {
    /// Sender of orders; `None`: it takes no more requests.
    orders: Option<UnboundedSender<Order>>,
    under_way: u64,
    served: u64,
    /// Time since which it is idle.
    idle: Option<Time>,
}

#[derive(Debug)]
struct Asked {
    pending: Pending,
    line: u64,
}

/// Result of a report.
#[derive(Debug)]
pub(crate) enum Turn {
    /// None that a user sees.
    Nothing,
    /// A request is finished.
    Over(Pending, Result<Response, Trouble>, Channel),
    /// To be retried on another connection.
    Again(Pending),
}

impl Streams {
    /// A user without connections.
    pub(crate) fn new(number: u32, means: &Means) -> Self {
        let Means { connections, keeps, .. } = *means;
        let site = Arc::clone(&means.site);
        let (lines, asked) = (BTreeMap::new(), BTreeMap::new());
        Self { number, site, own: means.own(), connections, keeps, lines, asked, next: 0 }
    }

    /// Sends a request; returns whether a connection was opened for it.
    pub(crate) fn ask(&mut self, pending: Pending, reactor: &Reactor, open: &Gauge) -> bool {
        let free = self.free();
        let line = free.unwrap_or_else(|| self.open(reactor, open, !pending.is_again));
        let number = self.number();
        let Pending { number: request, is_conditional, .. } = pending;
        self.asked.insert(number, Asked { pending, line });
        if let Some(Line { orders: Some(orders), under_way, idle, .. }) = self.lines.get_mut(&line) {
            *under_way += 1;
            *idle = None;
            if let Err(unsent) = orders.send(Order { number, request, is_conditional }) {
                // Its task has ended, and has reported that.
                let Order { number, .. } = unsent.0;
                reactor.reporter(self.number).tell(Report::Came(number, Came::Broken(false)));
            }
        }
        free.is_none()
    }

    /// The connection for the next request: an idle one, or at the maximum number of connections the one with the
    /// fewest requests; `None`: a new one.
    fn free(&self) -> Option<u64> {
        let open = self.lines.iter().filter(|(_, line)| line.orders.is_some());
        let count = open.clone().count();
        let (number, best) = open.min_by_key(|(_, line)| line.under_way)?;
        (best.under_way == 0 || count >= self.connections).then_some(*number)
    }

    fn open(&mut self, reactor: &Reactor, open: &Gauge, may_early: bool) -> u64 {
        let number = self.number();
        let (orders, taken) = unbounded_channel();
        let (site, reporter, open) = (Arc::clone(&self.site), reactor.reporter(self.number), open.open());
        let desk = Desk { number, site, orders: taken, reporter, open };
        self.own.begin(desk, reactor.runtime(), may_early);
        self.lines.insert(number, Line { orders: Some(orders), under_way: 0, served: 0, idle: None });
        number
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Handles a connection's report.
    pub(crate) fn told(&mut self, now: Time, report: Report) -> Turn {
        match report {
            Report::Over(line) => {
                if let Some(over) = self.lines.get_mut(&line) {
                    over.orders = None;
                    self.forget(line);
                }
                Turn::Nothing
            }
            Report::Came(number, came) => match self.asked.remove(&number) {
                Some(Asked { pending, line }) => self.came(now, pending, line, came),
                // It has timed out before.
                None => Turn::Nothing,
            },
        }
    }

    fn came(&mut self, now: Time, pending: Pending, number: u64, came: Came) -> Turn {
        let Some(line) = self.lines.get_mut(&number) else { return Turn::Nothing };
        line.under_way = line.under_way.saturating_sub(1);
        if line.under_way == 0 {
            line.idle = Some(now);
        }
        let turn = match came {
            Came::Answer(status, bytes, way) => {
                line.served += 1;
                Turn::Over(pending, Ok(Response { status, bytes }), way)
            }
            Came::Broken(has_begun) => {
                line.orders = None;
                // On a connection without any response the close is the outcome; the same within a response.
                if has_begun || line.served == 0 {
                    Turn::Over(pending, Err(Trouble::Closed), Channel::TcpClient)
                } else {
                    again(pending)
                }
            }
            Came::Unseen => {
                line.orders = None;
                // The server did not process it: it may be retried, whatever its method.
                again(Pending { may_repeat: true, ..pending })
            }
            Came::Trouble(trouble) => {
                // A response that is late or missing may mean a dead path.
                line.orders = None;
                Turn::Over(pending, Err(trouble), Channel::TcpClient)
            }
        };
        if self.keeps == Some(Duration::ZERO) && line.under_way == 0 {
            line.orders = None;
        }
        self.forget(number);
        turn
    }

    /// Removes a connection that takes no requests and has none in flight.
    fn forget(&mut self, number: u64) {
        let is_over = |line: &Line| line.orders.is_none() && line.under_way == 0;
        if self.lines.get(&number).is_some_and(is_over) {
            self.lines.remove(&number);
        }
    }

    /// Closes idle connections.
    pub(crate) fn close(&mut self) {
        self.lines.retain(|_, line| line.under_way > 0);
    }

    /// Closes connections that have been idle for `keeps`.
    pub(crate) fn close_idle(&mut self, now: Time, keeps: Duration) {
        self.lines.retain(|_, line| line.under_way > 0 || line.idle.is_none_or(|since| since + keeps > now));
    }

    /// Times out requests sent before `long_ago`: connections enforce the timeout themselves, except at the end of a run.
    pub(crate) fn give_up(&mut self, long_ago: Time) -> Vec<Pending> {
        if long_ago < Time::MAX {
            return Vec::new();
        }
        self.lines.clear();
        std::mem::take(&mut self.asked).into_values().map(|asked| asked.pending).collect()
    }
}

/// A retry, once.
fn again(pending: Pending) -> Turn {
    if pending.is_again || !pending.may_repeat {
        Turn::Over(pending, Err(Trouble::Closed), Channel::TcpClient)
    } else {
        Turn::Again(Pending { is_again: true, ..pending })
    }
}
