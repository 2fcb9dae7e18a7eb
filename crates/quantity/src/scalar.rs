//! Quantities with units, each with its range.
//!
//! Rates are in bits per second: `Mbit`, `Mbit/s` and `Mbps` are 10^6 of them, `Mibit` 2^20; `MB/s` are bytes
//! per second. Sizes follow tc(8) and the papers: `kb` and `kib` are both 1024 bytes. Letters may be of
//! either case, except for the `B` of `MB/s`: `Mb/s` is ambiguous and rejected.

use std::num::{NonZeroU32, NonZeroUsize};

use wire::{Bytes, Duration, Probability, Rate};

use crate::ValueError;
use crate::decimal::{Decimal, DecimalError};

/// Parses a duration, from 0 to 1 hour: `89ms`, `1.5s`, `200us`, `7ns`, `1min`.
///
/// # Errors
/// An invalid duration, or a longer one.
pub fn duration(text: &str) -> Result<Duration, ValueError> {
    DURATION.read(text).map(Duration::from_nanos)
}

/// Parses an offset into a recording, from 0 to a year of 365 days.
///
/// # Errors
/// An invalid duration, or a longer one.
pub fn offset(text: &str) -> Result<Duration, ValueError> {
    OFFSET.read(text).map(Duration::from_nanos)
}

/// Parses a duration above 0, up to 1 hour.
///
/// # Errors
/// An invalid duration, or one out of that range.
pub fn positive_duration(text: &str) -> Result<Duration, ValueError> {
    POSITIVE_DURATION.read(text).map(Duration::from_nanos)
}

/// Parses a sending rate, from 1 bit/s to 1 Tbit/s: `10Mbit`, `10Mbit/s`, `10Mbps`, `1.02Mibit`, `1.25MB/s`.
///
/// # Errors
/// A number without a unit; an invalid rate, or one out of that range.
pub fn rate(text: &str) -> Result<Rate, ValueError> {
    let millibits = RATE.read(text).map_err(|error| bare_number(text).unwrap_or(error))?;
    Ok(Rate::from_millibits_per_second(millibits).expect("the range begins above zero"))
}

/// Returns the error for a rate without a unit. It suggests Mbit/s below 1,000, else bit/s.
fn bare_number(text: &str) -> Option<ValueError> {
    let (number, unit) = Decimal::split(text).ok()?;
    let given = text.trim().to_owned();
    let suggested_unit = if number.times(1)? < 1_000 { "Mbit" } else { "bit" };
    let suggestion = format!("{given}{suggested_unit}");
    (unit.is_empty() && !number.is_zero()).then_some(ValueError::MissingUnit {
        what: RATE.what,
        given,
        suggestion,
    })
}

/// Parses the size of an object, from 1 byte to 1 TiB: `5120`, `5kib`, `100kb`.
///
/// # Errors
/// An invalid size, or one out of that range.
pub fn object_size(text: &str) -> Result<Bytes, ValueError> {
    OBJECT_SIZE.read(text).map(Bytes::new)
}

/// Parses the size of a request with its headers, from 1 byte to 64 KiB.
///
/// # Errors
/// An invalid size, or one out of that range.
pub fn request_size(text: &str) -> Result<Bytes, ValueError> {
    REQUEST_SIZE.read(text).map(Bytes::new)
}

/// Parses the size of a program's write buffer, from 1 byte to 1 MiB.
///
/// # Errors
/// An invalid size, or one out of that range.
pub fn buffer(text: &str) -> Result<NonZeroUsize, ValueError> {
    let size = usize::try_from(BUFFER.read(text)?).ok().and_then(NonZeroUsize::new);
    Ok(size.expect("the range is within 1 and 2^20"))
}

/// Parses the size of a send buffer, from 1 byte to 1 GiB.
///
/// # Errors
/// An invalid size, or one out of that range.
pub fn send_buffer(text: &str) -> Result<Bytes, ValueError> {
    SEND_BUFFER.read(text).map(Bytes::new)
}

/// Parses the maximum number of requests on one connection, from 1 to 1000000.
///
/// # Errors
/// An invalid number, or one out of that range.
pub fn requests(text: &str) -> Result<NonZeroU32, ValueError> {
    let requests = u32::try_from(REQUESTS.read(text)?).ok().and_then(NonZeroU32::new);
    Ok(requests.expect("the range is within 1 and 10^6"))
}

/// Parses the maximum payload of a segment, from 1 to 65495 bytes: an IPv4 packet holds 65535, headers take 40.
///
/// # Errors
/// An invalid size, or one out of that range.
pub fn mss(text: &str) -> Result<Bytes, ValueError> {
    MSS.read(text).map(Bytes::new)
}

