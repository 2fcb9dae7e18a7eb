//! Virtual time: hosts, the links between them, and one queue of events.
//!
//! Hosts and paths flow in, then [`World::run`]; what flows out is in the hosts' applications, in the counters
//! and, if enabled, in the [`Recorder`]. In reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`application`] | the application of a host, and its socket calls |
//! | [`host`] | connections, ports, one CPU |
//! | `ensemble` | connections that have one congestion window together |
//! | `schedule` | the event queue |
//! | `encoding` | a segment as the bytes of a packet |
//! | [`recorder`] | the packets, as in captures at both ends |
//!
//! Time is an integer. Simultaneous events happen in the order in which they were scheduled. At most one
//! event is scheduled for one link, one timer of a connection, or one application. Load of hosts is not
//! modelled: sending and receiving segments takes no CPU time, only what applications request.

pub mod application;
pub(crate) mod encoding;
mod ensemble;
pub mod host;
pub mod recorder;
mod schedule;

use tcp::Segment;
use tcp::config::ConfigError;
use wire::link::{self, OfferResult, Pipe};
use wire::{Bytes, Seed, Time};

pub use application::{Action, Application, Datagram, Input, SocketId};
pub use host::{Address, Counters, HostConfig};
use host::{Host, HostOutput};
pub use recorder::{ObservationPoint, Probe, Record, Recorder};
use schedule::{Schedule, Wake};

/// Hosts, links and time.
pub struct World<A> {
    now: Time,
    schedule: Schedule,
    hosts: Vec<Host<A>>,
    links: Vec<Link>,
    /// Links of each host to each other, by their numbers.
    routes: Vec<Vec<Box<[LinkId]>>>,
    recorder: Option<Recorder>,
    events: u64,
    seed: Seed,
}

/// A host's identifier, in order of addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub u16);

/// The client of a page, the first host.
pub const CLIENT: HostId = HostId(0);
/// The host of the first server; those of other hosts of the page follow.
pub const SERVER: HostId = HostId(1);

/// Identifier of one direction of a link, in order of addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(u16);

/// One direction of a link, and the time of its next poll.
struct Link {
    pipe: Pipe<Packet>,
    scheduled: Option<Time>,
}

/// A segment in flight.
#[derive(Clone, Debug)]
struct Packet {
    from: Address,
    to: Address,
    /// Number of links of its route that it has passed.
    hops: u16,
    segment: Segment,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Virtual time.
    pub until: Time,
    /// Deliveries, timers and turns of applications.
    pub events: u64,
}

/// Reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// An application ended it.
    Finished,
    /// No event is left.
    Quiet,
    /// Virtual time is up.
    OutOfTime,
    /// The maximum number of events has been reached.
    OutOfEvents,
}

impl<A: Application> World<A> {
    /// An empty world at time zero.
    pub fn new(seed: Seed) -> Self {
        Self {
            now: Time::ZERO,
            schedule: Schedule::default(),
            hosts: Vec::new(),
            links: Vec::new(),
            routes: Vec::new(),
            recorder: None,
            events: 0,
            seed,
        }
    }

    /// Adds a host. Its application has its first turn now: at time zero before the first run.
    ///
    /// # Errors
    /// The first invalid setting of its TCP.
    ///
    /// # Panics
    /// If there are 65,536 already.
    pub fn add_host(&mut self, config: HostConfig, application: A) -> Result<HostId, ConfigError> {
        config.tcp.check()?;
        let id = HostId(u16::try_from(self.hosts.len()).expect("a world has at most 65,536 hosts"));
        self.hosts.push(Host::new(id, config, application));
        self.schedule.push(self.now, Wake::Application(id));
        Ok(id)
    }

    /// Adds one direction of a link.
    ///
    /// # Errors
    /// The fault of `config`, and its remedy.
    ///
    /// # Panics
    /// If there are 65,536 already.
    pub fn add_link(&mut self, config: &link::Config) -> Result<LinkId, link::ConfigError> {
        let index = self.links.len();
        let pipe = Pipe::new(config, self.seed, index as u64)?;
        self.links.push(Link { pipe, scheduled: None });
        Ok(LinkId(u16::try_from(index).expect("a world has at most 65,536 links")))
    }

    /// Sets the links from one host to another. Packets without a route are dropped.
    pub fn add_route(&mut self, from: HostId, to: HostId, links: &[LinkId]) {
        let (from, to) = (usize::from(from.0), usize::from(to.0));
        self.routes.resize_with(self.routes.len().max(from + 1), Vec::new);
        let routes = &mut self.routes[from];
        routes.resize_with(routes.len().max(to + 1), Box::default);
        routes[to] = Box::from(links);
    }

    /// Link of a packet that has passed this many; `None` at the end of its route, and without one.
    fn link_of(&self, from: HostId, to: HostId, hops: u16) -> Option<LinkId> {
        self.routes.get(usize::from(from.0))?.get(usize::from(to.0))?.get(usize::from(hops)).copied()
    }

    /// Records every packet from now on.
    pub fn record(&mut self) {
        self.recorder.get_or_insert_default();
    }

    /// Runs until one of `bounds` is reached, an application ends the run, or no event is left. May be called
    /// again to continue.
    pub fn run(&mut self, bounds: Bounds) -> RunEnd {
        while let Some((at, wake)) = self.schedule.pop() {
            if at > bounds.until {
                self.schedule.push(at, wake);
                return RunEnd::OutOfTime;
            }
            if self.events >= bounds.events {
                self.schedule.push(at, wake);
                return RunEnd::OutOfEvents;
            }
            self.now = at;
            self.events += 1;
            let is_finished = match wake {
                Wake::Link(link) => self.deliver(link),
                Wake::Socket(host, socket) => self.work(host, |host, now| host.timeout(now, socket)),
                Wake::Application(host) => self.work(host, |host, now| host.take_turn(now)),
            };
            if is_finished {
                return RunEnd::Finished;
            }
        }
        RunEnd::Quiet
    }

