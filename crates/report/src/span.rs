//! Durations, formatted for users.

use wire::{Duration, Time};

/// Formats a duration in a suitable unit: `93 ms`, `1.2 s`, `2 min 5 s`, `25 us`.
pub fn shown(span: Duration) -> String {
    match span.as_millis_f64() {
        0.0 => "0 ms".to_owned(),
        millis if millis < 0.1 => format!("{:.0} us", (millis * 1e3).max(1.0)),
        millis if millis < 10.0 => format!("{millis:.1} ms"),
        millis if millis < 1_000.0 => format!("{millis:.0} ms"),
        millis if millis < 100_000.0 => format!("{:.2} s", millis / 1_000.0),
        _ => long(span.as_nanos() / 1_000_000_000),
    }
}

/// Formats long durations: `2 min 5 s`, `3 h 20 min`.
fn long(seconds: u64) -> String {
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Formats a time in a capture, relative to its first packet: `412 ms`, `80.720 s`, `12 min 3 s`. A day or more later, as where captures
/// were merged, it is a date.
pub fn moment(at: Time, first_packet: Time) -> String {
    const DAY: Duration = Duration::from_secs(86_400);
    let since_first = at.since(first_packet);
    if since_first >= DAY && has_date(first_packet) {
        return format!("{} UTC", wire::calendar::date_time(at.since(Time::ZERO)));
    }
    match since_first.as_millis_f64() {
        millis if millis < 10_000.0 => format!("{millis:.0} ms"),
        millis if millis < 600_000.0 => format!("{:.3} s", millis / 1_000.0),
        _ => long(since_first.as_nanos() / 1_000_000_000),
    }
}

/// Returns whether a time is a date: simulated captures begin in 1970.
pub fn has_date(time: Time) -> bool {
    const YEAR_1990: Duration = Duration::from_secs(631_152_000);
    time.since(Time::ZERO) >= YEAR_1990
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_in_the_unit_that_fits() {
        let spans = [0, 3, 24_312, 412_000, 93_191_000, 1_345_023_000].map(Duration::from_nanos);
        assert_eq!([125, 12_000].map(Duration::from_secs).map(shown), ["2 min 5 s", "3 h 20 min"]);
        let moments = |started: Time| {
            [412, 80_720, 172_800_000].map(|at| moment(started + Duration::from_millis(at), started))
        };
        assert_eq!(moments(Time::ZERO), ["412 ms", "80.720 s", "48 h 0 min"]);
        let started = Time::ZERO + Duration::from_secs(867_110_400);
        assert_eq!(moments(started), ["412 ms", "80.720 s", "1997-06-26 00:00:00 UTC"]);
        assert_eq!(spans.map(shown), ["0 ms", "1 us", "24 us", "0.4 ms", "93 ms", "1.35 s"]);
    }
}
