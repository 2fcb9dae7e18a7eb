//! All threads of a run, from the first request to the last response.
//!
//! Users are in `worker`. The kernel's counter of dropped datagrams is read once a second.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use dhttp::descriptors;
use linux::clock::{Clock, calendar};
use rustix::event::epoll::{self, CreateFlags};
use rustix::rand::{GetRandomFlags, getrandom};
use wire::{Duration, Seed, Time};
use workload::plan::PageStart;

use crate::config::{Config, Protocol, Target};
use crate::evidence::{Evidence, Shape};
use crate::gauge::Gauge;
use crate::host;
use crate::http1_connection::transport::Connector;
use crate::job::{Job, PreparedRequest, Requests, Turns};
use crate::ports::Ports;
use crate::progress::{Progress, ProgressSender, Stop};
use crate::record::Record;
use crate::resources::{self, MissingResource, users};
use crate::streams::reactor::Reactor;
use crate::streams::streams_config::StreamsConfig;
use crate::tls::TrustError;
use crate::user::{ThreadContext, heads};
use crate::worker::{Queue, Worker};

/// Reason why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A resource that this host lacks.
    #[error(transparent)]
    MissingResource(#[from] MissingResource),
    /// The system gave no socket, port or thread.
    #[error("the load generator could not start: {0}")]
    System(#[from] io::Error),
    /// Encrypted connections cannot be configured.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

/// Runs the job (or a plan) to its end; `watch` is called every second.
///
/// # Errors
/// [`Error`] if the system lacks resources; errors of servers are in the record.
pub fn run<'a>(
    job: impl Into<Job<'a>>,
    target: &Target,
    config: &Config,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Record, Error> {
    run_until(job, target, config, &Stop::default(), watch)
}

/// Runs the job until it is over, or `stop` is set.
///
/// # Errors
/// As for [`run`].
pub fn run_until<'a>(
    job: impl Into<Job<'a>>,
    target: &Target,
    config: &Config,
    stop: &Stop,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Record, Error> {
    let job = &job.into();
    resources::check(job, config)?;
    let clock = Clock::start();
    let now = calendar();
    let (sender, reported) = channel();
    let (seed, unchanged_since) = (secret()?, wire::calendar::http(now));
    let (heads, means) = (
        heads(config, target, &unchanged_since),
        StreamsConfig::new(target, config, &unchanged_since, &job.requests)?,
    );
    let connector = Connector::new(target, config.fast_open)?;
    let list: Arc<[PreparedRequest]> = match &job.requests {
        Requests::List(list, _) if means.is_none() => PreparedRequest::all(list, target, config).into(),
        Requests::List(..) | Requests::Site(_) => Arc::default(),
    };
    let (mut parts, mut gauges) = (Vec::new(), Vec::new());
    for (thread, pages) in (0_u64..).zip(pages(job, config)) {
        let open = Gauge::default();
        gauges.push(open.clone());
        let ports = match config.protocol {
            Protocol::Dhttp => Some(Ports::bind(target.address, config.ports.min(pages.len()))?),
            Protocol::Http10
            | Protocol::KeepAlive
            | Protocol::Pipelined
            | Protocol::Http2
            | Protocol::Http3 => None,
        };
        let common = ThreadContext {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            streams: match &means {
                Some(means) => Some((means.clone(), Reactor::new()?)),
                None => None,
            },
            config: *config,
            target: target.clone(),
            connector: connector.clone(),
            ports,
            heads: heads.clone(),
            list: Arc::clone(&list),
            buffer: vec![0; READ_BUFFER_BYTES],
            done: Vec::new(),
            outcomes: Vec::new(),
            open,
            connections: 0,
            retries: 0,
            evidence: Evidence::default(),
        };
        let ids = seed.stream("load-ids", thread);
        let control = (ProgressSender::new(sender.clone()), stop.clone());
        parts.push(Worker::new(job, clock, common, pages, ids, control)?);
    }
    descriptors::grow_table();
    let mut record = Record::default();
    let mut dropped = vec![dropped_datagrams()];
    thread::scope(|scope| {
        // No thread begins before all of them exist: where the system provides fewer, nothing is sent.
        let workers: Vec<_> = parts
            .into_iter()
            .map(|worker| {
                let (start_sender, start_receiver) = channel::<Time>();
                let builder = thread::Builder::new().name(host::THREAD_NAME.to_owned());
                let handle = builder.spawn_scoped(scope, move || {
                    // The kernel may otherwise let a thread sleep 50 us longer than requested.
                    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
                    start_receiver.recv().ok().map(|begins| worker.run(begins))
                })?;
                Ok((start_sender, handle))
            })
            .collect::<io::Result<_>>()?;
        // The threads have clones: the run is over when the last one is dropped.
        drop(sender);
        // Not earlier: preparing thousands of users takes time.
        let now = calendar();
        let wait = config.at.map_or(Duration::ZERO, |at| at.saturating_sub(now)).max(HEAD_START);
        let begins = clock.now() + wait;
        record.began = now + wait;
        for (start_sender, _) in &workers {
            // Each thread waits for the start time.
            let _ = start_sender.send(begins);
        }
        let sampling = host::start(scope, target.address, clock, [begins, begins + job.lasts]);
        let mut progress = Progress::default();
        let (mut over, mut is_reported) = (1, true);
        loop {
            let second = begins + Duration::from_secs(over);
            let at = if is_reported { second } else { second + SETTLED };
            match reported.recv_timeout(std::time::Duration::from_nanos(at.since(clock.now()).as_nanos())) {
                Ok(reported) => progress.add(reported),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if is_reported => {
                    let (before, now) = (dropped.last().copied().unwrap_or(0), dropped_datagrams());
                    progress.dropped(over - 1, now.saturating_sub(before));
                    dropped.push(now);
                    is_reported = false;
                }
                Err(RecvTimeoutError::Timeout) => {
                    progress.open = gauges.iter().map(Gauge::now).sum();
                    watch(&progress);
                    over += 1;
                    is_reported = true;
                }
            }
        }
        for (_, worker) in workers {
            match worker.join() {
                Ok(part) => record.merge(part.unwrap_or_default()),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        record.evidence.merge(sampling.map(host::Sampling::finish).unwrap_or_default());
        io::Result::Ok(())
    })?;
    record.evidence.shape = shape(job, config);
    dropped.push(dropped_datagrams());
    add_dropped(&mut record, &dropped);
    Ok(record)
}

/// Adds dropped datagrams to the seconds; `dropped` has the counter at the start and after each second.
fn add_dropped(record: &mut Record, dropped: &[u64]) {
    for (second, pair) in (0_u64..).zip(dropped.windows(2)) {
        if let [before, after] = pair
            && after > before
        {
            record.second(Duration::from_secs(second)).dropped += after - before;
        }
    }
}

/// Form of the load.
fn shape(job: &Job<'_>, config: &Config) -> Shape {
    let users = users(job, config) as u64;
    let is_multiplexed =
        matches!(config.protocol, Protocol::Http2 | Protocol::Http3 | Protocol::Pipelined | Protocol::Dhttp);
    let is_open = job.pages.iter().any(|page| matches!(page.start, PageStart::At(_)));
    let max_in_flight = match is_open {
        true if is_multiplexed => 0,
        true => users * config.connections as u64,
        false => users,
    };
    Shape { is_open, users, max_in_flight }
}

/// Time until every thread has received the start time.
const HEAD_START: Duration = Duration::from_millis(50);
/// Time after a second in which all threads have reported it, unless they are overloaded.
const SETTLED: Duration = Duration::from_millis(50);
/// Size of a read buffer, in bytes.
const READ_BUFFER_BYTES: usize = 128 << 10;

/// The pages, by thread and by user.
fn pages(job: &Job<'_>, config: &Config) -> Vec<Vec<Queue>> {
    let users = users(job, config).max(1);
    let of_users: Vec<Queue> = match job.turns {
        Turns::Once => {
            let mut of_users = vec![VecDeque::new(); users];
            for (index, page) in job.pages.iter().enumerate() {
                of_users[page.user as usize % users].push_back(index);
            }
            of_users.into_iter().map(Queue::Once).collect()
        }
        Turns::Loop(_) => {
            let count = job.pages.len();
            (0..users).map(|user| Queue::Loop { next: user * count / users, count }).collect()
        }
    };
    let own_users = of_users.into_iter().enumerate().filter(|(user, _)| config.shard.has(*user));
    let own_users: Vec<_> = own_users.map(|(_, pages)| pages).collect();
    let mut of_threads = vec![Vec::new(); config.threads.clamp(1, own_users.len().max(1))];
    let threads = of_threads.len();
    for (user, pages) in own_users.into_iter().enumerate() {
        of_threads[user % threads].push(pages);
    }
    of_threads
}

/// An unpredictable seed: only ids distinguish a response from a forgery.
fn secret() -> io::Result<Seed> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(Seed::new(u64::from_ne_bytes(bytes)))
}

/// Datagrams dropped for lack of buffers, incoming and outgoing, in this network namespace so far (proc(5)).
fn dropped_datagrams() -> u64 {
    // Of this thread's namespace: others may be in other namespaces.
    let udp = fs::read_to_string("/proc/thread-self/net/snmp").unwrap_or_default();
    let mut lines = udp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let errors = names.split(' ').zip(values.split(' '));
    let errors = errors.filter(|(name, _)| matches!(*name, "RcvbufErrors" | "SndbufErrors"));
    errors.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use workload::plan::{Plan, PlanSpec};
    use workload::schedule::{Arrivals, Leg, Schedule};

    use super::*;
    use crate::config::Shard;

    pub(crate) fn config(threads: usize, users: u32) -> Config {
        Config {
            protocol: Protocol::KeepAlive,
            dhttp: dhttp_proto::ClientConfig::internet(),
            connections: 1,
            ports: 0,
            shard: Shard::WHOLE,
            closes_early: false,
            fast_open: false,
            has_early: false,
            idle_timeout: None,
            threads,
            users,
            timeout: Duration::from_secs(1),
            at: None,
        }
    }

    fn queues(plan: &Plan, config: &Config) -> Vec<Vec<VecDeque<usize>>> {
        let of_user = |queue| match queue {
            Queue::Once(pages) => pages,
            Queue::Loop { .. } => panic!("a plan is run once"),
        };
        let threads = pages(&plan.into(), config).into_iter();
        threads.map(|users| users.into_iter().map(of_user).collect()).collect()
    }

    #[test]
    fn every_page_has_one_user_in_one_thread_and_keeps_its_order() {
        let leg = Leg { duration: Duration::from_secs(1), from: 100.0, to: 100.0 };
        let schedules = [Schedule::Users(7), Schedule::Rates(vec![leg], Arrivals::Constant)];
        for schedule in schedules {
            let plan = PlanSpec { schedule, files: 20, ..PlanSpec::default() }.plan().unwrap();
            let pages = queues(&plan, &config(3, 5));
            assert_eq!(pages.len(), 3);
            assert!(pages.iter().flatten().all(|pages| pages.iter().is_sorted()));
            let mut all: Vec<usize> = pages.into_iter().flatten().flatten().collect();
            all.sort_unstable();
            assert_eq!(all, (0..plan.pages.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn shards_of_a_plan_are_disjoint_and_complete() {
        let plan =
            PlanSpec { schedule: Schedule::Users(7), files: 20, ..PlanSpec::default() }.plan().unwrap();
        // More shards than users: some have nothing to do.
        let of = 9;
        let part = |number| Config { shard: Shard::new(number, of).unwrap(), ..config(2, 5) };
        let mut all: Vec<usize> =
            (1..=of).flat_map(|number| queues(&plan, &part(number))).flatten().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..plan.pages.len()).collect::<Vec<_>>());
        assert_eq!(
            (1..=of).map(|number| resources::needs(&(&plan).into(), &part(number)).ports).sum::<u64>(),
            7
        );
    }
}
