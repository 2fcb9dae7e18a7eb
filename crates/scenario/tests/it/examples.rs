//! The files in `scenarios/` match their comments, and are printed and parsed back unchanged.

use std::path::Path;

use scenario::{Defaults, Plan, Protocol, Spec};
use tcp::stack::Idle;
use tcp::stack::packets::Restart;
use wire::{Duration, Rate};

fn example(file: &str) -> Plan {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let text =
        std::fs::read_to_string(directory.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let spec = Spec::from_toml(&text, file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Spec::from_toml(&spec.to_toml(), "printed").as_ref(), Ok(&spec));
    spec.plan(&Defaults::laboratory()).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn every_file_in_the_directory_is_parsed_and_tested_here() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let interactions = ["short-final-segment.toml", "short-initial-segment.toml"];
    assert_eq!(
        files,
        [
            &["lossy.toml", "modem.toml", "satellite.toml", "session.toml"],
            &interactions[..],
            &["validation.toml"]
        ]
        .concat()
    );
}

#[test]
fn paper_responses_of_figures_2_and_4_have_the_printed_sizes() {
    // papers/p-http#figure-4: 1,460 + 1,460 + 1,176 + 13 bytes, of which the headers are 90.
    let last = example("short-final-segment.toml");
    assert_eq!(last.scenarios[0].page.objects[0].size.get() + 90, 1_460 + 1_460 + 1_176 + 13);
    let first = example("short-initial-segment.toml");
    assert_eq!(first.scenarios[0].page.objects[0].size.get(), 4_096);
    assert!(first.scenarios[0].programs.server_head.is_some());
}

#[test]
fn the_session_changes_a_named_stack() {
    let plan = example("session.toml");
    let scenario = &plan.scenarios[0];
    assert_eq!((scenario.programs.pages(), scenario.stack.name), (3, "linux"));
    let stack = scenario.programs.sockets(&scenario.stack);
    assert_eq!((stack.initial_window, stack.idle), (4, Idle::Restarted));
    assert_eq!(stack.packets.restart, Restart::AfterSending);
}

#[test]
fn the_modem_has_three_ways_to_fetch_the_w3c_page() {
    let plan = example("modem.toml");
    assert_eq!(plan.scenarios.len(), 3);
    assert!(plan.scenarios.iter().all(|scenario| scenario.page.objects.len() == 42));
}

#[test]
fn paper_the_validation_is_table_7s_fast_internet() {
    let plan = example("validation.toml");
    let protocols: Vec<_> = plan.scenarios.iter().map(|scenario| scenario.protocol).collect();
    assert_eq!(protocols, [Protocol::Http10, Protocol::Http10KeepAlive]);
    let scenario = &plan.scenarios[0];
    assert_eq!(scenario.network.name, "fast-internet+rtt=133ms+rate=769654.784bit");
    assert_eq!(scenario.network.rtt, Duration::from_millis(133));
    assert_eq!(Some(scenario.network.rate), Rate::from_millibits_per_second(769_654_784));
    assert_eq!(scenario.server.processing, Duration::from_micros(3_700));
    assert_eq!(scenario.runs, 100);
}

#[test]
fn the_radio_link_loses_packets_only_downstream() {
    let network = &example("lossy.toml").scenarios[0].network;
    assert_eq!(network.up.loss, wire::link::Loss::None);
    assert_ne!(network.down.loss, wire::link::Loss::None);
    assert_eq!(network.up.queue, network.down.queue);
}

#[test]
fn the_satellite_is_fast_one_way() {
    let plan = example("satellite.toml");
    assert_eq!(plan.scenarios.len(), 2 * 2 * Protocol::ALL.len());
    let links = plan.scenarios.last().unwrap().network.links();
    assert_eq!(links.up.rate, Rate::from_bits_per_second(28_800));
    assert_eq!(links.down.rate, Rate::from_bits_per_second(1 << 20));
}
