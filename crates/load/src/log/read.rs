//! Reader of a log of HDR histograms.
//!
//! The input is untrusted. Nothing here panics, and no line takes more memory than one that this program writes: a
//! histogram is decompressed to no more bytes than one with the expected bounds can have. Its header must have these
//! bounds before it is decoded. Text that is printed later has no control characters. The format of a histogram is V2 of
//! <https://github.com/HdrHistogram/HdrHistogram>, compressed: two words, then zlib's bytes of another two and the
//! rest.

use std::collections::BTreeMap;
use std::io::Read as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::{Counter, Histogram};
use quantity::names::Quoted;

use super::{Comment, Counts, EXPERIENCED, INTENDED, LATENESS, Log, MAGIC, RunParameters};
use crate::record::{Channel, FailureReason, Record};
use crate::second::{Bottleneck, Second};

/// Maximum size of a log, in bytes: the longest run, three hours with a response in every bin of every second, stays below.
pub const MAX_BYTES: u64 = 1 << 30;

/// Maximum number of seconds: a plan lasts three hours at most, and the maximum timeout is an hour.
const MAX_SECONDS: usize = 4 * 3_600;
/// Maximum of a count: sums over any realistic number of shards do not overflow.
const MAX_COUNT: u64 = 1 << 50;

/// Reason why a file is not a valid log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The comment with the parameters is missing.
    #[error("no line with `#roundtrip-load 1`; give logs that `load --log` wrote")]
    NotALog,
    /// The comment has an impossible value.
    #[error("the line `#roundtrip-load 1` is damaged: {0}; run the load again")]
    Comment(String),
    /// A line, counted from 1, is not a histogram with the expected bounds.
    #[error("the histogram in line {0} is damaged, or was written by another program; run the load again")]
    Line(usize),
    /// A histogram is missing.
    #[error("the histogram of {0} is missing: the log was cut; run the load again")]
    Missing(&'static str),
}

/// Reads a log.
///
/// # Errors
/// [`LogError`] if it is not a log of this program, or incomplete.
pub fn read(text: &str) -> Result<Log, LogError> {
    let comment =
        text.lines().find_map(|line| line.strip_prefix('#')?.strip_prefix(MAGIC)).ok_or(LogError::NotALog)?;
    let comment = serde_json::from_str(comment).map_err(|error| LogError::Comment(error.to_string()))?;
    let mut log = from_comment(comment)?;
    let record = &mut log.record;
    let (mut seconds, mut missing) = (record.seconds.iter_mut(), vec![INTENDED, EXPERIENCED, LATENESS]);
    for (line, number) in text.lines().zip(1..) {
        // Comments, and the names of the columns.
        if line.starts_with(['#', '"']) || line.is_empty() {
            continue;
        }
        let bad = LogError::Line(number);
        let (tag, encoded) = columns(line).ok_or(bad.clone())?;
        let Some(tag) = tag else {
            let second = seconds.next().ok_or(bad.clone())?;
            second.intended = decoded(encoded, &second.intended).ok_or(bad)?;
            continue;
        };
        let section = match tag {
            INTENDED => &mut record.intended,
            EXPERIENCED => &mut record.experienced,
            LATENESS => &mut record.lateness,
            _ => return Err(bad),
        };
        // Each tag occurs once.
        let expected = missing.iter().position(|name| *name == tag).ok_or(bad.clone())?;
        missing.swap_remove(expected);
        *section = decoded(encoded, section).ok_or(bad)?;
    }
    match (missing.first(), seconds.next()) {
        (Some(which), _) => Err(LogError::Missing(which)),
        (None, Some(_)) => Err(LogError::Missing("a second")),
        (None, None) => Ok(log),
    }
}

/// The tag and the histogram of a line: `[Tag=NAME,]begins,lasts,most,HISTOGRAM`.
fn columns(line: &str) -> Option<(Option<&str>, &str)> {
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',').map(|(tag, rest)| (Some(tag), rest))?,
        None => (None, line),
    };
    let mut columns = rest.split(',');
    for _begins_lasts_most in 0..3 {
        columns.next()?.parse::<f64>().ok()?;
    }
    let encoded = columns.next()?;
    columns.next().is_none().then_some((tag, encoded))
}

