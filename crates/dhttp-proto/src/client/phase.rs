//! The states of a request at its client, as a table: what follows what, and nothing else.
//!
//! `docs/dhttp.md` shows this table, and a test holds the two together. Not times and not numbers of tries.

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Sent; nothing has come back, or what has come was not enough.
    Waiting,
    /// Parts of an answer have come in datagrams, and others are missing.
    Gathering,
    /// Its id has come on a connection, and no head yet.
    Claimed,
    /// The head was handed on, and the body is coming in.
    Arriving,
    /// The caller was told how it ended. Copies that come late are known, and thrown away.
    Over,
}

/// Event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A datagram answers it, or the last of its parts has come.
    Answered,
    /// A datagram has a part of its answer, and others are missing.
    Part,
    /// Eight bytes answer it: ask again, over plain HTTP.
    Referred,
    /// Nothing listens there.
    Unreachable,
    /// Its time is over, and it may be sent again.
    Resent,
    /// Its time is over, and it may not.
    GivenUp,
    /// Its id begins an answer on a connection.
    Claim,
    /// The head of that answer is there.
    Head,
    /// The answer is complete.
    Complete,
    /// The connection ended, broke or stalled.
    Broken,
    /// The caller does not want it any more.
    Cancelled,
}

impl Phase {
    /// Returns the next phase; `None` where an event is ignored.
    pub(crate) const fn next(self, event: Event) -> Option<Self> {
        match (self, event) {
            (
                Self::Waiting | Self::Gathering,
                Event::Answered | Event::Referred | Event::Unreachable | Event::GivenUp | Event::Cancelled,
            )
            | (Self::Claimed, Event::Cancelled)
            | (Self::Arriving, Event::Complete | Event::Broken | Event::Cancelled) => Some(Self::Over),
            (Self::Waiting | Self::Gathering, Event::Part) => Some(Self::Gathering),
            (Self::Waiting | Self::Gathering, Event::Resent) | (Self::Claimed, Event::Broken) => {
                Some(Self::Waiting)
            }
            (Self::Waiting | Self::Gathering, Event::Claim) => Some(Self::Claimed),
            (Self::Claimed, Event::Head) => Some(Self::Arriving),
            (Self::Waiting | Self::Gathering, Event::Head | Event::Complete | Event::Broken)
            | (
                Self::Claimed,
                Event::Answered
                | Event::Part
                | Event::Referred
                | Event::Unreachable
                | Event::Resent
                | Event::GivenUp
                | Event::Claim
                | Event::Complete,
            )
            | (
                Self::Arriving,
                Event::Answered
                | Event::Part
                | Event::Referred
                | Event::Unreachable
                | Event::Resent
                | Event::GivenUp
                | Event::Claim
                | Event::Head,
            )
            | (
                Self::Over,
                Event::Answered
                | Event::Part
                | Event::Referred
                | Event::Unreachable
                | Event::Resent
                | Event::GivenUp
                | Event::Claim
                | Event::Head
                | Event::Complete
                | Event::Broken
                | Event::Cancelled,
            ) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: [Phase; 5] =
        [Phase::Waiting, Phase::Gathering, Phase::Claimed, Phase::Arriving, Phase::Over];
    const EVENTS: [Event; 11] = [
        Event::Answered,
        Event::Part,
        Event::Referred,
        Event::Unreachable,
        Event::Resent,
        Event::GivenUp,
        Event::Claim,
        Event::Head,
        Event::Complete,
        Event::Broken,
        Event::Cancelled,
    ];

    #[test]
    fn specification_has_this_table_and_its_diagram() {
        let document = include_str!("../../../../docs/dhttp.md");
        let table = crate::specified_table(&PHASES, &EVENTS, |phase, event| phase.next(event));
        assert!(document.contains(&table), "docs/dhttp.md should hold:\n{table}");
        let figure =
            crate::specified_figure(&Phase::Waiting, &PHASES, &EVENTS, |phase, event| phase.next(event));
        assert!(document.contains(&figure), "docs/dhttp.md should hold:\n{figure}");
    }

    #[test]
    fn finished_requests_stay_finished() {
        assert!(EVENTS.iter().all(|event| Phase::Over.next(*event).is_none()));
    }
}
