//! For each law of a plan, what was asked for and what was got.
//!
//! Not the test itself: that is [`super::fit`]. What depends on other values, because files are asked for again or because a
//! plan has an end, has a distance and no likelihood.

use super::fit::{self, Fit};
use super::law::Law;
use super::plan::{Begins, Plan};
use super::popularity::{counts, depths};
use super::schedule::Schedule;

/// For each law, what was asked for and what was got.
pub fn fits(plan: &Plan) -> Vec<Fit> {
    let set = plan.wanted.set.set();
    let cap = plan.wanted.cap.get() as f64;
    let capped = |law: Law| move |x: f64| if x >= cap { 1.0 } else { law.below(x) };
    let whole = |what, law: Law, values| {
        fit::fit(what, law.to_string(), values, 1.0, capped(law), |p| law.quantile(p).ceil().min(cap))
    };
    let seconds = |what, law: Law, values| {
        fit::fit(what, law.to_string(), values, 0.0, |x| law.below(x), |p| law.quantile(p))
    };
    let depending = |fit: Fit| Fit { likelihood: None, ..fit };
    // Rounded to the nearest: from a half below to a half above.
    let rounded = |what, law: Law, values| {
        fit::fit(what, law.to_string(), values, 1.0, |x| law.below(x + 0.5), |p| law.quantile(p).round())
    };
    let documents = plan.wanted.documents() as usize;
    let kinds = plan.files.split_at(documents.min(plan.files.len()));
    let sizes = |files: &[u64]| files.iter().map(|size| *size as f64).collect();
    let mut fits = vec![whole("file size, bytes", set.documents.sizes, sizes(kinds.0))];
    fits.extend(set.embedded.map(|kind| whole("embedded file size, bytes", kind.sizes, sizes(kinds.1))));
    if let Some(requests) = set.documents.requests {
        let asked = plan.asks().map(|ask| plan.size(ask.file) as f64).collect();
        fits.push(depending(whole("size of what is asked for, bytes", requests, asked)));
    }
    fits.push(depending(popularity(plan)));
    let (of_documents, of_embedded): (Vec<u32>, Vec<u32>) =
        plan.asks().map(|ask| ask.file).partition(|file| (*file as usize) < documents);
    let depth = |what, order: &[u32]| depending(whole(what, set.depth, depths(order, plan.files.len())));
    fits.push(depth("depth in the stack of the latest", &of_documents));
    if set.embedded.is_some() {
        fits.push(depth("the same of embedded files", &of_embedded));
    }
    if let Schedule::Users(_) = plan.wanted.schedule {
        let objects = plan.pages.iter().map(|page| page.objects.len() as f64).collect();
        fits.push(rounded("objects of a page", set.objects, objects));
        let pauses = plan.pages.iter().flat_map(|page| page.objects.get(1..).unwrap_or(&[]));
        let pauses = pauses.map(|ask| ask.after.as_secs_f64()).collect();
        fits.push(seconds("from object to object, s", set.active_off, pauses));
        let thinking = plan.pages.iter().filter_map(|page| match page.begins {
            Begins::After(after) => Some(after.as_secs_f64()),
            Begins::At(_) => None,
        });
        // A plan has an end: who thinks beyond it is not in it.
        fits.push(depending(seconds("from page to page, s", set.inactive_off, thinking.collect())));
    }
    fits
}

/// How far down the ranks requests go.
fn popularity(plan: &Plan) -> Fit {
    let documents = plan.wanted.documents();
    let ranks = plan.asks().filter(|ask| ask.file < documents);
    let ranks: Vec<f64> = ranks.map(|ask| f64::from(ask.file) + 1.0).collect();
    let counts = counts(plan.wanted.documents(), ranks.len());
    let total: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let mut sum = 0.0;
    let shares: Vec<f64> = counts
        .iter()
        .map(|count| {
            sum += f64::from(*count);
            sum / total
        })
        .collect();
    let below = |rank: f64| {
        // A rank from 1 on.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let index = rank as usize;
        if index == 0 { 0.0 } else { shares.get(index - 1).copied().unwrap_or(1.0) }
    };
    let quantile = |p: f64| (shares.partition_point(|share| *share < p) + 1) as f64;
    fit::fit("rank of what is asked for", "Zipf, floor(C / rank)".to_owned(), ranks, 1.0, below, quantile)
}
