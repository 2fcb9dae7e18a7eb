//! A thread with its users: its schedule, and its sockets.
//!
//! Its clock is the run's; it waits only for the next event or timeout.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use dhttp::batch::{Endpoints, Inbox};
use dhttp::readiness::timespec;
use dhttp_proto::Id;
use linux::clock::Clock;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use wire::seed::Random;
use wire::{Duration, Time};
use workload::plan::{ObjectRequest, PageStart};

use crate::bottleneck::thread_cpu_time;
use crate::evidence::{CpuShare, Evidence};
use crate::host::own_thread;
use crate::http1_connection::{Pending, Response};
use crate::job::{Job, Turns};
use crate::ports;
use crate::progress::{GRACE, ProgressSender, Stop};
use crate::record::Record;
use crate::streams::connection_task::Report;
use crate::user::{FinishedRequest, ThreadContext, User};

/// A thread's part of the run.
pub(crate) struct Worker<'a> {
    job: &'a Job<'a>,
    clock: Clock,
    /// Start of the run, for all threads.
    begins: Time,
    /// Time after which nothing more is started.
    ends: Time,
    common: ThreadContext,
    users: Vec<UserSlot>,
    timers: BinaryHeap<Reverse<(Time, u32, Wake)>>,
    ids: Random,
    record: Record,
    /// Due times of requests that have not been sent yet.
    unsent: Vec<Time>,
    in_flight: u64,
    /// Time of the next check for timeouts, and the users to check then.
    sweeps: Time,
    next_swept: usize,
    /// Time spent busy-waiting since the last tick.
    busy_waited: Duration,
    /// Connections that are already in the record.
    opened: u64,
    /// Start of this tick.
    ticked: Time,
    progress: ProgressSender,
    stop: Stop,
    cpu: ThreadUsage,
}

/// CPU time of the thread while requests are due.
#[derive(Debug, Default)]
struct ThreadUsage {
    /// The first tick, and the thread's times then.
    since: Option<(Time, CpuShare)>,
    /// CPU time since then, without busy-waiting.
    worked: Duration,
    /// Connections without any response, at the last tick before the end.
    unserved: u64,
    is_over: bool,
}

/// A user, with its pages.
#[derive(Debug)]
struct UserSlot {
    user: User,
    pages: Queue,
    /// Objects of the page without a response.
    objects_left: usize,
    closes: bool,
    /// Next timeout of DHTTP's state machine.
    wakes: Option<Time>,
}

/// The remaining pages of a user, by their indices in the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// These, once.
    Once(VecDeque<usize>),
    /// All of `count` pages, from `next` on, repeatedly.
    Loop { next: usize, count: usize },
}

impl Queue {
    fn next(&self) -> Option<usize> {
        match self {
            Self::Once(pages) => pages.front().copied(),
            Self::Loop { next, count } => (*count > 0).then_some(*next),
        }
    }

    fn pop(&mut self) -> Option<usize> {
        let page = self.next()?;
        match self {
            Self::Once(pages) => {
                pages.pop_front();
            }
            Self::Loop { next, count } => *next = (*next + 1) % *count,
        }
        Some(page)
    }
}

/// Reason to wake a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    Page(usize),
    Object(usize, usize),
    ClientTimeout,
}

/// Maximum sleep: each second's report must be in time.
const TICK: Duration = Duration::from_millis(100);
/// Time before the end whose ticks count unserved connections.
const LAST_TICKS: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);
/// Wait for a first response that counts as unserved, as a multiple of the mean service time.
const LONG_WAIT: f64 = 10.0;
/// Interval between the starts of a closed loop's users: a thousand in a tenth of a second.
const APART: Duration = Duration::from_micros(100);
/// Delay of a closed loop's user after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(10);
/// Busy-waiting time before something is due: more than the kernel needs to wake a thread.
const SPIN: Duration = Duration::from_micros(60);
/// Maximum number of datagrams received in a row before due requests are checked.
const MAX_CONSECUTIVE_DATAGRAMS: usize = 8;
/// Slot of events at ports, which belong to no single user.
const PORTS: u32 = u32::MAX;
/// Number of users that are checked together, which takes a few microseconds.
const USERS_PER_SWEEP: usize = 64;

