//! Mean times of runs and their components: the part of every study that explains a difference.
//!
//! Not the account of one run: that is `simulate`'s.

use std::collections::BTreeMap;

use simulate::Experiment;
use trace::Summary;

use crate::verdict::Verdict;

/// Maximum relative difference that counts as none.
const NOTHING: f64 = 0.05;
/// Minimum share of a difference that stalls must account for.
pub const MIN_STALL_SHARE: f64 = 0.8;

/// Means over the completed runs, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct RunMeans {
    /// Duration of a run.
    pub elapsed: f64,
    /// Half the 95% confidence interval of that.
    pub interval: f64,
    packets: f64,
    /// Time lost to each cause.
    stalls: BTreeMap<String, f64>,
    /// Time without stalls: the path was in use.
    working: f64,
}

impl RunMeans {
    /// Runs it `runs` times.
    ///
    /// # Errors
    /// When it cannot be run, or no packet arrives.
    pub fn of(experiment: &Experiment, runs: u32) -> Result<Self, String> {
        let (mut elapsed, mut means) = (Vec::new(), Self::default());
        for number in 0..runs {
            let fetched = experiment.run(number, true).map_err(|error| error.to_string())?;
            let Some(time) = fetched.elapsed else { continue };
            elapsed.push(time.as_millis_f64());
            means.packets += (fetched.up.packets + fetched.down.packets) as f64;
            let spent = experiment.spent(&fetched);
            means.working += spent.working.as_millis_f64();
            for stall in spent.stalls {
                *means.stalls.entry(stall.cause.name().to_owned()).or_default() += stall.lost_ms;
            }
        }
        let summary = Summary::of(&elapsed).ok_or("no run arrived")?;
        let count = elapsed.len() as f64;
        means.stalls.values_mut().for_each(|lost| *lost /= count);
        Ok(Self {
            elapsed: summary.mean,
            interval: summary.interval95.unwrap_or_default(),
            packets: means.packets / count,
            working: means.working / count,
            ..means
        })
    }

    /// Packets in both directions.
    pub const fn packets(&self) -> f64 {
        self.packets
    }

    /// Duration of a run, in seconds.
    pub fn seconds(&self) -> f64 {
        self.elapsed / 1_000.0
    }
}

/// Comparison of two means: equal, different and explained by stalls, or different.
pub fn explain(without: &RunMeans, with: &RunMeans) -> (Verdict, Option<String>) {
    let more = with.elapsed - without.elapsed;
    if more.abs() <= NOTHING * without.elapsed {
        return (Verdict::WithinTolerance, Some("within 5% of the other".to_owned()));
    }
    let stalls = |cause: &str| {
        let of = |means: &RunMeans| means.stalls.get(cause).copied().unwrap_or_default();
        (of(with) - of(without)) * more.signum()
    };
    let causes = || with.stalls.keys().chain(without.stalls.keys());
    let greatest = causes().max_by(|one, other| stalls(one).total_cmp(&stalls(other)));
    let reported = with.stalls.values().sum::<f64>() - without.stalls.values().sum::<f64>() + with.working
        - without.working;
    match greatest {
        Some(greatest) if reported * more.signum() >= MIN_STALL_SHARE * more.abs() => {
            let change = if more > 0.0 { "added" } else { "saved" };
            (Verdict::Explained, Some(format!("most of what is {change} is {greatest}")))
        }
        Some(_) | None => (Verdict::Differs, Some("the stalls do not account for it".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(elapsed: f64, stalls: &[(&str, f64)], working: f64) -> RunMeans {
        let stalls = stalls.iter().map(|(cause, lost)| ((*cause).to_owned(), *lost)).collect();
        RunMeans { elapsed, interval: 0.0, packets: 0.0, stalls, working }
    }

    #[test]
    fn differences_are_explained_only_by_stalls_of_the_same_length() {
        let without = means(100.0, &[("slow-start", 40.0)], 60.0);
        let timers = means(400.0, &[("slow-start", 40.0), ("retransmission-timeout", 295.0)], 65.0);
        let note = |one, other| explain(one, other).1.unwrap();
        assert_eq!(note(&without, &timers), "most of what is added is retransmission-timeout");
        assert_eq!(note(&timers, &without), "most of what is saved is retransmission-timeout");
        let unknown = means(400.0, &[("slow-start", 90.0)], 60.0);
        assert_eq!(explain(&without, &unknown).0, Verdict::Differs);
        assert_eq!(explain(&without, &means(104.0, &[], 104.0)).0, Verdict::WithinTolerance);
    }
}
