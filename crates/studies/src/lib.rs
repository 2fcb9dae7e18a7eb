//! Studies: programs that run for minutes to hours, and whose results are evidence (`studies/*/README.md`). They are not tests.
//!
//! In: scenarios, built by each program. Out: tables as in `studies/`, and an exit status.
//!
//! | program | what it compares | results |
//! | --- | --- | --- |
//! | `corpus` | `diagnose`'s findings with the true causes, simulated and over real kernels | `studies/diagnosis` |
//! | `conformance` | the simulator's Linux with this kernel, segment by segment | `studies/simulator-against-kernel` |
//! | `graphs` | whole pages by the formulas with the same in packets | `studies/graphs` |
//! | `pages` | whole pages over TLS and HTTP/2 in the simulator with the same on this kernel | `studies/pages` |
//! | `chromium` | whole pages predicted from a recording with the same in Chromium | `studies/chromium` |
//! | `loss` | page times under loss with those without | `studies/loss` |
//! | `maps` | two ways to load a page, over round trip and loss, rate, size or queue | `studies/maps` |
//! | `tables` | the papers' tables with rows for TLS 1.3, HTTP/2 and HTTP/3 | `studies/tables` |
//!
//! `PROGRAM all FILE.csv` runs everything; `./ci.sh studies` does so for all. `PROGRAM sample` runs a small part, which
//! `tests/it` checks in every run of the tests.
//!
//! ```text
//! cargo run --release --package roundtrip-studies --bin loss -- all FILE.csv
//! ```

pub mod pages;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread::{self, ScopedJoinHandle};

use fetch::{PageEvent, Report};
use wire::Time;

/// Describes the arguments of a study, for an error: the forms it accepts besides `sample` and `all`.
///
/// ```
/// assert_eq!(roundtrip_studies::usage("trace N"), "unknown arguments; give `sample`, `all FILE.csv`, or `trace N`");
/// ```
pub fn usage(other: &str) -> String {
    match other {
        "" => "unknown arguments; give `sample`, or `all FILE.csv`".to_owned(),
        other => format!("unknown arguments; give `sample`, `all FILE.csv`, or `{other}`"),
    }
}

/// Exit status of a study; an error is printed.
pub fn exit_code(program: &str, reported: Result<(), String>) -> ExitCode {
    match reported {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{program}: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Results of `compute` for each item, in order, by all CPUs: independent of their number.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], compute: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = |worker: usize| items.iter().enumerate().skip(worker).step_by(workers);
    let results: BTreeMap<usize, R> = thread::scope(|scope| {
        let compute = &compute;
        let work = |worker| move || share(worker).map(|(index, item)| (index, compute(item))).collect();
        let working: Vec<_> = (0..workers).map(|worker| scope.spawn(work(worker))).collect();
        let joined = |worker: ScopedJoinHandle<'_, Vec<(usize, R)>>| worker.join().expect("no item panics");
        working.into_iter().flat_map(joined).collect()
    });
    results.into_values().collect()
}

/// The value that this many tenths are at most; not a number if there are none.
pub fn quantile(values: &[f64], tenths: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) * tenths / 10).copied().unwrap_or(f64::NAN)
}

/// Times of an object's request, first byte and end since the page began, in milliseconds.
pub type ObjectTimes = [f64; 3];

/// Times of the objects of a page, by their index.
pub fn object_times(reports: &[Report], began: Time) -> BTreeMap<usize, ObjectTimes> {
    let mut times: BTreeMap<usize, ObjectTimes> = BTreeMap::new();
    for report in reports {
        let (object, index) = match report.event {
            PageEvent::RequestSent { object, .. } => (object, 0),
            PageEvent::HeadReceived { object, .. } => (object, 1),
            PageEvent::ObjectComplete { object, .. } => (object, 2),
            PageEvent::ObjectFound { .. }
            | PageEvent::TooManyObjects { .. }
            | PageEvent::FirstBytesReceived { .. }
            | PageEvent::ObjectFailed { .. }
            | PageEvent::Fault { .. }
            | PageEvent::Finished { .. } => continue,
        };
        times.entry(object).or_insert([f64::NAN; 3])[index] = report.at.since(began).as_millis_f64();
    }
    times
}
