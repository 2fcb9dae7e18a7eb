//! Writes plots of diagnosed connections, a file each, to a directory.
//!
//! `report` renders them as SVG, [`raster`] as PNG.

#[cfg(not(feature = "png"))]
pub mod no_raster;
#[cfg(feature = "png")]
pub mod raster;

#[cfg(not(feature = "png"))]
pub use no_raster as raster;

use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::{fs, thread};

use ::diagnose::FlowReport;
use report::Capture;
use report::sequence::{named, svg, xplot_files};

use crate::failure::Failure;
use crate::file;

/// Writes an SVG file for each connection with findings, drawn by as many threads as there are CPUs.
pub fn write_svg(captures: &[Capture], directory: &Path) -> Result<(), Failure> {
    let flows: Vec<(String, &FlowReport)> = named(captures).collect();
    if flows.is_empty() {
        return Ok(());
    }
    let directory = create_directory(directory)?;
    let thread_count = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let chunks = flows.chunks(flows.len().div_ceil(thread_count));
        let threads: Vec<_> =
            chunks.map(|chunk| scope.spawn(move || write_chunk(chunk, directory))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn write_chunk(flows: &[(String, &FlowReport)], directory: &Path) -> Result<(), Failure> {
    for (name, flow) in flows {
        if let Some(svg) = svg(flow) {
            file::write_unsynced(&directory.join(format!("{name}.svg")), svg.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes a PNG file for each connection with findings.
pub fn write_png(captures: &[Capture], directory: &Path) -> Result<(), Failure> {
    let raster = raster::Raster::new();
    for (name, flow) in named(captures) {
        if let Some(svg) = svg(flow) {
            let path = create_directory(directory)?.join(format!("{name}.png"));
            let write_error = |error| Failure::Write { path: path.clone(), error };
            let image = raster.image(&svg).map_err(write_error)?;
            file::write_unsynced(&path, &image)?;
        }
    }
    Ok(())
}

/// Writes two files for each connection with findings, one for each direction.
pub fn write_xplot(captures: &[Capture], directory: &Path) -> Result<(), Failure> {
    for (name, flow) in named(captures) {
        for (sender, text) in xplot_files(flow) {
            let path = create_directory(directory)?.join(format!("{name}-{sender}.xpl"));
            file::write_unsynced(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

/// Creates the directory if it does not exist.
fn create_directory(directory: &Path) -> Result<&Path, Failure> {
    let write_error = |error| Failure::Write { path: directory.to_owned(), error };
    fs::create_dir_all(directory).map_err(write_error).map(|()| directory)
}
