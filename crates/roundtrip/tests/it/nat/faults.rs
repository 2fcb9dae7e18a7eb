//! Faults around a helper: lost packets, routes that fail and return, a killed helper.
//!
//! No wrong bytes, and nothing hangs: a response is complete, or its failure is reported. The long variants count the
//! failures; studies/proxies has the figures.

use wire::Seed;

use super::lab::{Fetch, Lab, available, sh};
use super::translation;

/// Number of complete responses.
fn count_complete(fetches: Vec<Fetch>) -> usize {
    fetches.into_iter().filter_map(|fetch| fetch.completes().then_some(())).count()
}

/// Rules that drop this percentage of the packets that enter the router: of each hundred, those at places that a seed gives.
///
/// The kernel's own random numbers would make the test take 3 s or 60 s.
fn lossy(percent: usize) -> String {
    let mut random = Seed::default().stream("loss", 0);
    let mut places: Vec<(u64, usize)> = (0..100).map(|place| (random.next_u64(), place)).collect();
    places.sort_unstable();
    let lost: Vec<String> = places.iter().take(percent).map(|(_, place)| place.to_string()).collect();
    format!(
        "table inet loss {{ chain every {{ type filter hook prerouting priority -450; iifname {{ \"lan\", \"wan\" }} \
         numgen inc mod 100 {{ {} }} drop\n}}\n}}",
        lost.join(", ")
    )
}

/// Removes and restores the route to the server, `times` times for 0.3 seconds.
fn flap(lab: &Lab, times: u32) {
    let route = "blackhole 11.0.100.2/32";
    sh(
        &lab.router,
        &format!(
            "( for i in $(seq {times}); do ip route add {route}; sleep 0.15; ip route del {route}; sleep 0.15; done ) \
             > /dev/null 2>&1 &"
        ),
    );
}

fn with_loss(flags: &[&str], count: usize) -> usize {
    let lab = Lab::new();
    if flags.is_empty() || flags == ["--by-id"] {
        lab.rules(&translation("port-restricted"));
    } else {
        sh(&lab.world, "ip route add 10.0.0.0/24 via 11.0.100.1");
    }
    lab.rules(&lossy(30));
    let _server = lab.serve(&[]);
    let nat = lab.nat(flags);
    let completed = count_complete(lab.begin(count));
    assert!(nat.stop().0);
    completed
}

#[test]
fn with_thirty_percent_lost_nothing_is_wrong_and_nothing_hangs() {
    if !available() {
        return;
    }
    let completed = with_loss(&[], 8);
    assert!(completed > 4, "{completed} of 8");
}

#[test]
#[ignore = "minutes of waiting; studies/proxies has what it counted"]
fn with_thirty_percent_lost_in_every_mode() {
    if !available() {
        return;
    }
    for flags in
        [&[][..], &["--by-id"], &["--firewall", "--closed"], &["--firewall", "--closed", "--any-cache"]]
    {
        let completed = with_loss(flags, 100);
        println!("{flags:?}: {completed} of 100 whole");
    }
}

fn with_flapping(count: usize, times: u32) -> usize {
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let _server = lab.serve(&[]);
    let _nat = lab.nat(&[]);
    flap(&lab, times);
    count_complete(lab.begin(count))
}

#[test]
fn a_route_that_fails_and_returns_costs_no_response() {
    if !available() {
        return;
    }
    assert_eq!(with_flapping(8, 6), 8);
}

#[test]
#[ignore = "the same for longer; studies/proxies has what it counted"]
fn a_route_that_fails_and_returns_for_thirty_seconds() {
    if !available() {
        return;
    }
    println!("{} of 200 whole", with_flapping(200, 100));
}

fn with_killing(count: usize, times: usize) -> usize {
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let before = lab.router_state();
    let _server = lab.serve(&[]);
    let mut nat = lab.nat(&[]);
    let mut completed = 0;
    for _ in 0..times {
        let fetches = lab.begin(count);
        nat.signal("KILL");
        drop(nat);
        sh(&lab.router, &format!("{} nat --inside lan --outside wan --clean", super::lab::PROGRAM));
        nat = lab.nat(&[]);
        completed += count_complete(fetches);
    }
    // The last helper removes the state of its predecessors, too.
    assert!(nat.stop().0);
    assert_eq!(lab.router_state(), before);
    completed
}

#[test]
fn a_helper_that_is_killed_and_restarted_costs_no_response() {
    if !available() {
        return;
    }
    assert_eq!(with_killing(8, 1), 8);
}

#[test]
#[ignore = "the same ten times; studies/proxies has what it counted"]
fn a_helper_that_is_killed_ten_times() {
    if !available() {
        return;
    }
    println!("{} of 300 whole", with_killing(30, 10));
}
