//! Our own comparisons, in the form of the papers' tables: the results of one engine compared with another's.
//!
//! Not the papers' numbers (those are `reproduce`'s, which shows them next to these): here neither side is
//! published, and every explanation is computed. A study's question, its scenarios and its criteria of agreement are
//! data in the project's `studies` directory.
//!
//! | module | contents |
//! | --- | --- |
//! | [`model_against_simulator`] | the closed formulas compared with packets |
//! | [`reasons`] | the reasons for differences, each with its share |
//! | [`buffer_tuning`] | buffering of pipelined requests |
//! | [`crossover`] | conditions under which DHTTP is faster, and those under which HTTP over TCP is |
//! | [`loss`] | cost of loss |
//! | [`restart`] | the congestion window after an idle time between pages |
//! | [`run_means`] | components of a run's time, and explanations of differences |

pub mod buffer_tuning;
pub mod crossover;
pub mod loss;
pub mod model_against_simulator;
pub mod reasons;
pub mod restart;
pub mod run_means;

use crate::judgement::Judgement;
use crate::published::{Cell, Table};
use crate::verdict::Verdict;

/// A table whose both sides are computed.
pub struct Study {
    /// The study's question, and one side.
    pub table: Table,
    /// The other side, for each cell.
    pub judgements: Vec<Judgement>,
    /// Conclusion in a sentence or two.
    pub says: Option<String>,
}

impl Study {
    /// Judges every cell of a complete table. `bound` is what the computed reasons may leave of an explained difference.
    ///
    /// # Errors
    /// The error of `judge`.
    fn of(
        table: Table,
        bound: Option<f64>,
        mut judge: impl FnMut(&Cell) -> Result<(f64, Verdict, Option<String>), String>,
    ) -> Result<Self, String> {
        let mut judgements = Vec::new();
        for cell in table.cells() {
            let (ours, verdict, note) = judge(&cell)?;
            let expected = cell.column.expected.unwrap_or(table.expected);
            let bound = bound.filter(|_| verdict == Verdict::Explained);
            let mechanism =
                note.clone().filter(|_| verdict == Verdict::Explained).map(|reason| (reason, ours));
            judgements.push(Judgement {
                bound,
                mechanism,
                ..Judgement::of_study(ours, verdict, expected, note)
            });
        }
        Ok(Self { table, judgements, says: None })
    }
}
