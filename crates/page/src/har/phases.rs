//! The times of an entry: when it starts, when its request leaves, when its response begins and ends.
//!
//! A start is a moment of discovery. What follows before the request leaves (the browser's queue, DNS, the
//! connection) is the network's and the browser's, and is computed anew.

use wire::Duration;

use super::raw::Timings;

/// Times of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Phases {
    /// Nanoseconds since 1970 at which it starts; `None` where none is recorded.
    pub(super) start: Option<i64>,
    /// From the start until the request has been sent.
    pub(super) before_wait: Duration,
    /// From the start until the first byte of the response.
    pub(super) first_byte: Duration,
    /// From the start until the last byte.
    pub(super) end: Duration,
    /// Lookup of the host's name, where there was one.
    pub(super) dns: Option<Duration>,
    /// Handshake of TCP, where there was one.
    pub(super) connect: Option<Duration>,
    /// Whether a handshake of TLS is recorded apart from that.
    pub(super) has_tls: bool,
    /// From the request until the first byte, where it is known.
    pub(super) wait: Option<Duration>,
    /// The same with the sending of the request, which a browser may note late: at least a round trip.
    pub(super) exchange: Option<Duration>,
}

/// Maximum of a time: an hour, as of every duration that users give. A later start counts as that.
pub(super) const MAX_TIME: Duration = Duration::from_secs(3_600);

impl Phases {
    /// The phases of an entry with this start, total time in milliseconds, and times of phases.
    pub(super) fn of(started: Option<&str>, time: Option<f64>, timings: Option<Timings>) -> Self {
        let Timings { blocked, dns, connect, ssl, send, wait, receive, queued } = timings.unwrap_or_default();
        let [blocked, dns, connect, ssl, send, wait, receive, queued] =
            [blocked, dns, connect, ssl, send, wait, receive, queued].map(|phase| phase.and_then(millis));
        let sum = |phases: &[Option<Duration>]| {
            phases.iter().flatten().fold(Duration::ZERO, |sum, phase| sum + *phase)
        };
        let shared = sum(&[blocked, dns, connect, send, wait, receive]);
        let total = time.and_then(millis).filter(|time| *time > Duration::ZERO);
        // HAR counts TLS in `connect`; some tools write it separately, and then only the total shows it.
        let handshake = ssl.unwrap_or_default();
        let is_separate = total.is_some_and(|total| {
            apart(total, shared + handshake) < apart(total, shared) && handshake > Duration::ZERO
        });
        let tls = if is_separate { ssl } else { None };
        let before_wait = sum(&[queued, blocked, dns, connect, tls, send]);
        let first_byte = before_wait + wait.unwrap_or_default();
        let end = (first_byte + receive.unwrap_or_default())
            .max(total.map_or(Duration::ZERO, |total| total + queued.unwrap_or_default()));
        let tcp = match connect.filter(|connect| *connect > Duration::ZERO) {
            Some(connect) if !is_separate && handshake < connect => Some(connect.saturating_sub(handshake)),
            connect => connect,
        };
        // The start is that of the request in the network; the browser's queue (`_queued`) came before it.
        let wait_in_queue = i64::try_from(queued.unwrap_or_default().as_nanos()).unwrap_or(0);
        Self {
            start: started.and_then(nanos_since_1970).map(|start| start.saturating_sub(wait_in_queue)),
            before_wait: before_wait.min(MAX_TIME),
            first_byte: first_byte.min(MAX_TIME),
            end: end.min(MAX_TIME),
            dns,
            connect: tcp,
            has_tls: handshake > Duration::ZERO,
            wait: wait.filter(|wait| *wait > Duration::ZERO),
            exchange: wait.filter(|wait| *wait > Duration::ZERO).map(|wait| wait + send.unwrap_or_default()),
        }
    }

    /// Whether no time has passed.
    pub(super) fn is_empty(&self) -> bool {
        self.end == Duration::ZERO
    }
}

/// A recorded number of milliseconds; `None` for -1, which means that it does not apply.
pub(super) fn millis(millis: f64) -> Option<Duration> {
    Duration::from_secs_f64(millis / 1e3).map(|time| time.min(MAX_TIME))
}

fn apart(one: Duration, other: Duration) -> Duration {
    one.max(other).saturating_sub(one.min(other))
}

