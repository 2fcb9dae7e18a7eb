//! Figures of a run that the rules compare.

use render::output::number::significant;

use crate::bottleneck::{has_late_seconds, has_seconds_behind, is_late_throughout, is_void};
use crate::evidence::{CpuShare, Evidence, ServerUsage, Stage};
use crate::record::{FailureReason, Record};

/// A run, and figures derived from it.
pub(super) struct Figures<'a> {
    pub(super) record: &'a Record,
    pub(super) url: &'a str,
    pub(super) evidence: &'a Evidence,
    pub(super) responses: u64,
    /// Successful and failed requests.
    pub(super) requests: u64,
    /// Responses of any status per second.
    pub(super) rate: f64,
    /// Service time, mean and median, in milliseconds.
    pub(super) mean_ms: f64,
    pub(super) p50_ms: f64,
    /// Mean wait for a connection, in milliseconds.
    pub(super) wait_ms: f64,
}

/// Minimum number of responses of a stage whose median counts.
const FEW: u64 = 3;
/// Share of the CPUs that counts as all of them.
const FULL: f64 = 0.85;
/// Minimum part of a demand for CPUs that ran.
const WORK: f64 = 0.25;
/// The same of one thread that is always ready: it has work, however little of a CPU other programs leave to it.
const WORK_OF_THREAD: f64 = 0.1;

impl<'a> Figures<'a> {
    pub(super) fn of(record: &'a Record, url: &'a str) -> Self {
        let mean = |of: &crate::record::Latencies| if of.is_empty() { 0.0 } else { of.mean() / 1e6 };
        let (responses, failures) = (record.responses(), record.failures());
        let (mean_ms, response_ms) = (mean(&record.experienced), mean(&record.intended));
        let seconds = record.elapsed.as_secs_f64();
        Self {
            record,
            url,
            evidence: &record.evidence,
            responses,
            requests: responses + failures,
            rate: if seconds > 0.0 { responses as f64 / seconds } else { 0.0 },
            mean_ms,
            p50_ms: record.experienced.value_at_quantile(0.5) as f64 / 1e6,
            wait_ms: (response_ms - mean_ms).max(0.0),
        }
    }

    pub(super) fn failed(&self, reason: FailureReason) -> u64 {
        self.record.failure_counts.get(&reason).copied().unwrap_or(0)
    }

    /// Requests in flight on average, by Little's law.
    pub(super) fn in_flight(&self) -> f64 {
        self.rate * self.mean_ms / 1e3
    }

    /// The stage with one user, if it has enough responses.
    pub(super) fn unloaded(&self) -> Option<Stage> {
        let first = self.evidence.ramp.first().copied();
        first.filter(|stage| stage.users == 1 && stage.responses >= FEW)
    }

    /// The stage with the most users.
    pub(super) fn last_stage(&self) -> Option<Stage> {
        self.evidence.ramp.last().copied().filter(|stage| stage.responses >= FEW)
    }

    /// Service time as a multiple of that without load.
    pub(super) fn growth(&self) -> Option<f64> {
        let unloaded = self.unloaded()?;
        (unloaded.median_ms > 0.0).then(|| self.p50_ms / unloaded.median_ms)
    }

    /// Throughput as a multiple of that with fewer users.
    pub(super) fn gain(&self) -> Option<f64> {
        let stage = self.last_stage()?;
        (stage.rate > 0.0).then(|| self.rate / stage.rate)
    }

    /// Whether a closed loop has more users than the server serves concurrently.
    fn closed_is_saturated(&self) -> Option<bool> {
        let (growth, gain) = (self.growth()?, self.gain()?);
        Some((growth >= 1.5 && gain <= 1.25) || (growth >= 2.0 && gain <= 1.4) || growth >= 4.0)
    }

    /// Whether requests of an open schedule wait for a connection, or remain without a response.
    pub(super) fn has_backlog(&self) -> bool {
        let waits = self.wait_ms > 0.5 * self.mean_ms && self.wait_ms > 5.0;
        waits || has_seconds_behind(self.record)
    }

    /// Whether requests queue; `None` if the run does not show it.
    pub(super) fn is_saturated(&self) -> Option<bool> {
        if !self.evidence.shape.is_open {
            return self.closed_is_saturated();
        }
        match (self.has_backlog(), self.growth()) {
            (false, _) => Some(false),
            (true, Some(growth)) => Some(growth >= 1.5),
            (true, None) => None,
        }
    }

    /// The server's usage, if it listens on this host and is not this program.
    pub(super) fn server(&self) -> Option<&ServerUsage> {
        self.evidence.server.as_ref()
    }

