//! Figure 14 of `papers/dhttp#section-vi-b`, and the cost of encryption. DHTTP, TCP Fast Open (T/TCP's successor)
//! and HTTP/3 with 0-RTT send the request in the first packet.
//!
//! Not the servers (`server_benchmark`). Users close early, which the paper found best for TCP, and are returning clients of
//! every server. A claim is judged at the maximum number of users; the figure has all.

use render::plot::palette;
use render::plot::svg::Stroke;

use super::servers::{
    ALTRUISTIC, Arm, DHTTP, NamedArm, Value, WIDTH, arm, benchmarks, draw, slower, throughput,
};
use crate::laboratory::{BenchmarkResults, Laboratory};
use crate::published::Cell;
use crate::server_benchmark::benchmark_run::Outcome;
use crate::server_benchmark::server::ServerKind;
use crate::server_benchmark::transport::Transport;

/// Our value, or why it could not be measured.
type ReproducedValue = Result<Option<f64>, String>;

const fn altruistic(kind: ServerKind, connections: usize, how: Transport) -> Arm {
    Arm { how, closes_early: true, ..arm(kind, 1, connections) }
}

const PREFORK_FAST: Arm = Arm { how: Transport::FastOpen, ..ALTRUISTIC };
const NGINX: Arm = altruistic(ServerKind::Nginx, 3, Transport::Usual);
const NGINX_FAST: Arm = altruistic(ServerKind::Nginx, 3, Transport::FastOpen);
const HTTP2: Arm = altruistic(ServerKind::Nginx, 1, Transport::Http2);
const HTTP2_TLS: Arm = altruistic(ServerKind::Nginx, 1, Transport::Http2Tls);
const HTTP3: Arm = altruistic(ServerKind::Quinn, 1, Transport::Http3);
const HTTP3_EARLY: Arm = altruistic(ServerKind::Quinn, 1, Transport::Http3Early);
/// Kept alive while users look at a page: the cost of encryption without handshakes.
const HTTP2_KEPT_ALIVE: Arm = Arm { how: Transport::Http2, ..arm(ServerKind::Nginx, 15, 1) };
const HTTP2_TLS_KEPT: Arm = Arm { how: Transport::Http2Tls, ..arm(ServerKind::Nginx, 15, 1) };
const HTTP3_KEPT_ALIVE: Arm = Arm { how: Transport::Http3, ..arm(ServerKind::Quinn, 15, 1) };

const ARMS: [Arm; 12] = [
    DHTTP,
    ALTRUISTIC,
    PREFORK_FAST,
    NGINX,
    NGINX_FAST,
    HTTP2,
    HTTP2_TLS,
    HTTP3,
    HTTP3_EARLY,
    HTTP2_KEPT_ALIVE,
    HTTP2_TLS_KEPT,
    HTTP3_KEPT_ALIVE,
];

/// Claims of the text about T/TCP, for its successors.
pub fn figure_14(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    // The other arm, and the same without early requests, or without encryption.
    let (other, plain) = match cell.column.name.as_str() {
        "prefork" => (PREFORK_FAST, ALTRUISTIC),
        "nginx" => (NGINX_FAST, NGINX),
        "http2" => (HTTP2_TLS, HTTP2),
        "http2-kept" => (HTTP2_TLS_KEPT, HTTP2_KEPT_ALIVE),
        "http3" => (HTTP3, HTTP3_KEPT_ALIVE),
        _ => (HTTP3_EARLY, HTTP3),
    };
    let Some(benchmarks) = benchmarks(&ARMS, measured)? else { return Ok(None) };
    let ratio = |of: fn(&BenchmarkResults, Arm) -> Option<f64>, over, under| {
        Some(of(benchmarks, over)? / of(benchmarks, under)?)
    };
    Ok(match cell.label(0) {
        "throughput" => ratio(throughput, DHTTP, other),
        "less-work" => ratio(work, other, DHTTP),
        "lower-latency" => slower(benchmarks, other, DHTTP, cell.published),
        "no-better-early" => ratio(throughput, plain, other),
        _ => ratio(work, other, plain),
    })
}

/// CPU time of the server's host for each response, in milliseconds.
fn work(benchmarks: &BenchmarkResults, arm: Arm) -> Option<f64> {
    benchmarks.of(&arm.benchmark(*benchmarks.users.last()?))?.server_ms()
}

/// The figure with all arms.
pub fn draw_14(benchmarks: &BenchmarkResults) -> Option<String> {
    let solid = |name, colour| (name, Stroke::solid(colour, WIDTH));
    let dashed = |name, colour| (name, Stroke { colour, width: WIDTH, dashes: "5 4" });
    let paper: Vec<NamedArm> = vec![
        (solid("DHTTP", palette::ACCENT), DHTTP),
        (solid("prefork", palette::INK), ALTRUISTIC),
        (dashed("prefork, Fast Open", palette::INK), PREFORK_FAST),
    ];
    let today: Vec<NamedArm> = vec![
        (solid("DHTTP", palette::ACCENT), DHTTP),
        (solid("nginx", palette::BLUE), NGINX),
        (dashed("nginx, Fast Open", palette::BLUE), NGINX_FAST),
        (solid("HTTP/2", palette::GREY), HTTP2_TLS),
        (solid("HTTP/3", palette::ORANGE), HTTP3),
        (dashed("HTTP/3, 0-RTT", palette::ORANGE), HTTP3_EARLY),
    ];
    let quantities: [(&str, Value); 3] = [
        ("responses a second", Outcome::throughput),
        ("mean latency, ms", Outcome::latency_ms),
        ("CPU time of the server, ms a response", Outcome::server_ms),
    ];
    let title = "DHTTP beside requests in a connection's first packet";
    draw(benchmarks, title, &quantities, [("Apache prefork", paper), ("nginx, and quinn", today)], "Fig. 14")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_benchmark::benchmark_run::{BenchmarkRun, Preset, run};

    #[test]
    #[ignore = "runs servers of others for some minutes: as root, with Apache and nginx"]
    fn only_fast_open_and_0_rtt_send_early_requests() {
        let benchmarks: Vec<BenchmarkRun> = ARMS.into_iter().map(|arm| arm.benchmark(1_000)).collect();
        let outcomes = run(&benchmarks, Preset::QUICK, &|_| ()).unwrap();
        for (benchmark, outcome) in benchmarks.iter().zip(outcomes) {
            println!("{benchmark:?}: {outcome:?}");
            let is_early = matches!(benchmark.how, Transport::FastOpen | Transport::Http3Early);
            assert_eq!(is_early, outcome.early > 0.0, "{benchmark:?}: {outcome:?}");
        }
    }
}
