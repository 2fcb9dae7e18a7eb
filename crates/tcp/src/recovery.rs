//! Loss detected by duplicate ACKs and by the timer: fast retransmit and recovery (RFC 5681, 6582, 6675).
//!
//! Segments outstanding are in `flight`, the window in `congestion`.

use wire::Time;

use crate::Connection;
use crate::config::Recovery;
use crate::interface::Failure;

/// State of recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    pub phase: Phase,
    /// Number of duplicate ACKs since the last new acknowledgement.
    duplicates: u32,
    /// Bytes that have left the network according to the duplicate ACKs, without selective acknowledgements.
    credit: u64,
    /// No new recovery begins before this number is acknowledged (RFC 6582, section 4).
    recovered_at: u64,
}

/// Phase of recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// No known loss.
    #[default]
    Open,
    /// Detected by duplicate ACKs; over when `until` is acknowledged.
    Fast { until: u64 },
    /// Detected by the timer; over when `until` is acknowledged.
    Timeout { until: u64 },
}

/// Number of duplicate ACKs that indicate a loss.
const DUPLICATES: u32 = 3;

impl Loss {
    /// Returns the bytes that have left the network according to the duplicate ACKs.
    pub(super) const fn credit(&self) -> u64 {
        self.credit
    }
}

impl Connection {
    /// Handles a new acknowledgement of `bytes`. Returns whether the window may grow by it.
    pub(super) fn recover(&mut self, bytes: u64) -> bool {
        self.loss.duplicates = 0;
        match self.loss.phase {
            Phase::Open => {
                self.loss.credit = 0;
                true
            }
            Phase::Timeout { until } => {
                if self.unacknowledged >= until {
                    self.loss.phase = Phase::Open;
                }
                true
            }
            Phase::Fast { until } => {
                let is_whole = self.unacknowledged >= until;
                match self.config.recovery {
                    Recovery::NewReno | Recovery::Sack | Recovery::Rack if !is_whole => {
                        self.handle_partial_acknowledgement(bytes);
                    }
                    Recovery::NewReno if !self.negotiated.sack => {
                        self.leave_recovery();
                        self.window.end_recovery(self.flight.weight());
                    }
                    Recovery::Tahoe
                    | Recovery::Reno
                    | Recovery::NewReno
                    | Recovery::Sack
                    | Recovery::Rack => {
                        self.leave_recovery();
                    }
                }
                false
            }
        }
    }

    /// Handles a duplicate ACK; `is_new_sack` if it SACKed new data.
    pub(super) fn duplicate(&mut self, is_new_sack: bool) {
        if self.uses_rack() {
            // RACK detects losses by time.
            return;
        }
        self.loss.duplicates += 1;
        let is_sack = self.uses_sack();
        if is_sack && !is_new_sack && self.loss.duplicates < DUPLICATES {
            return;
        }
        match self.loss.phase {
            Phase::Fast { until: _ } if is_sack => {
                self.flight.mark_lost_by_sack();
            }
            Phase::Fast { until: _ } => self.add_credit(1),
            Phase::Timeout { until: _ } => {}
            Phase::Open => {
                let is_lost = is_sack && self.flight.mark_lost_by_sack();
                if is_lost || self.loss.duplicates == DUPLICATES {
                    self.enter_recovery();
                } else if self.config.recovery == Recovery::NewReno {
                    // Limited transmit (RFC 3042).
                    self.add_credit(1);
                }
            }
        }
    }

    /// Handles the expiry of the retransmission timer.
    pub(super) fn retransmission_timeout(&mut self, now: Time) {
        let is_handshake = self.unacknowledged == 0;
        let retries = if is_handshake { self.config.rto.syn_retries } else { self.config.rto.data_retries };
        if self.timer.backoff() >= retries {
            return self.fail(Failure::TimedOut);
        }
        self.timer.back_off();
        self.timer.start(now);
        self.timed_segment = None;
        if is_handshake {
            self.pending.syn = true;
            return;
        }
        let outstanding = self.flight.outstanding();
        if self.timer.backoff() > 1 {
            self.window.collapse_again();
        } else {
            self.window.collapse(outstanding);
        }
        self.flight.mark_all_lost();
        self.rack.stop();
        self.loss = Loss {
            phase: Phase::Timeout { until: self.next },
            duplicates: 0,
            credit: 0,
            recovered_at: self.next,
        };
        self.pending.retransmission = true;
    }

    /// Returns whether selective acknowledgements are used.
    pub(super) fn uses_sack(&self) -> bool {
        match self.config.recovery {
            Recovery::Tahoe | Recovery::Reno | Recovery::NewReno => false,
            Recovery::Sack | Recovery::Rack => self.negotiated.sack,
        }
    }

    /// Enters recovery after a loss detected by time.
    pub(super) fn enter_recovery_by_time(&mut self) {
        if self.loss.phase == Phase::Open {
            self.loss.phase = Phase::Fast { until: self.next };
            self.loss.recovered_at = self.next;
            self.window.reduce(self.flight.outstanding());
            self.pending.retransmission = true;
            self.timed_segment = None;
            self.rack.stop();
        }
    }

    fn enter_recovery(&mut self) {
        if self.unacknowledged < self.loss.recovered_at {
            return;
        }
        let outstanding = self.flight.outstanding();
        self.loss.recovered_at = self.next;
        self.flight.mark_first_lost();
        self.pending.retransmission = true;
        self.timed_segment = None;
        match self.config.recovery {
            Recovery::Tahoe => self.window.collapse(outstanding),
            Recovery::Reno | Recovery::NewReno | Recovery::Sack | Recovery::Rack => {
                self.window.reduce(outstanding);
                self.loss.phase = Phase::Fast { until: self.next };
                self.loss.credit = 0;
                if !self.uses_sack() {
                    self.add_credit(u64::from(DUPLICATES));
                }
            }
        }
    }

    /// Handles a partial acknowledgement: the next segment is missing, too (RFC 6582, section 3.2).
    fn handle_partial_acknowledgement(&mut self, bytes: u64) {
        if self.uses_rack() {
            return;
        }
        if self.uses_sack() {
            self.flight.mark_lost_by_sack();
            return;
        }
        // Duplicate ACKs had counted the acknowledged bytes as received, except for the first segment.
        self.loss.credit = self.loss.credit.saturating_sub(bytes.saturating_sub(self.negotiated.mss));
        self.flight.mark_first_lost();
        self.pending.retransmission = true;
        self.bound_credit();
    }

    fn leave_recovery(&mut self) {
        self.loss.phase = Phase::Open;
        self.loss.credit = 0;
    }

    fn add_credit(&mut self, segments: u64) {
        self.loss.credit += segments * self.negotiated.mss;
        self.bound_credit();
    }

    fn bound_credit(&mut self) {
        self.loss.credit = self.loss.credit.min(self.flight.weight_behind_first());
    }
}
