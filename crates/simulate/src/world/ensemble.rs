//! Connections of one host to the same peer that have one congestion window together (RFC 2140, section 4).
//!
//! A new connection takes an equal share from those that may still send. One that has sent everything
//! leaves its share to the others, or, if it is the last, to the cache. Between these events each connection
//! grows and shrinks its share by its own acknowledgements and losses.

use tcp::config::Sharing;
use tcp::interface::State;

use crate::world::host::{Host, Socket};
use crate::world::{Application, HostId, SocketId};

impl<A: Application> Host<A> {
    /// Adds a new connection to the ensemble.
    pub(super) fn join(&mut self, id: SocketId) {
        if self.config.tcp.sharing != Sharing::Ensemble {
            return;
        }
        let Some(peer) =
            self.sockets.get(id.0 as usize).and_then(Option::as_ref).map(|socket| socket.peer.host)
        else {
            return;
        };
        let (others, whole) = self.members(peer).fold((0, 0), |(count, whole), (member, socket)| {
            let is_other = member != id;
            (count + u64::from(is_other), whole + if is_other { socket.connection.stats().cwnd } else { 0 })
        });
        if others > 0 {
            let share = whole / (others + 1);
            self.members(peer).for_each(|(_, socket)| socket.connection.share_window(share));
        }
    }

    /// Removes a connection that has nothing more to send, and caches its state.
    pub(super) fn remove_when_done(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        let is_done = match socket.connection.state() {
            State::FinWait2 | State::TimeWait | State::Closed => true,
            State::Listen
            | State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait1
            | State::CloseWait
            | State::Closing
            | State::LastAck => false,
        };
        if !is_done || !socket.is_member {
            return;
        }
        socket.is_member = false;
        let (peer, cwnd_left) = (socket.peer.host, socket.connection.stats().cwnd);
        self.remember(id);
        if self.config.tcp.sharing == Sharing::Ensemble {
            let heirs = self.members(peer).count() as u64;
            for (_, socket) in self.members(peer) {
                let cwnd = socket.connection.stats().cwnd;
                socket.connection.share_window(cwnd + cwnd_left / heirs.max(1));
            }
        }
    }

    fn members(&mut self, peer: HostId) -> impl Iterator<Item = (SocketId, &mut Socket)> {
        let sockets = self.sockets.iter_mut().enumerate();
        sockets.filter_map(move |(index, socket)| {
            let socket = socket.as_mut().filter(|socket| socket.is_member && socket.peer.host == peer)?;
            Some((SocketId(u32::try_from(index).unwrap_or(u32::MAX)), socket.as_mut()))
        })
    }
}
