//! Waterfall of a simulated run: what each object waited for, and the critical path of the page.
//!
//! The robot's reports have the times of requests and responses, the packets those of the connections, and the page what makes
//! each object known. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`RunWaterfall`]: the times, divided by what an object waited for |
//! | `critical` | the chain of waits that ends with the page |
//! | `picture` | SVG, and HTML for narrow screens |

mod critical;
mod picture;

use std::collections::BTreeMap;

use fetch::{PageEvent, Report};
use page::{Hints, Moment, Page};
use render::plot::palette;
use scenario::{Protocol, Scenario};
use simulate::page::{Opening, openings};
use wire::{Bytes, Duration, Time};

use crate::description;
use crate::first_run::FirstRun;

/// Reasons for which an object waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// The client's own work after what made the object known.
    Think,
    /// The browser's queue: no connection was free, its threads were busy, or the request was held back.
    Queue,
    /// The lookup of the host's name.
    Dns,
    /// The handshake of TCP.
    Connect,
    /// The handshake of TLS.
    Tls,
    /// The round trip of the request.
    Request,
    /// The server.
    Server,
    /// Other responses on the connection that arrived before.
    Blocked,
    /// The transfer of the response, with what its first bytes waited for (a whole record of TLS, a window, a retransmission), until a
    /// busy client has handled it.
    Transfer,
}

impl Wait {
    /// Every wait, in the order in which they occur.
    pub const ALL: [Self; 9] = [
        Self::Think,
        Self::Queue,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Request,
        Self::Server,
        Self::Blocked,
        Self::Transfer,
    ];

    /// Words for users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Think => "think",
            Self::Queue => "queue",
            Self::Dns => "DNS",
            Self::Connect => "connect",
            Self::Tls => "TLS",
            Self::Request => "request",
            Self::Server => "server",
            Self::Blocked => "blocked by others",
            Self::Transfer => "transfer",
        }
    }

    /// The name in one word.
    fn word(self) -> &'static str {
        self.name().split(' ').next().unwrap_or_default()
    }

    /// Meaning of its share of the critical path.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Think => "The client's own work.",
            Self::Queue => {
                "The browser's queue: no connection was free, its threads were busy, or the request was held back."
            }
            Self::Dns => "Lookups of hosts' names.",
            Self::Connect => "Handshakes of TCP.",
            Self::Tls => "Handshakes of TLS.",
            Self::Request => "Round trips of requests.",
            Self::Server => "The servers.",
            Self::Blocked => "Other responses on the connection that arrived before.",
            Self::Transfer => "The transfer of responses.",
        }
    }

    const fn colour(self) -> &'static str {
        match self {
            Self::Think => palette::FAINT,
            Self::Queue => palette::GREY,
            Self::Dns => palette::YELLOW,
            Self::Connect => palette::ORANGE,
            Self::Tls => palette::PURPLE,
            Self::Request => palette::GREEN,
            Self::Server => palette::SKY,
            Self::Blocked => palette::WINE,
            Self::Transfer => palette::BLUE,
        }
    }
}

/// One wait of an object. Times are relative to the request of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The wait.
    pub wait: Wait,
    /// Its beginning.
    pub from: Duration,
    /// Its end.
    pub to: Duration,
}

/// An object's course.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectCourse {
    /// Index in the page.
    pub object: usize,
    /// URL, or the path.
    pub name: String,
    /// Size of the body.
    pub size: Bytes,
    /// Time at which what made it known had happened.
    pub known: Duration,
    /// Position of the course that it waited for last; `None` for the document.
    pub after: Option<usize>,
    /// Its waits, in order, without gaps from `known` to the end of its response.
    pub phases: Vec<Phase>,
    connection: u32,
}

impl ObjectCourse {
    /// The end of its response.
    pub fn end(&self) -> Duration {
        self.phases.last().map_or(self.known, |phase| phase.to)
    }
}

