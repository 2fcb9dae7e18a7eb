//! State machine that fetches the page: `pageload`'s robot over its own connections, or the same over DHTTP.
//!
//! The host is [`super::Browser`], which treats both alike.

use dhttp_proto::ClientConfig;
use pageload::page_loader::{Input, Output, PageLoader, TransportCounts};
use pageload::robot::{Plan, PlanError, Robot};
use wire::{Seed, Time};

use crate::capture;
use crate::world::Address;

/// The client's port under DHTTP, UDP and TCP; below the ports of its own connections.
pub const CLIENT_PORT: u16 = 40_000;

/// A DHTTP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpClient {
    /// Settings of the state machine.
    pub config: ClientConfig,
    /// Seed of its ids: no one guesses them here, and the same seed gives the same bytes.
    pub seed: Seed,
}

/// State machine that fetches the page.
pub(super) enum Fetcher {
    Plain(Box<Robot>),
    Dhttp(Box<PageLoader>),
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
                Self::Dhttp(Box::new(PageLoader::new(start, plan, config, server, CLIENT_PORT, ids)?))
            }
        })
    }

    pub(super) fn handle(&mut self, now: Time, input: Input<'_>) {
        match (self, input) {
            (Self::Plain(robot), Input::Plain(input)) => robot.handle(now, input),
            // The plain client has bound no port and receives no datagram.
            (Self::Plain(_), Input::Dhttp(_)) => {}
            (Self::Dhttp(page_loader), input) => page_loader.handle(now, input),
        }
    }

    pub(super) fn poll(&mut self, now: Time) -> Output {
        match self {
            Self::Plain(robot) => Output::Robot(robot.poll(now)),
            Self::Dhttp(page_loader) => page_loader.poll(now),
        }
    }

    /// Transport of requests and responses, where there are several.
    pub(super) fn counts(&self) -> Option<TransportCounts> {
        match self {
            Self::Plain(_) => None,
            Self::Dhttp(page_loader) => Some(page_loader.counts()),
        }
    }
}
