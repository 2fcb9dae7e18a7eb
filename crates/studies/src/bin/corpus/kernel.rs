//! The corpus over real kernels: two hosts, a link, programs with a fault, and the true causes of each run.
//!
//! | module | contents |
//! | --- | --- |
//! | `cases` | the runs |
//! | `hosts` | two hosts with network cards, two routers, a link |
//! | `programs` | a client and a server, with logs of their own |
//! | `watch` | packets at the cards; TCP_INFO every millisecond |
//! | `truth` | the true pauses with their causes |
//! | `stored_run` | captures at three vantage points and the truth, in files |
//! | `savings` | predicted and real savings of a fix |
//!
//! The kernel is this host's, its times are real: no two runs are the same. A run in which the link was late is repeated.

pub(crate) mod cases;
mod hosts;
mod programs;
pub(crate) mod savings;
pub(crate) mod stored_run;
mod truth;
mod watch;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use testbed::emulator::Capture;
use trace::Stall;

use crate::judge::{JudgedResults, Pause, RunFacts};
use crate::vantage::{Vantage, reported};
use cases::Case;
use hosts::{Hosts, SERVER};
use programs::{ResponseLog, Visit};
pub(crate) use stored_run::StoredRun;
use truth::Truth;
use watch::{Frame, Sample};

/// Observations of one run.
pub(crate) struct Run {
    pub(crate) visit: Visit,
    pub(crate) response_logs: Vec<ResponseLog>,
    pub(crate) samples: Vec<Sample>,
    /// Frames at the client's card and the server's.
    pub(crate) frames: [Vec<Frame>; 2],
    /// Packets on the link.
    pub(crate) capture: Capture,
}

/// Checks whether kernels can be measured; the error names the missing requirement.
pub(crate) fn available() -> Result<(), String> {
    testbed::prepare().map_err(hosts::reported)?;
    testbed::available().map_err(hosts::reported)
}

/// Runs a case; repeats it if the link was late.
pub(crate) fn run(case: &Case) -> Result<Run, String> {
    const ATTEMPTS: usize = 4;
    let mut reason = String::new();
    for _ in 0..ATTEMPTS {
        match attempt(case) {
            Ok(run) => return Ok(run),
            Err(error) => reason = error,
        }
    }
    Err(format!("{}: {reason}", case.name))
}

fn attempt(case: &Case) -> Result<Run, String> {
    let hosts = Hosts::build(case)?;
    let clock = hosts.link.clock();
    let is_over = Arc::new(AtomicBool::new(false));
    let (connected, connections) = mpsc::channel();
    let [at_client, at_server] = [&hosts.client, &hosts.server].map(|host| {
        let is_over = Arc::clone(&is_over);
        host.start(move || watch::sniff(clock, is_over)).wait().map_err(hosts::reported)?
    });
    let is_over_for_sampler = Arc::clone(&is_over);
    let samples = hosts.server.start(move || watch::sample(clock, is_over_for_sampler, connections));
    let samples = samples.wait().map_err(hosts::reported)??;
    let listener = hosts.server.start(|| TcpListener::bind(SERVER)).wait().map_err(hosts::reported)?;
    let listener = listener.map_err(hosts::reported)?;
    let behaviour = case.behaviour.clone();
    let server = hosts.server.start(move || programs::serve(&listener, &behaviour, clock, &connected));
    let behaviour = case.behaviour.clone();
    let visit =
        hosts.client.start(move || programs::visit(&behaviour, clock)).wait().map_err(hosts::reported)?;
    // Lets the last packets arrive.
    programs::wait(case.rtt * 2);
    let response_logs = server.wait().map_err(hosts::reported)?;
    is_over.store(true, Ordering::Release);
    let frames = [at_client?, at_server?].map(|sniffing| sniffing.join().expect("it only reads"));
    let samples = samples.join().expect("it only samples");
    let report = hosts.link.stop().map_err(hosts::reported)?;
    if let Some(void) = report.void() {
        return Err(format!("the link was late: {void}"));
    }
    let capture = report.capture.ok_or("the link captured no packets")?;
    let (visit, response_logs) = (visit.map_err(hosts::reported)?, response_logs.map_err(hosts::reported)?);
    Ok(Run { visit, response_logs, samples, frames, capture })
}