/// The waterfall of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunWaterfall {
    /// Page, network and protocol.
    pub title: String,
    /// Objects that arrived, in the order of the page.
    pub courses: Vec<ObjectCourse>,
    /// Positions of the courses on the critical path, the document first.
    pub critical: Vec<usize>,
    /// Time of each of them on the path that is not the client's own work.
    pub network_times: Vec<Duration>,
    /// Time on the critical path by what it waited for; the sum is the time of the page.
    pub waits: BTreeMap<Wait, Duration>,
    /// Seed, for the provenance.
    seed: u64,
}

impl RunWaterfall {
    /// Share of a wait in the time of the critical path, in percent.
    pub fn share(&self, wait: Wait) -> f64 {
        let total: Duration = self.waits.values().copied().sum();
        let time = self.waits.get(&wait).copied().unwrap_or_default();
        100.0 * time.as_secs_f64() / total.as_secs_f64().max(1e-9)
    }

    /// The longest wait of the critical path, with its share: `transfer 41%`.
    pub fn longest(&self) -> String {
        let longest =
            Wait::ALL.into_iter().max_by(|one, other| self.share(*one).total_cmp(&self.share(*other)));
        longest.map(|wait| format!("{} {:.0}%", wait.word(), self.share(wait))).unwrap_or_default()
    }
}

/// The waterfall of a first run; `None` if its responses are not those of one page's objects over connections.
pub fn of(first: FirstRun<'_>) -> Option<RunWaterfall> {
    let FirstRun { scenario, experiment: _, result } = first;
    if scenario.protocol == Protocol::Dhttp || scenario.programs.pages() > 1 {
        return None;
    }
    let observed = Observed::of(&result.reports, result.began);
    let openings = openings(&result.records);
    let resolved = resolved(scenario, &observed, &openings);
    let mut courses: Vec<ObjectCourse> = Vec::new();
    let mut position = BTreeMap::new();
    for (object, times) in &observed.objects {
        // Objects that only the document's contents name are not in the page's graph.
        if *object < scenario.page.objects.len()
            && let Some(course) = course(scenario, *object, *times, (&observed, &openings, &resolved))
        {
            position.insert(*object, courses.len());
            courses.push(course);
        }
    }
    for course in &mut courses {
        course.after = course.after.and_then(|object| position.get(&object).copied());
    }
    let path = critical::path(&courses)?;
    let mut waits = BTreeMap::new();
    for (wait, time) in path.iter().flat_map(|(_, waits)| waits) {
        *waits.entry(*wait).or_insert(Duration::ZERO) += *time;
    }
    let beside_think = |waits: &critical::Waits| -> Duration {
        waits.iter().filter(|(wait, _)| **wait != Wait::Think).map(|(_, time)| *time).sum()
    };
    let (critical, network_times) = path.iter().map(|(at, waits)| (*at, beside_think(waits))).unzip();
    let (title, seed) = (description::full_title(scenario), scenario.seed.get());
    Some(RunWaterfall { title, courses, critical, network_times, waits, seed })
}

