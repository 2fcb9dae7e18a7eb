//! Tables 4 to 9: the Microscape page over a LAN, a WAN and a modem, with the note's hosts and with those of today.

use reproduce::w3c::hosts::{self, ClientLocation, Software};
use reproduce::w3c::{microscape, tuned};
use scenario::{Client, Page, Protocol, Scenario, Server, Stack, Tls, Visit};
use simulate::Hosts;

use crate::{Row, Values, heading, markdown};

const LOCATIONS: [(ClientLocation, &str); 3] =
    [(ClientLocation::Lan, "lan"), (ClientLocation::Wan, "wan"), (ClientLocation::Ppp, "ppp")];
const SERVERS: [(Software, &str); 2] = [(Software::Jigsaw, "jigsaw"), (Software::Apache, "apache")];
/// The note's tables, by location and server.
const TABLES: [[&str; 2]; 3] =
    [["w3c/table-4", "w3c/table-5"], ["w3c/table-6", "w3c/table-7"], ["w3c/table-8", "w3c/table-9"]];
/// The printed rows, then those of today.
const PROTOCOLS: [(Protocol, Tls); 13] = [
    (Protocol::Http10, Tls::None),
    (Protocol::Http11, Tls::None),
    (Protocol::Http11Pipelined, Tls::None),
    (Protocol::Http11PipelinedDeflate, Tls::None),
    (Protocol::Http11Parallel, Tls::None),
    (Protocol::Http2, Tls::None),
    (Protocol::Http11Pipelined, Tls::V13),
    (Protocol::Http11Parallel, Tls::V13),
    (Protocol::Http2, Tls::V13),
    (Protocol::Http3, Tls::V13),
    (Protocol::Http11Pipelined, Tls::V13EarlyData),
    (Protocol::Http2, Tls::V13EarlyData),
    (Protocol::Http3, Tls::V13EarlyData),
];
/// Hosts of today: Linux at both ends, whose work takes no time.
pub(crate) const TODAY: &str = "linux";
/// "Each run was repeated 5 times."
const RUNS: u32 = 5;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for ((location, network), tables) in LOCATIONS.into_iter().zip(TABLES) {
        for ((software, server), table) in SERVERS.into_iter().zip(tables) {
            for visit in Visit::ALL {
                let own = |(protocol, tls)| of_the_note(software, location, protocol, tls, visit);
                let labelled = |(scenario, behaviour, predicted)| Row {
                    table,
                    network,
                    page: "microscape".to_owned(),
                    visit: visit.name(),
                    hosts: server,
                    scenario,
                    behaviour,
                    predicted: Some(predicted),
                };
                rows.extend(protocols(visit).map(own).map(labelled));
                if software == Software::Apache {
                    let own = |(protocol, tls)| of_today(location, protocol, tls, visit);
                    let labelled = |scenario| Row {
                        table,
                        network,
                        page: "microscape".to_owned(),
                        visit: visit.name(),
                        hosts: TODAY,
                        scenario,
                        behaviour: Hosts::default(),
                        predicted: None,
                    };
                    rows.extend(protocols(visit).map(own).map(labelled));
                }
            }
        }
    }
    rows
}

/// Early data needs an earlier visit.
fn protocols(visit: Visit) -> impl Iterator<Item = (Protocol, Tls)> {
    PROTOCOLS.into_iter().filter(move |(_, tls)| *tls != Tls::V13EarlyData || visit == Visit::Revalidate)
}

/// The note's configuration, whatever the protocol, and the formulas' scenario, which has only the server's time.
fn of_the_note(
    software: Software,
    location: ClientLocation,
    protocol: Protocol,
    tls: Tls,
    visit: Visit,
) -> (Scenario, Hosts, Scenario) {
    let is_deflated = protocol == Protocol::Http11PipelinedDeflate && visit == Visit::First;
    let real = if is_deflated { microscape::deflated() } else { microscape::plain() };
    let (mut scenario, behaviour) = tuned(software, location, protocol, visit, real);
    scenario.tls = tls;
    if protocol == Protocol::Http11Parallel {
        scenario.client.parallel = protocol.connections();
    }
    let server = Server { processing: software.times().request };
    let predicted = Scenario { server, ..scenario.clone() };
    (scenario, behaviour, predicted)
}

/// The page and the path of the note, between hosts of today.
fn of_today(location: ClientLocation, protocol: Protocol, tls: Tls, visit: Visit) -> Scenario {
    let page = Page::named("microscape").expect("a page of the catalogue");
    let stack = Stack::named("linux").expect("a stack of the catalogue");
    let scenario = Scenario::new(location.network(), page, protocol, stack);
    let client = Client { request: hosts::REQUEST, ..scenario.client };
    Scenario { tls, visit, client, runs: RUNS, ..scenario }
}

/// Seconds of each path and visit, by protocol: the note's hosts with both servers, then today's, simulated and by the formulas.
pub(crate) fn tables(rows: &[(&Row, &Values)]) -> String {
    let mut text = String::new();
    for (_, network) in LOCATIONS {
        for visit in Visit::ALL {
            let own: Vec<_> =
                rows.iter().filter(|(row, _)| row.network == network && row.visit == visit.name()).collect();
            let titles =
                ["", "Jigsaw s", "Apache s", "packets", "kB", "Linux s", "by formula s", "packets", "kB"];
            text += &format!("\n**{network}, {}**\n\n", visit.name());
            text += &heading(&titles.map(str::to_owned));
            for (protocol, tls) in protocols(visit) {
                let of = |hosts: &str| {
                    let is_own = |(row, _): &&&(&Row, &Values)| {
                        (row.scenario.protocol, row.scenario.tls, row.hosts) == (protocol, tls, hosts)
                    };
                    own.iter().find(is_own).map(|(row, values)| (row.name(), **values)).unwrap_or_default()
                };
                let [(name, jigsaw), (_, apache), (_, linux)] = ["jigsaw", "apache", TODAY].map(of);
                let seconds = |ms: Option<f64>| show(ms.map(|ms| ms / 1e3), 2);
                let kilobytes = |bytes: Option<f64>| show(bytes.map(|bytes| bytes / 1e3), 1);
                text += &markdown([
                    name,
                    seconds(jigsaw.ms),
                    seconds(apache.ms),
                    show(apache.packets, 0),
                    kilobytes(apache.bytes),
                    seconds(linux.ms),
                    seconds(linux.predicted_ms),
                    show(linux.packets, 0),
                    kilobytes(linux.bytes),
                ]);
            }
        }
    }
    text
}

fn show(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}
