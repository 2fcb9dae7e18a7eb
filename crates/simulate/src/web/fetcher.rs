//! Whoever fetches the page: `pageload`'s robot over its own connections, or the same over DHTTP.
//!
//! Not a host: that is [`super::Browser`], to whom both look alike.

use dhttp_proto::ClientConfig;
use pageload::robot::{Plan, PlanError, Robot};
use pageload::visitor::{Counts, Input, Output, Visitor};
use wire::{Seed, Time};

use crate::capture;
use crate::world::Address;

/// The client's port under DHTTP, UDP and TCP; below those that connections of its own take.
pub const CLIENT_PORT: u16 = 40_000;

/// A client of DHTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpClient {
    /// How it behaves.
    pub config: ClientConfig,
    /// Where its ids come from: nobody guesses them here, and the same seed gives the same bytes.
    pub seed: Seed,
}

/// Whoever fetches the page.
pub(super) enum Fetcher {
    Plain(Box<Robot>),
    Dhttp(Box<Visitor>),
}

impl Fetcher {
    pub(super) fn new(
        start: Time,
        plan: Plan,
        server: Address,
        dhttp: Option<DhttpClient>,
    ) -> Result<Self, PlanError> {
        Ok(match dhttp {
            None => Self::Plain(Box::new(Robot::new(start, plan)?)),
            Some(DhttpClient { config, seed }) => {
                let (server, ids) = (capture::socket(server), seed.stream("dhttp-client", 0));
                Self::Dhttp(Box::new(Visitor::new(start, plan, config, server, CLIENT_PORT, ids)?))
            }
        })
    }

    pub(super) fn handle(&mut self, now: Time, input: Input<'_>) {
        match (self, input) {
            (Self::Plain(robot), Input::Plain(input)) => robot.handle(now, input),
            // Who has bound no port hears nothing on it.
            (Self::Plain(_), Input::Dhttp(_)) => {}
            (Self::Dhttp(visitor), input) => visitor.handle(now, input),
        }
    }

    pub(super) fn poll(&mut self, now: Time) -> Output {
        match self {
            Self::Plain(robot) => Output::Robot(robot.poll(now)),
            Self::Dhttp(visitor) => visitor.poll(now),
        }
    }

    /// How requests and answers have travelled, where that could be in several ways.
    pub(super) fn counts(&self) -> Option<Counts> {
        match self {
            Self::Plain(_) => None,
            Self::Dhttp(visitor) => Some(visitor.counts()),
        }
    }
}
