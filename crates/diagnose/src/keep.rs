//! How much one connection may keep, so that all of them together keep little: the more there are, the less of each.
//!
//! Not a limit on what is counted: causes, times and accounts are complete whatever is kept.

/// So many, at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Findings of one cause: the worst.
    pub(crate) findings: usize,
    /// HTTP exchanges: the longest, and up to half as many again between two looks.
    pub(crate) exchanges: usize,
    /// Segments on their way, and acknowledgements, of one side: the newest.
    pub(crate) segments: usize,
}

impl Keep {
    /// In one of `flows` connections at once.
    pub(crate) fn among(flows: usize) -> Self {
        /// Of one cause, and of exchanges, in all connections together.
        const ALL: usize = 1 << 13;
        /// Of segments, likewise.
        const SEGMENTS: usize = 1 << 18;
        let flows = flows.max(1);
        let each = ALL / flows;
        Self {
            findings: each.clamp(1, 64),
            exchanges: each.clamp(1, 16),
            segments: (SEGMENTS / flows).clamp(64, 4_096),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_connections_each_keeps_less_and_never_nothing() {
        assert_eq!(Keep::among(0), Keep { findings: 64, exchanges: 16, segments: 4_096 });
        assert_eq!(Keep::among(64), Keep { findings: 64, exchanges: 16, segments: 4_096 });
        assert_eq!(Keep::among(1_000), Keep { findings: 8, exchanges: 8, segments: 262 });
        assert_eq!(Keep::among(1 << 20), Keep { findings: 1, exchanges: 1, segments: 64 });
    }
}
