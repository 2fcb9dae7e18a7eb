//! Diagnosis of captures: the report of the command line as JSON, CSV and text.

use packets::Reader;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use report::filter::Filter;
use report::reading::CaptureReader;
use report::verdict::{self, Policy};
use report::{Capture, csv, json};

/// Diagnosed captures.
#[pyclass(frozen, module = "roundtrip._kernel")]
pub struct KernelDiagnosis(Vec<Capture>);

/// Diagnoses captures: names, and contents as read from a file.
#[pyfunction]
pub fn diagnose(py: Python<'_>, captures: Vec<(String, Vec<u8>)>, causes: Vec<String>) -> PyResult<KernelDiagnosis> {
    let filter = Filter::new(&[], &causes, None).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut diagnosed = Vec::with_capacity(captures.len());
    for (name, bytes) in captures {
        diagnosed.push(py.detach(|| read(name, &bytes, &filter))?);
        py.check_signals()?;
    }
    Ok(KernelDiagnosis(diagnosed))
}

fn read(name: String, bytes: &[u8], filter: &Filter) -> PyResult<Capture> {
    let refused = |error: packets::Unreadable| PyValueError::new_err(format!("{name}: {error}"));
    let unpacked = unpack::unpacked(std::io::Cursor::new(bytes.to_vec()))
        .map_err(|error| PyOSError::new_err(format!("{name}: {error}")))?;
    let mut reader = Reader::new(unpacked).map_err(refused)?;
    let mut reading = CaptureReader::new(name.clone(), filter, false);
    let (mut damage, mut is_empty) = (None, true);
    loop {
        match reader.read() {
            Ok(Some(frame)) => reading.handle(&frame),
            Ok(None) => break,
            Err(error) if is_empty => return Err(refused(error)),
            Err(error) => {
                damage = Some(error.to_string());
                break;
            }
        }
        is_empty = false;
    }
    let mut capture = reading.finish();
    capture.damage = damage;
    Ok(capture)
}

#[pymethods]
impl KernelDiagnosis {
    /// The report of `roundtrip diagnose --format json`.
    fn json(&self) -> String {
        json::text(&self.0, &verdict::judge(&self.0, &Policy::default()))
    }

    /// The report of `roundtrip diagnose --format csv`.
    fn csv(&self) -> String {
        csv::text(&self.0)
    }

    /// The report as an HTML page.
    fn html(&self) -> String {
        report::page::page(&self.0)
    }
}
