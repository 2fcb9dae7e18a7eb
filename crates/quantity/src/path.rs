//! Impairments of packets on a path: queue, loss, jitter, reordering, modem.
//!
//! | value | examples |
//! | --- | --- |
//! | queue | `20p`, `64kib`, `20p+64kib`, `none` (no limit) |
//! | queue discipline | `drop-tail`, `codel`, `fq-codel`; `codel:10ms/200ms` (target and interval) |
//! | loss | `0.1%`; `burst:1%/30%` or `burst:1%/30%/100%/0%`; `packets:3+17`; `none` |
//! | jitter | `5ms` (packets keep their order), `5ms/free` (they may be reordered), `none` |
//! | reordering | `1%/5ms`, `none` |
//! | modem | `v42bis`, `v42bis/57.6kbit` (behind such a serial port), `v42bis:512x6` (codewords, longest string), `v42+vj` (headers compressed, RFC 1144), `none` |

use std::collections::BTreeSet;

use wire::link::{CoDel, Jitter, Loss, Order, QueueDiscipline, QueueLimit, Reordering};
use wire::modem::Dictionary;
use wire::{Duration, Probability, modem};

use crate::ValueError;
use crate::print::NONE;
use crate::scalar;

/// Parses a queue limit of the link.
///
/// # Errors
/// An invalid limit.
pub fn queue(text: &str) -> Result<QueueLimit, ValueError> {
    if text == NONE {
        return Ok(QueueLimit::default());
    }
    let mut limit = QueueLimit::default();
    for part in text.split('+') {
        let is_new = match part.strip_suffix(['p', 'P']) {
            Some(packets) => limit.packets.replace(scalar::queue_packets(packets)?).is_none(),
            None => limit.bytes.replace(scalar::queue_bytes(part)?).is_none(),
        };
        if !is_new {
            return Err(not_a("a queue", text, "packets or bytes or both, such as 20p, 64kib or 20p+64kib"));
        }
    }
    Ok(limit)
}

/// Parses a queue discipline; CoDel's target and interval are optional.
///
/// # Errors
/// An unknown discipline, or an invalid target or interval.
pub fn queue_discipline(text: &str) -> Result<QueueDiscipline, ValueError> {
    let (name, parameters) = match text.split_once(':') {
        Some((name, parameters)) => (name, Some(parameters)),
        None => (text, None),
    };
    let codel = |discipline: fn(CoDel) -> QueueDiscipline| {
        let Some(parameters) = parameters else { return Ok(discipline(CoDel::default())) };
        let Some((target, interval)) = parameters.split_once('/') else {
            return Err(not_a("a queue discipline", text, "target and interval, such as codel:5ms/100ms"));
        };
        let codel = CoDel { target: scalar::duration(target)?, interval: scalar::duration(interval)? };
        let is_valid =
            wire::link::Config { discipline: discipline(codel), ..Default::default() }.check().is_ok();
        match is_valid {
            true => Ok(discipline(codel)),
            false => {
                Err(not_a("a queue discipline", text, "a target above 0ms and an interval from that to 1h"))
            }
        }
    };
    match (name, parameters) {
        ("drop-tail", None) => Ok(QueueDiscipline::DropTail),
        ("codel", _) => codel(QueueDiscipline::CoDel),
        ("fq-codel", _) => codel(QueueDiscipline::FqCoDel),
        _ => Err(not_a("a queue discipline", text, "drop-tail, codel or fq-codel, or codel:5ms/100ms")),
    }
}

/// Parses a packet loss.
///
/// `burst:` is Gilbert and Elliott's loss, with parameters in the order of tc(8)'s `gemodel`. They are the
/// probabilities from good to bad and from bad to good; optionally the loss while bad (100%) and while
/// good (0%). `packets:` are counted from 1.
///
/// # Errors
/// An invalid loss.
pub fn loss(text: &str) -> Result<Loss, ValueError> {
    let example = "a percentage such as 0.1%, or burst:1%/30%, or packets:3+17, or none";
    if text == NONE {
        return Ok(Loss::None);
    }
    if let Some(packets) = text.strip_prefix("packets:") {
        if packets.split('+').count() > MAX_PACKETS {
            return Err(not_a("a loss", text, "at most 1000 packets"));
        }
        let packets: Result<BTreeSet<u64>, _> = packets.split('+').map(scalar::packet_number).collect();
        return packets.map(Loss::Exactly);
    }
    let Some(burst) = text.strip_prefix("burst:") else {
        return match scalar::probability(text)? {
            Probability::NEVER => Ok(Loss::None),
            probability => Ok(Loss::Independent(probability)),
        };
    };
    let probabilities: Result<Vec<_>, _> = burst.split('/').map(scalar::probability).collect();
    let (to_bad, to_good, loss_in_bad, loss_in_good) = match probabilities?[..] {
        [to_bad, to_good] => (to_bad, to_good, Probability::ALWAYS, Probability::NEVER),
        [to_bad, to_good, loss_in_bad] => (to_bad, to_good, loss_in_bad, Probability::NEVER),
        [to_bad, to_good, loss_in_bad, loss_in_good] => (to_bad, to_good, loss_in_bad, loss_in_good),
        [] | [_] | [_, _, _, _, ..] => return Err(not_a("a loss", text, example)),
    };
    Ok(Loss::GilbertElliott { to_bad, to_good, loss_in_good, loss_in_bad })
}

/// Maximum number of listed packets.
const MAX_PACKETS: usize = 1_000;

