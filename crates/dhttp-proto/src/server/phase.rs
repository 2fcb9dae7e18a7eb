//! State machine of a connection that a server opened, as a transition table.
//!
//! `docs/dhttp.md` shows this table, and a test compares the two. Not timeouts and not limits.

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Being opened, with a response that waits for it.
    Opening,
    /// Established, with no pending response.
    Idle,
    /// Established, with a response that may take it or is being written.
    Busy,
    /// Closed.
    Closed,
}

/// Event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It was established.
    Opened,
    /// A request arrived whose response may take this connection.
    Assigned,
    /// The last pending response was written, or took another channel.
    Drained,
    /// It could not be established, broke, or was closed by the client.
    Lost,
    /// Its timeout passed.
    TimedOut,
}

impl Phase {
    /// Returns the next phase; `None` where an event is impossible.
    pub(crate) const fn next(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Opening, Event::Assigned) => Some(Self::Opening),
            (Self::Opening, Event::Opened) | (Self::Idle | Self::Busy, Event::Assigned) => Some(Self::Busy),
            (Self::Busy, Event::Drained) => Some(Self::Idle),
            (Self::Opening | Self::Idle | Self::Busy, Event::Lost | Event::TimedOut) => Some(Self::Closed),
            (Self::Opening | Self::Idle, Event::Drained)
            | (Self::Idle | Self::Busy, Event::Opened)
            | (
                Self::Closed,
                Event::Opened | Event::Assigned | Event::Drained | Event::Lost | Event::TimedOut,
            ) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: [Phase; 4] = [Phase::Opening, Phase::Idle, Phase::Busy, Phase::Closed];
    const EVENTS: [Event; 5] = [Event::Opened, Event::Assigned, Event::Drained, Event::Lost, Event::TimedOut];

    #[test]
    fn specification_has_this_table_and_its_diagram() {
        let document = include_str!("../../../../docs/dhttp.md");
        let table = crate::specified_table(&PHASES, &EVENTS, |phase, event| phase.next(event));
        assert!(document.contains(&table), "docs/dhttp.md should hold:\n{table}");
        let figure =
            crate::specified_figure(&Phase::Opening, &PHASES, &EVENTS, |phase, event| phase.next(event));
        assert!(document.contains(&figure), "docs/dhttp.md should hold:\n{figure}");
    }

    #[test]
    fn every_connection_can_close_and_none_reopens() {
        for phase in [Phase::Opening, Phase::Idle, Phase::Busy] {
            assert_eq!(phase.next(Event::TimedOut), Some(Phase::Closed));
        }
        assert!(EVENTS.iter().all(|event| Phase::Closed.next(*event).is_none()));
    }
}