    /// The time now.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Number of events: deliveries, timers and turns of applications.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Application of a host.
    ///
    /// # Panics
    /// If the host is of another world.
    pub fn application(&self, host: HostId) -> &A {
        self.hosts[usize::from(host.0)].application()
    }

    /// Application of a host, mutable, to change it between runs.
    ///
    /// # Panics
    /// If the host is of another world.
    pub fn application_mut(&mut self, host: HostId) -> &mut A {
        self.hosts[usize::from(host.0)].application_mut()
    }

    /// Counters of a host's packets and bytes.
    ///
    /// # Panics
    /// If the host is of another world.
    pub fn counters(&self, host: HostId) -> &Counters {
        self.hosts[usize::from(host.0)].counters()
    }

    /// Counters of one direction of a link.
    ///
    /// # Panics
    /// If the link is of another world.
    pub fn link(&self, link: LinkId) -> &link::Counters {
        self.links[usize::from(link.0)].pipe.counters()
    }

    /// Every packet, if packets were recorded.
    pub fn records(&self) -> &[Record] {
        self.recorder.as_ref().map_or(&[], Recorder::records)
    }

    /// Probes every connection of a host from now on.
    ///
    /// # Panics
    /// If the host is of another world.
    pub fn probe(&mut self, host: HostId) {
        self.hosts[usize::from(host.0)].probe();
    }

    /// State of a host's connections, each change, in order; empty without [`World::probe`].
    ///
    /// # Panics
    /// If the host is of another world.
    pub fn probes(&self, host: HostId) -> &[Probe] {
        self.hosts[usize::from(host.0)].probes()
    }

    /// Delivers everything that has arrived at the end of a link now.
    fn deliver(&mut self, id: LinkId) -> bool {
        let link = &mut self.links[usize::from(id.0)];
        if link.scheduled != Some(self.now) {
            // Superseded by an earlier event.
            return false;
        }
        link.scheduled = None;
        loop {
            let link = &mut self.links[usize::from(id.0)];
            match link.pipe.poll(self.now) {
                link::Output::Deliver { packet, due: _ } => {
                    if self.advance(packet) {
                        return true;
                    }
                }
                link::Output::Discard(packet) => {
                    if let Some(recorder) = &mut self.recorder {
                        let Packet { from, to, hops: _, segment } = packet;
                        recorder.note(self.now, ObservationPoint::Lost, from, to, &segment);
                    }
                }
                link::Output::Timeout(next) => {
                    if let Some(next) = next
                        && link.scheduled.is_none_or(|scheduled| next < scheduled)
                    {
                        link.scheduled = Some(next);
                        self.schedule.push(next, Wake::Link(id));
                    }
                    return false;
                }
            }
        }
    }

    /// Forwards a packet at the end of a link: to the next link, or to its host.
    fn advance(&mut self, mut packet: Packet) -> bool {
        packet.hops += 1;
        if let Some(next) = self.link_of(packet.from.host, packet.to.host, packet.hops) {
            self.offer(next, packet);
            return false;
        }
        let Packet { from, to, hops: _, segment } = packet;
        if let Some(recorder) = &mut self.recorder {
            recorder.note(self.now, ObservationPoint::Received, from, to, &segment);
        }
        self.work(to.host, |host, now| host.receive(now, from, to, segment))
    }

    /// Gives a host an event, and executes its steps until it has no more.
    fn work(&mut self, id: HostId, begin: impl FnOnce(&mut Host<A>, Time)) -> bool {
        let now = self.now;
        let host = &mut self.hosts[usize::from(id.0)];
        begin(host, now);
        loop {
            match self.hosts[usize::from(id.0)].step(now) {
                HostOutput::Transmit { from, to, segment } => self.transmit(from, to, segment),
                HostOutput::Schedule(at, wake) => self.schedule.push(at, wake),
                HostOutput::Finished => {
                    // If there is another run, the host continues in it.
                    self.schedule.push(now, Wake::Application(id));
                    return true;
                }
                HostOutput::Idle => return false,
            }
        }
    }

    fn transmit(&mut self, from: Address, to: Address, segment: Segment) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(self.now, ObservationPoint::Sent, from, to, &segment);
        }
        if let Some(link) = self.link_of(from.host, to.host, 0) {
            self.offer(link, Packet { from, to, hops: 0, segment });
        }
    }

    fn offer(&mut self, id: LinkId, packet: Packet) {
        let size = Bytes::new(packet.segment.ip_bytes());
        let link = &mut self.links[usize::from(id.0)];
        let bytes = |packet: &Packet, into: &mut Vec<u8>| {
            let Packet { from, to, hops: _, segment } = packet;
            // Writing fails only for a packet longer than IP allows, which no segment is.
            let _ = encoding::packet(*from, *to, segment, into);
        };
        match link.pipe.handle_with(self.now, packet, size, bytes) {
            OfferResult::Accepted => {}
            OfferResult::Dropped(packet) | OfferResult::Lost(packet) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note(self.now, ObservationPoint::Lost, packet.from, packet.to, &packet.segment);
                }
            }
        }
        if let Some(next) = link.pipe.next_due()
            && link.scheduled.is_none_or(|scheduled| next < scheduled)
        {
            link.scheduled = Some(next);
            self.schedule.push(next, Wake::Link(id));
        }
    }
}