/// Parses a jitter: the maximum of a uniform distribution from zero.
///
/// # Errors
/// An invalid delay.
pub fn jitter(text: &str) -> Result<Option<Jitter>, ValueError> {
    let (up_to, order) = match text.split_once('/') {
        None if text == NONE => return Ok(None),
        None => (text, Order::Preserved),
        Some((up_to, "free")) => (up_to, Order::Free),
        Some(_) => return Err(not_a("a jitter", text, "a duration such as 5ms, or 5ms/free, or none")),
    };
    scalar::duration(up_to).map(|up_to| Some(Jitter { up_to, order }))
}

/// Parses a reordering: the share of packets, and their delay.
///
/// # Errors
/// An invalid reordering; a delay of zero.
pub fn reordering(text: &str) -> Result<Option<Reordering>, ValueError> {
    if text == NONE {
        return Ok(None);
    }
    let not_a_reordering =
        || not_a("a reordering", text, "how many packets and by how much, such as 1%/5ms, or none");
    let (probability, by) = text.split_once('/').ok_or_else(not_a_reordering)?;
    let (probability, by) = (scalar::probability(probability)?, scalar::duration(by)?);
    if by == Duration::ZERO { Err(not_a_reordering()) } else { Ok(Some(Reordering { probability, by })) }
}

/// Parses a modem, which may compress.
///
/// # Errors
/// An invalid modem.
pub fn modem(text: &str) -> Result<Option<modem::Config>, ValueError> {
    let example = "v42bis, v42bis/57.6kbit, v42bis:512x6/57.6kbit, v42, v42+vj, or none";
    if text == NONE {
        return Ok(None);
    }
    let (kind, port) = text.split_once('/').map_or((text, None), |(kind, port)| (kind, Some(port)));
    let (kind, compresses_headers) = kind.strip_suffix("+vj").map_or((kind, false), |kind| (kind, true));
    let (name, dictionary) = kind.split_once(':').map_or((kind, None), |(name, size)| (name, Some(size)));
    let port = port.map(scalar::rate).transpose()?;
    let dictionary = match (name, dictionary) {
        ("v42", None) => Some(None),
        ("v42bis", None) => Some(Some(Dictionary::default())),
        ("v42bis", Some(size)) => size
            .split_once('x')
            .and_then(|(codewords, max_string_length)| {
                Some(Dictionary {
                    codewords: codewords.parse().ok()?,
                    max_string_length: max_string_length.parse().ok()?,
                })
            })
            .filter(|dictionary| dictionary.is_valid())
            .map(Some),
        (_, _) => None,
    };
    dictionary
        .map(|dictionary| Some(modem::Config { dictionary, port, compresses_headers }))
        .ok_or_else(|| not_a("a modem", text, example))
}

fn not_a(what: &'static str, given: &str, example: &'static str) -> ValueError {
    ValueError::NotA { what, given: given.to_owned(), example }
}

#[cfg(test)]
mod tests {
    use wire::Bytes;

    use super::*;
    use crate::print;

    #[test]
    fn parses_queues() {
        let limit = |packets, bytes: Option<u64>| Ok(QueueLimit { packets, bytes: bytes.map(Bytes::new) });
        assert_eq!(queue("20p"), limit(Some(20), None));
        assert_eq!(queue("64kib"), limit(None, Some(65_536)));
        assert_eq!(queue("20p+64kib"), limit(Some(20), Some(65_536)));
        assert_eq!(queue("0p"), limit(Some(0), None));
        assert_eq!(queue("none"), limit(None, None));
        for malformed in ["", "p", "20p+20p", "20", "-1p", "1.5p", "20p+", "many"] {
            assert_eq!(queue(malformed).is_ok(), malformed == "20", "{malformed}");
        }
    }

    #[test]
    fn parses_losses() {
        let share = |share| Probability::new(share).unwrap();
        assert_eq!(loss("0.1%"), Ok(Loss::Independent(share(0.001))));
        assert_eq!((loss("0%"), loss("none")), (Ok(Loss::None), Ok(Loss::None)));
        assert_eq!(loss("packets:17+3"), Ok(Loss::Exactly([3, 17].into())));
        let bursts = |loss_in_bad, loss_in_good| {
            Ok(Loss::GilbertElliott { to_bad: share(0.01), to_good: share(0.3), loss_in_bad, loss_in_good })
        };
        assert_eq!(loss("burst:1%/30%"), bursts(Probability::ALWAYS, Probability::NEVER));
        assert_eq!(loss("burst:1%/30%/50%/0.1%"), bursts(share(0.5), share(0.001)));
        for malformed in
            ["", "0.1", "101%", "burst:1%", "burst:1%/1%/1%/1%/1%", "packets:0", "packets:", "some"]
        {
            assert!(loss(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn values_round_trip_through_text() {
        for text in ["20p", "20p+65536", "0p", "none"] {
            assert_eq!(print::queue(queue(text).unwrap()), text);
        }
        for text in ["0.07%", "burst:1%/30%/50%/0.1%", "packets:3+17", "none"] {
            assert_eq!(print::loss(&loss(text).unwrap()), text);
        }
        for text in ["5ms", "5ms/free", "none"] {
            assert_eq!(print::jitter(jitter(text).unwrap()), text);
        }
        for text in ["1%/5ms", "none"] {
            assert_eq!(print::reordering(reordering(text).unwrap()), text);
        }
        for text in [
            "v42",
            "v42/38400bit",
            "v42bis",
            "v42bis/38400bit",
            "v42bis:512x6",
            "v42+vj",
            "v42bis:1024x250/57600bit",
            "none",
        ] {
            let modem = modem(text).unwrap();
            assert_eq!(super::modem(&print::modem(modem)), Ok(modem), "{text}");
        }
        for malformed in [
            "",
            "v42:512x6",
            "v42bis:",
            "v42bis:511x6",
            "v42bis:512x5",
            "v42bis:512",
            "v42bis/",
            "v42bis/0bit",
        ] {
            assert!(modem(malformed).is_err(), "{malformed}");
        }
    }
}
