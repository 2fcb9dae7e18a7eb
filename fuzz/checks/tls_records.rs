//! Invariants for any bytes of one direction of TLS: events are the same at every cut, and a hole never panics. Neither does an end of
//! a session.

use tls::session::{Handshake, Session, SessionConfig};
use tls::{Direction, Event};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    for handshake in [Handshake::Tls12, Handshake::Full, Handshake::EarlyData] {
        let config = SessionConfig::new(handshake);
        for mut end in [Session::client(config.clone()), Session::server(config.clone())] {
            let _ = end.receive(bytes, &mut |plaintext| assert!(plaintext.len() <= bytes.len()));
            while end.next_write().is_some() {}
        }
    }
    let whole = events(&[bytes]);
    for cut in [1, 4, 5, 6, 9, bytes.len() / 2] {
        let (head, rest) = bytes.split_at(cut.min(bytes.len()));
        // A reader that has lost the records may find them again at the cut.
        let mut direction = Direction::default();
        direction.read(head, &mut |_| {});
        if !direction.is_lost() {
            assert_eq!(events(&[head, rest]), whole, "cut at {cut}");
        }
        let mut direction = Direction::default();
        direction.read(head, &mut |_| {});
        direction.skip(bytes.first().copied().unwrap_or_default().into(), &mut |_| {});
        direction.read(rest, &mut |_| {});
    }
}

fn events(chunks: &[&[u8]]) -> Vec<Event> {
    let (mut direction, mut events) = (Direction::default(), Vec::new());
    for chunk in chunks {
        direction.read(chunk, &mut |event| events.push(event));
    }
    events
}
