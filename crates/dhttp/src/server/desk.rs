//! Requests whose answers a handler has promised for later.
//!
//! Not the promise: that is [`crate::later`].

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::dhttp::server::Ticket;
use proto::http::RequestHead;
use wire::Time;

use crate::batch::Ends;
use crate::handler::Answer;
use crate::later::{Later, Mailbox};

/// Those of one thread.
#[derive(Debug)]
pub(super) struct Desk {
    mailbox: Arc<Mailbox>,
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
}

#[derive(Debug)]
struct Waiting {
    since: Time,
    asked: Asked,
}

/// How it was asked.
#[derive(Debug)]
pub(super) enum Asked {
    /// In a datagram, by this request.
    Datagram(Box<(Ends, Ticket, RequestHead)>),
    /// On the connection with this number.
    Connection(u64),
}

/// No more wait in one thread.
const MOST: usize = 16_384;
/// Nobody waits longer: whoever asked has given up by then.
const PATIENCE: wire::Duration = wire::Duration::from_secs(60);

impl Desk {
    /// # Errors
    /// If the system has no descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { mailbox: Arc::new(Mailbox::new()?), waiting: BTreeMap::new(), next: 0 })
    }

    /// Readable when an answer has come.
    pub(super) fn waker(&self) -> &OwnedFd {
        self.mailbox.waker()
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MOST
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn wait(&mut self, now: Time, later: Later, asked: Asked) {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, Waiting { since: now, asked });
        later.await_in(&self.mailbox, number);
    }

    /// Answers that have come, and for whom.
    pub(super) fn take(&mut self) -> Vec<(Asked, Answer)> {
        let come = self.mailbox.take().into_iter();
        come.filter_map(|(number, answer)| Some((self.waiting.remove(&number)?.asked, answer))).collect()
    }

    /// Those who have waited for too long, and what they are told.
    pub(super) fn expired(&mut self, now: Time) -> Vec<(Asked, Answer)> {
        let mut expired = Vec::new();
        // Numbers are given in the order of time.
        while let Some(first) = self.waiting.first_entry()
            && now.since(first.get().since) > PATIENCE
        {
            expired.push((first.remove().asked, Answer::text(504, "504 Gateway Timeout")));
        }
        expired
    }
}
