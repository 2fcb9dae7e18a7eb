//! One page object by object: the simulated waterfall beside Chromium's, and the difference by phase.

use std::collections::BTreeMap;

use page::Page;
use roundtrip_studies::{ObjectTimes, object_times, quantile};
use scenario::{Network, Protocol};
use simulate::{Experiment, Hosts};

use crate::recordings;

/// Shows a page over a network by a protocol.
pub(crate) fn trace(number: u64, network: &str, protocol: &str) -> Result<(), String> {
    let network = || Network::named(network).map_err(|error| error.to_string());
    let protocol = Protocol::named(protocol).map_err(|error| error.to_string())?;
    let page = crate::pages::page(number)?;
    let recorded = recordings::read(recordings::har(&page)?.as_bytes())?;
    let (runs, _) = crate::visits(&page, network()?, protocol, 1)?;
    let browser = runs.first().and_then(|run| run.browser.as_ref()).ok_or("no visit")?;
    let visited: BTreeMap<String, ObjectTimes> = browser
        .objects
        .iter()
        .map(|object| {
            let times = [object.sent, object.first_byte, object.end].map(|time| time.as_millis_f64());
            (object.url.clone(), times)
        })
        .collect();
    let simulated = simulated(&recorded, network()?, protocol)?;
    println!(
        "object kind         bytes   requested       first byte      complete, simulated and in Chromium, ms"
    );
    let mut order: Vec<(usize, ObjectTimes)> = simulated.into_iter().collect();
    order.sort_by(|(_, one), (_, other)| one[2].total_cmp(&other[2]));
    let mut phases: [Vec<f64>; 3] = Default::default();
    for (index, times) in order {
        let Some(object) = recorded.objects.get(index) else { continue };
        let host = recorded.hosts.get(object.host).map_or("", |host| &host.name);
        let path = object.path.clone().unwrap_or_default();
        let Some(other) = visited.get(&format!("https://{host}{path}")) else { continue };
        let cells = times.iter().zip(other).map(|(one, other)| format!("{one:7.1} {other:7.1}"));
        let cells = cells.collect::<Vec<_>>().join(" ");
        println!("{path:6} {:11} {:7} {cells}", object.kind.name(), object.size.get());
        let span = |times: &ObjectTimes| [times[0], times[1] - times[0], times[2] - times[1]];
        for ((phase, one), other) in phases.iter_mut().zip(span(&times)).zip(span(other)) {
            phase.push(one - other);
        }
    }
    for (name, differences) in
        ["until it is requested", "until its first byte", "until its end"].iter().zip(&phases)
    {
        let [low, median, high] = [1, 5, 9].map(|tenths| quantile(differences, tenths));
        println!(
            "{name:22}: simulated less Chromium's {median:+.1} ms in the median, {low:+.1} to {high:+.1} ms at the deciles"
        );
    }
    println!(
        "load {:.1} ms, last response {:.1} ms in Chromium",
        browser.load.as_millis_f64(),
        browser.last_end.as_millis_f64()
    );
    Ok(())
}

fn simulated(
    recorded: &Page,
    network: Network,
    protocol: Protocol,
) -> Result<BTreeMap<usize, ObjectTimes>, String> {
    let scenario = crate::scenario(recorded, network, protocol, 1)?;
    let experiment = Experiment::new(&scenario, Hosts::default()).map_err(|error| error.to_string())?;
    let run = experiment.run(1, false).map_err(|error| error.to_string())?;
    Ok(object_times(&run.reports, run.began))
}
