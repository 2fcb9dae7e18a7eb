//! Expected and observed values for each distribution of a plan.
//!
//! The test is in [`crate::fit`]. Values that depend on one another, because files are requested repeatedly or because a
//! plan has an end, have a distance and no p-value.

use crate::distribution::Distribution;
use crate::fit::{self, Fit};
use crate::plan::{PageStart, Plan};
use crate::popularity::{counts, depths};
use crate::schedule::Schedule;

/// Compares a plan with each of its distributions.
pub fn fits(plan: &Plan) -> Vec<Fit> {
    let set = plan.spec.set.set();
    let cap = plan.spec.cap.get() as f64;
    let documents = plan.spec.documents() as usize;
    let kinds = plan.files.split_at(documents.min(plan.files.len()));
    let sizes = |files: &[u64]| files.iter().map(|size| *size as f64).collect();
    let mut fits = vec![fit_whole(SIZE, set.documents.sizes, sizes(kinds.0), cap)];
    fits.extend(
        set.embedded.map(|kind| fit_whole("embedded file size, bytes", kind.sizes, sizes(kinds.1), cap)),
    );
    if let Some(requests) = set.documents.requests {
        let expected = plan.object_requests().map(|request| plan.size(request.file) as f64).collect();
        fits.push(without_p_value(fit_whole(REQUESTED_SIZE, requests, expected, cap)));
    }
    let ranks = plan.object_requests().filter(|request| request.file < plan.spec.documents());
    let ranks = ranks.map(|request| f64::from(request.file) + 1.0).collect();
    fits.push(without_p_value(popularity(plan.spec.documents(), set.popularity, ranks)));
    let (of_documents, of_embedded): (Vec<u32>, Vec<u32>) =
        plan.object_requests().map(|request| request.file).partition(|file| (*file as usize) < documents);
    let depth = |what, order: &[u32]| {
        without_p_value(fit_whole(what, set.depth, depths(order, plan.files.len()), f64::INFINITY))
    };
    fits.push(depth(DEPTH, &of_documents));
    if set.embedded.is_some() {
        fits.push(depth("the same of embedded files", &of_embedded));
    }
    if let Schedule::Users(_) = plan.spec.schedule {
        let objects = plan.pages.iter().map(|page| page.objects.len() as f64).collect();
        fits.push(fit_rounded(OBJECTS, set.objects, objects));
        let pauses = plan.pages.iter().flat_map(|page| page.objects.get(1..).unwrap_or(&[]));
        let pauses = pauses.map(|request| request.after.as_secs_f64()).collect();
        fits.push(fit_seconds(ACTIVE, set.active_off, pauses));
        let thinking = plan.pages.iter().filter_map(|page| match page.start {
            PageStart::After(after) => Some(after.as_secs_f64()),
            PageStart::At(_) => None,
        });
        // A plan has an end: think times beyond it are missing.
        fits.push(without_p_value(fit_seconds(INACTIVE, set.inactive_off, thinking.collect())));
    }
    fits
}

pub(super) const SIZE: &str = "file size, bytes";
pub(super) const REQUESTED_SIZE: &str = "requested size, bytes";
pub(super) const DEPTH: &str = "depth in the stack of the latest";
pub(super) const OBJECTS: &str = "objects of a page";
pub(super) const ACTIVE: &str = "from object to object, s";
pub(super) const INACTIVE: &str = "from page to page, s";

/// Compares whole numbers that were rounded upwards, and limited to `cap`.
pub(super) fn fit_whole(what: &'static str, distribution: Distribution, values: Vec<f64>, cap: f64) -> Fit {
    let cdf = |x: f64| if x >= cap { 1.0 } else { distribution.cdf(x) };
    fit::fit(what, distribution.to_string(), values, 1.0, cdf, |p| distribution.quantile(p).ceil().min(cap))
}

/// Compares whole numbers that were rounded to the nearest: from a half below to a half above.
pub(super) fn fit_rounded(what: &'static str, distribution: Distribution, values: Vec<f64>) -> Fit {
    fit::fit(
        what,
        distribution.to_string(),
        values,
        1.0,
        |x| distribution.cdf(x + 0.5),
        |p| distribution.quantile(p).round(),
    )
}

/// Compares times, which are continuous.
pub(super) fn fit_seconds(what: &'static str, distribution: Distribution, values: Vec<f64>) -> Fit {
    fit::fit(
        what,
        distribution.to_string(),
        values,
        0.0,
        |x| distribution.cdf(x),
        |p| distribution.quantile(p),
    )
}

/// Removes the p-value, which is unknown for values that depend on one another.
pub(super) fn without_p_value(fit: Fit) -> Fit {
    Fit { likelihood: None, ..fit }
}

/// Compares the ranks of requests with Zipf's law.
pub(super) fn popularity(files: u32, exponent: f64, ranks: Vec<f64>) -> Fit {
    let counts = counts(files, ranks.len(), exponent);
    let total: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let mut sum = 0.0;
    let shares: Vec<f64> = counts
        .iter()
        .map(|count| {
            sum += f64::from(*count);
            sum / total
        })
        .collect();
    let cdf = |rank: f64| {
        // A rank of at least 1.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let index = rank as usize;
        if index == 0 { 0.0 } else { shares.get(index - 1).copied().unwrap_or(1.0) }
    };
    let quantile = |p: f64| (shares.partition_point(|share| *share < p) + 1) as f64;
    let expected = match exponent {
        1.0 => "Zipf, floor(C / rank)".to_owned(),
        _ => format!("Zipf, floor(C / rank^{exponent})"),
    };
    fit::fit("rank of the requested file", expected, ranks, 1.0, cdf, quantile)
}
