//! Ours for the note's future work: bytes that change from one request to the next; the time until a page can be laid
//! out; compression by dictionaries and other algorithms, and its CPU time.
//!
//! The note gives estimates or hopes; here each is computed on Microscape. Only compression on the fly is measured.

use std::num::NonZeroU32;

use content::coding::{self, Coding};
use content::dictionary;
use fetch::{FirstBytes, FirstBytesPolicy};
use nix::sys::resource::{UsageWho, getrusage};
use scenario::{Programs, Protocol, Visit};
use simulate::Experiment;
use simulate::page::SERVER;
use simulate::world::ObservationPoint;

use super::hosts::{ClientLocation, Software};
use super::microscape::{deflate, plain};
use super::{ReproducedValue, tuned};

/// | name | value |
/// | --- | --- |
/// | `requests` | bytes of all requests of a revalidation |
/// | `requests-changed` | their bytes in the compact form of `compact_bytes` |
/// | `layout/http10`, `layout/ranges` | seconds over the modem until the first 512 bytes of every image are known: by HTTP/1.0 over four connections, and by ranges over one |
/// | `dictionary/document`, `dictionary/first-segment` | bytes by Zstandard with a dictionary over those without |
/// | `algorithm/brotli`, `algorithm/zstd` | bytes of the document over those by deflate |
/// | `deflate-seconds` | CPU time of deflating the document here |
///
/// # Errors
/// The name, if it is unknown, or the simulator's refusal.
pub fn quantity(name: &str) -> ReproducedValue {
    let document = plain().contents.objects.first().ok_or("a page without a document")?;
    let with_dictionary = |bytes: &[u8]| -> ReproducedValue {
        let with = coding::zstd_with_dictionary(bytes, dictionary::HTML_AND_CSS.as_bytes());
        let without = Coding::Zstd.encode(bytes);
        Ok(with.zip(without).map(|(with, without)| with.len() as f64 / without.len() as f64))
    };
    let over_deflate = |coding: Coding| {
        let coded = coding.encode(document);
        Ok(coded.map(|coded| coded.len() as f64 / deflate(document).len() as f64))
    };
    match name {
        "requests" => Ok(Some(requests()?.iter().map(Vec::len).sum::<usize>() as f64)),
        "requests-changed" => Ok(Some(compact_bytes(&requests()?) as f64)),
        "layout/http10" => layout(Protocol::Http10, FirstBytesPolicy::Together),
        "layout/ranges" => layout(Protocol::Http11Pipelined, FirstBytesPolicy::First),
        "dictionary/document" => with_dictionary(document),
        "dictionary/first-segment" => with_dictionary(document.get(..FIRST_SEGMENT).unwrap_or_default()),
        "algorithm/brotli" => over_deflate(Coding::Brotli),
        "algorithm/zstd" => over_deflate(Coding::Zstd),
        "deflate-seconds" => deflate_seconds(document),
        _ => Err(format!("no quantity future/{name}")),
    }
}

/// "The first TCP packet of payload [...] contains about 1400 bytes."
const FIRST_SEGMENT: usize = 1_400;

/// Every request of a pipelined revalidation, as sent.
fn requests() -> Result<Vec<Vec<u8>>, String> {
    let (scenario, hosts) =
        tuned(Software::Apache, ClientLocation::Lan, Protocol::Http11Pipelined, Visit::Revalidate, plain());
    let experiment = Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?;
    let fetched = experiment.run(0, true).map_err(|error| error.to_string())?;
    let sent = fetched
        .records
        .iter()
        .filter(|record| record.to.host == SERVER && record.seen == ObservationPoint::Sent);
    let bytes: Vec<u8> = sent.flat_map(|record| record.segment.payload.iter().copied()).collect();
    Ok(messages(&bytes))
}

/// Messages without bodies, each with the empty line that ends it.
fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut messages = Vec::new();
    while let Some(end) = bytes.windows(END.len()).position(|window| window == END) {
        let (message, rest) = bytes.split_at(end + END.len());
        messages.push(message.to_vec());
        bytes = rest;
    }
    messages
}

/// Bytes of messages in a compact form. The first is as it is. Of each line of another, only the bytes that differ from
/// the same line before count. A byte for the line and one for the length of the common beginning are added. Equal lines
/// take one byte together.
fn compact_bytes(messages: &[Vec<u8>]) -> usize {
    let lines = |message: &[u8]| -> Vec<Vec<u8>> {
        message.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    let mut bytes = 0;
    let mut before: Option<Vec<Vec<u8>>> = None;
    for message in messages {
        let now = lines(message);
        match &before {
            None => bytes += message.len(),
            Some(before) => {
                bytes += 1;
                for (index, line) in now.iter().enumerate() {
                    let old = before.get(index).map_or(&[][..], Vec::as_slice);
                    if old != line.as_slice() {
                        bytes += 2 + changed(old, line);
                    }
                }
            }
        }
        before = Some(now);
    }
    bytes
}

/// Length of a line without the beginning and the end that it shares with another.
fn changed(old: &[u8], line: &[u8]) -> usize {
    let beginning = old.iter().zip(line).take_while(|(old, new)| old == new).count();
    let (old, line) = (&old[beginning..], &line[beginning..]);
    let end = old.iter().rev().zip(line.iter().rev()).take_while(|(old, new)| old == new).count();
    line.len() - end
}

/// Seconds from the first packet until the first 512 bytes of every image have arrived, over the modem from Apache.
fn layout(protocol: Protocol, policy: FirstBytesPolicy) -> ReproducedValue {
    let (mut scenario, hosts) = tuned(Software::Apache, ClientLocation::Ppp, protocol, Visit::First, plain());
    let first = FirstBytes { bytes: NonZeroU32::new(512).ok_or("no bytes")?, policy };
    scenario.programs = Programs { client_first_bytes: Some(first), ..scenario.programs };
    let experiment = Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?;
    let fetched = experiment.run(0, false).map_err(|error| error.to_string())?;
    let known = fetched.visit_stats().first_bytes;
    Ok(known.map(|known| known.since(fetched.began).as_secs_f64()))
}

/// CPU time of this thread for deflating the document, in seconds: the mean of several times.
fn deflate_seconds(document: &[u8]) -> ReproducedValue {
    const TIMES: u32 = 20;
    let cpu = || -> Result<f64, String> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).map_err(|error| error.to_string())?;
        let (user, system) = (usage.user_time(), usage.system_time());
        Ok((user.tv_sec() + system.tv_sec()) as f64 + (user.tv_usec() + system.tv_usec()) as f64 / 1e6)
    };
    let before = cpu()?;
    for _ in 0..TIMES {
        std::hint::black_box(deflate(std::hint::black_box(document)));
    }
    Ok(Some((cpu()? - before) / f64::from(TIMES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_bytes_of_a_message_are_counted() {
        let first = b"GET /a/01.gif HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        let second = b"GET /a/12.gif HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        assert_eq!(compact_bytes(&[first.clone(), first.clone()]), first.len() + 1);
        assert_eq!(compact_bytes(&[first.clone(), second]), first.len() + 1 + 2 + 2);
    }

    #[test]
    fn a_revalidation_has_a_request_for_each_object() {
        assert_eq!(requests().unwrap().len(), 43);
    }
}
