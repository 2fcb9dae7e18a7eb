//! Attribution of a run's time: no time is counted twice, and no impossible cause is named.

use scenario::{Client, Connection, Network, Page, Protocol, Requests, Scenario, Server, Stack};
use simulate::{Experiment, Hosts};
use wire::link::Loss;
use wire::{Bytes, Duration, Probability, Seed};

fn scenario(network: &str, page: &str, protocol: Protocol, stack: &str) -> Scenario {
    Scenario {
        server: Server { processing: Duration::from_millis(3) },
        seed: Seed::new(3),
        ..Scenario::new(
            Network::named(network).unwrap(),
            Page::named(page).unwrap(),
            protocol,
            Stack::named(stack).unwrap(),
        )
    }
}

/// Causes and the cost of each, in milliseconds; the total, and the useful time.
fn account(scenario: &Scenario, writes: Hosts) -> (Vec<(String, f64)>, f64, f64) {
    let experiment = Experiment::new(scenario, writes).unwrap();
    let fetched = experiment.run(0, true).unwrap();
    let spent = experiment.spent(&fetched);
    let mut until = 0.0;
    for stall in &spent.stalls {
        assert!(stall.lost_ms > 0.0 && stall.at_ms >= until - 1e-6, "{stall:?} begins before {until}");
        until = stall.at_ms + stall.lost_ms;
    }
    let elapsed = fetched.elapsed.unwrap().as_millis_f64();
    assert!(until <= elapsed + 1e-6, "{until} is after {elapsed}");
    let stalls =
        spent.stalls.into_iter().map(|stall| (stall.cause.name().to_owned(), stall.lost_ms)).collect();
    (stalls, elapsed, spent.working.as_millis_f64())
}

#[test]
fn stalls_do_not_overlap_each_other_or_useful_time() {
    for network in Network::listings().map(|listing| listing.name) {
        for protocol in
            [Protocol::Http10, Protocol::Http10KeepAlive, Protocol::Http11Pipelined, Protocol::Ttcp]
        {
            for stack in ["sunos-4.1.3", "solaris-2.5", "linux"] {
                for page in ["small-cluster", "medium-page"] {
                    let scenario = scenario(network, page, protocol, stack);
                    let (stalls, elapsed, working) = account(&scenario, Hosts::default());
                    let lost: f64 = stalls.iter().map(|(_, lost)| lost).sum();
                    assert!(lost + working <= elapsed + 1e-6, "{scenario:?}");
                    let is_loss = |cause: &str| cause.ends_with("retransmit") || cause.ends_with("timeout");
                    assert!(!stalls.iter().any(|(cause, _)| is_loss(cause)), "{network} {stack}: {stalls:?}");
                    let think = stalls.iter().filter(|(cause, _)| cause == "server-think");
                    assert!(think.count() > 0, "{network} {protocol:?} {stack} {stalls:?}");
                }
            }
        }
    }
}

#[test]
fn no_time_is_counted_twice_with_several_connections_or_loss() {
    for (seed, connection) in (0..16).zip([Connection::Cold, Connection::Warm].into_iter().cycle()) {
        for protocol in [Protocol::Http10, Protocol::Http11Parallel] {
            let mut scenario = scenario("adsl", "large-cluster", protocol, "period");
            scenario.seed = Seed::new(seed);
            let both = [&mut scenario.network.up, &mut scenario.network.down];
            for direction in both {
                direction.loss = Loss::Independent(Probability::new(0.05).unwrap());
            }
            scenario.client =
                Client { requests: Requests::Independent, parallel: 4, connection, ..scenario.client };
            let (stalls, elapsed, working) = account(&scenario, Hosts::default());
            let lost: f64 = stalls.iter().map(|(_, lost)| lost).sum();
            assert!(lost + working <= elapsed + 1e-6, "{scenario:?}");
        }
    }
}

#[test]
fn limiting_cause_is_named() {
    let causes = |scenario: &Scenario| -> Vec<String> {
        let (stalls, _, _) = account(scenario, Hosts::default());
        let mut causes: Vec<String> = stalls.into_iter().map(|(cause, _)| cause).collect();
        causes.dedup();
        causes
    };
    let plain = scenario("direcpc", "medium-page", Protocol::Http10, "linux");
    let expected = ["connection-setup", "server-think", "slow-start"];
    assert_eq!(causes(&plain), expected);

    let mut small_window = plain.clone();
    small_window.stack.receive_buffer = Some(Bytes::new(4_096));
    assert!(causes(&small_window).contains(&"receive-window-limited".to_owned()));

    let mut small_buffer = plain;
    small_buffer.stack.packets.send_buffer = Bytes::new(4_096);
    assert!(causes(&small_buffer).contains(&"send-buffer-limited".to_owned()));
}
