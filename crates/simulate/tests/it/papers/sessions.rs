//! Sessions of several pages, revised sites and disk caches, as scenarios of a user: means with their remarks
//! (`papers/p-http#section-2-4`, `papers/w3c`).

use scenario::{Defaults, Scenario, Spec};
use simulate::{Error, Hosts, Simulation, simulate};

fn scenario(toml: &str) -> Scenario {
    let spec = Spec::from_toml(toml, "test").unwrap();
    spec.plan(&Defaults::laboratory()).unwrap().scenarios.remove(0)
}

fn simulated(toml: &str) -> Simulation {
    simulate(&scenario(toml), Hosts::default()).unwrap()
}

fn notes(simulation: &Simulation) -> Vec<String> {
    simulation.remarks.iter().map(ToString::to_string).collect()
}

fn second_page(settings: &str) -> Simulation {
    simulated(&format!(
        "network = 'fast-internet'\npage = 'medium-page'\nprotocol = 'http11'\nstack = 'period'\nruns = 2\n\
         client-pages = 2\nclient-pause = '10s'\n{settings}"
    ))
}

fn ms(simulation: &Simulation) -> f64 {
    simulation.metrics.elapsed_ms.unwrap()
}

/// "P-HTTP will nearly always slow-start when the user follows a link."
#[test]
fn paper_the_second_page_of_a_session_depends_on_the_window_after_idle() {
    let [unchanged, restarted, longer, decayed, paced] = [
        "idle = 'kept'",
        "idle = 'restarted'",
        "idle = 'restarted'\nidle-after = '60s'",
        "idle = 'decayed'",
        "idle = 'paced'",
    ]
    .map(second_page);
    assert!(ms(&restarted) > ms(&unchanged) + 100.0, "{} {}", ms(&restarted), ms(&unchanged));
    assert_eq!(ms(&longer), ms(&unchanged), "the idle time is not over");
    assert!(ms(&decayed) <= ms(&restarted) && ms(&paced) < ms(&restarted));
    assert_eq!(unchanged.metrics.connections, Some(0.0));
    let notes = notes(&unchanged);
    let note = notes.iter().find(|note| note.starts_with("pages of the session, in ms: ")).unwrap();
    assert!(note.ends_with(&format!(", {:.1}", ms(&unchanged))), "{note}");
}

#[test]
fn a_connection_that_either_end_closed_while_idle_costs_the_next_page_a_handshake() {
    let unchanged = second_page("");
    for closed in ["server-idle = '5s'", "client-idle = '5s'"].map(second_page) {
        assert_eq!(closed.metrics.connections, Some(1.0));
        assert!(ms(&closed) > ms(&unchanged) + 89.0, "{} {}", ms(&closed), ms(&unchanged));
    }
}

#[test]
fn a_third_page_differs_from_the_second_by_nothing_where_windows_are_open() {
    let pages = |count: u32| {
        simulated(&format!(
            "network = 'isdn'\npage = 'small-cluster'\nprotocol = 'http11'\nstack = 'linux'\nruns = 1\n\
             client-pages = {count}\nclient-pause = '1s'"
        ))
    };
    let note = |simulation: &Simulation| {
        notes(simulation).into_iter().find(|note| note.starts_with("pages of the session"))
    };
    assert_eq!(note(&pages(3)).unwrap().matches(',').count(), 1 + 2);
    assert_eq!(note(&pages(1)), None);
}

#[test]
fn a_stack_as_a_table_changes_both_ends_and_client_stack_one() {
    let table = "network = 'adsl'\npage = 'medium-page'\nprotocol = 'http10'\nruns = 1\n\
                 stack = { like = 'period', initial-window = 64, receive-buffer = 60000 }";
    let plain = "network = 'adsl'\npage = 'medium-page'\nprotocol = 'http10'\nruns = 1\nstack = 'period'";
    assert!(
        ms(&simulated(table)) + 60.0 < ms(&simulated(plain)),
        "{} {}",
        ms(&simulated(table)),
        ms(&simulated(plain))
    );
    // Solaris's client acknowledges an odd segment after 50 ms, BSD's on a tick of 200 ms.
    let client = format!("{plain}\nclient-stack = 'solaris-2.5'");
    assert_ne!(ms(&simulated(&client)), ms(&simulated(plain)));
    // The server's window is what matters for a response.
    let [alone, both] = ["client-stack = 'period+initial-window=64'", "initial-window = 64"];
    let with = |settings: &str| ms(&simulated(&format!("{plain}\nreceive-buffer = 60000\n{settings}")));
    assert!(with(both) + 60.0 < with(alone), "{} {}", with(both), with(alone));
    let table = "client-stack = { like = 'period', initial-window = 64 }";
    assert_eq!(with(table), with(alone));
}