/// Maximum number of concurrent runs that do not disturb one another.
const MAX_CONCURRENT: usize = 6;

/// Runs each case, at most [`MAX_CONCURRENT`] concurrently; prints an error for a case that failed to run.
pub(crate) fn each(cases: &[(usize, &Case)], then: impl Fn(StoredRun) + Sync) {
    run_concurrently(MAX_CONCURRENT, cases, |(number, case)| match run(case) {
        Ok(run) => then(StoredRun::of(*number, case, &run)),
        Err(reason) => eprintln!("corpus: left out: {reason}"),
    });
}

/// Calls `work` for each of `all`, at most `max_concurrent` at a time.
fn run_concurrently<T: Sync>(max_concurrent: usize, all: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    thread::scope(|scope| (0..max_concurrent).for_each(|_| drop(scope.spawn(work))));
}

/// Runs and stores all cases that are not stored yet.
pub(crate) fn store_missing(cases: &[Case], directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(hosts::reported)?;
    let is_missing = |(number, _): &(usize, &Case)| !directory.join(format!("{number}.csv")).exists();
    let numbered: Vec<(usize, &Case)> = cases.iter().enumerate().filter(is_missing).collect();
    let failed = Mutex::new(None);
    each(&numbered, |stored| {
        if let Err(error) = stored.save(directory) {
            *failed.lock().expect("no thread panics") =
                Some(format!("cannot write {}: {error}", directory.display()));
        }
    });
    failed.into_inner().expect("no thread panics").map_or(Ok(()), Err)
}

/// Judges the findings in stored runs.
pub(crate) fn judge_stored(directory: &Path, count: usize) -> Result<JudgedResults, String> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<JudgedResults, String> {
        let mut judged = JudgedResults::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(judged);
            }
            if let Some(stored) = StoredRun::load(directory, number)? {
                judge(&stored, &mut judged);
            }
        }
    };
    let thread_count = thread::available_parallelism().map_or(1, usize::from);
    let parts = thread::scope(|scope| {
        let threads: Vec<_> = (0..thread_count).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it can be read")).collect::<Vec<_>>()
    });
    let mut judged = JudgedResults::default();
    for part in parts {
        judged.merge(part?);
    }
    Ok(judged)
}

/// Counts the findings of one run.
pub(crate) fn judge(stored: &StoredRun, judged: &mut JudgedResults) {
    let StoredRun { number, name, rtt_ms, truth, captures: _ } = stored;
    let Truth { began, elapsed_ms, stalls, repairs, unexplained: _, unwatched } = truth;
    let known = RunFacts {
        name,
        number: *number,
        is_first: (number / 2 + number / 8 + number / 32).is_multiple_of(2),
        rtt_ms: *rtt_ms,
        elapsed_ms: *elapsed_ms,
        stalls: stalls.clone(),
        repairs: repairs.clone(),
        unwatched: unwatched.clone(),
    };
    for (vantage_index, vantage) in Vantage::ALL.into_iter().enumerate() {
        let (found, account) = reported(stored.found(vantage_index), *began);
        known.record_findings(
            vantage,
            &found,
            &account,
            if stored_run::is_cut(*number, vantage_index) { " cut" } else { "" },
            judged,
        );
    }
}

/// Prints one case with its true causes and its findings.
pub(crate) fn show(stored: &StoredRun) {
    let StoredRun { number, name, rtt_ms: _, truth, captures: _ } = stored;
    let Truth { began, elapsed_ms, stalls, repairs, unexplained, unwatched } = truth;
    println!("{number}: {name}, {elapsed_ms:.3} ms");
    let print = |label: &str, stalls: &[Stall]| {
        for Stall { cause, at_ms, lost_ms } in stalls {
            println!("  {label:<12} {cause:<24} {at_ms:9.3} +{lost_ms:.3} ms");
        }
    };
    print("true", stalls);
    print("repair", repairs);
    for (label, pauses) in [("unexplained", unexplained), ("unwatched", unwatched)] {
        for Pause { at_ms, lost_ms } in pauses {
            println!("  {label:<12} {:<24} {at_ms:9.3} +{lost_ms:.3} ms", "");
        }
    }
    for (vantage_index, vantage) in Vantage::ALL.into_iter().enumerate() {
        print(vantage.name(), &reported(stored.found(vantage_index), *began).0);
    }
}
