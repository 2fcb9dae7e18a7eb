//! Spans of time, as a person reads them.

use wire::Duration;

/// `93 ms`, `1.2 s`, `25 us`: in the unit that fits.
pub fn shown(span: Duration) -> String {
    match span.as_millis_f64() {
        0.0 => "0 ms".to_owned(),
        millis if millis < 0.1 => format!("{:.0} us", (millis * 1e3).max(1.0)),
        millis if millis < 10.0 => format!("{millis:.1} ms"),
        millis if millis < 1_000.0 => format!("{millis:.0} ms"),
        millis => format!("{:.2} s", millis / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_in_the_unit_that_fits() {
        let spans = [0, 3, 24_312, 412_000, 93_191_000, 1_345_023_000].map(Duration::from_nanos);
        assert_eq!(spans.map(shown), ["0 ms", "1 us", "24 us", "0.4 ms", "93 ms", "1.35 s"]);
    }
}
