//! One second of a run, and its bottleneck: the generator, the network, the server, or none.
//!
//! A load generator that was late, or whose threads had no CPU time left, has measured itself; its latencies are not the
//! server's.

use hdrhistogram::Histogram;

/// One second of a run.
#[derive(Clone, Debug)]
pub struct Second {
    /// Requests that were due in it.
    pub due: u64,
    /// Requests of these that the generator sent more than a millisecond late.
    pub late: u64,
    /// Responses that were completed in it.
    pub responses: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Bytes of bodies in responses.
    pub bytes: u64,
    /// Response times from when requests were due, in nanoseconds.
    pub intended: Histogram<u32>,
    /// The maximum CPU share of a thread of the generator, from 0 to 1.
    pub cpu_share: f64,
    /// Connections that were opened in it.
    pub opened: u64,
    /// The maximum of open connections in it: of each thread, added up.
    pub open: u64,
    /// Datagrams that this host's kernel dropped in it.
    pub dropped: u64,
    /// The worst bottleneck that any generator reported for this second.
    pub worst: Bottleneck,
}

impl Default for Second {
    fn default() -> Self {
        Self {
            due: 0,
            late: 0,
            responses: 0,
            failed: 0,
            bytes: 0,
            intended: Histogram::new_with_bounds(1, MAX_NANOS, 2).expect("the bounds are in order"),
            cpu_share: 0.0,
            opened: 0,
            open: 0,
            dropped: 0,
            worst: Bottleneck::Nothing,
        }
    }
}

impl Second {
    /// Adds the same second of another part of the run.
    pub(crate) fn add(&mut self, other: Self) {
        let Self { due, late, responses, failed, bytes, intended, cpu_share, opened, open, dropped, worst } =
            other;
        self.due += due;
        self.late += late;
        self.responses += responses;
        self.failed += failed;
        self.bytes += bytes;
        self.intended.add(intended).expect("all of them have the same bounds");
        self.cpu_share = self.cpu_share.max(cpu_share);
        self.opened += opened;
        self.open += open;
        self.dropped += dropped;
        self.worst = self.worst.max(worst);
    }
}

/// Maximum latency of a histogram: an hour, in nanoseconds.
pub(crate) const MAX_NANOS: u64 = 3_600_000_000_000;

/// Bottleneck of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bottleneck {
    /// Every response came in time.
    Nothing,
    /// The server left more requests without a response than before.
    Server,
    /// Datagrams dropped by this host's kernel.
    Network,
    /// Requests were sent late, or a thread was busy all the time.
    Generator,
}

impl Bottleneck {
    /// Every bottleneck, the worst last.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Server, Self::Network, Self::Generator];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Server => "server",
            Self::Network => "network",
            Self::Generator => "generator",
        }
    }
}

/// Share of requests that may be late by chance.
const LATE_SHARE: f64 = 0.01;
/// Share of a second beyond which a thread has no CPU time left.
const BUSY: f64 = 0.95;
/// Share of the requests due that a server may leave for the next second.
const LEFT_SHARE: f64 = 0.05;
/// Maximum number of late requests without significance.
const FEW: u64 = 10;

/// Bottleneck of this second.
pub fn limit(second: &Second) -> Bottleneck {
    let Second {
        due,
        late,
        responses,
        failed,
        bytes: _,
        intended: _,
        cpu_share,
        opened: _,
        open: _,
        dropped,
        worst,
    } = second;
    let done = responses + failed;
    let own = if is_late(*late, *due) || *cpu_share > BUSY {
        Bottleneck::Generator
    } else if *dropped > 0 {
        Bottleneck::Network
    } else if is_behind(*due, done) {
        Bottleneck::Server
    } else {
        Bottleneck::Nothing
    };
    own.max(*worst)
}

/// Whether a second left requests without a response.
pub(crate) fn is_behind(due: u64, done: u64) -> bool {
    due > done + FEW && (due - done) as f64 > LEFT_SHARE * due as f64
}

/// Whether this many late requests show that the generator is late. A single late wake-up of a thread delays all
/// objects of a page together.
pub(crate) fn is_late(late: u64, due: u64) -> bool {
    late as f64 > LATE_SHARE * due as f64 && (late > FEW || late * 2 > due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_bottlenecks_is_named() {
        let second = |due, late, responses, cpu_share, dropped| {
            limit(&Second { due, late, responses, cpu_share, dropped, ..Second::default() })
        };
        assert_eq!(second(1_000, 10, 1_000, 0.5, 0), Bottleneck::Nothing);
        assert_eq!(second(1_000, 11, 1_000, 0.5, 9), Bottleneck::Generator);
        // One late page of ten objects, and a generator that is always late.
        assert_eq!(second(118, 10, 118, 0.5, 0), Bottleneck::Nothing);
        assert_eq!(second(8, 5, 8, 0.5, 0), Bottleneck::Generator);
        assert_eq!(second(1_000, 0, 1_000, 0.96, 0), Bottleneck::Generator);
        assert_eq!(second(1_000, 0, 500, 0.5, 1), Bottleneck::Network);
        assert_eq!(second(1_000, 0, 949, 0.5, 0), Bottleneck::Server);
        assert_eq!(second(1_000, 0, 951, 0.5, 0), Bottleneck::Nothing);
        assert_eq!(second(5, 0, 0, 0.5, 0), Bottleneck::Nothing);
    }
}
