//! Formulas against packets: whole pages, made from a seed, over today's networks without loss.
//!
//! `all FILE.csv` predicts and simulates two hundred pages over HTTP/1.1 with six connections and over HTTP/2, with TLS 1.3,
//! and summarises the differences; `sample` does so for twelve, and fails if their median is above [`MAX_MEDIAN`].

use std::process::ExitCode;

use model::{Assumptions, predict};
use page::{Dependency, Host, Kind, Moment, Object, Page, Priority};
use roundtrip_studies::usage;
use scenario::{Network, Protocol, Scenario, Stack, Tls};
use simulate::Hosts;
use wire::{Bytes, Duration, Random, Seed};

/// Median difference that the formulas must keep to.
const MAX_MEDIAN: f64 = 0.05;
const PAGES: u64 = 200;
const SAMPLE: u64 = 12;
const NETWORKS: [&str; 4] = ["4g", "cable", "fibre", "dsl"];
const PROTOCOLS: [Protocol; 2] = [Protocol::Http11Parallel, Protocol::Http2];

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
    match reported {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("graphs: {sentence}");
            ExitCode::FAILURE
        }
    }
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
        let page = page(number)?;
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

/// A page from a seed: 1 to 120 objects on 1 to 12 hosts, most of them discovered in the document, some by others.
fn page(number: u64) -> Result<Page, String> {
    let mut random = Seed::new(number).stream("page", 0);
    let hosts = *pick(&mut random, &[1, 1, 2, 4, 8, 12]);
    let objects = *pick(&mut random, &[1, 3, 8, 15, 30, 60, 120]);
    let host = |index: usize| Host {
        extra_rtt: Duration::from_millis([0, 0, 10, 40][index % 4]),
        ..Host::new(&format!("h{index}.example"))
    };
    let mut page =
        Page { hosts: (0..hosts).map(host).collect(), ..Page::of(&format!("p{number}"), Vec::new()) };
    for index in 0..objects {
        let size = Bytes::new(200 + (1 << (6 + random.up_to(12 - 1))) + random.up_to(4_000 - 1));
        let processing = random.up_to(4 - 1) == 0;
        let after = match index {
            0 => Vec::new(),
            _ => {
                let on = if random.up_to(4 - 1) == 0 { below(&mut random, index) } else { 0 };
                let at = if on == 0 {
                    Moment::Delivered(Bytes::new(1 + random.up_to(page.objects[0].size.get() - 1)))
                } else {
                    Moment::Ended
                };
                vec![Dependency {
                    on,
                    at,
                    plus: Duration::from_millis(*pick(&mut random, &[0, 0, 0, 5, 20])),
                }]
            }
        };
        let priorities = [Priority::Low, Priority::Low, Priority::Medium, Priority::High, Priority::Highest];
        page.objects.push(Object {
            host: if index == 0 { 0 } else { below(&mut random, hosts) },
            kind: *pick(&mut random, &[Kind::Image, Kind::Image, Kind::Script, Kind::Data]),
            is_render_blocking: random.up_to(5) == 0,
            priority: if index == 0 { Priority::Highest } else { *pick(&mut random, &priorities) },
            processing: processing.then_some(Duration::from_millis(50)),
            after,
            ..Object::sized(size)
        });
    }
    page.check().map(|()| page).map_err(|error| error.to_string())
}

fn below(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.up_to(limit as u64 - 1)).unwrap_or(0)
}

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[below(random, from.len())]
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

/// The value that this many tenths are at most.
fn quantile(values: &[f64], tenths: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) * tenths / 10).copied().unwrap_or(f64::NAN)
}