/// The contents of the comment, without the histograms.
fn from_comment(comment: Comment) -> Result<Log, LogError> {
    let Comment {
        parameters,
        channels,
        failure_counts,
        retries,
        connections,
        elapsed_s,
        statuses,
        cut_after_s,
        evidence,
        seconds,
    } = comment;
    let bad = |why: String| Err(LogError::Comment(why));
    if seconds.is_empty() || seconds.len() > MAX_SECONDS {
        return bad(format!("a run has 1 to {MAX_SECONDS} seconds"));
    }
    if parameters.shards.is_empty()
        || parameters.shards.iter().any(|part| !(1..=parameters.shard_count).contains(part))
    {
        return bad(format!("its shards are not among the {} of the run", parameters.shard_count));
    }
    if let Some(text) = printed_texts(&parameters).into_iter().find(|text| text.contains(char::is_control)) {
        return bad(format!("{} has a control character", Quoted(text)));
    }
    let all = channels
        .values()
        .chain(failure_counts.values())
        .chain(statuses.values())
        .chain([&retries, &connections]);
    if all.chain(seconds.iter().flat_map(Counts::all)).any(|count| *count > MAX_COUNT) {
        return bad("a count is above the maximum of a run".to_owned());
    }
    if seconds.iter().any(|second| !(0.0..=1e6).contains(&second.cpu_share)) {
        return bad("the CPU share of a thread is negative or above a million".to_owned());
    }
    let elapsed = elapsed_s.unwrap_or(seconds.len() as f64);
    if !(0.0..=MAX_SECONDS as f64).contains(&elapsed) {
        return bad(format!("a run takes 0 to {MAX_SECONDS} seconds"));
    }
    if !evidence.is_plausible(MAX_COUNT) {
        return bad("a figure of its evidence is out of range".to_owned());
    }
    if statuses.keys().any(|status| !(100..=999).contains(status)) {
        return bad("a status is not one of HTTP".to_owned());
    }
    let began = wire::Duration::from_secs_f64(parameters.began.0).unwrap_or_default();
    let record = Record {
        began,
        retries,
        connections,
        elapsed: wire::Duration::from_secs_f64(elapsed).unwrap_or_default(),
        statuses,
        evidence,
        cut: cut_after_s.map(|cut| wire::Duration::from_secs_f64(cut).unwrap_or_default()),
        channels: counts_by_name(channels, &Channel::ALL, Channel::name)?,
        failure_counts: counts_by_name(failure_counts, &FailureReason::ALL, FailureReason::name)?,
        seconds: seconds.into_iter().map(second).collect::<Result<_, _>>()?,
        ..Record::default()
    };
    Ok(Log { parameters, record })
}

/// Texts that are printed later.
fn printed_texts(parameters: &RunParameters) -> [&str; 6] {
    let RunParameters {
        target,
        protocol,
        clients,
        distributions,
        workload,
        seed: _,
        plan,
        shards: _,
        shard_count: _,
        began: _,
    } = parameters;
    [target, protocol, clients, distributions, workload, plan]
}

impl Counts {
    fn all(&self) -> [&u64; 8] {
        let Self { due, late, responses, failed, bytes, cpu_share: _, opened, open, dropped, worst: _ } =
            self;
        [due, late, responses, failed, bytes, opened, open, dropped]
    }
}

fn counts_by_name<T: Copy + Ord>(
    counts: BTreeMap<String, u64>,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<BTreeMap<T, u64>, LogError> {
    let find = |(wanted, count): (String, u64)| {
        let found = all.iter().find(|one| name(**one) == wanted);
        Ok((*found.ok_or_else(|| unknown(&wanted))?, count))
    };
    counts.into_iter().map(find).collect()
}

fn second(counts: Counts) -> Result<Second, LogError> {
    let Counts { due, late, responses, failed, bytes, cpu_share, opened, open, dropped, worst } = counts;
    let worst =
        Bottleneck::ALL.into_iter().find(|limit| limit.name() == worst).ok_or_else(|| unknown(&worst))?;
    let intended = Second::default().intended;
    Ok(Second { due, late, responses, failed, bytes, intended, cpu_share, opened, open, dropped, worst })
}

fn unknown(name: &str) -> LogError {
    LogError::Comment(format!("unknown name {}", Quoted(name)))
}

/// A histogram with the bounds of `like`.
fn decoded<T: Counter>(text: &str, like: &Histogram<T>) -> Option<Histogram<T>> {
    let packed = STANDARD.decode(text).ok()?;
    let (head, packed) = packed.split_first_chunk::<8>()?;
    if words_of(*head) != [COMPRESSED, u32::try_from(packed.len()).ok()?] {
        return None;
    }
    // A number of up to 9 bytes for each bin.
    let max = HEAD + 9 * like.distinct_values();
    let mut bytes = Vec::new();
    let unpacked = ZlibDecoder::new(packed).take(max as u64 + 1).read_to_end(&mut bytes).ok()?;
    let (head, counts) = bytes.split_first_chunk::<HEAD>()?;
    let is_bounded = unpacked <= max
        && *head == head_of(like, counts.len())?
        // The longest number, minus 2^63, is not a count, and cannot be a run of as many zeros either.
        && !counts.windows(9).any(|nine| nine == [u8::MAX; 9]);
    if !is_bounded {
        return None;
    }
    let histogram: Histogram<T> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
    (histogram.len() <= MAX_COUNT).then_some(histogram)
}

/// First word of a compressed histogram, then of an uncompressed one.
const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;
/// Bytes before the counts.
const HEAD: usize = 40;

const fn words_of(bytes: [u8; 8]) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = bytes;
    [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])]
}

