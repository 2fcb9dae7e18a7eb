//! The kernel of `roundtrip connections` for Python: Arrow record batches in, whole numbers out.
//!
//! The package's Python says where data comes from and who counts what; here is what must be fast, the same code that
//! the program uses. What was counted of a stretch is handed on as bytes, so that stretches can be counted in other
//! processes, and merged. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`question`] | what is asked, and a table's rows made into requests |
//! | [`lines`] | lines of a log made into requests |
//! | [`requests`] | requests as record batches, from what reads to what counts |
//! | [`slice`](mod@slice) | a stretch of requests, counted |
//! | [`partial`] | what was counted, as bytes |
//! | [`answer`] | the rows that people and programs see |

mod answer;
mod lines;
mod partial;
mod question;
mod requests;
mod slice;

use pyo3::prelude::*;

/// `roundtrip._kernel`
#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<question::Question>()?;
    module.add_class::<lines::Lines>()?;
    module.add_class::<slice::Slice>()?;
    module.add_function(wrap_pyfunction!(requests::reasons, module)?)?;
    module.add_function(wrap_pyfunction!(partial::merge, module)?)?;
    module.add_function(wrap_pyfunction!(answer::rows, module)?)?;
    module.add_function(wrap_pyfunction!(answer::curve, module)?)?;
    Ok(())
}
