//! State machine of a request at its client, as a transition table.
//!
//! `docs/dhttp.md` shows this table, and a test compares the two. Not timeouts and not numbers of tries.

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Sent; no response has arrived, or not all of one.
    Waiting,
    /// Parts of a response have arrived in datagrams, and others are missing.
    Gathering,
    /// Its id has arrived on a connection, but no header section yet.
    Claimed,
    /// The header section was delivered, and the body is arriving.
    Arriving,
    /// Its outcome was reported to the caller. Late copies of its response are recognized and discarded.
    Over,
}

/// Event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A datagram with the response arrived, or the last of its parts.
    Response,
    /// A datagram with a part of the response arrived, and others are missing.
    Part,
    /// The bare id of eight bytes arrived: retry over plain HTTP.
    Referred,
    /// The server's port is unreachable.
    Unreachable,
    /// It timed out, and may be resent.
    Resent,
    /// It timed out, and may not be resent.
    TimedOut,
    /// Its id arrived on a connection, before a response.
    Claim,
    /// The header section of that response is complete.
    Head,
    /// The response is complete.
    Complete,
    /// The connection was closed, broke or stalled.
    Broken,
    /// The caller cancelled it.
    Cancelled,
}

impl Phase {
    /// Returns the next phase; `None` where an event is ignored.
    pub(crate) const fn next(self, event: Event) -> Option<Self> {
        match (self, event) {
            (
                Self::Waiting | Self::Gathering,
                Event::Response | Event::Referred | Event::Unreachable | Event::TimedOut | Event::Cancelled,
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
                Event::Response
                | Event::Part
                | Event::Referred
                | Event::Unreachable
                | Event::Resent
                | Event::TimedOut
                | Event::Claim
                | Event::Complete,
            )
            | (
                Self::Arriving,
                Event::Response
                | Event::Part
                | Event::Referred
                | Event::Unreachable
                | Event::Resent
                | Event::TimedOut
                | Event::Claim
                | Event::Head,
            )
            | (
                Self::Over,
                Event::Response
                | Event::Part
                | Event::Referred
                | Event::Unreachable
                | Event::Resent
                | Event::TimedOut
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
        Event::Response,
        Event::Part,
        Event::Referred,
        Event::Unreachable,
        Event::Resent,
        Event::TimedOut,
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
