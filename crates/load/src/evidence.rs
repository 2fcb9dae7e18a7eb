//! Evidence of a run beside its latencies: connections, sockets, CPUs. [`crate::attribution`] judges it.
//!
//! Sums and counts, so that threads and shards merge. HTTP/1 alone has the times of connections and first bytes.

use serde::{Deserialize, Serialize};
use wire::Duration;

/// Evidence of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Form of the load.
    pub shape: Shape,
    /// Short runs with fewer users before this one, in increasing number of users.
    pub ramp: Vec<Stage>,
    /// Time from sending a request to the header section of its response; HTTP/1.
    pub first_byte: Total,
    /// Time from SYN to an open connection; HTTP/1.
    pub connect: Total,
    /// Connections of these that took longer than the first retransmission of a SYN.
    pub slow_connects: u64,
    /// Open connections whose first request had no response when the schedule ended.
    pub unserved: u64,
    /// Samples of the kernel's statistics of the connections.
    pub sockets: SocketSamples,
    /// Counters of this host.
    pub host: HostCounters,
    /// Processes that listen at the server's port on this host; `None` if none is visible.
    pub server: Option<ServerUsage>,
    /// The busiest thread of the generator, in CPUs.
    pub generator: CpuShare,
}

/// Form of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shape {
    /// Whether requests are due at given times, whatever the server does.
    pub is_open: bool,
    /// Number of users.
    pub users: u64,
    /// Maximum number of requests in flight; 0 without a limit.
    pub max_in_flight: u64,
}

/// A short closed loop before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Number of users.
    pub users: u64,
    /// Number of responses.
    pub responses: u64,
    /// Responses per second.
    pub rate: f64,
    /// Median service time in milliseconds.
    pub median_ms: f64,
}

/// Number of durations, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Number.
    pub count: u64,
    /// Sum in nanoseconds.
    pub nanos: u64,
}

impl Total {
    /// Adds a duration.
    pub(crate) fn add(&mut self, duration: Duration) {
        self.count += 1;
        self.nanos = self.nanos.saturating_add(duration.as_nanos());
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.nanos = self.nanos.saturating_add(other.nanos);
    }

    /// Mean in milliseconds; `None` without durations.
    pub fn mean_ms(self) -> Option<f64> {
        (self.count > 0).then(|| self.nanos as f64 / self.count as f64 / 1e6)
    }
}

/// Samples of the kernel's statistics (TCP_INFO) of connections to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketSamples {
    /// Number of times that the sockets were listed.
    pub lists: u64,
    /// Smoothed round trip times of the clients' ends, as time samples.
    pub round_trip: Total,
    /// Smoothed round trip times of the server's ends on this host that have sent more than a segment.
    pub server_round_trip: Total,
    /// Minimum round trip time of any connection, in milliseconds; 0 if unknown.
    pub min_round_trip_ms: f64,
    /// Segments retransmitted by either end on this host.
    pub retransmitted: u64,
    /// Segments that the clients' ends received out of order.
    pub out_of_order: u64,
    /// Connections that waited in the server's accept queue, added up over all lists; of a server on this host.
    pub unaccepted: u64,
    /// Maximum number of connections in the accept queue; of a server on this host.
    pub max_accept_queue: u64,
    /// Length of that queue; 0 if the server is not on this host.
    pub backlog: u64,
}

/// Changes of this host's counters during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostCounters {
    /// Number of CPUs.
    pub cpus: f64,
    /// CPUs that were busy on average, by all programs.
    pub busy: f64,
    /// TCP segments retransmitted in this network namespace.
    pub retransmitted: u64,
    /// Connections refused because an accept queue was full, in this network namespace.
    pub listen_overflows: u64,
}

/// CPU time per elapsed time, in CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuShare {
    /// Time on a CPU.
    pub used: f64,
    /// Time in which it was ready to run and waited for a CPU; 0 if the kernel does not report it.
    pub waited: f64,
}

impl CpuShare {
    /// CPUs that it would have used on an idle host.
    pub fn demand(self) -> f64 {
        self.used + self.waited
    }
}

/// CPU usage of the processes that listen at the server's port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerUsage {
    /// Name of the program.
    pub program: String,
    /// The process with the most CPU time.
    pub pid: u32,
    /// Number of processes.
    pub processes: u64,
    /// All of them together.
    pub all: CpuShare,
    /// The busiest thread.
    pub busiest: CpuShare,
    /// CPUs that they may use.
    pub cpus: f64,
}

