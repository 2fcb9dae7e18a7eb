//! Fig. 1 and section VI-B.3 of the DHTTP paper: round trips to the last byte of one response.

use scenario::{Connection, Network, Page, Protocol, Scenario, Stack, Tls};
use simulate::Hosts;
use wire::{Bytes, Duration, Rate};

use crate::{Row, Values, heading, markdown};

/// Round trip, in milliseconds.
const RTT_MS: u64 = 50;
/// Sizes of the figure, one that fits Linux's initial window, and one that does not.
const SIZES: [u64; 4] = [1_000, 3_000, 10_000, 50_000];
const PROTOCOLS: [(Protocol, Tls); 8] = [
    (Protocol::Dhttp, Tls::None),
    (Protocol::Http11, Tls::None),
    (Protocol::Http11, Tls::V13),
    (Protocol::Http2, Tls::V13),
    (Protocol::Http2, Tls::V13Resumed),
    (Protocol::Http2, Tls::V13EarlyData),
    (Protocol::Http3, Tls::V13),
    (Protocol::Http3, Tls::V13EarlyData),
];
const STATES: [(Connection, &str); 2] = [(Connection::Cold, "cold"), (Connection::Warm, "warm")];

pub(crate) fn rows() -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for size in SIZES {
        for (connection, visit) in STATES {
            for (protocol, tls) in PROTOCOLS {
                let page =
                    Page::from_sizes("response", [Bytes::new(size)]).map_err(|error| error.to_string())?;
                let rate = Rate::from_bits_per_second(1_000_000_000).ok_or("1 Gbit/s is no rate")?;
                let network =
                    Network::new("50ms".to_owned(), Duration::from_millis(RTT_MS), rate, Bytes::new(1_460));
                let stack = Stack::named("linux").map_err(|error| error.to_string())?;
                let mut scenario = Scenario { tls, ..Scenario::new(network, page, protocol, stack) };
                scenario.client.connection = connection;
                rows.push(Row {
                    table: "dhttp/figure-1",
                    network: "50ms",
                    page: size.to_string(),
                    visit,
                    hosts: "linux",
                    scenario,
                    behaviour: Hosts::default(),
                    predicted: None,
                });
            }
        }
    }
    Ok(rows)
}

/// Round trips, simulated, and the formulas' in brackets.
pub(crate) fn table(rows: &[(&Row, &Values)]) -> String {
    let columns = || STATES.iter().flat_map(|(_, state)| SIZES.map(|size| (size.to_string(), *state)));
    let titles = columns().map(|(size, state)| format!("{size} B, {state}"));
    let mut text = heading(&std::iter::once(String::new()).chain(titles).collect::<Vec<_>>());
    for (protocol, tls) in PROTOCOLS {
        let of = |(size, state): (String, &str)| {
            let is_own = |(row, _): &&(&Row, &Values)| {
                let Scenario { protocol: own, tls: secured, .. } = row.scenario;
                (own, secured, row.visit) == (protocol, tls, state) && row.page == size
            };
            rows.iter().find(is_own)
        };
        let trips =
            |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{:.1}", ms / RTT_MS as f64));
        let cell = |found: Option<&(&Row, &Values)>| {
            found.map_or_else(String::new, |(_, values)| {
                format!("{} ({})", trips(values.ms), trips(values.predicted_ms))
            })
        };
        let name = of((SIZES[0].to_string(), "cold")).map_or_else(String::new, |(row, _)| row.name());
        text += &markdown(std::iter::once(name).chain(columns().map(|column| cell(of(column)))));
    }
    text
}
