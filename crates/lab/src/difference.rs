//! Reasons why the simulator and the kernel differ in a scenario: computed ones, and an unexplained rest.
//!
//! The simulator runs again with hosts as slow as the measured ones. The rest may be the spread of the runs, where the
//! phase of a clock differs from run to run. Nothing here is fitted, and a rest without a reason is called unexplained.

use std::fmt;

use render::output::number;
use scenario::Scenario;
use simulate::web::{BrowserTimes, ServerTimes};
use simulate::{Hosts, simulate};
use wire::Duration;

use crate::{Outcome, Remark};

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

/// Adds to each measured outcome the reason why the simulated one of the same scenario differs, where it does.
pub fn explain(simulated: &[Outcome], measured: &mut [Outcome], hosts: &[Option<HostTimes>]) {
    for ((simulated, measured), hosts) in simulated.iter().zip(measured).zip(hosts) {
        let difference = hosts.and_then(|hosts| Difference::of(simulated, measured, hosts));
        measured.remarks.extend(difference.map(Remark::Difference));
    }
}

/// Whether two times are within [`NEAR`] of one another.
fn is_near(one_ms: f64, other_ms: f64) -> bool {
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

impl Difference {
    /// The difference of two outcomes of one scenario; `None` where they agree.
    fn of(simulated: &Outcome, measured: &Outcome, hosts: HostTimes) -> Option<Self> {
        let (simulated_ms, measured_ms) = (simulated.metrics.elapsed_ms?, measured.metrics.elapsed_ms?);
        if is_near(simulated_ms, measured_ms) {
            return None;
        }
        let spread_ms =
            simulated.interval95_ms.unwrap_or_default().hypot(measured.interval95_ms.unwrap_or_default());
        let with_hosts_ms = with_hosts(&simulated.scenario, hosts).unwrap_or(simulated_ms);
        Some(Self { simulated_ms, measured_ms, with_hosts_ms, spread_ms, hosts })
    }
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

/// Simulated time with these host times, in milliseconds.
fn with_hosts(scenario: &Scenario, times: HostTimes) -> Option<f64> {
    let HostTimes { client, server } = times;
    let mut scenario = scenario.clone();
    // The measured times include the wake-up.
    scenario.stack.packets.wake_up = Duration::ZERO;
    let hosts = Hosts {
        client: BrowserTimes {
            connection: client,
            request: client,
            kilobyte: Duration::ZERO,
            file: Duration::ZERO,
        },
        server: ServerTimes { request: server, ..ServerTimes::default() },
        ..Hosts::default()
    };
    // A measured page ends with the client's last reaction; a simulated one does not.
    Some(simulate(&scenario, hosts).ok()?.metrics.elapsed_ms? + client.as_millis_f64())
}

#[cfg(test)]
mod tests {
    use scenario::{Network, Page, Protocol, Stack};

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

    #[test]
    fn slow_hosts_slow_the_simulator_by_each_reaction() {
        let scenario = Scenario::new(
            Network::named("ethernet").unwrap(),
            Page::named("small-cluster").unwrap(),
            Protocol::Http11,
            Stack::named("linux").unwrap(),
        );
        let times =
            |ms| HostTimes { client: Duration::from_millis(ms), server: Duration::from_millis(2 * ms) };
        let [none, one] = [0, 1].map(|ms| with_hosts(&scenario, times(ms)).unwrap());
        // A connection, three requests and the end of the page; three responses of 2 ms.
        let added = one - none;
        assert!((9.0..=11.5).contains(&added), "{added}");
    }
}
