//! Counts, packets and durations as they are written in evidence.

use wire::Duration;

/// Formats a count for output: `1 segment`, `2 segments`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Formats a range of packets for output: `packet 5`, `packets 5 to 7`.
pub fn packets(first: u64, last: u64) -> String {
    if first == last { format!("packet {first}") } else { format!("packets {first} to {last}") }
}

/// Formats a duration for output: `9.3 ms`, `93 ms`, `1.24 s`, `4.5 min`.
pub fn millis(span: Duration) -> String {
    match span.as_millis_f64() {
        millis if millis < 10.0 => format!("{millis:.1} ms"),
        millis if millis < 999.5 => format!("{millis:.0} ms"),
        millis if millis < 9_995.0 => format!("{:.2} s", millis / 1e3),
        millis if millis < 120_000.0 => format!("{:.1} s", millis / 1e3),
        millis => format!("{:.1} min", millis / 60e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_fits() {
        let shown = [9_300, 93_000, 999_400, 1_240_000, 12_400_000, 270_000_000];
        let shown = shown.map(|micros| millis(Duration::from_micros(micros)));
        assert_eq!(shown, ["9.3 ms", "93 ms", "999 ms", "1.24 s", "12.4 s", "4.5 min"]);
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "byte")), ["0 bytes", "1 byte", "2 bytes"]);
        assert_eq!([packets(5, 5), packets(5, 7)], ["packet 5", "packets 5 to 7"]);
    }
}
