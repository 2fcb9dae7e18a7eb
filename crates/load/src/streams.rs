//! A user's connections of HTTP/2 or HTTP/3: which of them carries a request, and what came of it.
//!
//! In flow requests from [`crate::user`], and reports from the connections' tasks; out flow requests that are over. Read in
//! this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`desk`] | a connection's task: orders and reports |
//! | [`means`] | how connections begin |
//! | [`http2`], [`http3`] | what opens and fetches in each |
//! | [`reactor`] | the thread's runtime, in which all tasks are |
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
    /// Numbers for connections and requests.
    next: u64,
}

#[derive(Debug)]
struct Line {
    /// `None`: it takes no more requests.
    orders: Option<UnboundedSender<Order>>,
    under_way: u64,
    served: u64,
    /// When it had nothing to do any more.
    idle: Option<Time>,
}

#[derive(Debug)]
struct Asked {
    pending: Pending,
    line: u64,
}

/// What came of a report.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing that a user sees.
    Nothing,
    /// A request is over.
    Over(Pending, Result<Response, Trouble>, Channel),
    /// To be asked again, on another connection.
    Again(Pending),
}

impl Streams {
    /// Nobody has asked for anything yet.
    pub(crate) fn new(number: u32, means: &Means) -> Self {
        let Means { connections, keeps, .. } = *means;
        let site = Arc::clone(&means.site);
        let (lines, asked) = (BTreeMap::new(), BTreeMap::new());
        Self { number, site, own: means.own(), connections, keeps, lines, asked, next: 0 }
    }

    /// Asks; gives whether a connection was opened for it.
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
                // Its task is over, and has said so.
                let Order { number, .. } = unsent.0;
                reactor.reporter(self.number).tell(Report::Came(number, Came::Broken(false)));
            }
        }
        free.is_none()
    }

    /// The connection for the next request: one that has nothing to do, or where there may be no more the one with the
    /// fewest; `None`: a new one.
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

    /// A connection has told something.
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
                // It was given up.
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
                // On a connection that has served nothing, a close is its answer; and so is one in the middle.
                if has_begun || line.served == 0 {
                    Turn::Over(pending, Err(Trouble::Closed), Channel::TcpClient)
                } else {
                    again(pending)
                }
            }
            Came::Unseen => {
                line.orders = None;
                // The server has not looked at it: whatever its method, it may be sent again.
                again(Pending { may_repeat: true, ..pending })
            }
            Came::Trouble(trouble) => {
                // Who answers too late or not at all may be on a path that is dead.
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

    /// What takes no requests and has none is gone.
    fn forget(&mut self, number: u64) {
        let is_over = |line: &Line| line.orders.is_none() && line.under_way == 0;
        if self.lines.get(&number).is_some_and(is_over) {
            self.lines.remove(&number);
        }
    }

    /// Closes what is open and has nothing under way.
    pub(crate) fn close(&mut self) {
        self.lines.retain(|_, line| line.under_way > 0);
    }

    /// Closes what has had nothing to do for as long as users keep that.
    pub(crate) fn close_idle(&mut self, now: Time, keeps: Duration) {
        self.lines.retain(|_, line| line.under_way > 0 || line.idle.is_none_or(|since| since + keeps > now));
    }

    /// Gives up what was asked before, and is not answered: connections see to that in time, but for the end of a run.
    pub(crate) fn give_up(&mut self, long_ago: Time) -> Vec<Pending> {
        if long_ago < Time::MAX {
            return Vec::new();
        }
        self.lines.clear();
        std::mem::take(&mut self.asked).into_values().map(|asked| asked.pending).collect()
    }
}

/// To be asked again, once.
fn again(pending: Pending) -> Turn {
    if pending.is_again || !pending.may_repeat {
        Turn::Over(pending, Err(Trouble::Closed), Channel::TcpClient)
    } else {
        Turn::Again(Pending { is_again: true, ..pending })
    }
}
