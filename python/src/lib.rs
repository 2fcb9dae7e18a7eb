//! The kernel of the Python package: scenarios, captures and access logs in, Arrow tables out.
//!
//! The package's Python code finds the data and distributes the work; the kernel computes with the program's code. Counts of
//! a slice of a log are serialised as bytes, so that other processes can count slices. Reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`query`] | a validated query; requests from the rows of a table |
//! | [`lines`] | requests from the lines of a log |
//! | [`requests`] | requests as record batches, between reading and counting |
//! | [`slice`](mod@slice) | counting of a slice of time |
//! | [`partial`] | counts as bytes |
//! | [`results`] | rows of results |
//! | [`engines`] | scenarios run by the pure engines |
//! | [`diagnosis`] | captures diagnosed |
//! | [`arrow`] | tables by the Arrow PyCapsule interface |

mod arrow;
mod diagnosis;
mod engines;
mod lines;
mod partial;
mod query;
mod requests;
mod results;
mod slice;

use pyo3::prelude::*;

/// `roundtrip._kernel`
#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<query::KernelQuery>()?;
    module.add_class::<lines::Lines>()?;
    module.add_class::<slice::Slice>()?;
    module.add_function(wrap_pyfunction!(requests::reasons, module)?)?;
    module.add_function(wrap_pyfunction!(partial::merge, module)?)?;
    module.add_function(wrap_pyfunction!(results::rows, module)?)?;
    module.add_function(wrap_pyfunction!(results::curve, module)?)?;
    module.add_class::<engines::KernelGrid>()?;
    module.add_class::<engines::KernelPages>()?;
    module.add_class::<engines::KernelRows>()?;
    module.add_class::<arrow::Table>()?;
    module.add_class::<diagnosis::KernelDiagnosis>()?;
    module.add_function(wrap_pyfunction!(diagnosis::diagnose, module)?)?;
    Ok(())
}