    /// Whether the server had as many CPUs as it can use: all that it may use, or one thread that never waits for anything
    /// else, or one CPU in all, as with a global lock.
    pub(super) fn server_is_full(&self) -> bool {
        self.server().is_some_and(|server| {
            // Many threads that wake for a moment wait together on a busy host, without work.
            let has_work = |share: CpuShare, work: f64| share.used >= work * share.demand();
            let (all, busiest) = (server.all, server.busiest);
            (has_work(busiest, WORK_OF_THREAD) && busiest.demand() >= FULL)
                || (has_work(all, WORK)
                    && (all.demand() >= FULL * server.cpus || (FULL..1.3).contains(&all.demand())))
        })
    }

    /// CPU time of the server for a response, in milliseconds.
    pub(super) fn cpu_ms(&self) -> Option<f64> {
        Some(self.server()?.all.used / self.rate.max(1e-9) * 1e3)
    }

    /// Time in which the server's threads waited for a CPU, for a response, in milliseconds; 0 where it is not visible.
    pub(super) fn cpu_wait_ms(&self) -> f64 {
        self.server().map_or(0.0, |server| server.all.waited / self.rate.max(1e-9) * 1e3)
    }

    /// Whether the generator was late, by a significant part of the latency.
    pub(super) fn is_late(&self) -> bool {
        let is_relevant = self.record.intended.is_empty() || is_void(self.record);
        is_relevant && (has_late_seconds(self.record) || is_late_throughout(self.record))
    }

    /// Whether a thread of the generator used a whole CPU in most seconds, or waited for one.
    pub(super) fn generator_is_full(&self) -> bool {
        let generator = self.evidence.generator;
        let seconds = &self.record.seconds;
        let busy = seconds.iter().filter(|second| second.cpu_share > BUSY).count();
        generator.used >= 0.9
            || (generator.waited >= 0.3 && generator.demand() >= 0.5)
            || busy * 2 > seconds.len()
    }

    /// Part of the service time after the header section, from 0 to 1; and the mean of that time in milliseconds.
    pub(super) fn transfer(&self) -> Option<[f64; 2]> {
        let first = self.evidence.first_byte.mean_ms()?;
        let transfer = (self.mean_ms - first).max(0.0);
        (self.mean_ms > 0.0).then(|| [transfer / self.mean_ms, transfer])
    }

    /// Mean round trip time beyond the minimum, in milliseconds, of the ends that measured it; and the minimum.
    pub(super) fn path_queue(&self) -> Option<[f64; 2]> {
        let sockets = &self.evidence.sockets;
        let min = sockets.min_round_trip_ms;
        let beyond =
            |total: crate::evidence::Total| total.mean_ms().map_or(0.0, |mean| (mean - min).max(0.0));
        // The client's measurements include the server's delay of an acknowledgement, up to 40 ms.
        let client = Some(beyond(sockets.round_trip)).filter(|queue| *queue > DELAYED_ACK_MS);
        let server = beyond(sockets.server_round_trip);
        (min > 0.0).then(|| [client.unwrap_or(0.0).max(server), min])
    }

    /// Little's law in numbers.
    pub(super) fn little(&self) -> String {
        format!(
            "{} in flight = {} a second x {}",
            significant(self.in_flight()),
            significant(self.rate),
            ms(self.mean_ms)
        )
    }

    /// The ramp in numbers.
    pub(super) fn ramp(&self) -> String {
        let stages = self.evidence.ramp.iter().map(|stage| {
            let users = if stage.users == 1 { "1 user".to_owned() } else { format!("{} users", stage.users) };
            format!("{users}: {} a second at {}", significant(stage.rate), ms(stage.median_ms))
        });
        let own = format!(
            "{}: {} a second at {} (50%)",
            if self.evidence.shape.is_open {
                "this run".to_owned()
            } else {
                format!("{} users", self.evidence.shape.users)
            },
            significant(self.rate),
            ms(self.p50_ms)
        );
        stages.chain([own]).collect::<Vec<_>>().join("; ")
    }

    /// The server's CPUs in words; `None` if its processes are not visible.
    pub(super) fn server_cpu(&self) -> Option<String> {
        let ServerUsage { program, pid, processes, all, busiest, cpus } = self.server()?;
        let waited = match all.waited {
            waited if waited >= 0.1 => format!(" and waited for {waited:.2} more"),
            _ => String::new(),
        };
        let processes = if *processes > 1 { format!(", {processes} processes") } else { String::new() };
        Some(format!(
            "the server ({program}, process {pid}{processes}) used {:.2} of {cpus} CPUs{waited}; its busiest thread {:.2}",
            all.used, busiest.used
        ))
    }
}

/// Share of a second beyond which a thread has no CPU time left.
const BUSY: f64 = 0.95;
/// Delayed acknowledgement of Linux with the clock's tick, in milliseconds.
const DELAYED_ACK_MS: f64 = 45.0;

/// Milliseconds with their unit.
pub(super) fn ms(value: f64) -> String {
    format!("{} ms", significant(value))
}
