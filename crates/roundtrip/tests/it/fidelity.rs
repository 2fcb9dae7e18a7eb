//! Stacks that `measure` accepts although the kernel has a part of them in another form: the packets are the same.
//!
//! The kernel's form of each part replaces the stack's, and both are simulated: a substitution that `measure::fidelity`
//! accepts must not change a segment. `conformance` tests the kernel itself.

use measure::fidelity;
use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts};
use tcp::stack::packets::{BufferOccupancy, Nagle, Packets, Recovery, Rto};
use wire::Duration;

const PROTOCOLS: [Protocol; 5] = [
    Protocol::Http10,
    Protocol::Http10KeepAlive,
    Protocol::Http11,
    Protocol::Http11Pipelined,
    Protocol::Dhttp,
];

/// Linux's form of a stack of 1996, apart from settings and shims.
fn as_the_kernel_has_it(stack: &Stack) -> Stack {
    let linux = Stack::LINUX.packets;
    let packets = Packets {
        nagle: Nagle::Minshall,
        initial_threshold: None,
        recovery: if stack.sack { Recovery::Rack } else { Recovery::NewReno },
        // `rto_min` of the route, where ACKs are held.
        rto: Rto { min: if stack.sack { linux.rto.min } else { Duration::from_secs(1) }, ..linux.rto },
        termination: linux.termination,
        ..stack.packets.clone()
    };
    Stack { packets, ..stack.clone() }
}

/// Linux's send buffer, which grows to the stack's.
fn with_its_send_buffer(stack: &Stack) -> Stack {
    let packets = Packets {
        send_buffer: Stack::LINUX.packets.send_buffer,
        occupancy: BufferOccupancy::Unacknowledged,
        unsent_limit: None,
        ..stack.packets.clone()
    };
    Stack { packets, ..stack.clone() }
}

/// Every packet of a run, as text.
fn packets(scenario: &Scenario) -> Vec<String> {
    let fetched = Experiment::new(scenario, Hosts::default()).unwrap().run(0, true).unwrap();
    fetched.records.iter().map(|record| format!("{record:?}")).collect()
}

/// Every combination of network, page, protocol and stack that `measure` accepts, and the number that it refuses.
fn accepted_scenarios() -> (Vec<Scenario>, usize) {
    let (mut accepted, mut refused) = (Vec::new(), 0);
    for network in Network::all() {
        for page in ["small-cluster", "microscape"].map(|name| Page::named(name).unwrap()) {
            for (protocol, stack) in
                PROTOCOLS.into_iter().flat_map(|protocol| Stack::ALL.map(|stack| (protocol, stack)))
            {
                let scenario = Scenario::new(network.clone(), page.clone(), protocol, stack.clone());
                match fidelity::check(&scenario, true) {
                    Ok(()) => accepted.push(scenario),
                    Err(_) => refused += 1,
                }
            }
        }
    }
    (accepted, refused)
}

fn name(scenario: &Scenario) -> String {
    let Scenario { network, page, protocol, stack, .. } = scenario;
    format!("{} {} {} {}", stack.name, network.name, page.name, protocol.name())
}

#[test]
fn accepted_substitutions_by_the_kernels_form_change_no_packet() {
    let (accepted_scenarios, refused) = accepted_scenarios();
    let changes = |scenario: &&Scenario| {
        let kernel = Scenario { stack: as_the_kernel_has_it(&scenario.stack), ..(*scenario).clone() };
        packets(scenario) != packets(&kernel)
    };
    let changed: Vec<String> = accepted_scenarios.iter().filter(changes).map(name).collect();
    assert!(changed.is_empty(), "{} of {}: {changed:#?}", changed.len(), accepted_scenarios.len());
    assert!(
        accepted_scenarios.len() > 200 && refused > accepted_scenarios.len(),
        "{} honoured, {refused} refused",
        accepted_scenarios.len()
    );
}

#[test]
fn the_kernels_send_buffer_changes_no_page_by_more_than_a_fiftieth() {
    let elapsed = |scenario: &Scenario| {
        let fetched = Experiment::new(scenario, Hosts::default()).unwrap().run(0, false).unwrap();
        fetched.elapsed.unwrap().as_millis_f64()
    };
    for scenario in accepted_scenarios().0 {
        let kernel = Scenario { stack: with_its_send_buffer(&scenario.stack), ..scenario.clone() };
        let ratio = elapsed(&kernel) / elapsed(&scenario);
        assert!((0.98..=1.02).contains(&ratio), "{}: {ratio}", name(&scenario));
    }
}
