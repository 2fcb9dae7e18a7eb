//! End of an exchange whose thread waits for a server: the event loop needs its connection for a newcomer.
//!
//! Which exchange ends is decided in `accept`.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handle of an exchange, shared by its thread and the event loop.
#[derive(Debug, Default)]
pub(super) struct Abort(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    /// Its thread waits for something else.
    #[default]
    Elsewhere,
    /// Its thread connects this socket, or waits for its bytes.
    Waiting(Arc<TcpStream>),
    Aborted,
}

/// Sentence for the client of an exchange that was aborted.
pub(super) const ABORTED: &str = "too many requests in progress; retry later";

impl Abort {
    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock left no partial change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the server's connection; `false` if the exchange is aborted.
    pub(super) fn watch(&self, server: &Arc<TcpStream>) -> bool {
        let mut state = self.state();
        let goes_on = !matches!(*state, State::Aborted);
        if goes_on {
            *state = State::Waiting(Arc::clone(server));
        }
        goes_on
    }

    /// Forgets the server's connection, which may be reused; `false` if the exchange is aborted.
    pub(super) fn release(&self) -> bool {
        let mut state = self.state();
        let goes_on = !matches!(*state, State::Aborted);
        if goes_on {
            *state = State::Elsewhere;
        }
        goes_on
    }

    pub(super) fn is_aborted(&self) -> bool {
        matches!(*self.state(), State::Aborted)
    }

    /// Ends the wait for the server, or the exchange before the next one.
    pub(super) fn abort(&self) {
        let mut state = self.state();
        if let State::Waiting(server) = &*state {
            // Also ends an attempt to connect.
            let _ = server.shutdown(Shutdown::Both);
        }
        *state = State::Aborted;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_that_waits_for_a_server_is_woken_and_no_other_connection_is_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let abort = Arc::new(Abort::default());
        let (first, second) = (connect(), connect());
        assert!(abort.watch(&first) && abort.release() && abort.watch(&second));
        let reader = thread::spawn(move || (&*second).read(&mut [0]).unwrap_or(0));
        abort.abort();
        assert_eq!(reader.join().unwrap(), 0);
        assert!(abort.is_aborted() && !abort.release() && !abort.watch(&first), "no other server");
        first.set_nonblocking(true).unwrap();
        assert!((&*first).read(&mut [0]).is_err(), "the released one is open");
    }
}
