//! Limits on what one connection retains, so that total memory stays small: the more connections, the less each
//! retains.
//!
//! Not a limit on counts: causes, times and accounts are complete in any case.

/// Maximum numbers retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetentionLimits {
    /// Findings of one cause: the worst.
    pub(crate) findings: u16,
    /// HTTP exchanges: the longest, and up to half as many again between two prunings.
    pub(crate) exchanges: u16,
    /// Segments in flight, and acknowledgements, of one side: the newest.
    pub(crate) segments: u16,
}

impl RetentionLimits {
    /// Returns the limits for one of `flows` concurrent connections.
    pub(crate) fn among(flows: usize) -> Self {
        /// Findings of one cause, or exchanges, in all connections together.
        const ALL: usize = 1 << 13;
        /// Segments in all connections together.
        const SEGMENTS: usize = 1 << 18;
        let flows = flows.max(1);
        let each = ALL / flows;
        Self {
            findings: between(1, each, 64),
            exchanges: between(1, each, 16),
            segments: between(64, SEGMENTS / flows, 4_096),
        }
    }
}

impl Default for RetentionLimits {
    fn default() -> Self {
        Self::among(1)
    }
}

fn between(least: u16, number: usize, most: u16) -> u16 {
    u16::try_from(number).unwrap_or(most).clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_connections_retains_fewer_but_some() {
        assert_eq!(
            RetentionLimits::among(0),
            RetentionLimits { findings: 64, exchanges: 16, segments: 4_096 }
        );
        assert_eq!(
            RetentionLimits::among(64),
            RetentionLimits { findings: 64, exchanges: 16, segments: 4_096 }
        );
        assert_eq!(
            RetentionLimits::among(1_000),
            RetentionLimits { findings: 8, exchanges: 8, segments: 262 }
        );
        assert_eq!(
            RetentionLimits::among(1 << 20),
            RetentionLimits { findings: 1, exchanges: 1, segments: 64 }
        );
    }
}
