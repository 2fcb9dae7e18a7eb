//! TLS of a connection: what its handshake shows, reported once it is over.

use super::Flow;
use crate::causes::{tls_alert, tls_certificate_flight, tls_handshake, tls_hello_retry};

impl Flow {
    /// Reports the handshake as soon as it is over.
    pub(super) fn follow_tls(&mut self) {
        if !self.is_handshake_settled && self.conversation.tls().is_some_and(|tls| tls.is_over()) {
            self.settle_handshake();
        }
    }

    /// Reports what is not reported yet, and an alert: it may come later.
    pub(super) fn settle_tls(&mut self) {
        self.settle_handshake();
        let whole = self.conversation.tls().filter(|tls| tls.client_began());
        whole.and_then(tls_alert::rule).into_iter().for_each(|finding| self.add(finding));
    }

    /// Reports the handshake, once.
    fn settle_handshake(&mut self) {
        let Some(tls) =
            self.conversation.tls().filter(|tls| !self.is_handshake_settled && tls.client_began())
        else {
            return;
        };
        let (mss, round_trip) = (self.ends.server.sender.mss.get(), self.path.round_trip_at_least());
        let others = [
            tls_certificate_flight::rule(tls, mss, round_trip),
            tls_hello_retry::rule(tls, round_trip),
            tls_handshake::rule(tls),
        ];
        let is_complete = tls.alert.is_none();
        self.is_handshake_settled = true;
        others.into_iter().filter(|_| is_complete).flatten().for_each(|finding| self.add(finding));
    }

    /// Returns whether the client is due within the TLS handshake: the server's flight has come, and no user acts now.
    pub(super) fn is_client_due_in_handshake(&self) -> bool {
        self.conversation
            .tls()
            .is_some_and(|tls| tls.flight.is_some() && tls.reply.is_none() && !tls.is_over())
    }
}
