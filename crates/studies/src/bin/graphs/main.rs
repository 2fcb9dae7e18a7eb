//! Formulas against packets: whole pages, made from a seed, over today's networks without loss.
//!
//! `all FILE.csv` predicts and simulates two hundred pages over HTTP/1.1 with six connections, HTTP/2 and HTTP/3, with TLS 1.3,
//! and summarises the differences; `sample` does so for twelve, and fails if their median is above [`MAX_MEDIAN`].

use std::process::ExitCode;

use model::{Assumptions, predict};
use roundtrip_studies::pages::{Distance, page};
use roundtrip_studies::{exit_code, quantile, usage};
use scenario::{Network, Protocol, Scenario, Stack, Tls};
use simulate::Hosts;

/// Median difference that the formulas must keep to.
const MAX_MEDIAN: f64 = 0.05;
const PAGES: u64 = 200;
const SAMPLE: u64 = 12;
const NETWORKS: [&str; 4] = ["4g", "cable", "fibre", "dsl"];
const PROTOCOLS: [Protocol; 3] = [Protocol::Http11Parallel, Protocol::Http2, Protocol::Http3];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let reported = match words.as_slice() {
        ["all", file] => study(PAGES).and_then(|cases| {
            std::fs::write(file, csv(&cases)).map_err(|error| format!("cannot write {file}: {error}"))?;
            print!("{}", summary(&cases));
            Ok(())
        }),
        ["sample"] => study(SAMPLE).and_then(|cases| {
            print!("{}", summary(&cases));
            let median = quantile(&cases.iter().map(Case::difference).collect::<Vec<_>>(), 5);
            (median <= MAX_MEDIAN)
                .then_some(())
                .ok_or_else(|| format!("the median difference is {median:.3}"))
        }),
        _ => Err(usage("")),
    };
    exit_code("graphs", reported)
}

/// A page over a network by a protocol, and its times in milliseconds.
struct Case {
    page: String,
    hosts: usize,
    objects: usize,
    bytes: u64,
    network: &'static str,
    protocol: &'static str,
    model_ms: f64,
    simulated_ms: f64,
}

impl Case {
    fn difference(&self) -> f64 {
        (self.model_ms / self.simulated_ms - 1.0).abs()
    }
}

fn study(pages: u64) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for (number, network) in (0..pages).zip(NETWORKS.into_iter().cycle()) {
        let page = page(number, Distance::Varied)?;
        for protocol in PROTOCOLS {
            let network_of = Network::named(network).map_err(|error| error.to_string())?;
            let stack = Stack::named("linux").map_err(|error| error.to_string())?;
            let scenario = Scenario {
                tls: Tls::V13,
                runs: 1,
                ..Scenario::new(network_of, page.clone(), protocol, stack)
            };
            let predicted =
                predict(&scenario, &Assumptions::default()).map_err(|refusal| refusal.to_string())?;
            let simulated =
                simulate::simulate(&scenario, Hosts::default()).map_err(|error| error.to_string())?;
            let simulated_ms =
                simulated.metrics.elapsed_ms.ok_or_else(|| format!("{}: no run ended", page.name))?;
            cases.push(Case {
                page: page.name.clone(),
                hosts: page.hosts.len(),
                objects: page.objects.len(),
                bytes: page.size().get(),
                network,
                protocol: protocol.name(),
                model_ms: predicted.elapsed.as_millis_f64(),
                simulated_ms,
            });
        }
    }
    Ok(cases)
}

fn csv(cases: &[Case]) -> String {
    let line = |case: &Case| {
        let Case { page, hosts, objects, bytes, network, protocol, model_ms, simulated_ms } = case;
        format!("{page},{hosts},{objects},{bytes},{network},{protocol},{model_ms:.1},{simulated_ms:.1}\n")
    };
    let heading = "page,hosts,objects,bytes,network,protocol,model_ms,simulated_ms\n".to_owned();
    heading + &cases.iter().map(line).collect::<String>()
}

/// Median and ninetieth percentile of the differences, by protocol.
fn summary(cases: &[Case]) -> String {
    let of = |protocol: Protocol| {
        let own = cases.iter().filter(|case| case.protocol == protocol.name()).map(Case::difference);
        let own: Vec<f64> = own.collect();
        format!(
            "{}: {} pages, median difference {:.1}%, 90th percentile {:.1}%\n",
            protocol.name(),
            own.len(),
            100.0 * quantile(&own, 5),
            100.0 * quantile(&own, 9)
        )
    };
    PROTOCOLS.into_iter().map(of).collect()
}
