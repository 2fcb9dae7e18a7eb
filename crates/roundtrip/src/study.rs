//! Our own comparisons, in the form of the papers' tables: what one engine says beside what another does.
//!
//! Not the papers' numbers (those are [`crate::reproduce`]'s, which shows these beside them): here neither side is
//! printed anywhere, and every explanation is computed. What a study asks, over what, and what counts as agreement is
//! data in the project's studies folder.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`model_against_simulator`] | the closed formulas beside packets |
//! | [`reasons`] | why the two differ, each reason with its share |
//! | [`buffer_tuning`] | how pipelined requests are buffered |
//! | [`crossover`] | for whom DHTTP is faster, and for whom HTTP over TCP |
//! | [`loss`] | what loss costs |
//! | [`restart`] | what becomes of a window while the user looks at a page |
//! | [`spent`] | what runs took, and why one takes longer than another |

pub mod buffer_tuning;
pub mod crossover;
pub mod loss;
pub mod model_against_simulator;
pub mod reasons;
pub mod restart;
pub mod spent;

use crate::reproduce::published::{Cell, Table};
use crate::reproduce::verdict::{Judgement, Verdict};

/// A table whose both sides are computed.
pub struct Study {
    /// What it asks, and one side.
    pub table: Table,
    /// The other side, for each cell.
    pub judgements: Vec<Judgement>,
    /// What comes of it, in a sentence or two.
    pub says: Option<String>,
}

impl Study {
    /// Judges every cell of a table that is complete.
    ///
    /// # Errors
    /// What `judge` says.
    fn of(
        table: Table,
        mut judge: impl FnMut(&Cell) -> Result<(f64, Verdict, Option<String>), String>,
    ) -> Result<Self, String> {
        let mut judgements = Vec::new();
        for cell in table.cells() {
            let (ours, verdict, note) = judge(&cell)?;
            judgements.push(Judgement { ours: Some(ours), verdict, expected: table.expected, note });
        }
        Ok(Self { table, judgements, says: None })
    }
}