/// Parses the maximum packet size, from 41 to 65535 bytes.
///
/// # Errors
/// An invalid size, or one out of that range.
pub fn mtu(text: &str) -> Result<Bytes, ValueError> {
    MTU.read(text).map(Bytes::new)
}

/// Parses the queue limit in packets, from 0 to 2^32.
///
/// # Errors
/// An invalid number, or one out of that range.
pub(super) fn queue_packets(text: &str) -> Result<u64, ValueError> {
    QUEUE_PACKETS.read(text)
}

/// Parses the queue limit in bytes, from 0 to 1 TiB.
///
/// # Errors
/// An invalid size, or one out of that range.
pub(super) fn queue_bytes(text: &str) -> Result<Bytes, ValueError> {
    QUEUE_BYTES.read(text).map(Bytes::new)
}

/// Parses the number of a packet, from 1 to 2^32.
///
/// # Errors
/// An invalid number, or one out of that range.
pub(super) fn packet_number(text: &str) -> Result<u64, ValueError> {
    PACKET_NUMBER.read(text)
}

/// Parses the number of runs, from 1 to 100000.
///
/// # Errors
/// An invalid number, or one out of that range.
pub fn runs(text: &str) -> Result<u32, ValueError> {
    RUNS.read(text).map(|runs| u32::try_from(runs).expect("the range ends below 2^32"))
}

/// Parses the maximum number of concurrent connections, from 1 to 1000.
///
/// # Errors
/// An invalid number, or one out of that range.
pub fn parallel(text: &str) -> Result<u16, ValueError> {
    PARALLEL.read(text).map(|parallel| u16::try_from(parallel).expect("the range ends below 2^16"))
}

/// Parses a random seed: any number of 64 bits.
///
/// # Errors
/// An invalid number.
pub fn seed(text: &str) -> Result<wire::Seed, ValueError> {
    let given = || text.to_owned();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let (min, max) = ("0", "18446744073709551615");
        let out_of_range = |_| ValueError::OutOfRange { what: "a seed", given: given(), min, max };
        text.parse().map(wire::Seed::new).map_err(out_of_range)
    } else {
        Err(ValueError::NotA { what: "a seed", given: given(), example: "a whole number, such as 1" })
    }
}

/// Parses a probability, from 0% to 100%: `0.1%`.
///
/// # Errors
/// An invalid percentage, or one above 100%.
pub fn probability(text: &str) -> Result<Probability, ValueError> {
    let what = "a probability";
    match Decimal::split(text) {
        Ok((number, "%")) => Probability::new(number.percent()).ok_or(DecimalError::Huge),
        Ok(_) => Err(DecimalError::Malformed),
        Err(error) => Err(error),
    }
    .map_err(|error| match error {
        DecimalError::Malformed => {
            ValueError::NotA { what, given: text.to_owned(), example: "a percentage, such as 0.1%" }
        }
        DecimalError::Huge => ValueError::OutOfRange { what, given: text.to_owned(), min: "0%", max: "100%" },
    })
}

