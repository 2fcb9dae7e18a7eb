//! Captures: read to their end, then shown as the command line shows them.

use std::io;
use std::sync::Arc;

use diagnose::{FlowReport, KeyLog};
use packets::{Reader, Unreadable};
use render::plot::svg::INTERACTIVE_STYLE;
use render::terminal::Terminal;
use report::filter::Filter;
use report::reading::CaptureReader;
use report::verdict::{self, Policy};
use report::{Capture, csv, har, json, page, reading, text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::input::PageFile;

/// A capture to read, with the filter of `roundtrip diagnose`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Name of the file.
    name: String,
    /// The file.
    file: u32,
    /// `--flow`: parts of connections.
    #[serde(default)]
    flows: Vec<String>,
    /// `--cause`: names of causes.
    #[serde(default)]
    causes: Vec<String>,
    /// `--since`: a duration.
    since: Option<String>,
    /// `--keys`: text of a key log.
    keys: Option<String>,
}

impl Reading {
    /// Reads and diagnoses it.
    ///
    /// # Errors
    /// The sentence of the command line.
    pub fn read(&self) -> Result<Capture, String> {
        let Self { name, file, flows, causes, since, keys } = self;
        let filter = Filter::new(flows, causes, since.as_deref()).map_err(|error| error.to_string())?;
        let unreadable = |error: io::Error| format!("cannot read {name}: {error}");
        let refused = |error: Unreadable| match error {
            Unreadable::Io(error) => unreadable(error),
            error => format!("{name}: {error}"),
        };
        let bytes = unpack::unpacked(PageFile::new(*file)).map_err(unreadable)?;
        let reader = Reader::new(bytes).map_err(refused)?;
        let keys = keys.as_ref().map(|text| {
            let mut log = KeyLog::default();
            log.read(text.as_bytes());
            Arc::new(log)
        });
        let reading = CaptureReader::new(name.clone(), &filter, true).with_keys(keys);
        reading::read_into(reading, reader).map_err(refused)
    }
}

/// A capture as the page shows it: its overview as HTML, and a row for each connection.
pub fn view(capture: &Capture) -> Value {
    let row = |(index, flow): (usize, &FlowReport)| {
        json!({
            "flow": index,
            "client": flow.client.to_string(),
            "server": flow.server.to_string(),
            "protocol": flow.protocol.name(),
            "packets": flow.packets,
            "bytes": flow.bytes.get(),
            "requests": flow.requests,
            "at_ms": capture.millis(flow.started),
            "elapsed_ms": flow.elapsed.as_millis_f64(),
            "lost_ms": page::lost(flow).as_millis_f64(),
            "cause": page::main_cause(flow).map(|cause| cause.name()),
            "causes": flow.counts.iter().map(|count| count.cause.name()).collect::<Vec<_>>(),
            "findings": flow.findings.len(),
        })
    };
    json!({
        "name": capture.name,
        "packets": capture.packets,
        "html": page::overview(capture),
        "connections": capture.flows.iter().enumerate().map(row).collect::<Vec<_>>(),
    })
}

/// One connection as HTML: plot, findings, requests, account. The page's style sheet has the style of its plot.
pub fn connection(captures: &[Capture], flow: usize, number: u32) -> Option<String> {
    let [capture] = captures else { return None };
    let section = page::connection(capture, capture.flows.get(flow)?, &format!("connection-{number}"));
    Some(section.replace(INTERACTIVE_STYLE, ""))
}

/// The plot of one connection, as a file.
pub fn plot(captures: &[Capture], flow: usize) -> Option<String> {
    let [capture] = captures else { return None };
    report::sequence::svg(capture.flows.get(flow)?)
}

/// The capture in a format of `roundtrip diagnose`.
///
/// # Errors
/// An unknown format.
pub fn export(captures: &[Capture], format: &str) -> Result<String, String> {
    match format {
        "html" => Ok(page::page(captures)),
        "json" => Ok(json::text(captures, &verdict::judge(captures, &Policy::default()))),
        "csv" => Ok(csv::text(captures)),
        "har" => Ok(har::text(captures)),
        "table" => Ok(text::render(captures, Terminal { width: None, colour: false })),
        other => Err(format!("{other}: unknown format; choose html, json, csv, har or table")),
    }
}
