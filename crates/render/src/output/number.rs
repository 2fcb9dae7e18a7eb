//! Numbers as the papers print them: three significant figures for times, two decimals for ratios.
//!
//! Not for programs: JSON and CSV keep every digit (`papers/heidemann-model#table-3`, `#table-6` set the form).

use wire::Rate;

/// Three significant figures, with commas between the thousands: `5.40`, `188`, `27,300`.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let decimals = decimals_for(value);
    // 9.996 becomes 10.00, with a figure too many: round first, then count the decimals again.
    let rounded = round_to(value, decimals);
    let decimals = decimals_for(rounded);
    if decimals >= 0 {
        let decimals = usize::try_from(decimals).unwrap_or_default();
        return commas(&format!("{rounded:.decimals$}"));
    }
    commas(&format!("{:.0}", round_to(value, decimals)))
}

/// Two decimals: `1.13`.
pub fn ratio(value: f64) -> String {
    if value.is_finite() { commas(&format!("{value:.2}")) } else { String::new() }
}

/// A count that may be a mean: `12`, `12.5`, `1,204`.
pub fn count(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let tenths = round_to(value, 1);
    if tenths.fract() == 0.0 { commas(&format!("{tenths:.0}")) } else { commas(&format!("{tenths:.1}")) }
}

/// A count with its noun: `1 object`, `1,204 bytes`.
pub fn counted(value: f64, what: &str) -> String {
    let count = count(value);
    format!("{count} {what}{}", if count == "1" { "" } else { "s" })
}

/// One decimal, always: `1.0`, `8.6`.
pub fn tenths(value: f64) -> String {
    if value.is_finite() { commas(&format!("{value:.1}")) } else { String::new() }
}

/// A rate in decimal units, as links are sold: `1.06 Mbit/s`.
pub fn rate(rate: Rate) -> String {
    let bits = rate.bits_per_second_f64();
    let (unit, name) = match bits {
        1e9.. => (1e9, "Gbit/s"),
        1e6.. => (1e6, "Mbit/s"),
        1e3.. => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    };
    format!("{} {name}", trim(&significant(bits / unit)))
}

/// Drops trailing zeros: `6.00` becomes `6`.
fn trim(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// Decimals for three significant figures; negative to the left of the point.
fn decimals_for(value: f64) -> i32 {
    if value == 0.0 {
        return 0;
    }
    // The exponent of any finite number is small.
    #[expect(clippy::cast_possible_truncation)]
    let exponent = value.abs().log10().floor() as i32;
    (2 - exponent).min(MAX_DECIMALS)
}

/// Maximum number of decimals: a millionth of a millisecond is below any clock here.
const MAX_DECIMALS: i32 = 6;

fn round_to(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals.abs());
    if decimals >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

fn commas(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_significant_figures() {
        let cases = [
            (0.0, "0"),
            (0.111_4, "0.111"),
            (5.4, "5.40"),
            (9.996, "10.0"),
            (12.24, "12.2"),
            (99.96, "100"),
            (187.6, "188"),
            (999.6, "1,000"),
            (1_728.0, "1,730"),
            (27_312.0, "27,300"),
            (100_951.0, "101,000"),
            (0.000_000_01, "0"),
            (-42.04, "-42.0"),
            (f64::NAN, ""),
        ];
        for (value, printed) in cases {
            assert_eq!(significant(value), printed, "{value}");
        }
    }

    #[test]
    fn counts_show_a_fraction_only_when_they_have_one() {
        let printed = [3.0, 12.5, 1204.0, 2.999_99].map(count);
        assert_eq!(printed, ["3", "12.5", "1,204", "3"]);
    }

    #[test]
    fn rates_are_in_decimal_units() {
        let printed = [28_800, 1_064_960, 6_291_456, 10_000_000_000, 500]
            .map(|bits| rate(Rate::from_bits_per_second(bits).unwrap()));
        assert_eq!(printed, ["28.8 kbit/s", "1.06 Mbit/s", "6.29 Mbit/s", "10 Gbit/s", "500 bit/s"]);
    }
}
