//! Idle connections of a client to one server: which one serves the next request, and when the others are closed.

use wire::{Duration, Time};

/// Connections that wait for another request, the most recently used last. Dropping a connection closes it.
///
/// ```
/// use roundtrip_http1::client::IdleConnections;
/// use wire::{Duration, Time};
///
/// let mut idle = IdleConnections::default();
/// idle.store("socket", Time::ZERO);
/// assert_eq!(idle.take(Time::ZERO + Duration::from_secs(1), |_| true), Some("socket"));
/// ```
#[derive(Clone, Debug)]
pub struct IdleConnections<C> {
    connections: Vec<(C, Time)>,
}

impl<C> Default for IdleConnections<C> {
    fn default() -> Self {
        Self { connections: Vec::new() }
    }
}

impl<C> IdleConnections<C> {
    /// Idle timeout: below the 5 s of `KeepAliveTimeout` (Apache HTTP Server 2.4, `core`) and of `server.keepAliveTimeout` (Node.js,
    /// `http`), so that both sides seldom close simultaneously.
    pub const TIMEOUT: Duration = Duration::from_secs(4);

    /// Maximum number: as many as clients used concurrently. With fewer, each of the others would leave a port in TIME-WAIT
    /// for a minute.
    pub const MAX: usize = 256;

    /// Stores a connection that has just become idle; closes it if the maximum is reached.
    pub fn store(&mut self, connection: C, now: Time) {
        if self.connections.len() < Self::MAX {
            self.connections.push((connection, now));
        }
    }

    /// Takes the most recently used connection that is still usable, and closes those after it that are not.
    pub fn take(&mut self, now: Time, is_usable: impl Fn(&C) -> bool) -> Option<C> {
        self.close_expired(now);
        while let Some((connection, _)) = self.connections.pop() {
            if is_usable(&connection) {
                return Some(connection);
            }
        }
        None
    }

    /// Closes connections whose timeout has expired.
    pub fn close_expired(&mut self, now: Time) {
        let first = self.connections.partition_point(|(_, since)| now.since(*since) >= Self::TIMEOUT);
        self.connections.drain(..first);
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_most_recently_used_usable_connection_is_taken() {
        let mut idle = IdleConnections::default();
        [1, 2, 3].into_iter().for_each(|connection| idle.store(connection, at(0)));
        assert_eq!(idle.take(at(1), |connection| *connection < 3), Some(2));
        assert_eq!(idle.take(at(1), |_| true), Some(1));
        assert_eq!(idle.take(at(1), |_| true), None);
    }

    #[test]
    fn connections_are_closed_after_the_timeout() {
        let mut idle = IdleConnections::default();
        idle.store('a', at(0));
        idle.store('b', at(1));
        assert_eq!(idle.clone().take(at(3_999), |connection| *connection == 'a'), Some('a'));
        assert_eq!(idle.clone().take(at(4_000), |connection| *connection == 'a'), None);
        assert_eq!(idle.clone().take(at(4_000), |_| true), Some('b'));
        idle.close_expired(at(4_001));
        assert!(idle.is_empty());
    }

    #[test]
    fn connections_above_the_maximum_are_closed() {
        let mut idle = IdleConnections::default();
        (0..300).for_each(|connection| idle.store(connection, at(0)));
        assert_eq!(idle.take(at(0), |_| true), Some(255));
    }
}
