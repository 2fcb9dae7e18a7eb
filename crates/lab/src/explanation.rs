//! The search for reasons why the simulator and the kernel differ.
//!
//! The simulator runs again with hosts as slow as the measured ones. The rest may be the spread of the runs, where the
//! phase of a clock differs from run to run. Nothing here is fitted, and a rest without a reason is called unexplained.

use scenario::Scenario;
use simulate::web::{BrowserTimes, ServerTimes};
use simulate::{Hosts, simulate};
use wire::Duration;

use crate::difference::{Difference, HostTimes, is_near};
use crate::{Outcome, Remark};

/// Adds to each measured outcome the reason why the simulated one of the same scenario differs, where it does.
pub fn explain(simulated: &[Outcome], measured: &mut [Outcome], hosts: &[Option<HostTimes>]) {
    for ((simulated, measured), hosts) in simulated.iter().zip(measured).zip(hosts) {
        let difference = hosts.and_then(|hosts| difference(simulated, measured, hosts));
        measured.remarks.extend(difference.map(Remark::Difference));
    }
}

/// The difference of two outcomes of one scenario; `None` where they agree.
fn difference(simulated: &Outcome, measured: &Outcome, hosts: HostTimes) -> Option<Difference> {
    let (simulated_ms, measured_ms) = (simulated.metrics.elapsed_ms?, measured.metrics.elapsed_ms?);
    if is_near(simulated_ms, measured_ms) {
        return None;
    }
    let spread_ms =
        simulated.interval95_ms.unwrap_or_default().hypot(measured.interval95_ms.unwrap_or_default());
    let with_hosts_ms = with_hosts(&simulated.scenario, hosts).unwrap_or(simulated_ms);
    Some(Difference { simulated_ms, measured_ms, with_hosts_ms, spread_ms, hosts })
}

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
