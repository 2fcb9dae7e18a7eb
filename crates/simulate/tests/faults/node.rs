//! A host that may be killed and restarted, and on which a bit of a datagram may flip undetected.
//!
//! Client and server are [`Web`]s, unaware of it.

use std::collections::{BTreeSet, VecDeque};

use simulate::web::Web;
use simulate::world::{Action, Application, Datagram, Input, SocketId};
use tcp::Payload;
use wire::seed::Random;
use wire::{Probability, Time};

/// Fault of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramFault {
    /// The process is killed: the operating system resets its connections.
    Dies,
    /// The process is restarted without state.
    Rises,
}

/// A host's program, and its faults.
pub(crate) struct Node {
    web: Web,
    restart: Box<dyn Fn() -> Web>,
    turns: VecDeque<(Time, ProgramFault)>,
    is_alive: bool,
    sockets: BTreeSet<SocketId>,
    resets: VecDeque<SocketId>,
    flips: Probability,
    random: Random,
}

impl Node {
    pub(crate) fn new(
        restart: Box<dyn Fn() -> Web>,
        turns: Vec<(Time, ProgramFault)>,
        flips: Probability,
        random: Random,
    ) -> Self {
        let (sockets, resets) = (BTreeSet::new(), VecDeque::new());
        Self { web: restart(), restart, turns: turns.into(), is_alive: true, sockets, resets, flips, random }
    }

    pub(crate) const fn web(&self) -> &Web {
        &self.web
    }

    fn flip(&mut self, datagram: Datagram) -> Datagram {
        let mut bytes = datagram.payload.to_vec();
        let bit = self.random.up_to((bytes.len() as u64 * 8).saturating_sub(1));
        if self.random.chance(self.flips)
            && let Some(byte) = bytes.get_mut(usize::try_from(bit / 8).unwrap())
        {
            *byte ^= 1 << (bit % 8);
        }
        Datagram { payload: Payload::from(bytes), ..datagram }
    }
}

impl Application for Node {
    fn handle(&mut self, now: Time, input: Input) {
        let is_its = match &input {
            Input::Accepted(socket, ..) if self.is_alive => self.sockets.insert(*socket),
            Input::Accepted(socket, ..) => {
                self.resets.push_back(*socket);
                false
            }
            Input::Closed(socket) | Input::Failed(socket, _) => self.sockets.remove(socket),
            Input::Connected(socket)
            | Input::Data(socket, _)
            | Input::Finished(socket)
            | Input::Written(socket) => self.sockets.contains(socket),
            Input::Datagram(_) => self.is_alive,
        };
        if !is_its {
            return;
        }
        let input = match input {
            Input::Datagram(datagram) => Input::Datagram(self.flip(datagram)),
            other => other,
        };
        self.web.handle(now, input);
    }

    fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        while let Some((_, turn)) = self.turns.pop_front_if(|(at, _)| *at <= now) {
            self.is_alive = turn == ProgramFault::Rises;
            match turn {
                ProgramFault::Dies => self.resets.extend(std::mem::take(&mut self.sockets)),
                ProgramFault::Rises => self.web = (self.restart)(),
            }
        }
        if let Some(socket) = self.resets.pop_front() {
            return Action::Abort(socket);
        }
        let action = if self.is_alive { self.web.poll(now, fresh) } else { Action::Wait(None) };
        let next = self.turns.front().map(|(at, _)| *at);
        match action {
            Action::Wait(until) => Action::Wait([until, next].into_iter().flatten().min()),
            Action::Connect(peer) => {
                self.sockets.insert(fresh);
                Action::Connect(peer)
            }
            other => other,
        }
    }
}