impl<'a> Worker<'a> {
    /// A thread with a user for each list of pages; `ids` is an unpredictable generator.
    pub(crate) fn new(
        job: &'a Job<'a>,
        clock: Clock,
        common: ThreadContext,
        pages: Vec<Queue>,
        mut ids: Random,
        (progress, stop): (ProgressSender, Stop),
    ) -> io::Result<Self> {
        let mut users = Vec::with_capacity(pages.len());
        for (number, pages) in (0..).zip(pages) {
            let secret = (u128::from(ids.next_u64()) << 64 | u128::from(ids.next_u64())).to_be_bytes();
            let user = User::new(number, &common, secret)?;
            users.push(UserSlot { user, pages, objects_left: 0, closes: false, wakes: None });
        }
        for (slot, socket) in (0_u64..).zip(common.ports.iter().flat_map(|ports| ports.sockets())) {
            let data = EventData::new_u64(u64::from(PORTS) << 32 | slot);
            epoll::add(&common.epoll, socket, data, EventFlags::IN)?;
        }
        let (timers, record, unsent) =
            (BinaryHeap::new(), Record::with_separate_results(job.requests.separate_requests()), Vec::new());
        let (in_flight, opened, next_swept, busy_waited) = (0, 0, 0, Duration::ZERO);
        Ok(Self {
            job,
            clock,
            begins: Time::ZERO,
            ends: Time::ZERO,
            common,
            users,
            timers,
            ids,
            record,
            unsent,
            in_flight,
            sweeps: Time::ZERO,
            next_swept,
            busy_waited,
            opened,
            ticked: Time::ZERO,
            progress,
            stop,
            cpu: ThreadUsage::default(),
        })
    }

    /// Runs from the first request to the last response, with this start time.
    pub(crate) fn run(mut self, begins: Time) -> Record {
        (self.begins, self.sweeps, self.ticked) = (begins, begins, begins);
        self.ends = begins + self.job.lasts;
        for number in 0..self.users.len() {
            let apart = match self.users[number].pages {
                Queue::Once(_) => Duration::ZERO,
                Queue::Loop { .. } => Duration::from_nanos(APART.as_nanos() * number as u64),
            };
            self.schedule(number, self.begins + apart);
        }
        let mut timeout = self.common.config.timeout;
        let (mut events, mut reports) = (Vec::with_capacity(1_024), Vec::new());
        let mut inbox = Inbox::default();
        let (mut tick, mut busy) = (self.begins + TICK, thread_cpu_time());
        loop {
            let now = self.clock.now();
            self.due(now);
            self.sweep(now);
            if now >= tick {
                self.tick(now, &mut busy);
                tick = self.next_tick(now);
            }
            if self.stop.is_set() && now < self.ends {
                self.record.cut = Some(now.since(self.begins));
                self.ends = now;
                timeout = timeout.min(GRACE);
            }
            if now >= self.ends && (self.in_flight == 0 || now >= self.ends + timeout) {
                break;
            }
            self.send();
            // Before the start there are no ticks, but the run may be interrupted.
            let next = self.next_due().map_or(tick, |at| at.min(tick)).min(self.sweeps).min(now + TICK);
            self.wait(next, &mut events, &mut reports);
            for event in events.drain(..) {
                let data = event.data.u64();
                // The two words of the event's data.
                let (number, slot) =
                    ((data >> 32) as usize, u32::try_from(data & u64::from(u32::MAX)).unwrap_or(0));
                let now = self.start_due();
                if number == PORTS as usize {
                    self.datagrams(now, slot as usize, event.flags, &mut inbox);
                } else if let Some(slot_of_user) = self.users.get_mut(number) {
                    let wakes = slot_of_user.user.ready(now, slot, &mut self.common);
                    self.settle(now, number, wakes);
                }
            }
            for (user, report) in reports.drain(..) {
                let (now, number) = (self.clock.now(), user as usize);
                if self.next_due().is_some_and(|at| at <= now) {
                    self.due(now);
                }
                if let Some(slot_of_user) = self.users.get_mut(number) {
                    slot_of_user.user.reported(now, report, &mut self.common);
                    self.settle(now, number, None);
                }
            }
        }
        let now = self.clock.now();
        self.end(now);
        self.tick(now, &mut busy);
        let ThreadContext { connections, retries, streams, evidence, .. } = self.common;
        self.record.evidence.merge(evidence);
        if let Some((_, reactor)) = streams {
            reactor.finish();
        }
        Record { connections, retries, ..self.record }
    }

