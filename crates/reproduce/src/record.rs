//! The record: the verdict of every cell that can be computed without a laboratory, and ours where it differs.
//!
//! It is data of `papers/verdicts.tsv`, one line per cell: key, cell, verdict, ours. A run fails on a worse verdict, on a
//! number further from print, or on a reversed comparison. Cells that need measurements or logs are not in it; their verdict
//! on record is in the table's own data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::verdict::Verdict;

/// Recorded values of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The verdict.
    pub verdict: Verdict,
    /// Ours, where it differs.
    pub ours: Option<f64>,
}

/// The record of a cell; `None` where there is none.
pub fn of(key: &str, cell: &str) -> Option<Record> {
    static ALL: LazyLock<BTreeMap<(&str, &str), Record>> = LazyLock::new(|| {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| read(line).unwrap_or_else(|| panic!("papers/verdicts.tsv: {line}"))).collect()
    });
    ALL.get(&(key, cell)).copied()
}

/// The file's text.
const TEXT: &str = include_str!("../../../papers/verdicts.tsv");

fn read(line: &str) -> Option<((&str, &str), Record)> {
    let mut fields = line.split('\t');
    let (key, cell, verdict) = (fields.next()?, fields.next()?, fields.next()?);
    let verdict = Verdict::ALL.into_iter().find(|known| known.name() == verdict)?;
    let ours = match fields.next() {
        Some(ours) => Some(ours.parse().ok()?),
        None => None,
    };
    Some(((key, cell), Record { verdict, ours }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_cell_and_its_verdict() {
        let differs = Record { verdict: Verdict::Differs, ours: Some(1.5) };
        assert_eq!(
            read("w3c/table-3\thttp10/packets\tdiffers\t1.5e0"),
            Some((("w3c/table-3", "http10/packets"), differs))
        );
        assert_eq!(read("w3c/table-3\thttp10/packets\tagrees"), None);
    }
}