/// Times of the objects of a run, relative to the request of the page.
struct Observed {
    objects: BTreeMap<usize, ObjectTimes>,
    /// Of each connection, in order: when a response's headers arrived, and the latest end of the responses so far.
    responses: BTreeMap<u32, Vec<(Duration, Duration)>>,
    began: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct ObjectTimes {
    connection: u32,
    sent: Duration,
    head: Option<Duration>,
    end: Option<Duration>,
    body: Bytes,
}

impl Observed {
    fn of(reports: &[Report], began: Time) -> Self {
        let mut objects: BTreeMap<usize, ObjectTimes> = BTreeMap::new();
        for Report { at, event } in reports.iter().filter(|report| report.at >= began) {
            let at = at.since(began);
            match event {
                PageEvent::RequestSent { object, connection } => {
                    // A retried request starts over.
                    let times = ObjectTimes { connection: connection.0, sent: at, ..ObjectTimes::default() };
                    objects.insert(*object, times);
                }
                PageEvent::HeadReceived { object, status: _ } => {
                    objects.entry(*object).or_default().head = Some(at);
                }
                PageEvent::ObjectComplete { object, status: _, body } => {
                    let times = objects.entry(*object).or_default();
                    (times.end, times.body) = (Some(at), *body);
                }
                PageEvent::ObjectFound { .. }
                | PageEvent::ObjectFailed { .. }
                | PageEvent::Fault { .. }
                | PageEvent::TooManyObjects { .. }
                | PageEvent::FirstBytesReceived { .. }
                | PageEvent::Finished { .. } => {}
            }
        }
        let mut responses: BTreeMap<u32, Vec<(Duration, Duration)>> = BTreeMap::new();
        for times in objects.values() {
            if let (Some(head), Some(end)) = (times.head, times.end) {
                responses.entry(times.connection).or_default().push((head, end));
            }
        }
        for responses in responses.values_mut() {
            responses.sort_unstable();
            let mut latest = Duration::ZERO;
            for (_, end) in responses {
                latest = latest.max(*end);
                *end = latest;
            }
        }
        Self { objects, responses, began }
    }

    /// Time until which earlier responses on the connection kept back one whose headers arrived at `head`.
    fn blocked_until(&self, connection: u32, head: Duration) -> Duration {
        let responses = self.responses.get(&connection).map_or(&[][..], Vec::as_slice);
        let earlier = responses.partition_point(|(other, _)| *other < head);
        earlier.checked_sub(1).map_or(Duration::ZERO, |last| responses[last].1.min(head))
    }