#[test]
fn a_server_with_a_connection_limit_serves_others_when_one_ends() {
    let page = |settings: &str| {
        simulated(&format!(
            "network = 'adsl'\npage = 'w3c-page'\nprotocol = 'http10'\nparallel = 4\nstack = 'linux'\nruns = 1\n\
             {settings}"
        ))
    };
    let [four, two, one] = ["", "server-connections = 2", "server-connections = 1"].map(page);
    assert_eq!([&four, &two, &one].map(|simulation| simulation.metrics.connections), [Some(42.0); 3]);
    assert!(ms(&four) < ms(&two) && ms(&two) < ms(&one), "{} {} {}", ms(&four), ms(&two), ms(&one));
    // Persistent connections hold their place until they are idle for too long.
    let persistent = "network = 'adsl'\npage = 'w3c-page'\nprotocol = 'http11-parallel'\nparallel = 4\n\
                      stack = 'linux'\nruns = 1\nserver-connections = 2\nserver-idle = '15s'";
    assert!(ms(&simulated(persistent)) > 15_000.0, "{}", ms(&simulated(persistent)));
}

#[test]
fn changed_objects_are_transferred_and_others_are_not() {
    let visit = |settings: &str| {
        simulated(&format!(
            "network = 'n-ethernet'\npage = 'w3c-page'\nprotocol = 'http11-pipelined'\nstack = 'linux'\nruns = 1\n\
             {settings}"
        ))
    };
    let [first, unchanged, revised] =
        ["", "visit = 'revalidate'", "visit = 'revalidate'\nserver-changed = '10%'"].map(visit);
    let bytes = |simulation: &Simulation| simulation.metrics.payload_bytes.unwrap();
    assert!(bytes(&unchanged) < bytes(&revised) && bytes(&revised) < bytes(&first));
    let parted = visit("visit = 'revalidate'\nserver-changed = '10%'\nclient-first-bytes = 512");
    assert!(notes(&parted).iter().any(|note| note.starts_with("first bytes of every object received")));
    let refused = simulate(&scenario("protocol = 'http11'\nserver-changed = '10%'"), Hosts::default());
    assert!(matches!(refused, Err(Error::Unsuited { .. })), "{refused:?}");
}

/// "Each cached object contains two independent files [...] the overhead in our implementation became a performance
/// bottleneck."
#[test]
fn paper_two_files_for_each_object_cost_their_time() {
    let revalidation = |settings: &str| {
        simulated(&format!(
            "network = 'n-ethernet'\npage = 'w3c-page'\nprotocol = 'http11'\nvisit = 'revalidate'\nstack = 'linux'\n\
             runs = 1\n{settings}"
        ))
    };
    let (memory, disk) = (revalidation(""), revalidation("client-file = '10ms'"));
    let cost = ms(&disk) - ms(&memory);
    // The files of the last object follow its arrival.
    assert!((cost - 41.0 * 20.0).abs() < 1.0, "{cost}");
}

#[test]
fn a_page_after_naive_closes_has_its_failures_in_remarks() {
    let closing = |how: &str| {
        simulated(&format!(
            "network = 'n-fast-internet'\npage = 'w3c-page'\nprotocol = 'http11-pipelined'\nstack = 'period'\n\
             runs = 2\nserver-requests = 5\nserver-close = '{how}'"
        ))
    };
    let (careful, naive) = (closing("careful"), closing("naive"));
    let lost = |simulation: &Simulation| {
        notes(simulation).iter().any(|note| note.starts_with("naive closes destroyed"))
    };
    assert!(lost(&naive) && !lost(&careful), "{:?}", naive.remarks);
    assert!(naive.metrics.elapsed_ms.is_some() && naive.metrics.connections > careful.metrics.connections);
    assert!(notes(&naive).iter().all(|note| !note.contains("runs failed")), "{:?}", naive.remarks);
}