/// Maximum length of a program's name, and number of stages, in a log.
const MAX_NAME_BYTES: usize = 256;
const MAX_STAGES: usize = 100;

impl Evidence {
    /// Whether all counts are at most `max`, and all other figures in the range of a real run: a log may have any.
    pub(crate) fn is_plausible(&self, max: u64) -> bool {
        let Self {
            shape,
            ramp,
            first_byte,
            connect,
            slow_connects,
            unserved,
            sockets,
            host,
            server,
            generator,
        } = self;
        let is_short = |total: &Total| total.count <= max && total.nanos <= u64::MAX >> 16;
        let totals = [first_byte, connect, &sockets.round_trip, &sockets.server_round_trip];
        let mut counts = vec![shape.users, shape.max_in_flight, *slow_connects, *unserved, sockets.lists];
        counts.extend([sockets.retransmitted, sockets.out_of_order, sockets.unaccepted]);
        counts.extend([sockets.max_accept_queue, sockets.backlog, host.retransmitted, host.listen_overflows]);
        counts.extend(ramp.iter().flat_map(|stage| [stage.users, stage.responses]));
        let mut figures = vec![sockets.min_round_trip_ms, host.cpus, host.busy];
        figures.extend([generator.used, generator.waited]);
        figures.extend(ramp.iter().flat_map(|stage| [stage.rate, stage.median_ms]));
        if let Some(ServerUsage { program, pid: _, processes, all, busiest, cpus }) = server {
            counts.push(*processes);
            figures.extend([all.used, all.waited, busiest.used, busiest.waited, *cpus]);
            if program.contains(char::is_control) || program.len() > MAX_NAME_BYTES {
                return false;
            }
        }
        ramp.len() <= MAX_STAGES
            && totals.into_iter().all(is_short)
            && counts.into_iter().all(|count| count <= max)
            && figures.into_iter().all(|figure| (0.0..=1e9).contains(&figure))
    }

    /// Adds another part of the same run, or another shard.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self {
            shape,
            ramp,
            first_byte,
            connect,
            slow_connects,
            unserved,
            sockets,
            host,
            server,
            generator,
        } = other;
        self.shape.is_open |= shape.is_open;
        self.shape.users = self.shape.users.max(shape.users);
        self.shape.max_in_flight += shape.max_in_flight;
        if self.ramp.is_empty() {
            self.ramp = ramp;
        }
        self.first_byte.merge(first_byte);
        self.connect.merge(connect);
        self.slow_connects += slow_connects;
        self.unserved += unserved;
        self.sockets.merge(sockets);
        self.host = HostCounters {
            cpus: self.host.cpus.max(host.cpus),
            busy: self.host.busy.max(host.busy),
            retransmitted: self.host.retransmitted.max(host.retransmitted),
            listen_overflows: self.host.listen_overflows.max(host.listen_overflows),
        };
        self.server = self.server.take().or(server);
        if generator.demand() > self.generator.demand() {
            self.generator = generator;
        }
    }
}

impl SocketSamples {
    fn merge(&mut self, other: Self) {
        let Self {
            lists,
            round_trip,
            server_round_trip,
            min_round_trip_ms,
            retransmitted,
            out_of_order,
            unaccepted,
            max_accept_queue,
            backlog,
        } = other;
        self.lists += lists;
        self.round_trip.merge(round_trip);
        self.server_round_trip.merge(server_round_trip);
        self.min_round_trip_ms = match (self.min_round_trip_ms, min_round_trip_ms) {
            (0.0, known) | (known, 0.0) => known,
            (one, other) => one.min(other),
        };
        self.retransmitted += retransmitted;
        self.out_of_order += out_of_order;
        self.unaccepted += unaccepted;
        self.max_accept_queue = self.max_accept_queue.max(max_accept_queue);
        self.backlog = self.backlog.max(backlog);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_run_add_up_and_an_unknown_round_trip_is_not_the_minimum() {
        let part = |min, count| Evidence {
            first_byte: Total { count, nanos: 2_000_000 * count },
            sockets: SocketSamples { min_round_trip_ms: min, ..SocketSamples::default() },
            generator: CpuShare { used: min, waited: 0.0 },
            ..Evidence::default()
        };
        let mut whole = part(0.0, 1);
        whole.merge(part(0.5, 3));
        whole.merge(part(0.2, 0));
        assert_eq!(whole.first_byte.mean_ms(), Some(2.0));
        assert_eq!((whole.sockets.min_round_trip_ms, whole.generator.used), (0.2, 0.5));
        assert_eq!(Total::default().mean_ms(), None);
    }
}
