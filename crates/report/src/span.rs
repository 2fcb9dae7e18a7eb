//! Durations, formatted for users.

use wire::Duration;

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

/// Formats a time in a capture, relative to its first packet: `412 ms`, `80.720 s`, `12 min 3 s`.
pub fn moment(since_first: Duration) -> String {
    match since_first.as_millis_f64() {
        millis if millis < 10_000.0 => format!("{millis:.0} ms"),
        millis if millis < 600_000.0 => format!("{:.3} s", millis / 1_000.0),
        _ => long(since_first.as_nanos() / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_in_the_unit_that_fits() {
        let spans = [0, 3, 24_312, 412_000, 93_191_000, 1_345_023_000].map(Duration::from_nanos);
        assert_eq!([125, 12_000].map(Duration::from_secs).map(shown), ["2 min 5 s", "3 h 20 min"]);
        assert_eq!([412, 80_720].map(Duration::from_millis).map(moment), ["412 ms", "80.720 s"]);
        assert_eq!(spans.map(shown), ["0 ms", "1 us", "24 us", "0.4 ms", "93 ms", "1.35 s"]);
    }
}
