//! Reasons why the simulator and the kernel differ in a scenario: computed ones, and an unexplained rest.

use std::fmt;

use render::output::number;
use wire::Duration;

/// Mean reaction times of measured hosts, beyond the scenario's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTimes {
    /// From a response, or a SYN-ACK, to the client's next packet.
    pub client: Duration,
    /// From a request to its response.
    pub server: Duration,
}

/// Maximum ratio of two times that count as equal.
const NEAR: f64 = 1.05;

/// Whether two times are within [`NEAR`] of one another.
pub(crate) fn is_near(one_ms: f64, other_ms: f64) -> bool {
    one_ms <= other_ms * NEAR && other_ms <= one_ms * NEAR
}

/// Times of one scenario, and possible reasons for their difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Simulated time.
    pub simulated_ms: f64,
    /// Measured time.
    pub measured_ms: f64,
    /// Simulated with hosts that take the measured time.
    pub with_hosts_ms: f64,
    /// Half the width of the 95% confidence interval of the difference.
    pub spread_ms: f64,
    /// The measured hosts.
    pub hosts: HostTimes,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { simulated_ms, measured_ms, with_hosts_ms, spread_ms, hosts } = *self;
        let rest_ms = measured_ms - with_hosts_ms;
        let mut parts = Vec::new();
        if (with_hosts_ms - simulated_ms).abs() >= MIN_STATED_SHARE * (measured_ms - simulated_ms).abs() {
            let HostTimes { client, server } = hosts;
            parts.push(format!(
                "with hosts as slow as this machine's (client {}, server {} ms a reaction) the simulator takes {} ms",
                number::significant(client.as_millis_f64()),
                number::significant(server.as_millis_f64()),
                number::significant(with_hosts_ms),
            ));
        }
        if !is_near(with_hosts_ms, measured_ms) {
            let rest = number::significant(rest_ms.abs());
            parts.push(if rest_ms.abs() <= spread_ms {
                format!(
                    "{rest} ms are within the runs' spread (95%: ± {} ms)",
                    number::significant(spread_ms)
                )
            } else {
                format!("{rest} ms are unexplained; compare --pcap of simulate and measure")
            });
        }
        write!(f, "simulated/measured {:.2}: {}", simulated_ms / measured_ms, parts.join("; "))
    }
}

/// Minimum share of the difference for a reason to be stated.
const MIN_STATED_SHARE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: HostTimes =
        HostTimes { client: Duration::from_micros(120), server: Duration::from_micros(80) };

    #[test]
    fn host_times_spread_and_the_rest_are_distinguished() {
        let slow = Difference {
            simulated_ms: 10.0,
            measured_ms: 11.0,
            with_hosts_ms: 10.9,
            spread_ms: 0.0,
            hosts: HOSTS,
        };
        assert_eq!(
            slow.to_string(),
            "simulated/measured 0.91: with hosts as slow as this machine's (client 0.120, server 0.0800 ms a reaction) the \
             simulator takes 10.9 ms"
        );
        let random = Difference {
            simulated_ms: 100.0,
            measured_ms: 120.0,
            with_hosts_ms: 100.1,
            spread_ms: 30.0,
            hosts: HOSTS,
        };
        assert_eq!(
            random.to_string(),
            "simulated/measured 0.83: 19.9 ms are within the runs' spread (95%: ± 30.0 ms)"
        );
        let other = Difference { spread_ms: 5.0, ..random };
        assert!(
            other.to_string().ends_with("19.9 ms are unexplained; compare --pcap of simulate and measure")
        );
    }
}
