//! Requests whose answers a handler has promised for later.
//!
//! Not the promise: that is [`crate::later`].

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dhttp_proto::server::Ticket;
use http1::message::{Fields, RequestHead};
use wire::Time;

use crate::batch::Ends;
use crate::handler::Answer;
use crate::later::{Later, Mailbox, Word};

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

    /// What has come, and for whom.
    pub(super) fn take(&mut self) -> Vec<(Asked, Word)> {
        let come = self.mailbox.take().into_iter();
        come.filter_map(|(number, word)| Some((self.of(number, &word)?, word))).collect()
    }

    /// Who asked, if this word is for him.
    fn of(&mut self, number: u64, word: &Word) -> Option<Asked> {
        match (word, &self.waiting.get(&number)?.asked) {
            (Word::Answer(..), _) => Some(self.waiting.remove(&number)?.asked),
            (Word::Interim(..), Asked::Connection(id)) => Some(Asked::Connection(*id)),
            // One datagram is one message, and that is the answer.
            (Word::Interim(..), Asked::Datagram(_)) => None,
        }
    }

    /// Those who have waited for too long, and what they are told.
    pub(super) fn expired(&mut self, now: Time) -> Vec<(Asked, Word)> {
        let mut expired = Vec::new();
        // Numbers are given in the order of time.
        while let Some(first) = self.waiting.first_entry()
            && now.since(first.get().since) > PATIENCE
        {
            let answer = Answer::text(504, "504 Gateway Timeout");
            expired.push((first.remove().asked, Word::Answer(answer, Fields::new())));
        }
        expired
    }
}
