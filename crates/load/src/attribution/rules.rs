//! The rules, in order.

use render::output::number::{count, significant};

use super::figures::{Figures, ms};
use super::{Attribution, Kind};
use crate::bottleneck::{count_seconds, late_in_words, limited_seconds};
use crate::fixed_wait;
use crate::record::FailureReason;
use crate::second::Bottleneck;

/// A rule; `None` if it does not apply.
type Rule = fn(&Figures<'_>) -> Option<Attribution>;

/// The rules in their order.
pub(super) const ALL: [Rule; 11] = [
    generator_sockets,
    rate_limit,
    accept_queue,
    refused_connections,
    unserved_connections,
    dropped_datagrams,
    fixed_wait,
    generator,
    saturated,
    connections,
    undecided,
];

/// Share of the requests beyond which failures are the bottleneck.
const MANY: f64 = 0.05;
/// Minimum responses of each served connection, beside connections without any.
const FEW: u64 = 5;
/// Share of the CPU time of a response in its service time beyond which a fixed time is work.
const WORK: f64 = 0.5;

fn attribution(
    kind: Kind,
    sentence: String,
    evidence: impl IntoIterator<Item = String>,
) -> Option<Attribution> {
    Some(Attribution { kind, sentence, evidence: evidence.into_iter().collect(), next: None })
}

fn with_next(attribution: Option<Attribution>, next: String) -> Option<Attribution> {
    attribution.map(|attribution| Attribution { next: Some(next), ..attribution })
}

fn is_many(part: u64, whole: u64) -> bool {
    part as f64 > MANY * whole as f64
}

fn generator_sockets(figures: &Figures<'_>) -> Option<Attribution> {
    let exhausted = figures.failed(FailureReason::Exhausted);
    let sentence = format!(
        "THE GENERATOR WAS THE BOTTLENECK: this host had no free port or socket for {} of {} requests; keep connections alive, \
         widen net.ipv4.ip_local_port_range, or use more hosts (--shard)",
        count(exhausted as f64),
        count(figures.requests as f64)
    );
    let connections = format!("{} connections were opened", count(figures.record.connections as f64));
    (exhausted > 0 && is_many(exhausted, figures.requests))
        .then(|| attribution(Kind::GeneratorSockets, sentence, [connections]))
        .flatten()
}

/// Too Many Requests (RFC 6585, section 4) and Service Unavailable (RFC 9110, section 15.6.4).
const REFUSALS: [u16; 2] = [429, 503];

fn rate_limit(figures: &Figures<'_>) -> Option<Attribution> {
    let statuses = &figures.record.statuses;
    let refused = REFUSALS.map(|status| statuses.get(&status).copied().unwrap_or(0));
    let all: u64 = refused.iter().sum();
    if !is_many(all, figures.requests) || figures.failed(FailureReason::Status) == 0 {
        return None;
    }
    let status = if refused[0] >= refused[1] { REFUSALS[0] } else { REFUSALS[1] };
    let seconds = figures.record.elapsed.as_secs_f64().max(1e-9);
    attribution(
        Kind::RateLimit,
        format!(
            "the server was the bottleneck: it refused {} of {} requests with {status} and let {} a second through, as a rate \
             limit does",
            count(all as f64),
            count(figures.requests as f64),
            significant(figures.responses as f64 / seconds)
        ),
        figures.server_cpu(),
    )
}

fn accept_queue(figures: &Figures<'_>) -> Option<Attribution> {
    let evidence = figures.evidence;
    let (slow, opened) = (evidence.slow_connects, evidence.connect.count);
    let timed_out = figures.failed(FailureReason::Timeout) + figures.failed(FailureReason::Refused);
    let sockets = &evidence.sockets;
    let overflows = evidence.host.listen_overflows;
    let is_full = sockets.backlog > 0 && sockets.max_accept_queue > sockets.backlog;
    let is_slow = slow > 0 && is_many(slow, opened.max(1));
    // Overflows are the whole host's, and timeouts have other causes, too.
    let may_be_full = sockets.backlog == 0 || 2 * sockets.max_accept_queue > sockets.backlog;
    let is_here = overflows > 0 && (is_slow || is_full || (timed_out > 0 && may_be_full));
    // Lost packets delay established connections, too.
    let is_loss = sockets.retransmitted + sockets.out_of_order > slow;
    let is_elsewhere = sockets.backlog == 0 && is_slow && !is_loss;
    if !is_here && !is_elsewhere {
        return None;
    }
    let queue = match sockets.backlog {
        0 => "the server is not on this host, so its queue is not visible".to_owned(),
        backlog => format!(
            "at most {} connections waited in the accept queue of {backlog}; this host's kernel counted {} overflows",
            sockets.max_accept_queue,
            count(overflows as f64)
        ),
    };
    with_next(
        attribution(
            Kind::AcceptQueue,
            format!(
                "the server was the bottleneck: its accept queue overflowed, so {} of {} connections took a second or more to open",
                count(slow as f64),
                count(opened as f64)
            ),
            [queue].into_iter().chain(figures.server_cpu()),
        ),
        "ss -ltn   # Recv-Q is the queue, Send-Q its length; raise the server's backlog and net.core.somaxconn".to_owned(),
    )
}

fn refused_connections(figures: &Figures<'_>) -> Option<Attribution> {
    let refused = figures.failed(FailureReason::Refused) + figures.failed(FailureReason::Closed);
    let sentence = format!(
        "the server was the bottleneck: it refused or closed the connections of {} of {} requests, as at a connection limit",
        count(refused as f64),
        count(figures.requests as f64)
    );
    (refused > 0 && is_many(refused, figures.requests))
        .then(|| attribution(Kind::ServerConnections, sentence, figures.server_cpu()))
        .flatten()
}

fn unserved_connections(figures: &Figures<'_>) -> Option<Attribution> {
    let unserved = figures.evidence.unserved;
    let open = figures.record.seconds.iter().map(|second| second.open).max().unwrap_or(0);
    let served = open.saturating_sub(unserved);
    // Where the served ones had few responses, the others may only be slow; a full CPU is named below.
    let is_starved = served > 0 && figures.responses >= FEW * served;
    if unserved == 0 || !is_many(unserved, open) || !is_starved || figures.server_is_full() {
        return None;
    }
    let sockets = &figures.evidence.sockets;
    let waiting = (sockets.backlog > 0 && sockets.lists > 0).then(|| {
        format!(
            "{} connections on average waited in its accept queue",
            significant(sockets.unaccepted as f64 / sockets.lists as f64)
        )
    });
    attribution(
        Kind::ServerConnections,
        format!(
            "the server was the bottleneck: {unserved} of {open} connections never had a response, while it served the others: it \
             serves {served} at a time"
        ),
        waiting.into_iter().chain(figures.server_cpu()),
    )
}

fn dropped_datagrams(figures: &Figures<'_>) -> Option<Attribution> {
    let seconds = limited_seconds(figures.record, Bottleneck::Network);
    (seconds > 0 && limited_seconds(figures.record, Bottleneck::Generator) == 0)
        .then(|| {
            attribution(
                Kind::Network,
                format!(
                    "the network was the bottleneck in {seconds} of {}: this host's kernel dropped datagrams; these are not the \
                     server's latencies",
                    count_seconds(figures.record)
                ),
                [],
            )
        })
        .flatten()
}

fn generator(figures: &Figures<'_>) -> Option<Attribution> {
    let (is_late, is_full) = (figures.is_late(), figures.generator_is_full());
    if (!is_late && !is_full) || figures.server_is_full() {
        return None;
    }
    let (generator, host) = (figures.evidence.generator, figures.evidence.host);
    let server = figures.server().map_or(0.0, |server| server.all.used);
    let others = host.busy - server - generator.used;
    let cause = if generator.used >= 0.9 {
        Some(format!("a thread of it used {:.2} CPUs", generator.used))
    } else if generator.waited >= 0.1 {
        Some(format!(
            "a thread of it waited for a CPU in {:.0}% of the time; other programs used {:.1} of this host's {} CPUs",
            100.0 * generator.waited.min(1.0),
            others.max(0.0),
            host.cpus
        ))
    } else {
        None
    };
    let sentence = match (is_late, &cause) {
        (false, Some(cause)) => {
            format!("THE GENERATOR WAS THE BOTTLENECK: {cause}; use more threads (--threads), or more hosts")
        }
        _ => late_in_words(figures.record),
    };
    attribution(Kind::Generator, sentence, cause.into_iter().chain(figures.server_cpu()))
}

/// Requests queue: in the network, for the server's CPUs, or for something else.
fn saturated(figures: &Figures<'_>) -> Option<Attribution> {
    if figures.is_saturated() != Some(true) {
        return None;
    }
    if let Some(network) = network(figures) {
        return Some(network);
    }
    let behind = limited_seconds(figures.record, Bottleneck::Server);
    let seconds = match behind {
        0 => String::new(),
        behind => format!(" in {behind} of {}", count_seconds(figures.record)),
    };
    let little = figures.little();
    let ramp = figures.ramp();
    let growth = figures
        .growth()
        .map_or(String::new(), |growth| format!(", {} times as long as without load", significant(growth)));
    let (kind, resource, next) = if figures.server_is_full() {
        let next = figures.server().map(|server| format!("perf record -g -p {} -- sleep 10", server.pid));
        (Kind::ServerCpu, "its CPU is full", next)
    } else if figures.server().is_some() {
        let resource = "its CPU is not full: it waits for a lock, a pool, a database, a disk or a rate limit";
        (Kind::ServerWait, resource, figures.server().map(|server| format!("strace -f -c -p {}", server.pid)))
    } else {
        (Kind::Server, "its CPU is not visible from here", None)
    };
    let sentence = format!("the server was the bottleneck{seconds}: saturated, {resource}; {little}{growth}");
    let parallel = figures.unloaded().map(|unloaded| {
        format!(
            "about {} requests in service at a time",
            significant(figures.rate * unloaded.median_ms / 1e3)
        )
    });
    let evidence = [Some(ramp), figures.server_cpu(), parallel].into_iter().flatten();
    let attributed = attribution(kind, sentence, evidence);
    match next {
        Some(next) => with_next(attributed, next),
        None => attributed,
    }
}

/// Whether the path is the bottleneck of a saturated run: its queue fills, or it loses packets.
fn network(figures: &Figures<'_>) -> Option<Attribution> {
    let [queue, min] = figures.path_queue().unwrap_or_default();
    let [share, transfer] = figures.transfer().unwrap_or_default();
    let sockets = &figures.evidence.sockets;
    let lost = sockets.out_of_order + sockets.retransmitted;
    // A standing queue is longer than the path; what it does not hold waits at the sender.
    let is_standing = share > 0.3 && queue > 2.0 * min;
    let is_queue = queue > 3.0 && (is_standing || queue > 0.3 * figures.mean_ms);
    let is_loss = share > 0.3 && lost as f64 > 0.05 * figures.responses as f64;
    if !is_queue && !is_loss {
        return None;
    }
    let bytes: u64 = figures.record.seconds.iter().map(|second| second.bytes).sum();
    let rate = bytes as f64 * 8.0 / figures.record.elapsed.as_secs_f64().max(1e-9) / 1e6;
    let reason = if is_queue {
        format!("its queue added {} to a round trip of {}", ms(queue), ms(min))
    } else {
        format!("it lost packets: {} arrived out of order or were retransmitted", count(lost as f64))
    };
    with_next(
        attribution(
            Kind::Network,
            format!(
                "the network was the bottleneck: {reason} at {} Mbit/s; {}",
                significant(rate),
                figures.little()
            ),
            [
                format!(
                    "{} of the service time is after the header section ({})",
                    percent(share),
                    ms(transfer)
                ),
                figures.ramp(),
            ]
            .into_iter()
            .chain(figures.server_cpu()),
        ),
        diagnose(figures.url),
    )
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// Requests of an open schedule wait for the generator's connections, which a server without a queue fills.
fn connections(figures: &Figures<'_>) -> Option<Attribution> {
    let shape = figures.evidence.shape;
    if !shape.is_open || !figures.has_backlog() || figures.is_saturated() != Some(false) {
        return None;
    }
    let most = shape.max_in_flight.max(1) as f64 * 1e3 / figures.mean_ms.max(1e-6);
    attribution(
        Kind::Connections,
        format!(
            "the generator's connections were the bottleneck: {} requests in flight at {} each are {} a second; allow more \
             (--share, --connections)",
            count(shape.max_in_flight as f64),
            ms(figures.mean_ms),
            significant(most)
        ),
        [format!("a request waited {} for a connection", ms(figures.wait_ms)), figures.ramp()],
    )
}

/// A backlog, or a closed loop, without a ramp.
fn undecided(figures: &Figures<'_>) -> Option<Attribution> {
    if figures.evidence.shape.users == 0 || figures.is_saturated().is_some() {
        return None;
    }
    if figures.evidence.shape.is_open {
        let seconds = limited_seconds(figures.record, Bottleneck::Server).max(1);
        return with_next(
            attribution(
                Kind::Unknown,
                format!(
                    "the server or the generator's connections were the bottleneck in {seconds} of {}; {}",
                    count_seconds(figures.record),
                    figures.little()
                ),
                ["the latency without load is unknown".to_owned()].into_iter().chain(figures.server_cpu()),
            ),
            find_limit(figures.url),
        );
    }
    None
}

fn find_limit(url: &str) -> String {
    format!("roundtrip load '{}' --find-limit", url.replace('\'', "%27"))
}

fn diagnose(url: &str) -> String {
    let url = url.replace('\'', "%27");
    format!("roundtrip diagnose --run -- curl -s '{url}' '{url}'")
}

fn fixed_wait(figures: &Figures<'_>) -> Option<Attribution> {
    let wait = fixed_wait::find(figures.record, figures.cpu_wait_ms())?;
    if figures.is_saturated() == Some(true) {
        return None;
    }
    // Work of the server is no wait.
    if figures.cpu_ms().is_some_and(|cpu| cpu > WORK * figures.mean_ms) {
        return None;
    }
    let [low, high] = [wait.low_ms, wait.high_ms].map(significant);
    let times = if low == high { format!("{low} ms") } else { format!("{low} to {high} ms") };
    // Of the median: a busy host delays the mean.
    let share = figures.transfer().map_or(0.0, |[share, _]| share);
    let transfer = share * figures.p50_ms;
    let min = figures.evidence.sockets.min_round_trip_ms;
    let is_delayed_ack = fixed_wait::is_delayed_ack(transfer);
    let (kind, reason) = if share > 0.5 && is_delayed_ack {
        (
            Kind::DelayedAck,
            format!(
                "{} of it between header section and body, as long as a delayed acknowledgement: Nagle's algorithm holds the body",
                ms(transfer)
            ),
        )
    } else if min > 0.5 * figures.p50_ms {
        (Kind::RoundTrip, format!("a round trip of the network takes {}", ms(min)))
    } else {
        (Kind::FixedWait, "the server waits: a timer, a sleep or another service".to_owned())
    };
    // A delayed acknowledgement is the cause where all connections are in use; of another wait, their number is.
    if kind != Kind::DelayedAck && figures.evidence.shape.is_open && figures.has_backlog() {
        return None;
    }
    let sentence = format!("a fixed wait: 6 of 10 responses take {times}, whatever the load; {reason}");
    let more = match figures.evidence.shape.is_open {
        true => figures.little(),
        false => format!("{}; more users (--users) have more responses", figures.little()),
    };
    let ramp = (!figures.evidence.ramp.is_empty()).then(|| figures.ramp());
    let evidence = [Some(more), ramp, figures.server_cpu()].into_iter().flatten();
    with_next(attribution(kind, sentence, evidence), diagnose(figures.url))
}

/// No rule applies.
pub(super) fn otherwise(figures: &Figures<'_>) -> Attribution {
    let shape = figures.evidence.shape;
    let seconds = count_seconds(figures.record);
    let evidence: Vec<String> =
        [(!figures.evidence.ramp.is_empty()).then(|| figures.ramp()), figures.server_cpu()]
            .into_iter()
            .flatten()
            .collect();
    let decided = |kind, sentence| Attribution { kind, sentence, evidence: evidence.clone(), next: None };
    if figures.evidence.shape.users == 0 || figures.responses == 0 {
        return decided(Kind::Nothing, format!("no bottleneck in {seconds}"));
    }
    if shape.is_open {
        return decided(Kind::Nothing, format!("no bottleneck in {seconds}; {}", figures.little()));
    }
    let little = figures.little();
    match figures.is_saturated() {
        Some(_) => decided(
            Kind::Users,
            format!("no bottleneck in {seconds}: the {} users are the limit; {little}", shape.users),
        ),
        None if shape.users == 1 => decided(
            Kind::Users,
            format!("no bottleneck in {seconds}: one user waits for each response; {little}"),
        ),
        None => Attribution {
            next: Some(find_limit(figures.url)),
            ..decided(
                Kind::Unknown,
                format!(
                    "the bottleneck is unknown in {seconds}: without fewer users to compare, {little} says nothing"
                ),
            )
        },
    }
}