    /// Ends the run: requests without a response by now time out.
    fn end(&mut self, now: Time) {
        self.record.elapsed = now.since(self.begins);
        if self.record.cut.is_none() {
            for number in 0..self.users.len() {
                self.users[number].user.expire_requests(now, Time::MAX, &mut self.common);
                self.settle(now, number, None);
            }
        }
    }

    fn next_due(&self) -> Option<Time> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    /// Waits until something is ready or due. A sleeping thread wakes late: the last moments are busy-waiting, which
    /// does not count as work.
    fn wait(&mut self, next: Time, events: &mut Vec<Event>, reports: &mut Vec<(u32, Report)>) {
        let began = self.clock.now();
        let left = next.since(began);
        let sleep = left.saturating_sub(SPIN);
        if let Some((_, reactor)) = &mut self.common.streams {
            reactor.wait(sleep, reports);
        } else {
            let epoll = &self.common.epoll;
            // An interrupted wait has no events; any other error would be a bug in this file.
            if sleep > Duration::ZERO {
                // By ppoll(2), which counts in nanoseconds: epoll_wait(2) counts in milliseconds, and rounds up.
                let _ = poll(&mut [PollFd::new(epoll, PollFlags::IN)], Some(&timespec(sleep)));
            }
            let _ =
                epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&timespec(Duration::ZERO)));
        }
        if sleep == Duration::ZERO && left > Duration::ZERO && events.is_empty() && reports.is_empty() {
            self.busy_waited += self.clock.now().since(began);
        }
    }

    /// Starts what is due, before more events are handled. Returns the time.
    fn start_due(&mut self) -> Time {
        let now = self.clock.now();
        if self.next_due().is_some_and(|at| at <= now) {
            self.due(now);
        }
        now
    }

    /// Receives datagrams of a port, for the users that they belong to.
    fn datagrams(&mut self, now: Time, port: usize, flags: EventFlags, inbox: &mut Inbox) {
        let Some(ports) = &self.common.ports else { return };
        if flags.contains(EventFlags::ERR) && ports.is_refused(port) {
            for number in (port..self.users.len()).step_by(ports.count()) {
                let wakes = self.users[number].user.refused(now, &mut self.common);
                self.settle(now, number, wakes);
            }
            return;
        }
        if !ports.receive(port, inbox) {
            return;
        }
        for index in 0..inbox.len() {
            let Some((Endpoints { peer, local: _ }, bytes)) = inbox.datagram(index) else { continue };
            let Ok((id, _)) = Id::split(bytes) else { continue };
            let number = ports::user(id);
            if let Some(slot_of_user) = self.users.get_mut(number) {
                let wakes = slot_of_user.user.datagram(now, peer, bytes, &mut self.common);
                self.settle(now, number, wakes);
            }
            if index % MAX_CONSECUTIVE_DATAGRAMS == MAX_CONSECUTIVE_DATAGRAMS - 1 {
                self.start_due();
            }
        }
    }

    /// Sends the datagrams queued at ports.
    fn send(&mut self) {
        let Some(ports) = &mut self.common.ports else { return };
        if !self.unsent.is_empty() {
            let now = self.clock.now();
            for due in self.unsent.drain(..) {
                let (when, lateness) = (due.since(self.begins), now.since(due));
                self.record.due(when, lateness);
                self.progress.due(when, lateness);
            }
        }
        ports.send();
    }

    /// Starts what is due.
    fn due(&mut self, now: Time) {
        while let Some(Reverse((at, user, wake))) =
            self.timers.peek().copied().filter(|Reverse((at, ..))| *at <= now)
        {
            self.timers.pop();
            let number = user as usize;
            match wake {
                Wake::ClientTimeout => {
                    let slot_of_user = &mut self.users[number];
                    if slot_of_user.wakes == Some(at) {
                        slot_of_user.wakes = None;
                        let wakes = slot_of_user.user.wake(now, &mut self.common);
                        self.settle(now, number, wakes);
                    }
                }
                // Pages and objects that were not started by the end are dropped.
                Wake::Page(_) | Wake::Object(..) if at > self.ends => {}
                Wake::Page(page) => self.begin(now, at, number, page),
                Wake::Object(page, object) => {
                    self.send_request(now, at, number, self.job.pages[page].objects[object])
                }
            }
        }
        self.send();
    }

    fn begin(&mut self, now: Time, at: Time, number: usize, page: usize) {
        let objects = &self.job.pages[page].objects;
        self.users[number].objects_left = objects.len();
        self.users[number].closes = self.common.config.closes_early || self.job.pages[page].ends_session;
        let mut due = at;
        for (object, object_request) in objects.iter().enumerate().skip(1) {
            due += object_request.after;
            // The number of users fits 32 bits.
            self.timers.push(Reverse((due, u32::try_from(number).unwrap_or(0), Wake::Object(page, object))));
        }
        if let PageStart::At(_) = self.job.pages[page].start {
            // Later pages do not wait for it.
            self.schedule(number, self.begins);
        }
        self.send_request(now, at, number, objects[0]);
    }

    fn send_request(&mut self, now: Time, due: Time, number: usize, object_request: ObjectRequest) {
        let ObjectRequest { file: request, after: _, is_conditional } = object_request;
        let now = if self.common.ports.is_some() {
            self.unsent.push(due);
            now
        } else {
            // Earlier ones took time.
            let now = self.clock.now();
            let (when, lateness) = (due.since(self.begins), now.since(due));
            self.record.due(when, lateness);
            self.progress.due(when, lateness);
            now
        };
        let (is_head, may_repeat) = self.job.requests.traits(request);
        let pending = Pending {
            number: request,
            is_conditional,
            is_head,
            may_repeat,
            intended: due,
            sent: now,
            is_retry: false,
        };
        self.in_flight += 1;
        let drawn = self.ids.next_u64();
        let wakes = self.users[number].user.send_request(now, pending, drawn, &mut self.common);
        self.settle(now, number, wakes);
    }

    /// Records finished requests, and schedules what follows.
    fn settle(&mut self, now: Time, number: usize, wakes: Option<Time>) {
        let slot_of_user = &mut self.users[number];
        if let Some(at) = wakes.filter(|at| slot_of_user.wakes.is_none_or(|earlier| *at < earlier)) {
            slot_of_user.wakes = Some(at);
            self.timers.push(Reverse((at, u32::try_from(number).unwrap_or(0), Wake::ClientTimeout)));
        }
        let mut done = std::mem::take(&mut self.common.done);
        for FinishedRequest { pending, outcome, channel } in done.drain(..) {
            self.in_flight -= 1;
            let when = now.since(self.begins);
            let judged = outcome.and_then(|Response { status, bytes }| {
                self.record.status(status);
                self.job.requests.judge(pending.number, pending.is_conditional, status, bytes)
            });
            let received = match judged {
                Ok(bytes) => {
                    let (experienced, intended) = (now.since(pending.sent), now.since(pending.intended));
                    self.record.count_response(when, bytes, channel, experienced, intended);
                    self.record.count_separate_response(pending.number, intended);
                    self.progress.record_response(experienced);
                    now
                }
                Err(reason) => {
                    self.record.failed(when, reason);
                    self.record.failed_one(pending.number);
                    // In a closed loop without pauses a failed server would get requests as fast as the CPU allows.
                    if matches!(self.job.turns, Turns::Loop(_)) { now + AFTER_FAILURE } else { now }
                }
            };
            let slot_of_user = &mut self.users[number];
            slot_of_user.objects_left = slot_of_user.objects_left.saturating_sub(1);
            if slot_of_user.objects_left == 0 {
                if slot_of_user.closes {
                    slot_of_user.user.close();
                }
                self.schedule_after_pause(number, received);
            }
        }
        // Its buffer is reused.
        self.common.done = done;
    }

    /// A page is complete: the next one follows after a pause, unless it has a time of its own.
    fn schedule_after_pause(&mut self, number: usize, received: Time) {
        let next = self.users[number].pages.next().map(|page| self.job.pages[page].start);
        if let Some(PageStart::After(_)) = next {
            self.schedule(number, received);
        }
    }

    /// Schedules a user's next page, counted from `from` if it has no time of its own.
    fn schedule(&mut self, number: usize, from: Time) {
        let Some(page) = self.users[number].pages.pop() else { return };
        let at = match self.job.pages[page].start {
            PageStart::After(after) => from + after,
            PageStart::At(at) => self.begins + at.since(Time::ZERO),
        };
        self.timers.push(Reverse((at, u32::try_from(number).unwrap_or(0), Wake::Page(page))));
    }

    /// Times out requests and closes idle connections: of a few users at a time, of all of them ten times a second.
    fn sweep(&mut self, now: Time) {
        if now < self.sweeps {
            return;
        }
        let (timeout, idle_timeout) = (self.common.config.timeout, self.common.config.idle_timeout);
        let sent_before = Time::ZERO + now.since(Time::ZERO + timeout);
        let until = (self.next_swept + USERS_PER_SWEEP).min(self.users.len());
        for number in self.next_swept..until {
            if let Some(idle_timeout) = idle_timeout {
                self.users[number].user.close_idle(now, idle_timeout);
            }
            self.users[number].user.expire_requests(now, sent_before, &mut self.common);
            self.settle(now, number, None);
        }
        self.next_swept = if until == self.users.len() { 0 } else { until };
        let rounds = self.users.len().div_ceil(USERS_PER_SWEEP).max(1) as u64;
        self.sweeps = now + Duration::from_nanos(TICK.as_nanos() / rounds);
    }

    /// A tick ends with a second, unless it would be too short for a meaningful CPU share.
    fn next_tick(&self, now: Time) -> Time {
        let since = now.since(self.begins).as_nanos();
        let left = Duration::from_nanos(SECOND.as_nanos() - since % SECOND.as_nanos());
        let ends_with_second =
            left.as_nanos() > TICK.as_nanos() / 2 && left.as_nanos() < TICK.as_nanos() * 3 / 2;
        now + if ends_with_second { left } else { TICK }
    }

    /// Records the time since the last tick.
    fn tick(&mut self, now: Time, busy: &mut Duration) {
        let before = std::mem::replace(busy, thread_cpu_time());
        let since = now.since(std::mem::replace(&mut self.ticked, now));
        let worked = busy.saturating_sub(before).saturating_sub(std::mem::take(&mut self.busy_waited));
        // The last one may be arbitrarily short, without a meaningful share.
        let share = worked.as_secs_f64() / since.max(TICK).as_secs_f64();
        // A tick that ends with a second belongs to that second.
        let half = Duration::from_nanos(since.as_nanos() / 2);
        let second = self.record.second(now.since(self.begins).saturating_sub(half));
        second.cpu_share = second.cpu_share.max(share);
        second.open = second.open.max(self.common.open.max());
        second.opened +=
            self.common.connections - std::mem::replace(&mut self.opened, self.common.connections);
        self.progress.report(now.since(self.begins), &self.record, self.common.connections);
        self.observe(now, worked);
    }

    /// Adds a tick to the thread's CPU usage, which is over when nothing is due any more; so is the count of connections that
    /// never had a response.
    fn observe(&mut self, now: Time, worked: Duration) {
        let Some((since, before)) = self.cpu.since else {
            self.cpu.since = Some((now, own_thread()));
            return;
        };
        if self.cpu.is_over {
            return;
        }
        self.cpu.worked += worked;
        // Connections close with their requests' timeouts, possibly at the end. On a busy host the last tick is later than that.
        if now + LAST_TICKS >= self.ends && now < self.ends {
            self.cpu.unserved = self.unserved(now);
        }
        if now + TICK < self.ends {
            return;
        }
        self.cpu.is_over = true;
        let seconds = now.since(since).max(TICK).as_secs_f64();
        let waited = (own_thread().waited - before.waited).max(0.0) / seconds;
        let unserved = self.cpu.unserved;
        let generator = CpuShare { used: self.cpu.worked.as_secs_f64() / seconds, waited };
        self.record.evidence.merge(Evidence { unserved, generator, ..Evidence::default() });
    }

    /// Number of connections that have waited for their first response much longer than others do.
    fn unserved(&self, now: Time) -> u64 {
        let mean =
            if self.record.experienced.is_empty() { 0.0 } else { self.record.experienced.mean() / 1e9 };
        let long = Duration::from_secs_f64(LONG_WAIT * mean).unwrap_or_default().max(TICK + TICK);
        let sent_before = Time::ZERO + now.since(Time::ZERO + long);
        self.users.iter().map(|slot| slot.user.unserved(sent_before)).sum()
    }
}
