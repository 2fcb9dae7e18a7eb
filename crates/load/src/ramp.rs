//! A short ramp before a run: one user, then half of the users, each in a closed loop.
//!
//! In a run with a fixed number of requests in flight, throughput and latency alone do not show whether the server is
//! saturated: their product is that number in any case (Little's law). Latency at two numbers of users does.

use std::sync::Arc;

use wire::Duration;

use crate::config::{Config, Shard, Target};
use crate::evidence::Stage;
use crate::job::{Job, Requests, Turns, loop_pages};
use crate::progress::Stop;
use crate::requests::Request;
use crate::run::{Error, run_until};
use crate::traffic::RequestList;

/// Bounds of the duration of a stage.
const STAGE: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// Duration of a stage before a run of this duration.
pub fn stage_duration(lasts: Duration) -> Duration {
    Duration::from_nanos(lasts.as_nanos() / 20).clamp(STAGE[0], STAGE[1])
}

/// Numbers of users of the stages before a load of `users` users in a closed loop, or of an open schedule.
fn stages(turns: Turns) -> Vec<u32> {
    match turns {
        Turns::Once | Turns::Loop(2 | 3) => vec![1],
        Turns::Loop(0 | 1) => Vec::new(),
        Turns::Loop(users) => vec![1, users / 2],
    }
}

/// Whether a run has a ramp: not a log's requests, which are of all kinds, nor shards, which start together. Requests that change
/// the server's state (RFC 9110, section 9.2.1) have one if it is `wanted`.
pub fn fits(list: &RequestList, config: &Config, wanted: bool) -> bool {
    let is_safe = list.requests.iter().all(Request::is_safe);
    (wanted || is_safe) && list.is_judged && config.shard == Shard::WHOLE && config.at.is_none()
}

/// Runs the stages, each for this duration; with zero there are none.
///
/// # Errors
/// As for [`run_until`].
pub fn climb(
    list: &RequestList,
    target: &Target,
    config: &Config,
    stop: &Stop,
    duration: Duration,
) -> Result<Vec<Stage>, Error> {
    if duration == Duration::ZERO {
        return Ok(Vec::new());
    }
    let pages = loop_pages(list.requests.len());
    let config = Config {
        // A slow response must not delay the run.
        timeout: config.timeout.min(duration + duration).max(Duration::from_millis(500)).min(config.timeout),
        shard: Shard::WHOLE,
        at: None,
        ..*config
    };
    let mut results = Vec::new();
    for users in stages(list.turns) {
        let requests = Requests::List(Arc::clone(&list.requests), list.statuses.clone());
        let job = Job { lasts: duration, pages: &pages, turns: Turns::Loop(users), requests };
        let record = run_until(job, target, &config, stop, &mut |_| ())?;
        results.push(Stage {
            users: users.into(),
            responses: record.responses(),
            rate: record.responses_per_second(),
            median_ms: record.experienced.value_at_quantile(0.5) as f64 / 1e6,
        });
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_takes_at_most_a_tenth_of_a_run_of_seconds() {
        assert_eq!(stage_duration(Duration::from_secs(10)), Duration::from_millis(500));
        assert_eq!(stage_duration(Duration::from_secs(600)), Duration::from_secs(1));
        assert_eq!(stage_duration(Duration::from_secs(1)), Duration::from_millis(250));
        assert_eq!(stages(Turns::Loop(10)), [1, 5]);
        assert_eq!((stages(Turns::Loop(1)), stages(Turns::Once)), (vec![], vec![1]));
    }
}
