//! Table VI: times over the minimum of six pages over ten networks.

use scenario::{Network, Page, Protocol, Requests, Scenario, Stack, Tls};
use simulate::Hosts;
use wire::Bytes;

use crate::{Row, Values, client, heading, markdown};

const PROTOCOLS: [(Protocol, Tls); 8] = [
    (Protocol::Http10, Tls::None),
    (Protocol::Http10KeepAlive, Tls::None),
    (Protocol::Http11Pipelined, Tls::None),
    (Protocol::Http2, Tls::None),
    (Protocol::Http11Parallel, Tls::V13),
    (Protocol::Http2, Tls::V13),
    (Protocol::Http3, Tls::V13),
    (Protocol::Http3, Tls::V13EarlyData),
];
/// Segments of Ethernet on every network: QUIC has no datagrams below 1200 bytes (RFC 9000, section 14.1).
const MSS: Bytes = Bytes::new(1460);

/// "Requests of 256 B, independent", between hosts of today.
pub(crate) fn rows() -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (network, path) in networks() {
        for page in Page::six() {
            for (protocol, tls) in PROTOCOLS {
                let (path, of) = (path.clone(), page.clone());
                let stack = Stack::named("linux").map_err(|error| error.to_string())?;
                let scenario = Scenario::new(Network { mss: MSS, ..path }, of, protocol, stack);
                rows.push(Row {
                    table: "heidemann-model/table-6",
                    network,
                    page: page.name.clone(),
                    visit: "first",
                    hosts: "linux",
                    scenario: Scenario { tls, client: client(protocol, Requests::Independent), ..scenario },
                    behaviour: Hosts::default(),
                    predicted: None,
                });
            }
        }
    }
    Ok(rows)
}

/// The paper's networks, with their names.
fn networks() -> impl Iterator<Item = (&'static str, Network)> {
    Network::ten().into_iter().map(|network| (network.like.unwrap_or_default(), network))
}

/// Simulated times over the minimum, and the formulas' in brackets, of the small cluster and the large one.
pub(crate) fn tables(rows: &[(&Row, &Values)]) -> String {
    let mut text = String::new();
    for page in ["small-cluster", "large-cluster"] {
        let of = |network: &str| -> Vec<_> {
            rows.iter().filter(|(row, _)| row.page == page && row.network == network).collect()
        };
        let names = of("ethernet").into_iter().map(|(row, _)| row.name());
        text += &format!("\n**{page}**\n\n");
        text += &heading(&std::iter::once(String::new()).chain(names).collect::<Vec<_>>());
        for (network, _) in networks() {
            let cells = of(network).into_iter().map(|(_, values)| {
                let over = |ms: Option<f64>| {
                    ms.zip(values.minimum_ms)
                        .map_or_else(|| "-".to_owned(), |(ms, least)| format!("{:.2}", ms / least))
                };
                format!("{} ({})", over(values.ms), over(values.predicted_ms))
            });
            text += &markdown(std::iter::once(network.to_owned()).chain(cells));
        }
    }
    text
}
