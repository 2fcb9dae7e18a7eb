//! Connections that wait for a process of a server with a limited number of them, as in Apache's prefork model.
//!
//! The kernel has accepted them: their requests arrive, and nothing reads them. When the backlog is full, it drops SYNs.

use std::collections::{BTreeMap, VecDeque};

use crate::world::SocketId;

/// Waiting connections, in the order of their arrival.
#[derive(Debug)]
pub(super) struct AcceptQueue {
    /// Number of processes, each of which serves one connection; `None`: no limit.
    processes: Option<usize>,
    /// Maximum number of waiting connections.
    backlog: usize,
    order: VecDeque<SocketId>,
    waiting: BTreeMap<SocketId, Waiting>,
}

/// A connection that no process serves yet.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Bytes that have arrived.
    pub(super) bytes: Vec<u8>,
    pub(super) is_finished: bool,
}

impl AcceptQueue {
    pub(super) const fn new(processes: Option<usize>, backlog: usize) -> Self {
        Self { processes, backlog, order: VecDeque::new(), waiting: BTreeMap::new() }
    }

    /// Whether a connection must wait while this many are being served.
    pub(super) fn is_busy(&self, served: usize) -> bool {
        self.processes.is_some_and(|processes| served >= processes)
    }

    pub(super) fn push(&mut self, socket: SocketId) {
        self.order.push_back(socket);
        self.waiting.insert(socket, Waiting { bytes: Vec::new(), is_finished: false });
    }

    /// Whether no further connection may wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= self.backlog
    }

    /// The waiting connection of this socket.
    pub(super) fn find(&mut self, socket: SocketId) -> Option<&mut Waiting> {
        self.waiting.get_mut(&socket)
    }

    /// Removes a connection that broke before it was served.
    pub(super) fn forget(&mut self, socket: SocketId) {
        self.waiting.remove(&socket);
    }

    /// Returns the next connection to serve, if a process is free while this many are being served.
    pub(super) fn next(&mut self, served: usize) -> Option<(SocketId, Waiting)> {
        while !self.is_busy(served) {
            let socket = self.order.pop_front()?;
            if let Some(waiting) = self.waiting.remove(&socket) {
                return Some((socket, waiting));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_wait_in_order_until_a_process_is_free() {
        let mut queue = AcceptQueue::new(Some(2), 2);
        assert!(!queue.is_busy(1) && queue.is_busy(2));
        (1..=3).for_each(|number| queue.push(SocketId(number)));
        queue.find(SocketId(2)).unwrap().bytes.push(b'G');
        queue.forget(SocketId(1));
        assert!(queue.next(2).is_none());
        assert!(queue.is_full());
        let (socket, waiting) = queue.next(1).unwrap();
        assert!(!queue.is_full());
        assert_eq!((socket, waiting.bytes), (SocketId(2), vec![b'G']));
        assert_eq!(queue.next(1).unwrap().0, SocketId(3));
        assert!(queue.next(0).is_none());
    }
}
