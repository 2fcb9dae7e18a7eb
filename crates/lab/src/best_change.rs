//! The change of a whole page that saves most time: what-ifs tried on the fastest simulated run.
//!
//! The formulas rank the changes, since they take no time; the best one is then simulated, with the same runs and seed. Only
//! hosts of the critical path are candidates: no other change of one host can make the page faster by much.

use std::collections::BTreeSet;

use model::Assumptions;
use page::Page;
use page::what_if::Change;
use scenario::{Engine, Scenario};
use wire::Duration;

use crate::saving::Saving;
use crate::waterfall::RunWaterfall;
use crate::{Outcome, simulate};

/// Maximum number of objects of a page whose changes are tried.
const MAX_OBJECTS: usize = 2_000;
/// Maximum number of hosts whose changes are tried: the first ones of the critical path.
const MAX_HOSTS: usize = 6;
/// Smallest share of the time that counts as a saving.
const MIN_SHARE: f64 = 0.01;

/// Adds to the fastest simulated outcome the change that saves most there, if all outcomes are of one page, which is a graph.
pub fn find(outcomes: &mut [Outcome]) {
    if outcomes.windows(2).all(|pair| pair[0].scenario.page.name == pair[1].scenario.page.name)
        && let Some(index) = fastest(outcomes)
    {
        outcomes[index].saving = best(&outcomes[index]);
    }
}

/// The outcome of the fastest simulated run that has a critical path.
pub(crate) fn fastest(outcomes: &[Outcome]) -> Option<usize> {
    let elapsed = |index: &usize| outcomes[*index].metrics.elapsed_ms.unwrap_or(f64::INFINITY);
    let with_path = (0..outcomes.len()).filter(|index| outcomes[*index].waterfall.is_some());
    with_path.min_by(|one, other| elapsed(one).total_cmp(&elapsed(other)))
}

fn best(outcome: &Outcome) -> Option<Saving> {
    let Outcome { scenario, engine: Engine::Simulate, metrics, waterfall: Some(waterfall), .. } = outcome
    else {
        return None;
    };
    let before_ms = metrics.elapsed_ms?;
    if scenario.page.objects.len() > MAX_OBJECTS {
        return None;
    }
    let simulated =
        |change: &Change| simulate::outcome(&changed(scenario, change)?, |_| ()).metrics.elapsed_ms;
    let is_saving = |after_ms: &f64| before_ms - after_ms >= MIN_SHARE * before_ms;
    let with_time = |change: Change| Some((predicted(&changed(scenario, &change)?)?, change));
    let candidates = candidates(&scenario.page, waterfall).into_iter().filter_map(with_time);
    let best = candidates.min_by_key(|(time, _)| *time).map(|(_, change)| change);
    let best = best.and_then(|change| Some((simulated(&change).filter(is_saving)?, change)));
    let without_think_ms = simulated(&Change::NoThink).filter(is_saving);
    (best.is_some() || without_think_ms.is_some()).then_some(Saving { best, before_ms, without_think_ms })
}

fn changed(scenario: &Scenario, change: &Change) -> Option<Scenario> {
    let page = scenario.page.clone().changed(std::slice::from_ref(change)).ok()?;
    Some(Scenario { page, ..scenario.clone() })
}

fn predicted(scenario: &Scenario) -> Option<Duration> {
    model::predict(scenario, &Assumptions::default()).ok().map(|prediction| prediction.elapsed)
}