    /// The moment that made an object known, its think time after that, and the object that it waited for.
    fn discovery(&self, page: &Page, object: usize, sent: Duration) -> (Duration, Duration, Option<usize>) {
        let moments = page.objects[object].after.iter().filter_map(|dependency| {
            let on = self.objects.get(&dependency.on)?;
            let end = on.end?;
            let moment = match dependency.at {
                Moment::Begun => on.sent,
                // Bytes arrive at about the same rate from the first to the last.
                Moment::Delivered(bytes) => {
                    let begun = on.head.unwrap_or(end);
                    let share = (bytes.as_f64() / on.body.as_f64().max(1.0)).min(1.0);
                    let nanos = end.saturating_sub(begun).as_secs_f64() * share;
                    begun + Duration::from_secs_f64(nanos).unwrap_or_default()
                }
                Moment::Ended => end,
            };
            Some((moment.min(sent) + dependency.plus, moment.min(sent), dependency.on))
        });
        match moments.max() {
            Some((ready, known, on)) => (known, ready.min(sent), Some(on)),
            None => (Duration::ZERO, Duration::ZERO, None),
        }
    }
}

/// The course of an object; `None` if it did not arrive. `after` is the index of an object yet.
fn course(
    scenario: &Scenario,
    object: usize,
    times: ObjectTimes,
    (observed, openings, resolved): (&Observed, &[Opening], &BTreeMap<usize, Duration>),
) -> Option<ObjectCourse> {
    let ObjectTimes { connection, head, end, body, .. } = times;
    let end = end?;
    let head = head.unwrap_or(end);
    let page = &scenario.page;
    let Departure { requested, opened, secured, left } = Departure::of(times, observed, openings)?;
    // One that left later waited for other requests of the connection, not for its handshakes.
    let usable = opened.max(secured).unwrap_or_default();
    let requested = requested.filter(|_| left.saturating_sub(usable) <= MAX_REACTION);
    let (known, ready, after) = observed.discovery(page, object, left);
    let host = &page.hosts[page.objects[object].host];
    let network = &scenario.network;
    let request = network.rate_up.unwrap_or(network.rate).time_for(scenario.client.request);
    let round_trip = network.rtt + host.extra_rtt + request + network.rate.time_for(network.mss);
    let processing = page.objects[object].processing.unwrap_or(host.processing) + scenario.server.processing;

    let mut phases = Phases { at: known, phases: Vec::new() };
    phases.until(Wait::Think, ready);
    if let Some(resolved) = resolved.get(&page.objects[object].host).filter(|resolved| **resolved > ready) {
        let lookup = scenario.lookups().get(page.objects[object].host).copied().unwrap_or_default();
        phases.until(Wait::Queue, resolved.saturating_sub(lookup).min(left));
        phases.until(Wait::Dns, (*resolved).min(left));
    }
    if let Some(requested) = requested {
        phases.until(Wait::Queue, requested.min(left));
        phases.until(Wait::Connect, opened.unwrap_or(left).min(left));
        phases.until(Wait::Tls, secured.unwrap_or_default().min(left));
    }
    phases.until(Wait::Queue, left);
    phases.until(Wait::Request, (left + round_trip).min(head));
    phases.until(Wait::Server, (left + round_trip + processing).min(head));
    phases.until(Wait::Blocked, observed.blocked_until(connection, head));
    phases.until(Wait::Transfer, end);
    let name = page.url(object);
    Some(ObjectCourse { object, name, size: body, known, after, phases: phases.phases, connection })
}

/// When a request left, and when its connection was requested, opened and secured.
struct Departure {
    requested: Option<Duration>,
    opened: Option<Duration>,
    secured: Option<Duration>,
    left: Duration,
}

impl Departure {
    /// `None` without a response.
    fn of(times: ObjectTimes, observed: &Observed, openings: &[Opening]) -> Option<Self> {
        let ObjectTimes { connection, sent, head, end, body: _ } = times;
        let opening = usize::try_from(connection).ok().and_then(|index| openings.get(index));
        let since = |at: Time| if at > observed.began { at.since(observed.began) } else { Duration::ZERO };
        let opened = opening.and_then(|opening| opening.opened).map(since);
        let secured = opening.and_then(|opening| opening.secured).map(since);
        // A request may be passed to a connection that is still being opened.
        let left =
            [Some(sent), opened, secured].into_iter().flatten().max().unwrap_or(sent).min(head.or(end)?);
        let requested = opening.map(|opening| since(opening.requested));
        Some(Self { requested, opened, secured, left })
    }
}

/// Time at which the name of each host is known, if its lookup takes time: the first request, or its connection, leaves then.
fn resolved(scenario: &Scenario, observed: &Observed, openings: &[Opening]) -> BTreeMap<usize, Duration> {
    let mut resolved: BTreeMap<usize, Duration> = BTreeMap::new();
    let (page, lookups) = (&scenario.page, scenario.lookups());
    for (object, times) in observed.objects.iter().filter(|(object, _)| **object < page.objects.len()) {
        let host = page.objects[*object].host;
        let takes_time = lookups.get(host).is_some_and(|lookup| *lookup > Duration::ZERO);
        if let Some(Departure { requested, left, .. }) =
            Departure::of(*times, observed, openings).filter(|_| takes_time)
        {
            let (_, ready, _) = observed.discovery(page, *object, left);
            let known = match requested {
                Some(requested) if requested > ready => requested,
                // A hint has had the connection opened before.
                Some(_) if page.hosts[host].hints != Hints::NONE => ready,
                Some(_) | None => left,
            };
            resolved.entry(host).and_modify(|first| *first = (*first).min(known)).or_insert(known);
        }
    }
    resolved
}

/// Longest time from an event to the request that it lets go.
const MAX_REACTION: Duration = Duration::from_millis(1);

/// Consecutive phases; empty ones are left out.
struct Phases {
    at: Duration,
    phases: Vec<Phase>,
}

impl Phases {
    fn until(&mut self, wait: Wait, to: Duration) {
        if to > self.at {
            self.phases.push(Phase { wait, from: self.at, to });
            self.at = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use scenario::Spec;
    use scenario::spec::{Defaults, Key};

    use super::*;
    use crate::simulate;

    const PAGE: &str = "
        [[host]]
        name = 'www.example.com'
        [[host]]
        name = 'cdn.example.com'
        extra-rtt = '30ms'
        [[object]]
        path = '/'
        size = 40000
        server-time = '25ms'
        [[object]]
        path = '/app.js'
        size = 90000
        after = ['1 at 20000 bytes']
        [[object]]
        host = 'cdn.example.com'
        path = '/hero.jpg'
        size = 60000
        after = ['2 + 50ms']
    ";

    /// The waterfall of a simulated run of a page, and the time of the page.
    fn waterfall(page: &str, keys: &[(&str, &str)]) -> (RunWaterfall, Duration) {
        let mut spec = Spec::default();
        for (key, value) in keys {
            spec.set(Key::named(key).unwrap(), value).unwrap();
        }
        spec.pages = vec![page::file::read("page", page).unwrap()];
        let plan = spec.plan(&Defaults::laboratory()).unwrap();
        let mut first_run = None;
        let outcome = simulate::outcome(&plan.scenarios[0], |first| {
            first_run = of(first).zip(first.result.elapsed);
        });
        let (waterfall, elapsed) = first_run.unwrap_or_else(|| panic!("{:?}", outcome.remarks));
        assert_eq!(outcome.waterfall.as_deref(), Some(&waterfall));
        (waterfall, elapsed)
    }

    #[test]
    fn phases_are_contiguous_and_the_waits_on_the_path_add_up_to_the_time_of_the_page() {
        for keys in [
            &[("network", "4g"), ("protocol", "http2")][..],
            &[("network", "dsl"), ("protocol", "http11-parallel")],
            &[("network", "3g"), ("protocol", "http2"), ("tls", "1.2"), ("loss", "2%")],
            &[("network", "fibre"), ("protocol", "http11"), ("tls", "none")],
        ] {
            let (waterfall, elapsed) = waterfall(PAGE, keys);
            assert_eq!(waterfall.critical, [0, 1, 2], "{keys:?}");
            for course in &waterfall.courses {
                assert_eq!(course.phases[0].from, course.known);
                assert!(course.phases.windows(2).all(|pair| pair[0].to == pair[1].from), "{course:?}");
            }
            assert_eq!(waterfall.waits.values().copied().sum::<Duration>(), elapsed, "{keys:?}");
            assert_eq!(waterfall.waits[&Wait::Server], Duration::from_millis(25), "{keys:?}");
            assert_eq!(waterfall.waits[&Wait::Think], Duration::from_millis(50), "{keys:?}");
        }
    }

    #[test]
    fn handshakes_take_the_round_trips_of_their_hosts() {
        let (waterfall, _) = waterfall(PAGE, &[("network", "4g"), ("protocol", "http2"), ("tls", "1.3")]);
        let wait = |at: usize, wait| {
            let phases = waterfall.courses[at].phases.iter().filter(|phase| phase.wait == wait);
            phases.map(|phase| phase.to.saturating_sub(phase.from).as_millis_f64()).sum::<f64>()
        };
        // 70 ms to the first host, 100 to the second, with transmission times and wake-ups.
        for (at, round_trip) in [(0, 70.0), (2, 100.0)] {
            for kind in [Wait::Connect, Wait::Tls, Wait::Request] {
                let actual = wait(at, kind);
                assert!((round_trip..round_trip + 12.0).contains(&actual), "{at} {kind:?}: {actual}");
            }
        }
        assert_eq!(
            (wait(1, Wait::Connect), wait(1, Wait::Tls)),
            (0.0, 0.0),
            "it uses the document's connection"
        );
    }

    #[test]
    fn lookups_of_names_are_waits_of_their_own() {
        let keys = [("network", "4g"), ("protocol", "http2"), ("tls", "1.3"), ("client-dns", "45ms")];
        let (with, elapsed) = waterfall(PAGE, &keys);
        let (without, before) = waterfall(PAGE, &keys[..3]);
        // One lookup for each host of the path.
        assert_eq!(with.waits[&Wait::Dns], Duration::from_millis(90));
        assert_eq!(with.waits.values().copied().sum::<Duration>(), elapsed);
        assert_eq!(elapsed, before + Duration::from_millis(90));
        assert!(!without.waits.contains_key(&Wait::Dns));
        let recorded = PAGE.replace("extra-rtt = '30ms'", "extra-rtt = '30ms'\ndns = '20ms'");
        assert_eq!(waterfall(&recorded, &keys[..3]).0.waits[&Wait::Dns], Duration::from_millis(20));
    }

    #[test]
    fn a_preconnected_host_costs_neither_a_lookup_nor_a_handshake() {
        // The script and 50 ms after it leave more time than TCP and TLS take.
        let page = PAGE.replace("extra-rtt = '30ms'", "extra-rtt = '30ms'\ndns = '20ms'");
        let hinted = page.replace("dns = '20ms'", "dns = '20ms'\npreconnect = '1 at 1 bytes'");
        for protocol in ["http11-parallel", "http2", "http3"] {
            let keys = [("network", "4g"), ("protocol", protocol), ("tls", "1.3")];
            let [(without, before), (with, after)] = [waterfall(&page, &keys), waterfall(&hinted, &keys)];
            let of = |waterfall: &RunWaterfall, wait| waterfall.waits.get(&wait).copied().unwrap_or_default();
            // Requests over QUIC queue until its handshake is over.
            let set_up = [Wait::Dns, Wait::Connect, Wait::Tls, Wait::Queue];
            let set_up = |waterfall: &RunWaterfall| -> Duration {
                set_up.map(|wait| of(waterfall, wait)).iter().copied().sum()
            };
            // A lookup and a round trip of 100 ms for QUIC; two with TCP.
            let handshakes = if protocol == "http3" { 1 } else { 2 };
            let least = Duration::from_millis(20 + 100 * handshakes);
            assert!(
                set_up(&without) - set_up(&with) >= least,
                "{protocol}: {} and {}",
                set_up(&without),
                set_up(&with)
            );
            assert!(before - after >= least, "{protocol}: {before} and {after}");
            assert_eq!(with.waits.values().copied().sum::<Duration>(), after);
        }
    }

    #[test]
    fn pictures_name_the_objects_and_the_path() {
        let (waterfall, _) = waterfall(PAGE, &[("network", "4g"), ("protocol", "http2")]);
        let sentence = waterfall.sentence();
        assert!(
            sentence.contains("2 app.js -> 3 hero.jpg") && sentence.contains("50.0 ms think"),
            "{sentence}"
        );
        assert!(waterfall.shares().starts_with("critical path 1 -> 2 -> 3: "));
        for picture in [waterfall.svg(), waterfall.html()] {
            assert!(
                picture.contains("3 hero.jpg cdn.example.com") && picture.contains("transfer"),
                "{picture}"
            );
        }
        assert_eq!(waterfall.html().matches("row critical").count(), 3);
    }

    #[test]
    fn objects_that_wait_for_a_connection_follow_the_response_that_frees_it() {
        // One connection: the second image waits for the first, not for the document alone.
        let page = "
            [[object]]
            size = 5000
            [[object]]
            size = 30000
            [[object]]
            size = 20000
            [[object]]
            size = 10000
            after = ['1 + 1ms']
        ";
        let (waterfall, _) =
            waterfall(page, &[("network", "dsl"), ("protocol", "http11"), ("requests", "independent")]);
        assert_eq!(waterfall.critical, [0, 1, 2, 3]);
        assert!(
            waterfall.sentence().contains("2 (30,000 bytes) -> 3 (20,000 bytes)"),
            "{}",
            waterfall.sentence()
        );
    }
}
