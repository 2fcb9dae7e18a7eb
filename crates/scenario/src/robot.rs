//! Settings of `fetch`'s robot for a scenario's client, and remarks on its visits: the same for every engine
//! that runs it.
//!
//! The engine decides which protocols it can honour, and with what objects.

use std::num::NonZeroU32;

use fetch::{FirstBytes, FirstBytesPolicy, Release, Shape, VisitStats};
use quantity::ValueError;
use wire::{Duration, Time};

use crate::{Remark, Requests};

impl Requests {
    /// Condition under which a robot of this shape sends requests, and a remark where that differs from the scenario.
    pub fn release(self, shape: Shape) -> (Release, Option<Remark>) {
        match (self, shape) {
            // A client that does not wait for responses waits once: the first object references the others.
            (
                Self::AfterDocument | Self::Dependent,
                Shape::Http11Parallel { parallel: _ }
                | Shape::Http11Pipelined(_)
                | Shape::Http2
                | Shape::Http3(_)
                | Shape::Dhttp,
            ) => (Release::AfterFirst, None),
            (Self::AfterDocument, Shape::Http10 { parallel: _ }) => (Release::AfterFirst, None),
            (Self::Dependent, Shape::Http10 { parallel: _ } | Shape::Http10KeepAlive | Shape::Http11) => {
                (Release::Dependent, None)
            }
            (
                Self::Independent,
                Shape::Http10 { parallel: _ }
                | Shape::Http11Parallel { parallel: _ }
                | Shape::Http11Pipelined(_)
                | Shape::Http2
                | Shape::Http3(_)
                | Shape::Dhttp,
            ) => (Release::Independent, None),
            (Self::Independent | Self::AfterDocument, Shape::Http10KeepAlive | Shape::Http11) => {
                (Release::Independent, Some(Remark::RequestsWereDependent))
            }
        }
    }
}

/// Parses `512`: the first 512 bytes of every object are requested before the rest of any. With
/// `512/together` they are requested with the rest, and only their arrival is reported.
///
/// # Errors
/// Another text, or a size outside 1 byte to 1 MiB.
pub(crate) fn first_bytes(text: &str) -> Result<FirstBytes, ValueError> {
    let (size, policy) = match text.strip_suffix(TOGETHER) {
        Some(size) => (size, FirstBytesPolicy::Together),
        None => (text, FirstBytesPolicy::First),
    };
    let bytes = u32::try_from(quantity::buffer(size)?.get()).ok().and_then(NonZeroU32::new);
    Ok(FirstBytes { bytes: bytes.expect("the range is within 1 and 2^20"), policy })
}

const TOGETHER: &str = "/together";

/// Formats it in the notation of the command line.
pub(crate) fn format_first_bytes(first: FirstBytes) -> String {
    let FirstBytes { bytes, policy } = first;
    match policy {
        FirstBytesPolicy::Together => format!("{bytes}{TOGETHER}"),
        FirstBytesPolicy::First => bytes.to_string(),
    }
}

/// Remark on responses that a naive close destroyed, run by run; `None` if there are none.
pub fn destroyed(runs: &[Vec<String>]) -> Option<Remark> {
    let first = runs.iter().flatten().next()?.clone();
    let count: usize = runs.iter().map(Vec::len).sum();
    Some(Remark::Destroyed { each: count as f64 / runs.len() as f64, first })
}

/// Remarks on visits, apart from their duration; each visit has its start time.
pub fn remarks(visits: &[(Time, VisitStats)]) -> Vec<Remark> {
    let mean = |sum: f64| sum / visits.len() as f64;
    let delays: Vec<Duration> =
        visits.iter().filter_map(|(began, stats)| Some(stats.first_bytes?.since(*began))).collect();
    let delay_sum: f64 = delays.iter().map(|delay| delay.as_millis_f64()).sum();
    let retries: u64 = visits.iter().map(|(_, stats)| stats.retries).sum();
    let missing: u64 = visits.iter().map(|(_, stats)| stats.missing).sum();
    let max = visits.iter().find_map(|(_, stats)| stats.max);
    let is_first_known = !delays.is_empty() && delays.len() == visits.len();
    let remarks = [
        is_first_known.then(|| Remark::FirstBytes(mean(delay_sum))),
        (retries > 0).then(|| Remark::Retries(mean(retries as f64))),
        (missing > 0).then(|| Remark::MissingObjects(mean(missing as f64))),
        max.map(Remark::TooManyObjects),
    ];
    remarks.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_round_trip_through_text() {
        for text in ["512", "512/together"] {
            assert_eq!(format_first_bytes(first_bytes(text).unwrap()), text);
        }
        assert!(
            ["0", "", "/together", "512/apart", "2mib"].into_iter().all(|text| first_bytes(text).is_err())
        );
    }

    #[test]
    fn remarks_are_means_and_omit_zeros() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let stats = |retries, known| VisitStats {
            retries,
            first_bytes: Some(at(known)),
            missing: retries,
            max: (retries > 0).then_some(9),
        };
        let visits = [(at(0), stats(3, 100)), (at(100), stats(0, 300))];
        let expected = [
            "first bytes of every object received after 150.0 ms",
            "requests retried after their connection closed without a response: 1.5",
            "objects that the document references and the server lacks: 1.5",
            "the document references more than 9 objects; those beyond were not fetched",
        ];
        let sentences = remarks(&visits).iter().map(Remark::to_string).collect::<Vec<_>>();
        assert_eq!(sentences, expected);
        assert_eq!(remarks(&[(at(0), VisitStats::default())]), []);
    }

    #[test]
    fn one_connection_without_pipelining_always_waits() {
        assert_eq!(Requests::Dependent.release(Shape::Http11), (Release::Dependent, None));
        let (_, remark) = Requests::Independent.release(Shape::Http10KeepAlive);
        assert_eq!(remark, Some(Remark::RequestsWereDependent));
    }
}