/// Notation of a quantity, and its range in its smallest unit.
struct Quantity {
    what: &'static str,
    example: &'static str,
    /// Factor of a named unit to the smallest one; `None` for an unknown name.
    unit: fn(&str) -> Option<u128>,
    min: (u64, &'static str),
    max: (u64, &'static str),
}

impl Quantity {
    fn read(&self, text: &str) -> Result<u64, ValueError> {
        let Self { what, example, unit: factor_of, min, max } = *self;
        let not_a = || ValueError::NotA { what, given: text.to_owned(), example };
        let out_of_range = || ValueError::OutOfRange { what, given: text.to_owned(), min: min.1, max: max.1 };
        let (number, unit) = Decimal::split(text).map_err(|error| match error {
            DecimalError::Malformed => not_a(),
            DecimalError::Huge => out_of_range(),
        })?;
        let factor = match factor_of(unit) {
            Some(factor) => factor,
            // Zero needs no unit.
            None if unit.is_empty() && number.is_zero() && min.0 == 0 => 1,
            None => return Err(not_a()),
        };
        if factor == 1 && !number.is_whole() {
            return Err(not_a());
        }
        number
            .times(factor)
            .filter(|smallest_units| (min.0..=max.0).contains(smallest_units))
            .ok_or_else(out_of_range)
    }
}

/// Returns the factor of a unit by its name, case-insensitive.
fn factor_of_unit(units: &[(&str, u128)], unit: &str) -> Option<u128> {
    units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| *factor)
}

/// Returns the thousandths of a bit per second in a unit of rate: a prefix, then `bit`, `bit/s` or `bps` for bits,
/// `B/s` for bytes.
fn rate_unit(unit: &str) -> Option<u128> {
    let lower = unit.to_ascii_lowercase();
    let bits = ["bit/s", "bit", "bps"].into_iter().find_map(|suffix| lower.strip_suffix(suffix));
    let (prefix, millibits) = match bits {
        Some(prefix) => (prefix, 1_000),
        None => (lower.strip_suffix("b/s").filter(|_| unit.ends_with("B/s"))?, 8_000),
    };
    factor_of_unit(PREFIXES, prefix).map(|factor| factor * millibits)
}

/// SI's powers of ten, and IEC 80000-13's powers of two.
const PREFIXES: &[(&str, u128)] = &[
    ("", 1),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("ki", 1 << 10),
    ("mi", 1 << 20),
    ("gi", 1 << 30),
    ("ti", 1 << 40),
];

const MINUTE: u128 = 60 * 1_000_000_000;

const DURATION_UNITS: &[(&str, u128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", MINUTE),
    ("h", 60 * MINUTE),
];

const DURATION: Quantity = Quantity {
    what: "a duration",
    example: "a number and a unit, such as 89ms, 1.5s or 200us",
    unit: |unit| factor_of_unit(DURATION_UNITS, unit),
    min: (0, "0ms"),
    max: (3_600_000_000_000, "1h"),
};

/// Captures may run for days; no timer waits for an offset.
const OFFSET: Quantity = Quantity { max: (8_760 * 3_600_000_000_000, "8760h"), ..DURATION };

const POSITIVE_DURATION: Quantity = Quantity { min: (1, "1ns"), ..DURATION };

/// Rates, in thousandths of a bit per second.
const RATE: Quantity = Quantity {
    what: "a rate",
    example: "bits per second as 10Mbit (or 10Mbit/s, 10Mbps), 28800bit or 1.02Mibit, or bytes as 1.25MB/s",
    unit: rate_unit,
    min: (1_000, "1bit"),
    max: (1_000_000_000_000_000, "1tbit"),
};

const SIZE_UNITS: &[(&str, u128)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("tib", 1 << 40),
];
const SIZE_EXAMPLE: &str = "a number of bytes, such as 5120, 5kib or 100kb (1024 bytes each)";

const OBJECT_SIZE: Quantity = Quantity {
    what: "the size of an object",
    example: SIZE_EXAMPLE,
    unit: |unit| factor_of_unit(SIZE_UNITS, unit),
    min: (1, "1"),
    max: (1 << 40, "1tib"),
};

const REQUEST_SIZE: Quantity = Quantity {
    what: "the size of a request",
    example: SIZE_EXAMPLE,
    unit: |unit| factor_of_unit(SIZE_UNITS, unit),
    min: (1, "1"),
    max: (64 << 10, "64kib"),
};

const BUFFER: Quantity = Quantity {
    what: "the size of a buffer",
    example: SIZE_EXAMPLE,
    unit: |unit| factor_of_unit(SIZE_UNITS, unit),
    min: (1, "1"),
    max: (1 << 20, "1mib"),
};

const SEND_BUFFER: Quantity = Quantity {
    what: "the size of a send buffer",
    example: SIZE_EXAMPLE,
    unit: |unit| factor_of_unit(SIZE_UNITS, unit),
    min: (1, "1"),
    max: (1 << 30, "1gib"),
};

const REQUESTS: Quantity = Quantity {
    what: "a number of requests",
    example: "a whole number, such as 5",
    unit: |unit| unit.is_empty().then_some(1),
    min: (1, "1"),
    max: (1_000_000, "1000000"),
};

const MSS: Quantity = Quantity {
    what: "a segment size",
    example: "a number of bytes, such as 512 or 1460",
    unit: |unit| factor_of_unit(SIZE_UNITS, unit),
    min: (1, "1"),
    max: (65_495, "65495 (a packet holds 65535, headers take 40)"),
};

const MTU: Quantity = Quantity {
    what: "a packet size",
    example: "a number of bytes, such as 576 or 1500",
    unit: |unit| factor_of_unit(SIZE_UNITS, unit),
    min: (41, "41"),
    max: (65_535, "65535"),
};

const QUEUE_PACKETS: Quantity = Quantity {
    what: "a queue in packets",
    example: "a whole number and p, such as 20p",
    unit: |unit| unit.is_empty().then_some(1),
    min: (0, "0p"),
    max: (1 << 32, "4294967296p"),
};

const QUEUE_BYTES: Quantity = Quantity {
    what: "a queue",
    example: "packets or bytes, such as 20p, 64kib or 20p+64kib, or none",
    unit: |unit| factor_of_unit(SIZE_UNITS, unit),
    min: (0, "0"),
    max: (1 << 40, "1tib"),
};

const PACKET_NUMBER: Quantity = Quantity {
    what: "the number of a packet",
    example: "packets counted from 1, such as packets:3+17",
    unit: |unit| unit.is_empty().then_some(1),
    min: (1, "1"),
    max: (1 << 32, "4294967296"),
};

const RUNS: Quantity = Quantity {
    what: "a number of runs",
    example: "a whole number, such as 20",
    unit: |unit| unit.is_empty().then_some(1),
    min: (1, "1"),
    max: (100_000, "100000"),
};

const PARALLEL: Quantity = Quantity {
    what: "a number of connections",
    example: "a whole number, such as 4",
    unit: |unit| unit.is_empty().then_some(1),
    min: (1, "1"),
    max: (1_000, "1000"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_1_02_mibit_is_exact() {
        assert_eq!(rate("1.02mibit").unwrap().millibits_per_second(), 1_069_547_520);
        assert_eq!(rate("0.734Mibit").unwrap().millibits_per_second(), 769_654_784);
        assert_eq!(rate("130KiB/s"), rate("1064960bit"));
    }

    #[test]
    fn all_notations_of_a_rate_agree() {
        let notations = [
            "20Mbit",
            "20mbit",
            "20MBIT",
            "20 Mbit/s",
            "20mbit/S",
            "20Mbps",
            "20mbps",
            "20MBps",
            "20000kbit",
            "0.02Gbps",
            "20000000bit",
            "20000000 bps",
            "20000000bit/s",
            "2.5MB/s",
            "2.5mB/s",
            "2500kB/s",
            "2500000B/s",
        ];
        for notation in notations {
            assert_eq!(rate(notation), Ok(Rate::from_bits_per_second(20_000_000).unwrap()), "{notation}");
        }
        for notation in ["8Mibit", "8mibit/s", "8Mibps", "1MiB/s", "1miB/s", "8192Kibit", "1024KiB/s"] {
            assert_eq!(rate(notation), Ok(Rate::from_bits_per_second(8 << 20).unwrap()), "{notation}");
        }
    }

    #[test]
    fn rejects_rates_with_a_missing_or_ambiguous_unit() {
        let error = |text| rate(text).unwrap_err().to_string();
        assert_eq!(error("20"), "`20`: a rate needs a unit; write 20Mbit");
        assert_eq!(error(" 2.5 "), "`2.5`: a rate needs a unit; write 2.5Mbit");
        assert_eq!(error("28800"), "`28800`: a rate needs a unit; write 28800bit");
        for ambiguous in ["20mb/s", "20Mb/s", "20MB", "20M", "20mbits", "20Mbit/h", "20/s", "20b/S", "20ebit"]
        {
            assert!(
                error(ambiguous).contains("is not a rate; give bits per second as 10Mbit"),
                "{ambiguous}"
            );
        }
    }

    #[test]
    fn all_notations_of_a_duration_agree() {
        for notation in ["89ms", "0.089s", "89000us", "89000 µs", "89000000ns", " 89 MS "] {
            assert_eq!(duration(notation), Ok(Duration::from_millis(89)), "{notation}");
        }
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("1h"), duration("60min"));
        assert_eq!(duration("1ns"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn all_notations_of_a_size_agree() {
        for notation in ["5120", "5kib", "5KB", "5k", "5120 B", "0.0048828125mib"] {
            assert_eq!(object_size(notation), Ok(Bytes::new(5120)), "{notation}");
        }
    }

    #[test]
    fn values_round_trip_through_text() {
        for text in ["133ms", "1.5s", "20us", "7ns", "0ms", "3.7ms"] {
            assert_eq!(duration(text).unwrap().to_string(), text);
        }
        for text in ["100mibit", "28800bit", "29491.2bit", "10mbit"] {
            assert_eq!(rate(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn ranges_include_both_bounds_and_nothing_beyond() {
        assert!(rate("1bit").is_ok() && rate("0.999bit").is_err() && rate("0").is_err());
        assert!(rate("1tbit").is_ok() && rate("1000000000001bit").is_err());
        assert!(duration("3600s").is_ok() && duration("3600000000001ns").is_err());
        assert!(
            object_size("1tib").is_ok() && object_size("1099511627777").is_err() && object_size("0").is_err()
        );
        assert!(mss("65495").is_ok() && mss("65496").is_err() && mss("0").is_err());
        assert!(runs("100000").is_ok() && runs("100001").is_err() && runs("0").is_err());
        assert!(parallel("1000").is_ok() && parallel("1001").is_err() && parallel("0").is_err());
        assert!(seed("18446744073709551615").is_ok() && seed("18446744073709551616").is_err());
        assert!(probability("100%").is_ok() && probability("100.1%").is_err());
    }

    #[test]
    fn rejects_fractions_of_indivisible_units() {
        assert!(runs("1.5").is_err() && object_size("1.5").is_err() && duration("0.5ns").is_err());
    }
}