/// Nanoseconds between 1970 and a date of ISO 8601, such as `2018-10-23T13:24:24.847+00:00`.
pub(super) fn nanos_since_1970(text: &str) -> Option<i64> {
    let digits = |from: usize, to: usize| {
        let part = text.get(from..to)?;
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| is_number)
    };
    let separators = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")];
    if separators.iter().any(|(at, separator)| text.get(*at..at + 1) != Some(separator)) {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    if !((1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60) {
        return None;
    }
    let rest = text.get(19..)?;
    let fraction = rest.strip_prefix('.').unwrap_or_default();
    let fraction: String = fraction.chars().take_while(char::is_ascii_digit).collect();
    let zone = rest.get(if fraction.is_empty() { 0 } else { fraction.len() + 1 }..)?;
    let nanos = format!("{:0<9}", fraction.get(..9).unwrap_or(&fraction)).parse::<i64>().ok()?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    (seconds - zone_seconds(zone)?).checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Seconds of a time zone east of Greenwich: `Z`, `+01:00`, `-0700`, or nothing, which counts as `Z`.
fn zone_seconds(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone == "Z" {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let digits: String = zone.get(1..)?.chars().filter(|letter| *letter != ':').collect();
    let [hours, minutes] = [digits.get(..2)?, digits.get(2..)?].map(|part| part.parse::<i64>().ok());
    Some(sign * (hours?.clamp(0, 24) * 3_600 + minutes?.clamp(0, 59) * 60))
}

/// Days from 1970-01-01 in the Gregorian calendar, whose cycle is 400 years of 146,097 days.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let from_march = year - if month <= 2 { 1 } else { 0 };
    let days_of_years = from_march * 365 + from_march / 4 - from_march / 100 + from_march / 400;
    let days_of_months = (153 * ((month + 9) % 12) + 2) / 5;
    days_of_years + days_of_months + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::super::raw::Loose;
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn dates_of_every_tool_are_read() {
        let at = |text: &str| nanos_since_1970(text).map(|nanos| nanos / 1_000_000);
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("2000-03-01T00:00:00.000Z"), Some(951_868_800_000));
        assert_eq!(at("2018-10-23T13:24:24.847+00:00"), Some(1_540_301_064_847));
        assert_eq!(at("2023-03-29T16:58:59.303-07:00"), Some(1_680_134_339_303));
        assert_eq!(at("2016-01-24T14:41:45.8180001Z"), Some(1_453_646_505_818));
        for invalid in [
            "",
            "yesterday",
            "2018-10-23",
            "2018-13-23T13:24:24Z",
            "2018-10-23T13:24:24 PST",
            "+018-10-23T13:24:24Z",
        ] {
            assert_eq!(at(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn tls_counts_in_connect_unless_the_total_shows_otherwise() {
        let timings = |ssl: f64| Timings {
            connect: Loose(Some(70.0)),
            ssl: Loose(Some(ssl)),
            send: Loose(Some(0.0)),
            wait: Loose(Some(30.0)),
            receive: Loose(Some(5.0)),
            ..Timings::default()
        };
        let inside = Phases::of(None, Some(105.0), Some(timings(40.0)));
        assert_eq!((inside.connect, inside.first_byte, inside.end), (Some(ms(30)), ms(100), ms(105)));
        let separate = Phases::of(None, Some(145.0), Some(timings(40.0)));
        assert_eq!((separate.connect, separate.first_byte, separate.end), (Some(ms(70)), ms(140), ms(145)));
    }

    #[test]
    fn queue_of_the_browser_comes_before_the_recorded_start() {
        let timings = Timings { queued: Loose(Some(50.0)), wait: Loose(Some(30.0)), ..Timings::default() };
        let phases = Phases::of(Some("2018-10-23T13:24:24.100Z"), Some(30.0), Some(timings));
        assert_eq!(phases.start, nanos_since_1970("2018-10-23T13:24:24.050Z"));
        assert_eq!((phases.before_wait, phases.first_byte, phases.end), (ms(50), ms(80), ms(80)));
    }

    #[test]
    fn absurd_times_are_missing_or_bounded() {
        let timings = Timings {
            blocked: Loose(Some(-1.0)),
            wait: Loose(Some(1e300)),
            receive: Loose(Some(1e12)),
            ..Timings::default()
        };
        let phases = Phases::of(Some("9999-12-31T23:59:59Z"), Some(-5.0), Some(timings));
        assert_eq!((phases.start, phases.end), (None, MAX_TIME));
    }
}
