//! Discovery edges: what each object of a recording is taken to wait for, beside what the page was made with.

use std::path::Path;

use page::{Object, Page};

use crate::{pages, recordings};

/// Prints the objects whose last dependency differs, and counts the others.
///
/// # Errors
/// A page without a readable recording.
pub(crate) fn compare(first: u64, last: u64, recordings: &Path) -> Result<(), String> {
    let (mut right, mut count) = (0, 0);
    for number in first..=last {
        let (made, read) = (pages::page(number)?, recordings::recorded(number, recordings)?);
        for object in &read.objects {
            let Some(index) = index(object).filter(|index| *index > 0) else { continue };
            let truth = made.objects.get(index).map(|object| object.after[0]).ok_or("an object too many")?;
            let found: Vec<String> = object.after.iter().map(|edge| described(&read, edge)).collect();
            let mut parents =
                object.after.iter().filter_map(|edge| read.objects.get(edge.on).and_then(self::index));
            count += 1;
            let of_document = object.after.iter().all(|edge| edge.on == 0);
            if parents.any(|parent| parent == truth.on) && (truth.on == 0) == of_document {
                right += 1;
                continue;
            }
            let kind = object.kind;
            println!(
                "page {number}, object {index} ({kind:?}): found {}, made with {}",
                found.join(" and "),
                format_args!("/{} {:?} + {:.0} ms", truth.on, truth.at, truth.plus.as_millis_f64())
            );
        }
    }
    println!("{right} of {count} objects wait for what the page was made with");
    Ok(())
}

/// Number of an object in the page: its path.
fn index(object: &Object) -> Option<usize> {
    object.path.as_deref()?.trim_start_matches('/').parse().ok()
}

fn described(page: &Page, edge: &page::Dependency) -> String {
    let name = page.objects.get(edge.on).and_then(|object| object.path.as_deref()).unwrap_or("?");
    format!("{name} {:?} + {:.0} ms", edge.at, edge.plus.as_millis_f64())
}