/// Header before this many bytes of counts: their number, no offset, digits, bounds, and a conversion ratio of 1.
fn head_of<T: Counter>(like: &Histogram<T>, counts: usize) -> Option<[u8; HEAD]> {
    let words = [PLAIN, u32::try_from(counts).ok()?, 0, u32::from(like.sigfig())];
    let bounds = [like.low(), like.high(), 1.0_f64.to_bits()];
    let bytes =
        words.into_iter().flat_map(u32::to_be_bytes).chain(bounds.into_iter().flat_map(u64::to_be_bytes));
    bytes.collect::<Vec<u8>>().try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::super::write;
    use super::*;

    fn log() -> Log {
        let parameters = RunParameters {
            target: "http://127.0.0.1:80/".to_owned(),
            protocol: "http11".to_owned(),
            clients: String::new(),
            distributions: "surge-1998".to_owned(),
            workload: String::new(),
            seed: 1,
            plan: "00ff".to_owned(),
            shards: vec![2],
            shard_count: 3,
            began: (1_795_276_800.5, 1_795_276_800.5),
        };
        let cut = Some(wire::Duration::from_millis(1_500));
        let mut record = Record { retries: 3, connections: 4, cut, ..Record::default() };
        let mut second = Second {
            due: 9,
            late: 1,
            responses: 7,
            open: 3,
            cpu_share: 0.25,
            worst: Bottleneck::Network,
            ..Second::default()
        };
        for nanos in [1, 1_000, 123_456_789] {
            second.intended.record(nanos).unwrap();
            record.intended.record(nanos).unwrap();
            record.lateness.record(nanos / 3).unwrap();
        }
        record.seconds = vec![Second::default(), second];
        record.channels.insert(Channel::Udp, 7);
        record.failure_counts.insert(FailureReason::Closed, 2);
        Log { parameters, record }
    }

    fn written(log: &Log) -> String {
        let mut out = Vec::new();
        write(log, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_log_is_read_back_as_written() {
        let text = written(&log());
        let reread = read(&text).unwrap();
        assert_eq!(reread.parameters, log().parameters);
        assert_eq!(written(&reread), text);
        assert_eq!((reread.record.intended, reread.record.experienced.len()), (log().record.intended, 0));
    }

    #[test]
    fn regress_a_log_with_a_time_beyond_the_calendar_is_written() {
        let mut log = log();
        log.parameters.began = (1e19, 1e19);
        assert!(read(&written(&log)).is_ok());
    }

    #[test]
    fn invalid_and_incomplete_logs_are_refused() {
        let text = written(&log());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(read("1,2\n").unwrap_err(), LogError::NotALog);
        let cut = lines[..lines.len() - 1].join("\n") + "\n";
        assert_eq!(read(&cut).unwrap_err(), LogError::Missing(LATENESS));
        let corrupt = text.replacen("HISTFAAA", "HISTXAAA", 1);
        assert_eq!(read(&corrupt).unwrap_err(), LogError::Line(6));
        let twice = format!("{text}{}\n", lines[lines.len() - 1]);
        assert_eq!(read(&twice).unwrap_err(), LogError::Line(lines.len() + 1));
        for (from, to) in [
            ("\"parts\":[2]", "\"parts\":[4]"),
            ("\"parts\":[2]", "\"parts\":[]"),
            ("\"again\":3", "\"again\":18446744073709551615"),
            ("\"processor\":0.25", "\"processor\":-1.0"),
            ("\"http11\"", "\"http\\u001b[2J\""),
            ("\"due\":9", "\"due\":18446744073709551615"),
        ] {
            assert!(text.contains(from), "{text}");
            let error = read(&text.replacen(from, to, 1)).unwrap_err();
            assert!(matches!(error, LogError::Comment(_)), "{to}: {error:?}");
        }
        let changed = text.replacen("\"network\"", "\"weather\"", 1);
        assert_eq!(read(&changed).unwrap_err(), LogError::Comment("unknown name `weather`".to_owned()));
    }

    /// A histogram as a log has it, of these bytes.
    fn packed(bytes: &[u8]) -> String {
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).unwrap();
        let packed = packer.finish().unwrap();
        let length = u32::try_from(packed.len()).unwrap();
        STANDARD.encode([&COMPRESSED.to_be_bytes()[..], &length.to_be_bytes(), &packed].concat())
    }

    #[test]
    fn a_decoded_histogram_is_no_larger_than_ours_whatever_its_header() {
        let like = Record::default().intended;
        let of = |counts: &[u8]| {
            let head = head_of(&like, counts.len()).unwrap();
            decoded(&packed(&[&head[..], counts].concat()), &like)
        };
        assert_eq!(of(&[6, 2]).unwrap().len(), 4, "three of one value, one of the next");
        assert_eq!(of(&[255; 9]), None, "the number that has no negative");
        assert_eq!(of(&[254, 255, 255, 255, 255, 255, 255, 255, 255]), None, "more than anyone counts");
        assert_eq!(of(&vec![0; 1 << 24]), None, "sixteen million bins");
        let mut head = head_of(&like, 1).unwrap();
        head[4] = 255;
        assert_eq!(decoded(&packed(&[&head[..], &[2]].concat()), &like), None, "four thousand million bytes");
        let other = Second::default().intended;
        let head = head_of(&other, 1).unwrap();
        assert_eq!(decoded(&packed(&[&head[..], &[2]].concat()), &like), None, "other digits");
    }
}