/// Changes that may matter: of each host on the critical path its server time, its distance, its absence, a connection before its
/// first request; one host for all.
fn candidates(page: &Page, waterfall: &RunWaterfall) -> Vec<Change> {
    let mut seen = BTreeSet::new();
    let on_path = waterfall.critical.iter().map(|at| &page.objects[waterfall.courses[*at].object]);
    let hosts = on_path.map(|object| object.host).filter(|host| seen.insert(*host)).take(MAX_HOSTS);
    let mut changes = Vec::new();
    for host in hosts.collect::<Vec<_>>() {
        let name = || page.hosts[host].name.clone();
        let mut own = page.objects.iter().filter(|object| object.host == host);
        let processing = page.hosts[host].processing;
        if own.any(|object| object.processing.unwrap_or(processing) > Duration::ZERO) {
            changes.push(Change::ServerTime(name(), Duration::ZERO));
        }
        if page.hosts[host].extra_rtt > Duration::ZERO {
            changes.push(Change::HostRtt(name(), Duration::ZERO));
        }
        if host != page.objects[0].host {
            changes.push(Change::WithoutHost(name()));
            if page.hosts[host].hints.preconnect.is_none() {
                changes.push(Change::Preconnect(name()));
            }
        }
    }
    if page.hosts.len() > 1 {
        changes.push(Change::MergeHosts);
    }
    changes
}

#[cfg(test)]
mod tests {
    use scenario::Spec;
    use scenario::spec::{Defaults, Key};

    use super::*;

    fn outcomes(page: &str) -> Vec<Outcome> {
        let mut spec = Spec::default();
        spec.pages = vec![page::file::read("shop", page).unwrap()];
        spec.set(Key::Network, "4g").unwrap();
        spec.set(Key::Protocol, "http2").unwrap();
        let plan = spec.plan(&Defaults::laboratory()).unwrap();
        let mut outcomes = simulate::outcomes(&plan);
        find(&mut outcomes);
        outcomes
    }

    fn saving(page: &str) -> Option<Saving> {
        outcomes(page).remove(0).saving
    }

    const SLOW_SERVER: &str = "
        [[host]]
        name = 'www.example.com'
        [[host]]
        name = 'api.example.com'
        [[object]]
        size = 9000
        [[object]]
        host = 'api.example.com'
        size = 9000
        server-time = '900ms'
        after = ['1 + 5ms']
        [[object]]
        size = 9000
        after = ['2']
    ";

    #[test]
    fn slow_server_on_the_critical_path_is_what_pays_most() {
        // Without the host, its handshake and transfer are saved, too.
        let saving = saving(SLOW_SERVER).unwrap();
        let (after_ms, change) = saving.best.clone().unwrap();
        assert_eq!(change, Change::WithoutHost("api.example.com".to_owned()));
        assert!(saving.before_ms - after_ms > 900.0, "{saving:?}");
        let sentence = saving.sentence();
        assert!(
            sentence.starts_with("Of single changes, `--without api.example.com` saves most: "),
            "{sentence}"
        );
        let all = crate::conclusion::sentences(&outcomes(SLOW_SERVER));
        assert!(all.iter().any(|each| each.ends_with(&sentence)), "{all:?}");
    }

    #[test]
    fn work_of_the_client_is_a_bound_beside_the_change_that_pays_most() {
        let page = SLOW_SERVER.replace("900ms", "10ms").replace("5ms'", "800ms'");
        let saving = self::saving(&page).unwrap();
        assert_eq!(saving.best.clone().unwrap().1, Change::WithoutHost("api.example.com".to_owned()));
        assert!(saving.sentence().contains("saves most: "), "{}", saving.sentence());
        let one_host = "[[object]]\nsize = 9000\n[[object]]\nsize = 9000\nafter = ['1 + 800ms']";
        let saving = self::saving(one_host).unwrap();
        assert!(saving.best.is_none(), "{saving:?}");
        assert!((saving.before_ms - saving.without_think_ms.unwrap() - 800.0).abs() < 40.0, "{saving:?}");
        let sentence = saving.sentence();
        assert!(sentence.starts_with("Without the client's own work (`--no-think`)"), "{sentence}");
    }

    #[test]
    fn page_that_no_change_makes_faster_has_no_saving() {
        let page = "[[object]]\nsize = 900000\n[[object]]\nsize = 900000\nafter = ['1 at 1 bytes']";
        assert_eq!(saving(page), None);
    }
}
